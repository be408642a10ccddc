"""The list of runs over HTTP: pages, filters, counts, several runs at once, delete and prune."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.server.served import Served, served

from quire.cli.runs import command

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASKS = """# Notes

## INPUTS

- `version` (string): The version

## STEP 1: Decide

@elicit(confirm, "Publish?")
"""
DONE = "# Poem\n\n## STEP 1: Write\n\nWrite a poem.\n"
DOCUMENTS = {"notes.playbook.md": ASKS, "poem.playbook.md": DONE}


async def driven(server: Served, document: str, **body: object) -> str:
    """Start a run, wait until it rests, and return its id."""
    model = server.script("poem.json", [{"default": "A poem."}])
    async with server.client() as client:
        whole = {"document": document, "model": model, **body}
        answer = await client.post("/runs", json=whole, headers={"Prefer": "wait=10"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def ended(server: Served, count: int) -> list[str]:
    """Start runs that end at once, and return their ids, the newest first."""
    return [await driven(server, "poem.playbook.md") for _ in range(count)][::-1]


async def test_pages_filters_and_counts(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        poems = await ended(server, 5)
        notes = await driven(server, "notes.playbook.md", inputs={"version": "2.0"})
        first = await client.get("/runs", params={"limit": 4, "status": ["completed", "awaiting_input"]})
        assert [row["id"] for row in first.json()["items"]] == [notes, *poems[:3]]
        link = first.headers["link"]
        assert link.endswith('>; rel="next"') and "status=completed&status=awaiting_input" in link
        second = await client.get(link[1:].partition(">")[0].removeprefix("/api/v1"))
        assert ([row["id"] for row in second.json()["items"]], second.json()["next"]) == (poems[3:], None)
        assert "link" not in second.headers
        for query, found in (
            ({"q": "NOTES"}, [notes]),
            ({"q": "2.0"}, [notes]),
            ({"asks": "true"}, [notes]),
            ({"document": "poem.playbook.md"}, poems),
            ({"status": "failed"}, []),
            ({"since": "99999999999"}, []),
            ({"origin": poems[0]}, []),
            ({"format": "pipeline"}, []),
        ):
            items = (await client.get("/runs", params=query)).json()["items"]
            assert [row["id"] for row in items] == found, query
        counts = (await client.get("/runs/counts", params={"q": "poem"})).json()
        assert (counts["statuses"]["completed"], counts["asks"], counts["total"], counts["more"]) == (5, 0, 5, [])
        assert (await client.get("/runs/counts")).json()["asks"] == 1
        for query, code in (
            ({"after": "x"}, "unfit-parameters"),
            ({"status": "gone"}, "unfit-parameters"),
            ({"limit": "501"}, "unfit-parameters"),
            ({"since": "soon"}, "unfit-parameters"),
            ({"offset": "3"}, "unknown-parameter"),
        ):
            wrong = await client.get("/runs", params=query)
            assert (wrong.status_code, wrong.json()["code"]) == (422, code)


async def test_the_list_is_that_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        await ended(server, 2)
        monkeypatch.chdir(server.folder)
        monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "team-home"))
        listed = await asyncio.to_thread(CliRunner().invoke, command, ["--json"])
        items = (await client.get("/runs")).json()["items"]
        more = ("result", "steps", "took")  # the server has them at hand
        rows = [{name: value for name, value in item.items() if name not in more} for item in items]
        assert json.loads(listed.stdout) == rows and all(item["result"] == "A poem." for item in items)


async def test_delete_and_prune_take_only_what_has_ended(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        poems = await ended(server, 4)
        notes = await driven(server, "notes.playbook.md", inputs={"version": "2.0"})
        actions = (await client.post("/runs/actions", json={"runs": [notes, *poems, "nothing"]})).json()
        assert (actions["cancel"]["runs"], actions["resume"]["runs"]) == ([notes], [])
        assert sorted(actions["prune"]["runs"]) == sorted(poems)
        assert actions["cancel"]["command"] == f"quire runs cancel {notes}"
        assert len(actions["export"]["command"].split("\n")) == 5
        waiting = await client.request("DELETE", f"/runs/{notes}", json={})
        assert (waiting.status_code, waiting.json()["code"]) == (409, "run-state")
        gone = await client.request("DELETE", f"/runs/{poems[0]}", json={})
        assert gone.json()["runs"] == [poems[0]]
        again = await client.request("DELETE", f"/runs/{poems[0]}", json={})
        assert (again.status_code, again.json()["code"]) == (404, "no-such-run")
        would = await client.post("/runs/prune", json={"runs": [poems[1], notes], "dry_run": True})
        assert (would.json()["runs"], would.json()["dry_run"]) == ([poems[1]], True)
        done = await client.post("/runs/prune", json={"runs": [poems[1], notes]})
        assert done.json()["runs"] == [poems[1]]
        young = await client.post("/runs/prune", json={"older_than": 3600})
        assert young.json()["runs"] == []
        rest = await client.post("/runs/prune", json={"older_than": 0, "statuses": ["completed"]})
        assert sorted(rest.json()["runs"]) == sorted(poems[2:])
        assert [row["id"] for row in (await client.get("/runs")).json()["items"]] == [notes]
        for body in ({}, {"older_than": 1, "runs": []}, {"older_than": -1}, {"statuses": ["running"], "older_than": 1}):
            assert (await client.post("/runs/prune", json=body)).json()["code"] == "unfit-body"
