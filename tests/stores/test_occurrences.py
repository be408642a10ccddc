"""What every store does with occurrences: one claim each, in the transaction that creates its run; and processes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from quire.engine.ports import Store
from quire.engine.records import Batch, NewRun, RunUpdate, Status
from quire.stores.occurrences import Occurrence, Process, Start

if TYPE_CHECKING:
    from tests.stores.conftest import Shelf

    from quire.stores.statements import Statements
    from quire.stores.transactions import Steps

DUE = Occurrence("trigger:nightly", "2026-11-19T06:00Z", due=900.0)


def new_run(id: str, source: str = "trigger:nightly") -> NewRun:
    return NewRun(id, "T", "playbook", "a.md", 10.0, {"inputs": {}}, {}, source=source)


async def test_an_occurrence_makes_one_run(store: Store, shelf: Shelf) -> None:
    claim, is_new = await store.start_once(new_run("r1"), DUE)
    assert (claim, is_new) == (Start(DUE.source, DUE.key, "", 900.0, 1000.0, "started", "", "r1"), True)
    shelf.clock.time += 5
    assert await shelf.open().start_once(new_run("r2"), DUE) == (claim, False)
    assert await store.get("r2") is None
    row = await store.get("r1")
    assert row is not None and row.source == "trigger:nightly"
    assert await store.start_of(DUE) == claim
    assert list(await store.starts("trigger:nightly", "started")) == [claim]
    assert list(await store.starts("trigger:other")) == []


async def test_of_many_at_once_one_makes_the_run(store: Store, shelf: Shelf) -> None:
    stores = [store, *(shelf.open() for _ in range(3))]
    tries = [
        each.start_once(new_run(f"r{number}-{again}"), DUE) for number, each in enumerate(stores) for again in range(4)
    ]
    claims = await asyncio.gather(*tries)
    assert sum(is_new for _, is_new in claims) == 1
    assert len({claim.run for claim, _ in claims}) == 1
    assert [row.id for row in await store.list()] == [claims[0][0].run]


async def test_a_claim_that_is_not_admitted_is_kept_as_skipped(store: Store) -> None:
    def full(sql: type[Statements]) -> Steps[str]:
        assert (yield sql.CLAIMED, (DUE.source, DUE.key))
        return "one is running"

    claim, is_new = await store.start_once(new_run("r1"), DUE, full)
    assert (claim.state, claim.reason, claim.run, is_new) == ("skipped", "one is running", "", True)
    assert await store.start_once(new_run("r2"), DUE) == (claim, False)
    assert list(await store.list()) == []


async def test_an_error_of_the_admission_takes_the_claim_back(store: Store) -> None:
    def broken(sql: type[Statements]) -> Steps[str]:
        yield sql.CLAIMED, (DUE.source, DUE.key)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await store.start_once(new_run("r1"), DUE, broken)
    assert await store.start_of(DUE) is None
    assert (await store.start_once(new_run("r2"), DUE))[1]


async def test_a_claim_without_a_run(store: Store) -> None:
    claim, is_new = await store.start_once(None, DUE, state="missed", reason="the machine slept")
    assert (claim.state, claim.reason, claim.run, is_new) == ("missed", "the machine slept", "", True)


async def test_processes_report_themselves_and_leave(store: Store, shelf: Shelf) -> None:
    await store.create(new_run("r1"))  # a file is not made only to report a process
    serve = Process("p1", "serve", "here", 7, "0.2.0", "", 900.0, 1000.0, 20, 1)
    await store.beat(serve)
    worker = Process("p2", "worker", "there", 8, "0.2.0", "quire", 950.0, 1000.0, 4, 0, "unfit", "no trust")
    await shelf.open().beat(worker)
    assert list(await store.processes()) == [serve, worker]
    await store.leave("p2")
    assert list(await store.processes()) == [serve]
    await shelf.open().beat(Process("p3", "mcp", "here", 9, "0.2.0", "", 5000.0, 5000.0, 0, 0))
    assert [process.id for process in await store.processes()] == ["p3"]


async def test_a_run_knows_its_process_and_the_time_to_wake(store: Store) -> None:
    store.process = "p1"
    await store.create(new_run("r1"))
    lease = await store.acquire("r1")
    assert lease.row is not None and lease.row.process == "p1"
    await store.write(lease, Batch(update=RunUpdate(status=Status.RUNNING)))
    row = await store.get("r1")
    assert row is not None and row.process == "p1"
    await store.write(lease, Batch(update=RunUpdate(status=Status.PAUSED, wake_at=1500.0)))
    await store.release(lease)
    row = await store.get("r1")
    assert row is not None and (row.process, row.wake_at) == ("", 1500.0)
    assert (list(await store.due(1499.0)), list(await store.due(1500.0))) == ([], ["r1"])
    lease = await store.acquire("r1")
    await store.write(lease, Batch(update=RunUpdate(status=Status.RUNNING)))
    assert list(await store.due(2000.0)) == []
    await store.release(lease)
