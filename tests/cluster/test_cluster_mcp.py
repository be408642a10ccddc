"""`quire mcp` where a cluster drives the runs: the official client in both generations, a real worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.cluster.town import Town, marks_pipeline
from tests.mcp_server.serving import APPROVE, GREET, MODES, Serving, envelope, text, write

from quire.cluster.dispatch import ClusterRuntime
from quire.engine.records import Status
from quire.mcp_server.server import Host, Offer


class ServingThere(Serving):
    """The same, over a runtime that hands runs over."""

    def __init__(self, runtime: ClusterRuntime) -> None:
        self.reports: list[str] = []
        self.handed_over: list[str] = []
        self.runtime = runtime
        self.host = Host(runtime, Offer(report=self.reports.append), hand_over=self.handed_over.append)


async def serving(town: Town) -> ServingThere:
    write(town.folder, greet=GREET, approve=APPROVE, marks=marks_pipeline(2, 0.1))
    town.workers(1)
    return ServingThere(ClusterRuntime(town.settings, town.runtime.store, await town.cluster(), environ=town.environ))


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_waits_for_a_run_of_the_cluster_and_answers_it(town: Town, mode: str) -> None:
    def answer(message: str, field: Mapping[str, Any]) -> str:
        return "b" if "enum" in field and "b" in field["enum"] else "yes"

    async with (await serving(town)).client(mode, answer) as client:
        greeted = await client.call_tool("pipeline__greet", {"name": "Ann"})
        approved = await client.call_tool("pipeline__approve", {})
    assert text(greeted) == "Hello, Ann!"
    assert envelope(approved)["data"]["output"] == "yes b", approved
    rows = [await town.row(envelope(one)["data"]["run_id"]) for one in (greeted, approved)]
    assert [str(row.status) for row in rows] == ["completed", "completed"]
    assert {row.pins["queue"] for row in rows} == {town.queue}


async def test_a_launch_that_nobody_waits_for(town: Town) -> None:
    there = await serving(town)
    async with there.client("auto") as client:
        started = envelope(await client.call_tool("run_pipeline_async", {"name": "marks"}))
        run = started["data"]["run_id"]
        await town.reach([run], Status.COMPLETED)
        inbox = envelope(await client.call_tool("pipeline_inbox", {}))
    assert (started["status"], there.handed_over) == ("started", [])
    assert run in str(inbox)
