"""`quire worker list`: the processes that report themselves to the store, and the runs that wait for one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.cli.conftest import Said, json_of
from tests.cli.test_resume import document, script
from tests.cli.test_resume_all import pending

from quire.cli import main
from quire.engine.ports import Store
from quire.runs.runtime import Runtime
from quire.stores.occurrences import Process

__all__ = ["document"]


def with_store(work: Callable[[Store], Awaitable[object]]) -> None:
    async def whole() -> None:
        runtime = Runtime.open(Path.cwd())
        await work(runtime.store)
        await runtime.close()

    asyncio.run(whole())


def test_processes_and_pending_runs_are_listed(document: str, said: Said) -> None:
    model = f"script:{Path(script({'default': 'x'})).resolve()}"
    first, second, third = (pending(document, age=age, model=model) for age in (7300.0, 60.0, 50.0))
    now = time.time()

    async def report(store: Store) -> None:
        await store.beat(Process("p1", "serve", "here", 7, "0.2.0", "", now - 900, now - 60, 20, 0))
        reason = "its settings\x1b[2J have changed"
        await store.beat(Process("p3", "worker", "there", 9, "0.1.9", "q", now - 700, now, 4, 0, "unfit", reason))
        await store.beat(Process("p2", "worker", "there", 8, "0.2.0", "q", now - 800, now, 20, 1))
        await store.acquire(second)  # a run that is taken is pending until its first write

    with_store(report)
    data = json_of(said, "worker", "list")
    processes = {process["id"]: process for process in data["processes"]}
    assert [processes[id]["state"] for id in ("p1", "p2", "p3")] == ["gone", "fit", "unfit"]
    assert processes["p2"]["runs"] == [second] and processes["p3"]["version"] == "0.1.9"
    assert data["pending"] == 2 and 7300 <= data["oldest"] < 7400 and third != first
    assert main(["worker", "list"]) == 0
    out, err = said()
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [
        ["serve", "7@here"],
        ["worker", "8@there"],
        ["worker", "9@there"],
    ]
    assert "unfit: its settings" in out and "\x1b" not in out
    assert err == "2 pending runs, the oldest for 2h\n"


def test_without_a_store_nothing_is_listed_and_made(workspace: Path, said: Said) -> None:
    assert main(["worker", "list"]) == 0
    assert said() == ("", "no server and no worker; 0 pending runs\n")
    assert not Path(".quire").exists()
