"""Find runs that are due although no signal came: it was lost, or its sender died before sending it.

A run is signalled at the second sweep in a row that finds it unchanged, then less and less often: every signal is kept
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
    """Sweeps the runs of one task queue. Runs of other queues in the same store are left alone."""

    def __init__(self, store: Store, queue: str, signals: Signals, say: Callable[[str], None]) -> None:
        self._store = store
        self._queue = queue
        self._signals = signals
        self._say = say
        self._seen: dict[tuple[str, Status, int], int] = {}

    async def once(self) -> int:
        """Sweep once and return how many runs were signalled. Raises `StoreError`; if Temporal cannot be reached, this
        is logged and tried again at the next sweep."""
        still = {(row.id, row.status, row.epoch): row for row in await self._suspects()}
        self._seen = {key: self._seen.get(key, 0) + 1 for key in still}
        moved = 0
        for key, times in self._seen.items():
            # At the 2nd sweep, the 4th, the 8th …
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
        """Return True if the run belongs to this queue. An imported run can be looked at but is never driven.

        The pins may have any shape here: one run that cannot be read must not delay the others.
        """
        return row.pins.get("queue", "") == self._queue and not row.pins.get("imported")

    async def _answered(self) -> list[RunRow]:
        if not isinstance(self._store, SharedStore):
            return []
        found = [await self._store.get(run) for run in (await self._store.answered())[:MOST]]
        return [row for row in found if row is not None and row.status is Status.AWAITING_INPUT]
