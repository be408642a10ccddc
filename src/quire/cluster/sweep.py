"""Finds runs that are due to move although nobody said so: a signal was lost, or its sender died before it.

A run is spoken of at the second look in a row at which it stands still, then less and less often: every signal is kept
in the history of its workflow, and a run may have to wait because all workers are busy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from quire.engine.records import RunRow, Status
from quire.errors import QuireError
from quire.stores.contract import SharedStore

if TYPE_CHECKING:
    from quire.engine.ports import Store

MOST = 500
EVERY_SECONDS = 30.0


class Signals(Protocol):
    async def look(self, run: str) -> None: ...

    async def ensure(self, run: str) -> None: ...


class Sweep:
    """`queue` is the task queue whose runs these are; those of others in the same store are not ours to move."""

    def __init__(self, store: Store, queue: str, signals: Signals, say: Callable[[str], None]) -> None:
        self._store = store
        self._queue = queue
        self._signals = signals
        self._say = say
        self._seen: dict[tuple[str, Status, int], int] = {}

    async def once(self) -> int:
        """How many runs were spoken of. Raises `StoreError`; that Temporal is away is said, and tried again."""
        still = {(row.id, row.status, row.epoch): row for row in await self._suspects()}
        self._seen = {key: self._seen.get(key, 0) + 1 for key in still}
        moved = 0
        for key, times in self._seen.items():
            # At the 2nd look, the 4th, the 8th …
            if times < 2 or times & (times - 1):
                continue
            row = still[key]
            begin: Callable[[str], Awaitable[None]] = (
                self._signals.ensure if row.status is Status.PENDING else self._signals.look
            )
            try:
                await begin(row.id)
            except QuireError as error:
                self._say(f"run {row.id} stands still: {error}")
                return moved
            moved += 1
        return moved

    async def _suspects(self) -> list[RunRow]:
        rows = [
            *await self._store.list(status=Status.PENDING, limit=MOST),
            *await self._store.list(status=Status.INTERRUPTED, limit=MOST),
            *await self._answered(),
        ]
        return [row for row in rows if self._ours(row)]

    def _ours(self, row: RunRow) -> bool:
        """One that was read from an export can be looked at, and never goes on. Pins of any shape are possible here:
        one run that cannot be read must not keep the others waiting."""
        return row.pins.get("queue", "") == self._queue and not row.pins.get("imported")

    async def _answered(self) -> list[RunRow]:
        if not isinstance(self._store, SharedStore):
            return []
        found = [await self._store.get(run) for run in (await self._store.answered())[:MOST]]
        return [row for row in found if row is not None and row.status is Status.AWAITING_INPUT]
