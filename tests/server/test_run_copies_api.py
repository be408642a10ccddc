"""Copies of runs over HTTP: fork with its receipt, compare, export, import, verify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.server.served import served
from tests.server.team_workspace import ordinary_day, triage, write_documents

from quire.display.why import diff_data
from quire.runs.diff import diff
from quire.runs.export import export_lines
from quire.runs.why import traced
from quire.values import decode, encode

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def read(client: httpx2.AsyncClient, path: str, **query: Any) -> dict[str, Any]:
    answer = await client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_fork_shows_its_receipt_and_leaves_the_old_run_alone(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server, server.client() as client:
        write_documents(server.folder)
        runs = await ordinary_day(server.site.runtime)
        done = runs["done"]
        before = await export_lines(server.site.runtime, done)
        form = await read(client, f"/runs/{done}/fork")
        assert form["values"]["service"] == "login"
        assert form["inputs"]["properties"]["customers"]["type"] == "number"
        assert [step["label"] for step in form["steps"] if step["reached"]][:3] == ["1", "1a", "1b"]
        assert [step["first"] for step in form["steps"]][:2] == [True, False]
        receipt = (await client.post(f"/runs/{done}/fork/preview", json={"from": "3"})).json()
        again = [step["label"] for step in receipt["again"]]
        assert receipt["kept"]["effects"] > 0 and receipt["kept"]["cost"] > 0
        assert again[0] == "3"
        assert receipt["summary"].startswith(f"keeps {receipt['kept']['effects']} recorded effects ($")
        most = receipt["bounds"]["model_calls"]["most"]
        assert f"does {len(again)} steps again, at most {most} model calls" in receipt["summary"]
        assert receipt["command"] == f"quire runs fork {done} --from 3"
        body = {"from": "1", "set": {"service": "search"}, "budget": 2, "answers": {"4": "yes", "6a": "later"}}
        first = (await client.post(f"/runs/{done}/fork/preview", json=body)).json()
        assert first["command"] == f"quire runs fork {done} --from 1 --set service=search --budget 2"
        assert (first["kept"]["effects"], first["budget"]) == (0, 2)
        assert len((await read(client, "/runs"))["items"]) == len(runs)
        made = await client.post(f"/runs/{done}/fork", json=body, headers={"Prefer": "wait=20"})
        assert made.status_code == 201
        row = made.json()
        assert made.headers["location"].endswith(row["id"])
        assert (row["origin"]["run"], row["status"]) == (done, "completed")
        assert [one["id"] for one in (await read(client, "/runs", origin=done))["items"]] == [row["id"], runs["fork"]]
        assert await export_lines(server.site.runtime, done) == before
        for wrong, code in (
            ({"from": "99"}, "cannot-start"),
            ({"from": "1", "set": {"nothing": 1}}, "bad-inputs"),
            ({"from": "2", "set": {"nothing": 1}}, "bad-inputs"),
            ({"from": "2", "allow": ["shell__run"]}, "bad-inputs"),
            ({"set": {}}, "unfit-body"),
        ):
            for path in ("fork/preview", "fork"):
                answer = await client.post(f"/runs/{done}/{path}", json=wrong)
                assert (answer.status_code, answer.json()["code"]) == (422, code)


async def test_the_receipt_of_a_fan_out_counts_its_items(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server, server.client() as client:
        write_documents(server.folder)
        runs = await ordinary_day(server.site.runtime)
        form = await read(client, f"/runs/{runs['triage']}/fork")
        assert [step["path"] for step in form["steps"]] == ["1", "2", "3"]
        receipt = (await client.post(f"/runs/{runs['triage']}/fork/preview", json={"from": "3"})).json()
        # Every effect of the fan-out is kept; only the summary is written anew.
        assert (receipt["kept"]["effects"], receipt["bounds"]["model_calls"]["least"]) == (40, 1)
        large = await triage(server.site.runtime, 400)
        brief = await read(client, f"/runs/{runs['triage']}/diff/{large}", brief="true")
        (inputs,) = [change for change in brief["about"] if change["where"] == "tickets"]
        assert (inputs["a"], inputs["b"]) == (None, None) and inputs["sizes"][1] > inputs["sizes"][0] > 0
        whole = await read(client, f"/runs/{runs['triage']}/diff/{large}")
        assert len(next(change for change in whole["about"] if change["where"] == "tickets")["b"]) == 400
        assert [step["path"] for step in receipt["again"]] == ["3"]


async def test_compare_is_the_diff_of_the_command_line(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server, server.client() as client:
        write_documents(server.folder)
        runs = await ordinary_day(server.site.runtime)
        a, b = [await traced(server.site.runtime, runs[name]) for name in ("done", "fork")]
        whole = await read(client, f"/runs/{runs['done']}/diff/{runs['fork']}", limit=500)
        said = decode(encode(diff_data(a, b, diff(a, b))))
        assert isinstance(said, dict)
        assert {name: whole[name] for name in ("a", "b", "same", "about")} == {
            name: said[name] for name in ("a", "b", "same", "about")
        }
        steps = [{key: one[key] for key in one if key not in ("changes_total", "kinds")} for one in whole["steps"]]
        assert steps == said["steps"]
        assert whole["rows"]["b"]["origin"]["run"] == runs["done"]
        brief = await read(client, f"/runs/{runs['done']}/diff/{runs['fork']}", brief="true")
        changed = [step for step in brief["steps"] if step["state"] == "changed"]
        assert changed and all(step["changes"] == [] and step["changes_total"] for step in changed)
        assert changed[0]["spent"]["a"]["elapsed"] >= 0
        one = await read(client, f"/runs/{runs['done']}/diff/{runs['fork']}", step=changed[0]["path"], limit=1)
        assert [step["path"] for step in one["steps"]] == [changed[0]["path"]]
        assert len(one["steps"][0]["changes"]) == 1
        assert (await client.get(f"/runs/{runs['done']}/diff/nothing")).json()["code"] == "no-such-run"
        assert (await client.get(f"/runs/{a.row.id}/diff/{b.row.id}?step=77")).json()["code"] == "no-such-step"


async def test_an_exported_run_is_verified_and_taken_in(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server, server.client() as client:
        write_documents(server.folder)
        runs = await ordinary_day(server.site.runtime)
        exported = await client.get(f"/runs/{runs['done']}/export")
        assert exported.headers["content-disposition"] == f'attachment; filename="{runs["done"]}.jsonl"'
        assert exported.text.splitlines() == await export_lines(server.site.runtime, runs["done"])
        assert (await read(client, f"/runs/{runs['done']}/verify"))["ok"] is True
        text = exported.text
    async with served(tmp_path / "other", {}) as server, server.client() as client:
        verdict = (await client.post("/runs/verify", json={"text": text, "name": "a.jsonl"})).json()
        assert (verdict["ok"], verdict["run"], verdict["known"]) == (True, runs["done"], False)
        assert (await read(client, "/runs"))["items"] == []
        taken = await client.post("/runs/import", json={"text": text})
        assert (taken.status_code, taken.json()["run"]) == (201, runs["done"])
        assert (await read(client, f"/runs/{runs['done']}"))["imported"] == {"status": "completed"}
        again = await client.post("/runs/import", json={"text": text})
        assert (again.status_code, again.json()["code"]) == (409, "run-state")
        lines = text.splitlines(keepends=True)
        changed = "".join([*lines[:3], lines[3].replace("model", "modem", 1), *lines[4:]])
        for wrong, line in ((changed, 4), ("not a run", None), ("", None), (json.dumps({"prev": ""}), None)):
            verdict = (await client.post("/runs/verify", json={"text": wrong, "name": "a.jsonl"})).json()
            assert (verdict["ok"], verdict["line"]) == (False, line)
            refused = await client.post("/runs/import", json={"text": wrong, "name": "a.jsonl"})
            assert (refused.status_code, refused.json()["detail"]) == (422, verdict["problem"])


async def test_near_misses_are_a_problem_unless_they_are_forced(tmp_path: Path) -> None:
    """Newcomer G1, over HTTP."""
    async with served(tmp_path / "team", {}) as server, server.client() as client:
        server.write("page.playbook.md", "# P\n\n## STEP 1: A\n\n@elicit(confirm, Sure?)\n")
        body = {"document": "page.playbook.md", "model": server.script("replies.json", [{"default": "x"}])}
        refused = await client.post("/runs", json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "near-misses")
        assert refused.headers["content-type"] == "application/problem+json"
        assert [one["code"] for one in refused.json()["diagnostics"]] == ["PB106"]
        assert (await read(client, "/runs"))["items"] == []
        made = await client.post("/runs", json={**body, "force": True}, headers={"Prefer": "wait=20"})
        assert (made.status_code, made.json()["forced"]) == (201, ["PB106"])
        forked = await client.post(f"/runs/{made.json()['id']}/fork", json={"from": "1"})
        assert (forked.status_code, forked.json()["forced"]) == (201, ["PB106"])
