"""What a cluster needs of a store, on each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.stores.conftest import Shelf, open_shelf

from quire.engine.ports import Store
from quire.engine.records import Batch, Event, NewRun, Question, RunUpdate, Status
from quire.errors import Fenced, RunBusy


@pytest.fixture(params=["sqlite", "postgresql", "memory"])
async def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shelf]:
    shelf = open_shelf(request.param, tmp_path)
    yield shelf
    await shelf.close()


async def make(store: Store, run: str, at: float = 1_000.0) -> None:
    await store.create(NewRun(run, run, "pipeline", "p.yaml", at, {}, {}))


def said(run: str, seq: int) -> Batch:
    return Batch(events=(Event("note", run, 1_000.0, seq),), update=RunUpdate(status=Status.RUNNING))


async def test_an_owner_is_evicted_at_its_epoch_only(shelf: Shelf) -> None:
    old, new = shelf.open(), shelf.open()
    for run in ("a", "b"):
        await make(old, run)
    lease, beside = await old.acquire("a"), await old.acquire("b")
    await old.write(lease, said("a", 1))
    with pytest.raises(RunBusy):
        await new.acquire("a")
    assert not await new.evict("a", lease.epoch + 1)
    with pytest.raises(RunBusy):
        await new.acquire("a")
    assert await new.evict("a", lease.epoch)
    taken = await new.acquire("a")
    assert taken.epoch == lease.epoch + 1
    with pytest.raises(Fenced):
        await old.write(lease, said("a", 2))
    # Its other runs are still its own.
    await old.write(beside, said("b", 1))
    await new.write(taken, said("a", 2))
    assert [event.seq for event in await new.events("a")] == [1, 2]
    with pytest.raises(RunBusy):
        await new.acquire("b")


async def test_nobody_evicts_itself(shelf: Shelf) -> None:
    store = shelf.open()
    await make(store, "a")
    lease = await store.acquire("a")
    await store.evict("a", lease.epoch)
    with pytest.raises(RunBusy):
        await shelf.open().acquire("a")
    await store.write(lease, said("a", 1))


async def test_runs_with_an_answer_that_nobody_took(shelf: Shelf) -> None:
    store = shelf.open()
    for at, run in enumerate(("late", "early", "open", "running")):
        await make(store, run)
        lease = await store.acquire(run)
        asked = Question(run, "1/ask", "1", "", "input", "?", (), None, "h", 1_000.0 - at)
        await store.write(lease, Batch(questions=(asked,), update=RunUpdate(status=Status.RUNNING)))
        if run != "running":
            assert await store.park(lease, Batch(update=RunUpdate(status=Status.AWAITING_INPUT)))
            await store.release(lease)
    for run in ("late", "early", "running"):
        await store.answer(run, "1/ask", "h", "yes")
    assert list(await store.answered()) == ["early", "late"]
