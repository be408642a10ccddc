"""The written side of a drive: journal, feed and lease behind one write."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from quire.engine.events import Feed, Listener
from quire.engine.journal import Journal
from quire.engine.ports import Clock, Store
from quire.engine.records import Batch, EffectRecord, Lease, Letter, Question, RunUpdate, Written


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
        try:
            written = await self.store.write(self.lease, batch)
        except asyncio.CancelledError:
            # Who is stopped in the middle of a write has written all the same, and paid for it.
            self._keep(record)
            raise
        self._keep(record)
        if written.cancel_requested:
            raise CancelRequested
        return written

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
        await self.open(Batch(update=update, letters=letters, supersede=supersede))

    async def open(self, batch: Batch) -> None:
        """A write that is no effect's, such as the first of a drive."""
        await self.store.write(self.lease, replace(batch, events=self.feed.take(), withdraw=self._withdrawn()))

    async def park(self, update: RunUpdate) -> bool:
        """False when an answer waits to be taken: then nothing is written."""
        events, withdraw = self.feed.take(), tuple(self._withdraw)
        self.closed = True
        if await self.store.park(self.lease, Batch(events=events, withdraw=withdraw, update=update)):
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
