"""The written side of a drive: journal, feed and lease behind one write."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from quire.engine.events import Feed, Listener
from quire.engine.journal import Journal
from quire.engine.ports import Clock, Store
from quire.engine.records import Batch, EffectRecord, Lease, Letter, Question, RunUpdate, Written
from quire.errors import StoreLocked

LOCK_PATIENCE_SECONDS = 600.0
LOCK_PAUSE_SECONDS = 0.5
"""Between two tries; each of them waits for a while itself."""


class CancelRequested(Exception):
    """Somebody asked for the run to be cancelled; seen when something was written."""


class Ledger:
    """All that a drive writes goes through here: one transaction each, events that waited included.

    `closed` is true from the moment in which the last write is on its way: who is stopped then has written it.
    """

    def __init__(self, lease: Lease, journal: Journal, store: Store, clock: Clock, listen: Listener) -> None:
        self.lease = lease
        self.journal = journal
        self.store = store
        self.feed = Feed(lease.run, lease, clock, listen)
        self.position = ""
        self.closed = False
        self.cost = lease.cost
        self._clock = clock
        self._withdraw: list[str] = []

    def withdraw(self, path: str) -> None:
        """Takes an open question back with the next write."""
        self._withdraw.append(path)

    async def write(
        self,
        record: EffectRecord | None = None,
        *,
        questions: tuple[Question, ...] = (),
        consume: tuple[str, ...] = (),
        supersede: tuple[str, ...] = (),
    ) -> Written:
        """Raises `CancelRequested` after the write, never instead of it."""
        if record is not None:
            self.feed.recorded(record, self.position)
        batch = Batch(
            (record,) if record else (),
            self.feed.take(),
            questions,
            consume,
            self._withdrawn(),
            supersede,
            update=RunUpdate(position=self.position),
        )
        written = await self._stored(batch, record)
        self._keep(record)
        if written.cancel_requested:
            raise CancelRequested
        return written

    async def _stored(self, batch: Batch, record: EffectRecord | None = None) -> Written:
        """Writes, however long another process holds the store: what is in hand was paid for, and would be again."""
        patience = _Patience(self.feed, self._clock)
        while True:
            try:
                return await self.store.write(self.lease, batch)
            except asyncio.CancelledError:
                # Who is stopped in the middle of a write has written all the same, and paid for it.
                self._keep(record)
                raise
            except StoreLocked as error:
                locked = error
            await patience.wait(locked)

    def _keep(self, record: EffectRecord | None) -> None:
        if record is None:
            return
        self.journal.add(record)
        if record.usage is not None:
            spent = record.usage.cost
            self.cost = None if self.cost is None or spent is None else self.cost + spent

    async def forget(self, path: str) -> None:
        """Takes an effect out of the journal, so that it is performed again."""
        await self.open(Batch(supersede=(path,)))

    async def close(self, update: RunUpdate, letters: tuple[Letter, ...] = (), supersede: tuple[str, ...] = ()) -> None:
        """The last write of a drive, which says how it ended, and tells whoever waits for that."""
        self.closed = True
        await self._stored(self._with_the_rest(Batch(update=update, letters=letters, supersede=supersede)))

    async def open(self, batch: Batch) -> None:
        """A write that is no effect's, such as the first of a drive. There is nothing in hand that could be lost."""
        await self.store.write(self.lease, self._with_the_rest(batch))

    def _with_the_rest(self, batch: Batch) -> Batch:
        return replace(batch, events=self.feed.take(), withdraw=self._withdrawn())

    async def park(self, update: RunUpdate) -> bool:
        """False when an answer waits to be taken: then nothing is written."""
        events, withdraw = self.feed.take(), tuple(self._withdraw)
        self.closed = True
        patience = _Patience(self.feed, self._clock)
        while True:
            try:
                parked = await self.store.park(self.lease, Batch(events=events, withdraw=withdraw, update=update))
                break
            except StoreLocked as error:
                locked = error
            await patience.wait(locked)
        if parked:
            self._withdraw.clear()
            return True
        self.closed = False
        self.feed.put_back(events)
        return False

    async def look(self) -> Written:
        """Writes nothing; learns whether somebody wants something of the run."""
        return await self.store.write(self.lease, Batch())

    def _withdrawn(self) -> tuple[str, ...]:
        if not self._withdraw:
            return ()
        paths, self._withdraw = tuple(self._withdraw), []
        return paths


class _Patience:
    """How long one write goes on trying; it is told once that it does."""

    def __init__(self, feed: Feed, clock: Clock) -> None:
        self._feed = feed
        self._clock = clock
        self._until: float | None = None

    async def wait(self, locked: StoreLocked) -> None:
        now = self._clock.now()
        if self._until is None:
            self._until = now + LOCK_PATIENCE_SECONDS
            # Without the advice after the colon: that is for those who have to try again themselves.
            self._feed.held_up(str(locked).rpartition(": ")[0] or str(locked))
        if now >= self._until:
            raise locked
        await self._clock.sleep(LOCK_PAUSE_SECONDS)
