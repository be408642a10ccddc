"""The parts of one run over HTTP: steps, journal, values, document and artifact, as pages and programs read them."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from tests.server.long_run import MANY, ten_thousand
from tests.server.served import TOKEN, Served, served
from tests.server.team_workspace import incident, ordinary_day, write_documents

from quire.display.why import why_data
from quire.runs.why import traced, why

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def team(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Served, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("parts") / "team"
    folder.mkdir()
    write_documents(folder)
    async with served(folder, {}) as server:
        yield server, await ordinary_day(server.site.runtime)


async def got(server: Served, path: str, **query: Any) -> Any:
    async with server.client() as client:
        answer = await client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()


async def test_the_head_has_steps_questions_and_legal_actions(team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    head = await got(server, f"/runs/{runs['waiting']}")
    assert head["status"] == "awaiting_input"
    assert [step["path"] for step in head["steps"]][:2] == ["1", "1/case[1]/1"]
    assert "output" not in head["steps"][0]
    assert head["questions"][0]["hash"]
    assert {one["name"]: one["command"] for one in head["actions"]} == {
        "answer": f"quire answer {runs['waiting']} VALUE",
        "cancel": f"quire runs cancel {runs['waiting']}",
        "fork": f"quire runs fork {runs['waiting']} --from STEP",
        "compare": f"quire runs diff {runs['waiting']} OTHER",
        "export": f"quire runs export {runs['waiting']} -o {runs['waiting']}.jsonl",
    }
    assert head["document_id"] == "incident-report.playbook.md"
    assert head["document_changed"] is False


async def test_an_unchanged_head_is_not_sent_again(team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    async with server.client() as client:
        first = await client.get(f"/runs/{runs['done']}")
        again = await client.get(f"/runs/{runs['done']}", headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert "content-length" not in again.headers
        other = await client.get(f"/runs/{runs['done']}", headers={"If-None-Match": '"other"'})
        assert other.status_code == 200


async def test_a_paused_run_can_be_set_and_resumed(team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    head = await got(server, f"/runs/{runs['paused']}")
    assert head["settable"] is True
    assert "--set NAME=VALUE" in next(one["command"] for one in head["actions"] if one["name"] == "resume")


async def test_a_step_has_its_prompt_marked_with_who_wrote_what(team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    step = await got(server, f"/runs/{runs['done']}/steps/1")
    effect = step["effects"][0]
    (message,) = effect["messages"]
    marked = {one["name"]: one for one in message["pieces"] if "name" in one}
    assert marked["notes"]["source"] == "input"
    assert "the login service was down" in marked["notes"]["text"]
    assert "".join(one["text"] for one in message["pieces"]).count("login") >= 1
    assert effect["answer_value"]["text"] and effect["html"].startswith("<")
    assert effect["usage"]["input_tokens"] > 0
    assert step["commands"]["why"] == f"quire runs why {runs['done']} 1"
    # A later step reads what an earlier one has written, and names it.
    paths = [one["path"] for one in (await got(server, f"/runs/{runs['done']}"))["steps"]]
    steps = [await got(server, f"/runs/{runs['done']}/steps/{path}") for path in paths]
    written = [
        piece
        for step in steps
        for effect in step["effects"]
        for message in effect.get("messages", ())
        for piece in message["pieces"]
        if piece.get("path")
    ]
    assert written and all(piece["path"] in paths for piece in written)


async def test_an_item_of_a_fan_out_opens_at_its_path(team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    fan = await got(server, f"/runs/{runs['triage']}/steps/2")
    assert fan["items"] == {"total": 40, "done": 34, "failed": 6}
    assert len(fan["effects"]) == 40 and fan["next"] is None
    item = await got(server, f"/runs/{runs['triage']}/steps/2/for_each[0]")
    pieces = item["effects"][0]["messages"][0]["pieces"]
    assert {one["name"]: one["text"] for one in pieces if "name" in one} == {
        "item.id": "T-4100",
        "item.customer": "Northwind",
        "item.plan": "team",
        "item.text": "The export of invoices stops at row 1,000.",
    }
    failed = await got(server, f"/runs/{runs['triage']}/steps/2/for_each[5]")
    assert failed["effects"][-1]["error"]["message"].startswith("the connection was lost")


async def test_why_is_what_the_command_line_prints(team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    found = why_data(why(await traced(server.site.runtime, runs["done"]), "2"))
    assert await got(server, f"/runs/{runs['done']}/why/2") == json.loads(json.dumps(found))


async def test_the_journal_without_values(team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    at = f"/runs/{runs['triage']}/effects"
    whole = await got(server, at, limit=500)
    assert whole["next"] is None and whole["total"] == len(whole["items"])
    assert all("value" not in one for one in whole["items"])
    assert max(one["value_size"] or 0 for one in whole["items"]) > 50
    columns = (await got(server, at, columns=1))["columns"]
    assert columns["path"] == [one["path"] for one in whole["items"]]
    first = await got(server, at, limit=10)
    second = await got(server, at, limit=10, after=first["next"])
    assert [*first["items"], *second["items"]] == whole["items"][:20]
    last = await got(server, at, limit=5, before=whole["total"])
    assert last["items"] == whole["items"][-5:]
    assert (await got(server, at, limit=5, before=last["next"]))["items"] == whole["items"][-10:-5]
    failed = (await got(server, at, state="failed", kind="model"))["items"]
    assert failed and {one["state"] for one in failed} == {"failed"}
    under = (await got(server, at, under="2/for_each[1]"))["items"]
    assert {one["path"].partition("]")[0] for one in under} == {"2/for_each[1"}
    one = await got(server, f"{at}/{whole['items'][0]['path']}")
    assert "value" in one
    assert one["value"]["text"].startswith("Wants the export fixed")


async def test_events_from_both_ends(team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    at = f"/runs/{runs['done']}/events"
    first = await got(server, at, limit=4)
    assert [one["seq"] for one in first["items"]] == [1, 2, 3, 4]
    assert [one["seq"] for one in (await got(server, at, limit=2, after=first["next"]))["items"]] == [5, 6]
    assert [one["seq"] for one in (await got(server, at, limit=2, before=5))["items"]] == [3, 4]


async def test_values_say_who_wrote_them(team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    values = {one["name"]: one for one in (await got(server, f"/runs/{runs['done']}/values"))["values"]}
    assert (values["service"]["value"], values["service"]["kind"]) == ("login", "input")
    assert {one["kind"] for one in values.values()} == {"input", "result"}
    assert all(one["path"] for one in values.values() if one["kind"] == "result")
    stores = {one["name"]: one for one in (await got(server, f"/runs/{runs['triage']}/values"))["values"]}
    assert stores["summaries"]["source"].startswith("step ")
    assert (await got(server, f"/runs/{runs['done']}/state"))["execution_id"] == runs["done"]


async def test_what_was_set_by_hand_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "team"
    folder.mkdir()
    write_documents(folder)
    async with served(folder, {}) as server, server.client() as client:
        run = await incident(server.site.runtime, answers={"4": "yes", "6a": "x"}, breakpoints=("1",))
        body = {"set": {"service": "payments"}}
        answer = await client.post(f"/runs/{run}/resume", json=body, headers={"Prefer": "wait=20"})
        assert answer.status_code == 202, answer.text
        values = {one["name"]: one for one in (await got(server, f"/runs/{run}/values"))["values"]}
        assert values["service"]["value"] == "payments"
        assert values["service"]["by_hand"] is True
        assert "set at the end of step" in values["service"]["source"]
        server.write("incident-report.playbook.md", "# Another\n\n## STEP 1\n\nHello.\n")
        assert (await got(server, f"/runs/{run}"))["document_changed"] is True
        pinned = await got(server, f"/runs/{run}/document")
        assert (pinned["changed"], pinned["now"][:9]) == (True, "# Another")
        assert pinned["pinned"] != pinned["now"]


async def test_the_artifact_as_text_html_and_download(team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    text = await got(server, f"/runs/{runs['release']}/artifact")
    html = await got(server, f"/runs/{runs['release']}/artifact", **{"as": "html"})
    assert text["type"] == "markdown" and html["html"].startswith("<")
    async with server.client() as client:
        raw = await client.get(f"/runs/{runs['release']}/artifact?as=download")
        assert raw.text == text["text"]
        assert raw.headers["content-disposition"].startswith("attachment;")
        assert raw.headers["x-content-type-options"] == "nosniff"
        waiting = await client.get(f"/runs/{runs['waiting']}/artifact")
        assert (waiting.status_code, waiting.json()["code"]) == (404, "no-artifact")


@pytest.mark.parametrize("path", ["steps/99", "steps/no such", "effects/99/model", "why/99"])
async def test_a_path_that_is_not_there(team: tuple[Served, dict[str, str]], path: str) -> None:
    server, runs = team
    async with server.client() as client:
        answer = await client.get(f"/runs/{runs['done']}/{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "no-such-step")


async def test_the_journal_of_ten_thousand_effects_is_small(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"many.yaml": MANY}) as server:
        run = await ten_thousand(server)
        headers = {"Authorization": f"Bearer {TOKEN}", "Accept-Encoding": "gzip"}
        address = f"http://{server.place}/api/v1/runs/{run}/effects?columns=1&limit=20000"
        async with httpx2.AsyncClient(headers=headers, timeout=30) as client, client.stream("GET", address) as answer:
            packed = b"".join([part async for part in answer.aiter_raw()])
        assert answer.headers["content-encoding"] == "gzip"
        data = json.loads(gzip.decompress(packed))
        assert len(data["columns"]["path"]) == 10_000
        assert len(packed) <= 200_000
