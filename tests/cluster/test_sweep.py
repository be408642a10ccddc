"""Which runs a sweep speaks of, and how often."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from pathlib import Path

import pytest
from tests.cluster.test_driver import ASK, STEPS, House, called

from quire.cluster.driver import Attempt
from quire.cluster.orders import Order
from quire.cluster.worker import Sweep
from quire.engine.records import Batch, RunUpdate, Status
from quire.errors import CannotStart


class Post:
    """Where signals go."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.away = False

    async def look(self, run: str) -> None:
        self._send("look", run)

    async def ensure(self, run: str) -> None:
        self._send("ensure", run)

    def _send(self, how: str, run: str) -> None:
        if self.away:
            raise CannotStart("Temporal is away")
        self.sent.append((how, run))


@pytest.fixture
async def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def test_a_run_that_stands_still_is_spoken_of_less_and_less_often(house: House) -> None:
    run, post = await house.start(STEPS), Post()
    sweep = Sweep(house.runtime.store, "q", post, house.said.append)
    spoken = [await sweep.once() for _ in range(17)]
    assert [at for at, moved in enumerate(spoken, 1) if moved] == [2, 4, 8, 16]
    assert set(post.sent) == {("ensure", run)}
    other = Sweep(house.runtime.store, "another", post, house.said.append)
    assert [await other.once() for _ in range(3)] == [0, 0, 0]


async def test_answered_and_interrupted_runs_get_a_signal_waiting_ones_none(house: House) -> None:
    house.gates.open.set()
    asking, lost = await house.start(ASK), await house.start(STEPS)
    await house.driver.look(Order(asking), Attempt(1, None))
    post = Post()
    sweep = Sweep(house.runtime.store, "q", post, house.said.append)
    process = house.process()
    drive = asyncio.create_task(process.drive(lost))
    house.gates.open.clear()
    await called(house, 1)
    assert [await sweep.once() for _ in range(4)] == [0, 0, 0, 0]
    await process.store.close()
    await house.runtime.answer(asking, None, "yes")
    assert [await sweep.once() for _ in range(2)] == [0, 2]
    assert sorted(post.sent) == sorted([("look", asking), ("look", lost)])
    drive.cancel()
    await asyncio.gather(drive, return_exceptions=True)


async def test_an_expiry_is_recorded(house: House) -> None:
    """Readers see it at once, and those of the row itself after a sweep."""
    store = house.runtime.store
    late, early = await house.start(STEPS), await house.start(STEPS)
    for run, expires_at in ((late, time.time() + 60), (early, time.time() - 1)):
        lease = await store.acquire(run)
        await store.park(lease, Batch(update=RunUpdate(Status.AWAITING_INPUT, expires_at=expires_at)))
        await store.release(lease)
    await Sweep(store, "q", Post(), house.said.append).once()
    with contextlib.closing(sqlite3.connect(house.folder / "quire.db")) as file:
        assert dict(file.execute("SELECT id, status FROM runs")) == {late: "awaiting_input", early: "expired"}


async def test_what_temporal_did_not_hear_is_said_again(house: House) -> None:
    await house.start(STEPS)
    post = Post()
    post.away = True
    sweep = Sweep(house.runtime.store, "q", post, house.said.append)
    assert [await sweep.once() for _ in range(3)] == [0, 0, 0]
    assert "Temporal is away" in house.said[0]
    post.away = False
    assert await sweep.once() == 1
