"""Bad input over HTTP: stale versions, two answers at once, a double click, large artifacts, long lists, wide fans."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from tests.depth import depth
from tests.growth import within
from tests.server.served import Served, served

from quire.engine.records import NewRun, Status
from quire.server.site import SiteOptions

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASKS = '# Ask\n\n## STEP 1: Decide\n\n@elicit(confirm, "Go on?")\n'
SAYS = "# Say\n\n## ARTIFACTS\n\ntype: markdown\n\n## STEP 1: Say\n\nSay it.\n"
FAN = """pipeline: fan
steps:
  - for_each:
      over: ctx.items
      max_items: 2000
      max_parallel: 50
      on_error: continue
      do: {agent: {prompt: "Say {item}"}}
      collect: {transform: {value: pipe}}
      output: said
"""


async def _asked(server: Served) -> tuple[str, dict[str, str]]:
    run = (await server.start("ask.playbook.md"))["id"]
    await server.site.runs.ended(run, 30)
    async with server.client() as client:
        question = (await client.get("/questions", params={"run": run})).json()["items"][0]
    return f"/questions/{run}/{question['path']}/answer", question


async def test_of_two_answers_at_once_the_first_counts_and_the_other_is_told(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"ask.playbook.md": ASKS}) as server, server.client() as client:
        path, question = await _asked(server)
        bodies = [{"value": value, "hash": question["hash"]} for value in ("yes", "no")]
        first, second = await asyncio.gather(*(client.post(path, json=body) for body in bodies))
        won, lost = (first, second) if first.status_code == 200 else (second, first)
        assert (won.status_code, lost.status_code) == (200, 409), lost.text
        assert lost.json()["code"] == "already-answered"
        given = bodies[0 if won is first else 1]["value"]
        assert given in lost.json()["detail"], lost.json()
        late = await client.post(path, json=bodies[1])
        assert (late.status_code, late.json()["code"]) == (409, "already-answered")


async def test_an_answer_to_another_wording_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"ask.playbook.md": ASKS}) as server, server.client() as client:
        path, question = await _asked(server)
        for body, status, code in (
            ({"value": "yes", "hash": "0" * 64}, 409, "question-changed"),
            ({"value": "perhaps", "hash": question["hash"]}, 422, "unfit-answer"),
            ({"value": True, "hash": question["hash"]}, 422, "unfit-body"),
            ({"value": "yes"}, 422, "unfit-body"),
        ):
            answer = await client.post(path, json=body)
            assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        nothing = await client.post(path.replace("1/ask", "9/ask"), json={"value": "yes", "hash": "x"})
        assert nothing.status_code == 404
        assert (await client.get("/questions")).json()["total"] == 1


async def test_a_double_click_starts_one_run(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"ask.playbook.md": ASKS}) as server, server.client() as client:
        headers = {"idempotency-key": "one-click"}
        body = {"document": "ask.playbook.md"}
        answers = await asyncio.gather(*(client.post("/runs", json=body, headers=headers) for _ in range(3)))
        assert sorted(answer.status_code for answer in answers)[0] == 201
        assert {answer.json().get("code") for answer in answers if answer.status_code != 201} <= {"in-progress"}
        again = await client.post("/runs", json=body, headers=headers)
        assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")
        other = await client.post("/runs", json={**body, "unattended": True}, headers=headers)
        assert (other.status_code, other.json()["code"]) == (422, "key-reused")
        assert len((await client.get("/runs")).json()["items"]) == 1


async def test_a_stale_version_is_not_saved_and_an_unchanged_one_not_sent(tmp_path: Path) -> None:
    options = SiteOptions(edit=True)
    async with (
        served(tmp_path / "team", {"ask.playbook.md": ASKS}, options=options) as server,
        server.client() as client,
    ):
        path = "/documents/ask.playbook.md"
        tag = (await client.get(path)).headers["etag"]
        assert (await client.get(path, headers={"if-none-match": tag})).status_code == 304
        server.write("ask.playbook.md", ASKS.replace("Go on", "Shall we go on"))
        body = {"text": ASKS.replace("Go on", "Really")}
        stale = await client.put(path, json=body, headers={"if-match": tag})
        assert (stale.status_code, stale.json()["code"]) == (412, "stale")
        without = await client.put(path, json=body)
        assert (without.status_code, without.json()["code"]) == (428, "no-etag")
        assert "Shall we go on" in (server.folder / "ask.playbook.md").read_text()
        run = (await server.start("ask.playbook.md"))["id"]
        await server.site.runs.ended(run, 30)
        head = await client.get(f"/runs/{run}")
        seen = {"if-none-match": head.headers["etag"]}
        assert (await client.get(f"/runs/{run}", headers=seen)).status_code == 304


async def test_nothing_is_saved_without_edit_or_outside_of_the_documents(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"ask.playbook.md": ASKS}) as server, server.client() as client:
        tag = (await client.get("/documents/ask.playbook.md")).headers["etag"]
        off = await client.put("/documents/ask.playbook.md", json={"text": ASKS + "\n"}, headers={"if-match": tag})
        assert (off.status_code, off.json()["code"]) == (403, "editing-off")
    options = SiteOptions(edit=True)
    async with served(tmp_path / "team", {}, options=options) as server, server.client() as client:
        for id in (
            "quire.toml",
            ".mcp.json",
            "%2e%2e/x.playbook.md",
            "../team-home/quire.toml",
            ".quire/quire.db",
            "new.md",
        ):
            answer = await client.put(f"/documents/{id}", json={"text": ASKS}, headers={"if-match": '"x"'})
            assert answer.status_code in (403, 404), (id, answer.text)
        assert (server.folder / "quire.toml").read_text() == ""


async def test_an_artifact_of_two_megabytes(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"say.playbook.md": SAYS}) as server, server.client() as client:
        text = "A line of the report.\n" * 100_000
        body = {"document": "say.playbook.md", "model": server.script("s.json", [text])}
        run = (await client.post("/runs", json=body, headers={"prefer": "wait=30"})).json()["id"]
        with within(10):
            head = await client.get(f"/runs/{run}")
            assert len(head.content) < 50_000
            shown = await client.get(f"/runs/{run}/artifact")
            assert shown.status_code == 200 and len(shown.content) < 700_000
            whole = await client.get(f"/runs/{run}/artifact", params={"as": "download"})
            assert whole.text == text.strip() or whole.text == text
            assert whole.headers["content-disposition"].startswith("attachment")


async def test_a_fan_of_a_thousand(tmp_path: Path) -> None:
    count = depth(300, 1000)
    async with served(tmp_path / "team", {"fan.yaml": FAN}) as server, server.client() as client:
        model = server.script("s.json", [{"default": "said"}])
        inputs, limits = {"items": list(range(count))}, {"calls": 0}
        body = {"document": "fan.yaml", "inputs": inputs, "model": model, "limits": limits}
        run = (await client.post("/runs", json=body, headers={"prefer": "wait=60"})).json()
        assert run["status"] == "completed"
        head = await client.get(f"/runs/{run['id']}")
        assert len(head.content) < 100_000
        page = (await client.get(f"/runs/{run['id']}/effects", params={"limit": 100})).json()
        assert len(page["items"]) == 100 and page["next"]


async def test_the_first_hundred_of_ten_thousand_runs(tmp_path: Path) -> None:
    count = depth(2_000, 10_000)
    async with served(tmp_path / "team", {}) as server, server.client() as client:
        store = server.site.runtime.store
        text = "# T\n\n## STEP 1: A\n\nSay it.\n"
        hash = hashlib.sha256(text.encode()).hexdigest()
        for at in range(count):
            await store.create(
                NewRun(f"r{at:05}", f"Run {at}", "playbook", "t.playbook.md", float(at), {}, {hash: text})
            )
        await client.get("/runs")
        with within(0.06):
            first = (await client.get("/runs", params={"limit": 100})).json()
        assert [row["id"] for row in first["items"]] == [f"r{at:05}" for at in range(count - 1, count - 101, -1)]
        assert first["items"][0]["status"] == Status.PENDING
        second = (await client.get("/runs", params={"limit": 100, "after": first["next"]})).json()
        assert second["items"][0]["id"] == f"r{count - 101:05}"
