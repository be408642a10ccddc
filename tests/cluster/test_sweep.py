"""Which runs of a cluster a sweep signals, and how often."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from pathlib import Path

import pytest
from tests.cluster.test_driver import ASK, STEPS, Attempt, House, called

from quire.cluster.orders import Order
from quire.engine.records import Batch, RunUpdate, Status
from quire.errors import CannotStart
from quire.runs import ticker as module
from quire.runs.runtime import Runtime
from quire.runs.ticker import Ticker

SECONDS = 30.0


class Sweep:
    """The sweeps of one worker, by a clock of its own."""

    def __init__(self, house: House, monkeypatch: pytest.MonkeyPatch, queue: str = "q") -> None:
        self.sent: list[str] = []
        self.away = False
        self.steady = 0.0
        runtime = Runtime(house.settings, house.runtime.store, environ={}, queue=queue)
        self._ticker = Ticker(runtime, "worker", self.signal, house.said.append, 1, lambda: 0, SECONDS)
        monkeypatch.setattr(module, "monotonic", lambda: self.steady)

    async def signal(self, run: str) -> None:
        if self.away:
            raise CannotStart("Temporal is away")
        self.sent.append(run)

    async def once(self) -> int:
        before, self.steady = len(self.sent), self.steady + SECONDS
        await self._ticker.sweep(self._ticker._runtime.clock.now() + SECONDS + 1)
        return len(self.sent) - before


@pytest.fixture
async def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def test_a_run_that_stands_still_is_signalled_less_and_less_often(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Sweep(house, monkeypatch, "another")
    sweep = Sweep(house, monkeypatch)
    run = await house.start(STEPS)
    signalled = [await sweep.once() for _ in range(17)]
    assert [at for at, moved in enumerate(signalled, 1) if moved] == [1, 2, 4, 8, 16]
    assert set(sweep.sent) == {run}
    assert [await other.once() for _ in range(3)] == [0, 0, 0]


async def test_a_young_run_is_left_to_its_signal(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = Sweep(house, monkeypatch)
    await house.start(STEPS)
    await sweep._ticker.sweep(house.runtime.clock.now())
    assert sweep.sent == []


async def test_answered_and_interrupted_runs_get_a_signal_waiting_ones_none(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.gates.open.set()
    asking, lost = await house.start(ASK), await house.start(STEPS)
    await house.driver.look(Order(asking), Attempt(1, None))
    sweep = Sweep(house, monkeypatch)
    process = house.process()
    drive = asyncio.create_task(process.drive(lost))
    house.gates.open.clear()
    await called(house, 1)
    assert [await sweep.once() for _ in range(4)] == [0, 0, 0, 0]
    await process.store.close()
    await house.runtime.answer(asking, None, "yes")
    assert await sweep.once() == 2
    assert sorted(sweep.sent) == sorted([asking, lost])
    drive.cancel()
    await asyncio.gather(drive, return_exceptions=True)


async def test_an_expiry_is_recorded(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers see it at once, and those of the row itself after a sweep."""
    store = house.runtime.store
    late, early = await house.start(STEPS), await house.start(STEPS)
    for run, expires_at in ((late, time.time() + 60), (early, time.time() - 1)):
        lease = await store.acquire(run)
        await store.park(lease, Batch(update=RunUpdate(Status.AWAITING_INPUT, expires_at=expires_at)))
        await store.release(lease)
    await Sweep(house, monkeypatch).once()
    with contextlib.closing(sqlite3.connect(house.folder / "quire.db")) as file:
        assert dict(file.execute("SELECT id, status FROM runs")) == {late: "awaiting_input", early: "expired"}


async def test_a_signal_that_did_not_arrive_is_sent_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.start(STEPS)
    sweep = Sweep(house, monkeypatch)
    sweep.away = True
    assert [await sweep.once() for _ in range(3)] == [0, 0, 0]
    assert "Temporal is away" in house.said[0]
    sweep.away = False
    assert await sweep.once() == 1
