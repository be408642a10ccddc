"""The list of runs over HTTP: pages, filters, counts, several runs at once, delete and prune."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
            ({"until": "99999999999", "q": "poem"}, poems),
            ({"until": "5"}, []),
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
        more = ("result", "steps", "took", "model")  # the server has them at hand
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


FAILS = "# Look\n\n## INPUTS\n\n- `place` (string)\n\n## STEP 1: See\n\nSee {{place}}.\n\n## STEP 2: Say\n\nSay it.\n"


async def test_rows_say_what_a_run_is_about_and_has_come_to(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {**DOCUMENTS, "look.playbook.md": FAILS}) as server, server.client() as client:
        (poem,) = await ended(server, 1)
        notes = await driven(server, "notes.playbook.md", inputs={"version": "2.0"})
        broken = server.script("broken.json", [{"reply": "seen"}, {"error": "no connection to place 17"}])
        failed = [
            await driven(server, "look.playbook.md", inputs={"place": f"place {number}"}, model=broken)
            for number in (16, 17)
        ]
        items = {row["id"]: row for row in (await client.get("/runs")).json()["items"]}
        assert items[failed[1]]["subject"] == items[failed[1]]["label"] == "place 17"
        assert items[failed[1]]["result"].startswith("no connection")
        assert items[failed[1]]["steps"] == {"at": 2, "of": 2} and 0 < items[failed[1]]["took"] < 60
        assert (items[notes]["subject"], items[notes]["result"]) == ("2.0", "Publish?")
        assert (items[poem]["result"], items[poem]["steps"]) == ("A poem.", {"at": 1, "of": 1})
        page = (await client.get("/runs", params={"sort": "subject", "limit": 2})).json()
        rest = (await client.get("/runs", params={"sort": "subject", "after": page["next"]})).json()
        labels = [row["label"] for row in (*page["items"], *rest["items"])]
        assert labels == sorted(labels, key=str.lower) and len(labels) == 4
        assert (await client.get("/runs", params={"sort": "cost", "after": page["next"]})).status_code == 422
        groups = (await client.get("/runs/groups", params={"by": "error"})).json()
        (group,) = groups["groups"]
        assert (group["count"], group["message"], group["runs"]) == (2, "no connection to place #", failed[::-1])
        assert (group["statuses"], group["title"], group["latest"]["id"]) == ({"failed": 2}, "Look", failed[1])
        by_document = (await client.get("/runs/groups")).json()
        assert [(group["title"], group["count"]) for group in by_document["groups"]] == [
            ("Look", 2),
            ("Notes", 1),
            ("Poem", 1),
        ]
        assert by_document["groups"][2]["statuses"] == {"completed": 1} and by_document["more"] == 0
        asks = (await client.get("/questions")).json()["items"][0]
        assert (asks["title"], asks["subject"]) == ("Notes", "2.0")
        now = (await client.get("/now")).json()
        assert now["questions"]["groups"][0]["items"][0]["subject"] == "2.0"
        assert now["finished"][0]["result"] == "A poem."
        found = (await client.get("/search", params={"q": "place 16"})).json()["found"]
        assert [row["id"] for row in found["runs"]] == [failed[0]]
        assert (await client.get("/artifacts")).json()["items"][0]["subject"] == items[poem]["label"]


async def test_the_pulse_counts_days_and_is_dropped_by_changes(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        empty = (await client.get("/pulse", params={"days": "3"})).json()
        assert [day["runs"] for day in empty["days"]] == [0, 0, 0] and empty["waited"] is None
        assert (await client.get("/pulse", params={"days": "3"})).json() == empty
        await ended(server, 2)
        run = await driven(server, "notes.playbook.md", inputs={"version": "2.0"})
        pulse = (await client.get("/pulse", params={"days": "3"})).json()
        today = pulse["days"][-1]
        assert (today["runs"], today["completed"], today["failed"], today["cost"]) == (3, 2, 0, 0.0)
        assert (pulse["waiting"], pulse["waited"]) == (1, None)
        assert today["since"] < (await client.get(f"/runs/{run}")).json()["created_at"] < today["until"]
        question = (await client.get("/questions")).json()["items"][0]
        answer = {"value": "yes", "hash": question["hash"]}
        await client.post(f"/questions/{run}/{question['path']}/answer", json=answer)
        await server.site.runs.ended(run, 10)
        pulse = (await client.get("/pulse", params={"days": "3"})).json()
        assert pulse["waiting"] == 0 and 0 <= pulse["waited"] < 60
        assert [day["waited"] for day in pulse["days"]] == [None, None, pulse["waited"]]
        assert (await client.get("/pulse", params={"days": "93"})).status_code == 422


async def test_a_label_is_for_people_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        run = await driven(server, "notes.playbook.md", inputs={"version": "2.0"})
        before = (await client.get("/runs")).json()["items"][0]
        listener = server.site.hub.join({}, whole=True)
        row = (
            await client.patch(f"/runs/{run}", json={"name": " the one\n we sent ", "note": "a\nb", "seen": True})
        ).json()
        assert (row["name"], row["label"], row["note"]) == ("the one we sent", "the one we sent", "a\nb")
        frame = await asyncio.wait_for(anext(listener.frames()), 10)
        assert frame.event == "runs" and frame.data["rows"][0]["label"] == "the one we sent"  # type: ignore[index, call-overload]
        after = (await client.get("/runs")).json()["items"][0]
        changed = ("name", "label", "note", "seen_at")
        assert {**after, **{name: before[name] for name in changed}} == before and after["seen_at"] > 0
        await server.site.runtime.store.check_seal(run)
        for body in ({"name": "x" * 81}, {"note": "x" * 2001}, {"seen": "yes"}, {"title": "x"}):
            assert (await client.patch(f"/runs/{run}", json=body)).json()["code"] == "unfit-body"
        assert (await client.patch("/runs/none", json={"name": "x"})).status_code == 404
        exported = (await client.get(f"/runs/{run}/export")).text
        assert json.loads(exported.splitlines()[0])["run"]["name"] == "the one we sent"
        monkeypatch.chdir(server.folder)
        monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "team-home"))
        label = await asyncio.to_thread(CliRunner().invoke, command, ["label", run, "--name", "", "--unseen", "--json"])
        row = json.loads(label.stdout)
        assert (row["name"], row["label"], row["note"], row["seen_at"]) == (None, "2.0", "a\nb", None)
        long = await asyncio.to_thread(CliRunner().invoke, command, ["label", run, "--name", "x" * 81])
        assert long.exit_code == 2 and "--name has 81 characters: at most 80" in long.output


SAYS = """# Say

## INPUTS

- `word` (string): The word
- `other` (string: none): Another

## STEP 1: First

Say {{word}}.

## STEP 2: Second

Say {{word}} and {{other}}.
"""


async def test_a_run_is_done_again_with_its_inputs_and_options(tmp_path: Path) -> None:
    documents = {**DOCUMENTS, "say.playbook.md": SAYS}
    async with served(tmp_path / "team", documents) as server, server.client() as client:
        inputs = {"word": "a", "other": "b"}
        run = await driven(server, "say.playbook.md", inputs=inputs, breakpoints=["1"], budget=3)

        async def again(status: int = 201, **body: object) -> dict[str, Any]:
            answer = await client.post("/runs", json={"like": run, **body}, headers={"Prefer": "wait=10"})
            assert answer.status_code == status, answer.text
            return answer.json()

        async def pins(row: dict[str, Any]) -> Mapping[str, Any]:
            return (await server.site.runtime.row(row["id"])).pins

        same = await again()
        before, after = await pins({"id": run}), await pins(same)
        assert same["id"] != run and same["status"] == "paused"
        assert {name: after[name] for name in before if name != "warnings"} == {
            name: before[name] for name in before if name != "warnings"
        }
        form = (await client.get(f"/runs/{run}/fork")).json()
        assert (form["values"], form["options"]["breakpoints"], form["options"]["budget"]) == (inputs, ["1"], 3)
        other = await pins(await again(inputs={"other": "c"}, budget=None))
        assert (other["inputs"], other["budget"], other["breakpoints"]) == ({"word": "a", "other": "c"}, None, ["1"])
        assert (await again(422, document="poem.playbook.md"))["code"] == "unfit-body"
        assert (await client.post("/runs", json={})).json()["code"] == "unfit-body"
        assert (await client.post("/runs", json={"like": "nothing"})).status_code == 404
        # The document is the file as it is now.
        server.write(
            "say.playbook.md",
            SAYS.replace("Say {{word}} and {{other}}.", "Shout {{word}}.").replace(
                "- `other` (string: none): Another\n", ""
            ),
        )
        changed = await pins(await again())
        assert changed["inputs"] == {"word": "a"} and changed["document"] != before["document"]


async def test_a_redacted_input_has_to_be_given_again(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"say.playbook.md": SAYS}) as server, server.client() as client:
        run = await driven(server, "say.playbook.md", inputs={"word": "x [redacted:KEY]", "other": "b"})
        refused = await client.post("/runs", json={"like": run})
        assert (refused.status_code, refused.json()["code"]) == (422, "bad-inputs")
        assert refused.json()["fields"][0]["pointer"] == "/inputs/word"
        assert (await client.post("/runs", json={"like": run, "inputs": {"word": "y"}})).status_code == 201


async def test_consent_to_a_text_is_not_taken_to_another(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        run = await driven(server, "notes.playbook.md", inputs={"version": "1"}, answers={"1": "yes"})
        wait = {"Prefer": "wait=10"}
        same = (await client.post("/runs", json={"like": run}, headers=wait)).json()
        assert same["status"] == "completed", "the prepared answer is one of its options"
        server.write("notes.playbook.md", ASKS.replace("Publish?", "Delete everything?"))
        asked = (await client.post("/runs", json={"like": run}, headers=wait)).json()
        assert asked["status"] == "awaiting_input"


async def test_several_runs_are_resumed_within_one_budget(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {**DOCUMENTS, "look.playbook.md": FAILS}) as server, server.client() as client:
        usage = {"usage": {"input_tokens": 10, "output_tokens": 5, "cost": 0.25}}
        failed = []
        for number in range(3):
            replies = [{"reply": "gone", **usage}, {"error": "lost"}, {"reply": "seen", **usage}]
            model = server.script(f"broken{number}.json", replies)
            failed.append(await driven(server, "look.playbook.md", inputs={"place": f"p {number}"}, model=model))
        (poem,) = await ended(server, 1)
        runs = [*failed, poem, failed[0]]
        receipt = (await client.post("/runs/resume", json={"runs": runs, "budget": 1.5, "dry_run": True})).json()
        assert receipt["summary"] == "continues 3 runs of 4; at most 3 model calls; spends at most $1.5000 more"
        assert [line["problem"] for line in receipt["runs"]] == [None, None, None, "the run is complete"]
        assert [line["budget"] for line in receipt["runs"][:3]] == [0.75, 0.75, 0.75]
        assert receipt["command"] == f"quire resume {' '.join(failed)} --budget 1.5"
        assert {str((await server.site.runtime.row(run)).status) for run in failed} == {"failed"}
        answer = await client.post("/runs/resume", json={"runs": runs, "budget": 1.5})
        assert answer.status_code == 202
        for run in failed:
            await server.site.runs.ended(run, 10)
            row = await server.site.runtime.row(run)
            assert (str(row.status), row.cost) == ("completed", 0.5)
            assert (await server.site.runtime.view(run)).pins.budget == 0.75
        unfit: tuple[dict[str, object], ...] = ({"runs": []}, {"runs": ["x"] * 101}, {"runs": failed, "budget": -1})
        for body in unfit:
            assert (await client.post("/runs/resume", json=body)).status_code == 422
        assert (await client.post("/runs/resume", json={"runs": ["nothing"]})).status_code == 404


async def test_a_run_of_others_gives_no_options(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        run = await driven(server, "notes.playbook.md", inputs={"version": "1"}, answers={"1": "yes"}, unattended=True)
        exported = (await client.get(f"/runs/{run}/export")).text
        await client.request("DELETE", f"/runs/{run}", json={})
        assert (await client.post("/runs/import", json={"text": exported})).status_code == 201
        form = (await client.get(f"/runs/{run}/fork")).json()
        assert (form["values"], form["options"]) == ({"version": "1"}, {})
        answer = await client.post("/runs", json={"like": run}, headers={"Prefer": "wait=10"})
        assert (answer.status_code, answer.json()["status"]) == (201, "awaiting_input"), answer.text
