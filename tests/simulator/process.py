"""A process that can die: from one moment on, nothing that it does reaches anybody.

Dying is an exception that no code of the engine catches for good, and a store, a model and tools that raise it
for whatever is still tried afterwards. So clean-up runs, as it would not for real, and changes nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from quire.engine.ports import Store
from quire.engine.records import (
    Answer,
    Batch,
    EffectRecord,
    Event,
    Lease,
    NewRun,
    Question,
    RunRow,
    WriteResult,
)
from quire.errors import StoreError

if TYPE_CHECKING:
    from tests.simulator.observer import Witness

    from quire.stores.transactions import Admit

T = TypeVar("T")


class Died(BaseException):
    """The process is gone."""


class Process:
    """`points` counts the moments at which it could have died, `dies_at` says at which of them it does.

    `disturbed` is true once something has kept it from going on by itself; `epoch` is that of its last lease.
    """

    def __init__(self, number: int, dies_at: int = 0, failing_write: int = 0) -> None:
        self.number = number
        self.points = 0
        self.writes = 0
        self.epoch = 0
        self.dead = False
        self.disturbed = False
        self.died_at = ""
        self.failing_write = failing_write
        self.heard = ""
        self._dies_at = dies_at

    def hear(self, event: Event) -> None:
        """Listens to the drive: a model is not told its path, but what it says is told of with it."""
        if event.type == "delta":
            self.heard = event.path

    def point(self, where: str) -> None:
        if not self.dead:
            self.points += 1
            self.dead = self.points == self._dies_at
            if self.dead:
                self.disturbed = True
                self.died_at = where
        if self.dead:
            raise Died(where)

    def must_live(self) -> None:
        if self.dead:
            raise Died("already")


class Pace:
    """How long things take. One that is `slow` also takes its time after a write."""

    def __init__(self, seed: int | str, *, slow: bool) -> None:
        self._chance = random.Random(str(seed))
        self._slow = slow

    async def effect(self) -> None:
        match self._chance.randrange(8):
            case 0:
                return
            case 1 | 2 | 3:
                for _ in range(self._chance.randrange(1, 6)):
                    await asyncio.sleep(0)
            case 4 | 5 | 6:
                await asyncio.sleep(self._chance.randrange(1, 20) / 10)
            case _:
                await asyncio.sleep(self._chance.randrange(1, 20))

    async def write(self) -> None:
        if self._slow and not self._chance.randrange(3):
            await asyncio.sleep(self._chance.randrange(3) / 10)

    def person(self) -> float:
        return self._chance.choice([0.1, 0.7, 2.0, 9.0, 40.0])

    def one_of(self, options: Sequence[T]) -> T:
        return self._chance.choice(options)


class MortalStore:
    """The store of one process: a real one, before and after each write of which the process can die."""

    def __init__(self, store: Store, process: Process, witness: Witness, pace: Pace) -> None:
        self._store = store
        self._process = process
        self._witness = witness
        self._pace = pace

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def create(self, run: NewRun, admit: Admit | None = None) -> None:
        self._process.point("before create")
        await self._store.create(run, admit)
        self._process.point("after create")

    async def acquire(self, run: str, *, after: int | None = None) -> Lease:
        self._process.point("before acquire")
        lease = await self._store.acquire(run, after=after)
        self._process.epoch = lease.epoch
        self._witness.acquired(self._process, lease)
        if self._witness.stale:
            self._witness.sync(await self._store.effects(run))
        self._process.point("after acquire")
        return lease

    async def write(self, lease: Lease, batch: Batch) -> WriteResult:
        return await self._writing(batch, "write", lambda: self._store.write(lease, batch))

    async def park(self, lease: Lease, batch: Batch) -> bool:
        return await self._writing(batch, "park", lambda: self._store.park(lease, batch))

    async def _writing(self, batch: Batch, what: str, write: Callable[[], Awaitable[T]]) -> T:
        where = f"{what} {', '.join(f'{one.state} {one.path}' for one in batch.effects)}".strip()
        self._process.point(f"before {where}")
        self._process.writes += 1
        if self._process.writes == self._process.failing_write:
            self._process.disturbed = True
            raise StoreError("the disk is full")
        try:
            written = await write()
        except asyncio.CancelledError:
            # Whoever is stopped while it writes has written all the same, unless it was fenced: the file knows.
            self._witness.stale = True
            raise
        if not (what == "park" and written is False):
            self._witness.wrote(self._process, batch)
        self._process.point(f"after {where}")
        await self._pace.write()
        self._process.must_live()
        return written

    async def answer(self, run: str, path: str, hash: str, value: str, by: str = "") -> None:
        self._process.point("before answer")
        await self._store.answer(run, path, hash, value, by)
        self._witness.answered(path, hash)
        self._process.point("after answer")

    async def request_cancel(self, run: str) -> bool:
        self._process.point("before cancel")
        cancelled = await self._store.request_cancel(run)
        self._witness.cancelled()
        self._process.point("after cancel")
        return cancelled

    async def release(self, lease: Lease) -> None:
        # A dead process writes nothing; the kernel drops its lock when its store is closed.
        if not self._process.dead:
            await self._store.release(lease)

    async def get(self, run: str) -> RunRow | None:
        self._process.must_live()
        return await self._store.get(run)

    async def effects(self, run: str) -> Sequence[EffectRecord]:
        self._process.must_live()
        return await self._store.effects(run)

    async def questions(self, run: str | None = None) -> Sequence[Question]:
        self._process.must_live()
        return await self._store.questions(run)

    async def answers(self, run: str) -> Sequence[Answer]:
        self._process.must_live()
        return await self._store.answers(run)
