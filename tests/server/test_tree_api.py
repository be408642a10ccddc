"""The tree of a run and its texts over HTTP: cold and driven here, of this process and of another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.server.long_run import MANY, ten_thousand
from tests.server.served import Served, served

from quire.display.run_tree_json import TreeRows
from quire.engine.records import Event
from quire.library.document import load
from quire.runs.live_views import LiveViews
from quire.runs.options import RunOptions
from quire.runs.scripts import reopened

pytestmark = pytest.mark.asyncio(loop_scope="session")

NESTED = """pipeline: outer
steps:
- agent: {prompt: "first", output: idea}
- call: {pipeline: inner, pass: {topic: idea}, output: checked}
- for_each:
    over: "['ant', 'bee', 'cow']"
    on_error: continue
    do: {agent: {prompt: "look at {item}"}}
    collect: {transform: {value: pipe}}
    output: looks
"""
TWO = "# Two\n\n## STEP 1: One\n\nSay one.\n\n## STEP 2: Two\n\nSay two.\n"
INNER = """pipeline: inner
steps:
- transform: {value: "topic + '!'", output: loud}
- agent: {prompt: "check {loud}", output: verdict}
- transform: {value: verdict}
"""
ERROR = {"kind": "refused", "message": "no\nmore", "retryable": False}


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    documents = {"outer.yaml": NESTED, "pipelines/inner.yaml": INNER, "many.yaml": MANY, "two.playbook.md": TWO}
    async with served(tmp_path_factory.mktemp("trees") / "team", documents) as server:
        yield server


async def completed(server: Served) -> str:
    replies = [{"contains": "bee", "error": ERROR}, {"default": "# Fine\n\nIt is *good*."}]
    async with server.client() as client:
        body = {"document": "outer.yaml", "model": server.script("outer.json", replies)}
        answer = await client.post("/runs", json=body, headers={"Prefer": "wait=20"})
        assert answer.json()["status"] == "completed", answer.text
        return str(answer.json()["id"])


def rows(tree: dict[str, Any], *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(tree["rows"][name] for name in names), strict=True))


async def test_the_rows_of_nested_documents_have_names(server: Served) -> None:
    run = await completed(server)
    tree = await server.read(f"/runs/{run}/tree")
    assert rows(tree, "path", "parent", "label", "hint", "state") == [
        ("1", -1, "idea", "model", "done"),
        ("2", -1, "checked", "inner", "done"),
        ("2/call/1", 1, "loud", "", "done"),
        ("2/call/2", 1, "verdict", "model", "done"),
        ("2/call/3", 1, "Compute", "", "done"),
        ("3", -1, "looks", "3 items · 1 failed", "done"),
        ("3/for_each[0]", 5, "Item 1", "ant", "done"),
        ("3/for_each[1]", 5, "Item 2", "bee · no", "failed"),
        ("3/for_each[2]", 5, "Item 3", "cow", "done"),
    ]
    assert (tree["partial"], tree["next"], tree["total"]) == (False, None, 3)
    head = await server.read(f"/runs/{run}")
    assert sum(cost for cost, parent in rows(tree, "cost", "parent") if parent < 0) == head["cost"]
    async with server.client() as client:
        again = await client.get(f"/runs/{run}/tree", headers={"If-None-Match": f'"{tree["etag"]}"'})
        assert again.status_code == 304


async def test_one_node_is_paged(server: Served) -> None:
    run = await completed(server)
    page = await server.read(f"/runs/{run}/tree?under=3&limit=2")
    assert (rows(page, "path", "parent"), page["next"], page["total"]) == (
        [("3/for_each[0]", -1), ("3/for_each[1]", -1)],
        "2",
        3,
    )
    following = await server.read(f"/runs/{run}/tree?under=3&limit=2&after=2")
    assert (rows(following, "path"), following["next"]) == ([("3/for_each[2]",)], None)
    failed = await server.read(f"/runs/{run}/tree?under=3&state=failed")
    assert rows(failed, "path", "failed") == [("3/for_each[1]", 1)]
    assert (await server.read(f"/runs/{run}/tree?under=9", 404))["code"] == "no-such-step"


async def test_ten_thousand_items_are_groups_and_pages(server: Served) -> None:
    run = await ten_thousand(server, 3000)
    tree = await server.read(f"/runs/{run}/tree")
    assert tree["partial"] and rows(tree, "hint")[0] == ("3,000 items",)
    while (tree := await server.read(f"/runs/{run}/tree"))["partial"]:
        await asyncio.sleep(0.05)
    assert rows(tree, "path", "label", "children") == [("1", "said", 1), ("1#done", "Done 3,000", 3000)]
    buckets = tree["rows"]["buckets"][0]
    assert len(buckets) == 64 and sum(done for done, _ in buckets) == 3000
    page = await server.read(f"/runs/{run}/tree?under=1%23done&limit=200&order=slowest")
    took = page["rows"]["took"]
    assert (len(took), page["total"], page["next"]) == (200, 3000, "200")
    assert took == sorted(took, reverse=True)


async def test_texts_come_in_slices(server: Served) -> None:
    run = await completed(server)
    whole = await server.read(f"/runs/{run}/text/1")
    assert (whole["text"], whole["kind"], whole["next"], whole["total"]) == (
        "# Fine\n\nIt is *good*.",
        "text",
        None,
        21,
    )
    assert "<em>good</em>" in whole["html"]
    first = await server.read(f"/runs/{run}/text/1/model?limit=12")
    assert (first["text"], first["next"]) == ("# Fine\n\n", 8)
    rest = await server.read(f"/runs/{run}/text/1/model?after=8")
    assert rest["text"] == "It is *good*."
    assert (await server.read(f"/runs/{run}/text/2/call/2"))["text"] == whole["text"]
    assert (await server.read(f"/runs/{run}/text/3"))["kind"] == "text"
    assert (await server.read(f"/runs/{run}/text/9", 404))["code"] == "no-such-step"


def slow(server: Served) -> str:
    return server.script("slow.json", ["one", {"default": "two", "delay_ms": 600_000}])


async def test_a_call_that_is_cancelled_while_it_writes_has_stopped(server: Served) -> None:
    run = (await server.start("two.playbook.md", model=slow(server)))["id"]
    while rows(tree := await server.read(f"/runs/{run}/tree"), "state") != [("done",), ("running",)]:
        await asyncio.sleep(0.02)
    following = server.site.views._driven[run]
    following.listen(Event("delta", run, tree["now"], 0, "2/model", "2", {}, {"text": "tw"}))
    writing = await server.read(f"/runs/{run}/tree")
    assert rows(writing, "path", "label", "hint", "state")[1] == ("2", "Two", "model", "running")
    assert writing["etag"] != tree["etag"] and writing["end"] is None
    async with server.client() as client:
        assert (await client.post(f"/runs/{run}/cancel", json={})).status_code == 202
    while (head := await server.read(f"/runs/{run}"))["status"] != "cancelled" or head["driven_here"]:
        await asyncio.sleep(0.02)
    stopped = await server.read(f"/runs/{run}/tree")
    assert rows(stopped, "state") == [("done",), ("stopped",)]
    assert [step["state"] for step in head["steps"]] == ["done", "stopped"]
    assert head["next"]["verb"] == "resume"
    assert (await server.read(f"/runs/{run}/steps/2"))["state"] == "stopped"


async def test_a_live_tree_is_that_of_the_store(server: Served) -> None:
    replies = [{"contains": "bee", "error": ERROR}, {"default": "two", "delay_ms": 200}]
    run = (await server.start("outer.yaml", model=server.script("later.json", replies)))["id"]
    following = server.site.views._driven[run]
    await server.site.runs.ended(run, 20)
    seen = await LiveViews(server.site.runtime).tree(run)
    live, stored = (TreeRows(tree, seen.row, 3e9) for tree in (following.tree, seen.tree))
    live.first()
    stored.first()
    different = {"title", "hint", "from", "took", "waited"}
    assert {name: column for name, column in live.columns.items() if name not in different} == {
        name: column for name, column in stored.columns.items() if name not in different
    }
    took: list[list[Any]] = [live.columns["took"], stored.columns["took"]]
    assert [round(seconds, 2) for seconds in took[0]] == [round(seconds, 2) for seconds in took[1]]


async def test_a_run_of_another_process_says_so(server: Served) -> None:
    model, runtime = slow(server), server.site.runtime
    run = await runtime.start(load(str(server.folder / "two.playbook.md")), {}, RunOptions(model=model))
    drive = asyncio.create_task((await reopened(runtime, run)).drive(run))
    try:
        while rows(tree := await server.read(f"/runs/{run}/tree"), "state") != [("done",), ("running",)]:
            await asyncio.sleep(0.02)
        assert rows(tree, "hint") == [("model",), ("written in another process",)]
    finally:
        drive.cancel()


async def test_a_resumed_run_keeps_its_waits_while_it_is_driven(server: Served) -> None:
    run = (await server.start("two.playbook.md", model=slow(server), breakpoints=["1"]))["id"]
    while (await server.read(f"/runs/{run}"))["status"] != "paused" or run in server.site.runs:
        await asyncio.sleep(0.02)
    before = await server.read(f"/runs/{run}/tree")
    await asyncio.sleep(0.3)
    async with server.client() as client:
        assert (await client.post(f"/runs/{run}/resume", json={})).status_code == 202
    while rows(tree := await server.read(f"/runs/{run}/tree"), "state") != [("done",), ("running",)]:
        await asyncio.sleep(0.02)
    assert rows(tree, "took")[0] == rows(before, "took")[0]
    assert rows(tree, "from")[1][0] >= 0.3
