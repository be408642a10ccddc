"""A process of a case, which can die: from one moment on, nothing that it does reaches the store.

Dying is an exception that the engine does not catch for good. Clean-up code runs, as it would not after a real death,
but the store of a dead process raises the same exception for everything, so it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from quire.stores.sqlite.in_memory import Memory, MemoryStore

if TYPE_CHECKING:
    from quire.engine.records import Batch, Lease, WriteResult


class Died(BaseException):
    """The process of a case is gone."""


class CaseProcess:
    """One process of a case. It dies at the moment with the number `dies_at`; 0 for never.

    Moments are before and after each write of a run, so their number tells how often a case has to be repeated to die
    everywhere.
    """

    def __init__(self, dies_at: int = 0) -> None:
        self.moments = 0
        self.dead = False
        self._dies_at = dies_at

    @property
    def died_in_turn(self) -> bool:
        """Tell whether it died at the moment with that number, and not because a script says so."""
        return self.dead and self.moments == self._dies_at

    def moment(self) -> None:
        """Pass one moment. Raises `Died` if it is the last one."""
        self.must_live()
        self.moments += 1
        if self.moments == self._dies_at:
            self.die()

    def die(self) -> None:
        self.dead = True
        raise Died

    def must_live(self) -> None:
        if self.dead:
            raise Died


class MortalStore(MemoryStore):
    """The store as one process has it open."""

    def __init__(self, memory: Memory, now: Callable[[], float], process: CaseProcess) -> None:
        super().__init__(memory, now=now)
        self._process = process

    async def acquire(self, run: str, *, after: int | None = None) -> Lease:
        self._process.must_live()
        return await super().acquire(run, after=after)

    async def write(self, lease: Lease, batch: Batch) -> WriteResult:
        self._process.moment()
        written = await super().write(lease, batch)
        self._process.moment()
        return written

    async def park(self, lease: Lease, batch: Batch) -> bool:
        self._process.moment()
        parked = await super().park(lease, batch)
        self._process.moment()
        return parked

    async def release(self, lease: Lease) -> None:
        if not self._process.dead:
            await super().release(lease)
