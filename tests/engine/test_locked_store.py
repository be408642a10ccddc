"""Another process that holds the store for long costs a run nothing but the time: what is in hand is kept."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engine.house import Clock, EchoModel, House

from quire.engine.conversation import Message
from quire.engine.driver.journal import LOCK_PATIENCE_SECONDS
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Batch, Status, WriteResult
from quire.engine.requests import HumanRequest, ModelRequest, Walk
from quire.errors import StoreLocked
from quire.stores import open_store


class Rival:
    """Another process that writes. It is done after so many waits of ours; None is never."""

    def __init__(self, path: Path, waits: int | None) -> None:
        self._path = path
        self._left = waits
        self._connection: sqlite3.Connection | None = None

    def take(self) -> None:
        self._connection = sqlite3.connect(self._path, isolation_level=None)
        self._connection.execute("BEGIN IMMEDIATE")

    def waited(self) -> None:
        if self._connection is not None and self._left is not None:
            self._left -= 1
            if self._left <= 0:
                self.leave()

    def leave(self) -> None:
        if self._connection is not None:
            self._connection.rollback()
            self._connection.close()
            self._connection = None


class Watched(Clock):
    def __init__(self, waited: Callable[[], None]) -> None:
        super().__init__()
        self._waited = waited

    async def sleep(self, seconds: float) -> None:
        self._waited()
        await super().sleep(seconds)


class TakenMeanwhile(EchoModel):
    """The store is taken while this model thinks for the first time."""

    def __init__(self, rival: Rival) -> None:
        super().__init__()
        self._rival = rival

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        reply = await super().complete(call, on_delta)
        if len(self.calls) == 1:
            self._rival.take()
        return reply


def thoughts() -> Walk:
    one = yield ModelRequest("1/model", "1", "", (Message("user", "one"),))
    two = yield ModelRequest("2/model", "2", "", (Message("user", f"two after {one['text']}"),))
    return two["text"]


def question() -> Walk:
    yield ModelRequest("1/model", "1", "", (Message("user", "one"),))
    answer = yield HumanRequest("2/ask", "2", "Q", "input", "well?")
    return answer


async def house_of(path: Path, waits: int | None) -> tuple[House, Rival]:
    rival = Rival(path, waits)
    clock = Watched(rival.waited)
    store = open_store(path, durability="process", now=clock.now, busy_timeout=0.0)
    house = House(store, TakenMeanwhile(rival), clock=clock)
    await house.create()
    return house, rival


async def test_a_reply_in_hand_outlives_a_lock(tmp_path: Path) -> None:
    house, _ = await house_of(tmp_path / "quire.db", waits=5)
    ended = await house.drive(thoughts())
    assert (ended.status, ended.result) == (Status.COMPLETED, "reply to two after reply to one")
    assert house.model.asked() == ["one", "two after reply to one"]
    (told,) = [event for event in house.events if event.type == "store_locked"]
    assert told.live["reason"] == f"{tmp_path / 'quire.db'} is locked by another process"
    assert await house.paths() == ["1/model", "2/model"]
    kept = [event.seq for event in await house.store.events(house.run)]
    assert kept == list(range(1, len(kept) + 1))
    await house.store.close()


async def test_so_does_a_question(tmp_path: Path) -> None:
    house, _ = await house_of(tmp_path / "quire.db", waits=5)
    assert (await house.drive(question())).status is Status.AWAITING_INPUT
    assert [one.path for one in await house.store.questions(house.run)] == ["2/ask"]
    await house.store.close()


async def test_patience_ends(tmp_path: Path) -> None:
    house, rival = await house_of(tmp_path / "quire.db", waits=None)
    began = house.clock.now()
    with pytest.raises(StoreLocked):
        await house.drive(thoughts())
    assert house.clock.now() - began >= LOCK_PATIENCE_SECONDS
    rival.leave()
    await house.store.close()


async def test_who_stops_the_run_waits_for_no_lock(tmp_path: Path) -> None:
    house, rival = await house_of(tmp_path / "quire.db", waits=None)
    task = asyncio.create_task(house.drive(thoughts()))
    while "store_locked" not in house.types():
        await asyncio.sleep(0)
    waited = house.clock.now()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert house.clock.now() - waited < 10
    rival.leave()
    assert await house.paths() == []
    await house.store.close()


async def test_who_only_looks_does_not_wait(tmp_path: Path) -> None:
    """The watch of a drive looks every second: with the lock it would hold up everything else."""
    house, rival = await house_of(tmp_path / "quire.db", waits=None)
    lease = await house.store.acquire(house.run)
    rival.take()
    assert await house.store.write(lease, Batch()) == WriteResult()
    rival.leave()
    await house.store.release(lease)
    await house.store.close()
