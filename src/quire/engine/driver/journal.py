"""The recorded effects of a run, as one drive sees them, and the ledger: journal, feed and lease behind one write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.engine.events import Feed, Listener
from quire.engine.premises import PureWork
from quire.engine.records import (
    Batch,
    EffectRecord,
    Lease,
    Letter,
    Question,
    RunUpdate,
    WriteResult,
    add_costs,
    has_shape,
)
from quire.engine.request_hashes import KINDS, hashed_request, request_hash
from quire.engine.requests import Fan, Halt, HumanRequest, Meter, Metering, Recorded
from quire.errors import JournalMismatch, StoreLocked

if TYPE_CHECKING:
    from quire.engine.ports import Clock, Store
    from quire.engine.records import Event


class Journal:
    """Look up records by path, and notice a request that differs from the recorded one.

    `work` is the counter that the walk which reads this journal has to use.
    """

    def __init__(self, records: Iterable[EffectRecord]) -> None:
        self._records = {record.path: record for record in records}
        self._claimed: set[str] = set()
        self.superseded_cost = 0.0
        """Dollars that were spent on effects whose records a resume has removed, as far as prices are known."""
        self.work = PureWork(path for path, record in self._records.items() if record.kind == "work")

    def __len__(self) -> int:
        return len(self._records)

    @property
    def records(self) -> Sequence[EffectRecord]:
        return tuple(self._records.values())

    def claim(self, path: str) -> None:
        """Mark a path as requested.

        A walk names each path once; a second time is a bug of the interpreter, not of the document.
        """
        if path in self._claimed:
            raise AssertionError(f"the walk asked for {path} twice")
        self._claimed.add(path)

    def passes(self, path: str) -> bool:
        """Mark the path of a boundary as requested if it has no record, as nearly all have none."""
        if path in self._records:
            return False
        self.claim(path)
        return True

    def find(self, request: Recorded) -> EffectRecord | None:
        record = self._records.get(request.path)
        if record is None:
            return None
        if record.kind != KINDS[type(request)] or not has_shape(record):
            raise JournalMismatch(request.path)
        digest, characters = hashed_request(request)
        self.work.add_text(characters)
        if not answers(record, request, digest):
            raise JournalMismatch(request.path)
        return record

    def holds_more(self) -> bool:
        """Return True if effects are recorded that the walk has not reached yet."""
        return any(
            record.kind not in UNCLAIMED and record.path not in self._claimed and not is_lost_call(record)
            for record in self._records.values()
        )

    def add(self, record: EffectRecord) -> None:
        self._records[record.path] = record

    def ended_by(self, fan: Fan) -> int | None:
        """Return the number of the child whose failure ended a fan for all of them, or None if that is not recorded."""
        record = self._records.get(abort_path(fan))
        return record.value if record is not None and isinstance(record.value, int) else None

    def aborts(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the paths whose record marks an aborted fan."""
        return tuple(path for path in paths if (record := self._records.get(path)) and record.kind == "abort")

    def metered(self, metering: Metering) -> list[Meter]:
        """Return the usage of these effects; zero for an effect without a record."""
        records = (self._records.get(path) for path in metering.paths)
        meters = [Meter() if record is None else Meter.of(record) for record in records]
        meters += [self._below(path) for path in metering.below]
        return [*meters, Meter(cost=self.superseded_cost)] if metering.superseded else meters

    def _below(self, path: str) -> Meter:
        """Return the total usage below a path. An unknown price is not counted."""
        meters = [Meter.of(record) for at, record in self._records.items() if at.startswith(f"{path}/")]
        return Meter(
            sum(meter.input_tokens for meter in meters),
            sum(meter.output_tokens for meter in meters),
            sum(meter.cost or 0.0 for meter in meters),
            sum(meter.elapsed for meter in meters),
        )

    def cost(self) -> float | None:
        """Return the cost of all effects whose end is recorded, or None if a price is not known."""
        total = 0.0
        for record in self._records.values():
            if record.usage is not None and record.state != "intent":
                if record.usage.cost is None:
                    return None
                total += record.usage.cost
        return total

    def dearest(self) -> float | None:
        """Return the cost of the most expensive effect so far, or None if no cost is known."""
        costs = (record.usage.cost for record in self._records.values() if record.usage is not None)
        return max((cost for cost in costs if cost is not None), default=None)

    def model_calls(self) -> int:
        """Return the number of model calls that were made."""
        return sum(record.is_model_call for record in self._records.values())


SPENT = "spent"
"""Kind, and end of the path, of the record of the spending of a launched run; its value is the path of the launch."""
UNCLAIMED = frozenset({"abort", "terms", "work", SPENT})
"""Kinds of records whose path a walk never claims."""


def is_lost_call(record: EffectRecord) -> bool:
    """Tell whether a record is that of a model call whose end is not known: it was stopped, or its process died."""
    return record.kind == "model" and record.state == "intent"


def answers(record: EffectRecord, request: Recorded, digest: str) -> bool:
    """Tell whether a record of the same kind is that of a request with this hash."""
    return record.request == digest or _halted_by_0_1_0(request, record) or _asked_by_0_1_0(request, record)


def _halted_by_0_1_0(request: Recorded, record: EffectRecord) -> bool:
    """Tell whether this is a halt recorded by 0.1.0.

    The children that it named at the end of a thread depended on timing, and it kept no answer, so none can be wrong.
    """
    return isinstance(request, Halt) and record.kind == "halt" and record.value is None


def _asked_by_0_1_0(request: Recorded, record: EffectRecord) -> bool:
    """Tell whether this is a question of the tool `ask` as 0.1.0 recorded it: without the default that it was given."""
    if not isinstance(request, HumanRequest) or not request.explicit or request.default is None:
        return False
    return record.request == request_hash(replace(request, default=None))


def abort_path(fan: Fan) -> str:
    return f"{fan.path}/abort"


LOCK_PATIENCE_SECONDS = 600.0
LOCK_PAUSE_SECONDS = 0.5
"""Pause between two tries; each try waits for a while itself."""


class CancelRequested(Exception):
    """Cancellation of the run was requested; noticed at a write."""


class Ledger:
    """The one way to write for a drive: each write is one transaction, which includes the pending events.

    `closed` is set before the final write starts: a task cancelled during it counts as having written it.
    """

    def __init__(self, lease: Lease, journal: Journal, store: Store, clock: Clock, listen: Listener) -> None:
        self.lease = lease
        self.journal = journal
        self.store = store
        self.feed = Feed(lease.run, lease, clock, listen)
        self.readers: list[Callable[[Sequence[Event]], None]] = []
        """Called with the events of each write, after its commit."""
        self.position = ""
        self.closed = False
        self.cost = lease.cost
        if lease.cost is not None:
            # The total of the run counts all that was ever recorded; the part that the journal does not have was
            # removed, or is a call whose end is not known, and which is made again.
            journal.superseded_cost = max(0.0, lease.cost - (journal.cost() or 0.0))
        self.learnt_at = 0.0
        """When a write last told whether the run is to be cancelled, in the time of the event loop."""
        self._clock = clock
        self._withdraw: list[str] = []
        self._lost: list[EffectRecord] = []

    def lose(self, intent: EffectRecord) -> None:
        """Count a call whose cost will not be known; it is written with the next write. If there is none, the intent
        that is stored already is counted by the next drive."""
        self._keep(intent)
        self._lost.append(intent)

    def count_lost(self, calls: Iterable[EffectRecord]) -> None:
        """Count calls that were under way when the last drive ended; they are written with the next write."""
        for intent in calls:
            self.lose(intent)
            # A thread sees only what its calls cost that it makes again.
            self.journal.superseded_cost += (intent.usage.cost or 0.0) if intent.usage else 0.0

    def withdraw(self, path: str) -> None:
        """Take an open question back with the next write."""
        self._withdraw.append(path)

    async def write(
        self,
        record: EffectRecord | None = None,
        *,
        questions: tuple[Question, ...] = (),
        consume: tuple[str, ...] = (),
        supersede: tuple[str, ...] = (),
    ) -> WriteResult:
        """Write a record and the pending events. Raises `CancelRequested` after the write, never instead of it."""
        if record is not None:
            self.feed.recorded(record, self.position)
        batch = Batch(
            self._with_lost(record),
            self.feed.take(),
            questions,
            consume,
            self._withdrawn(),
            supersede,
            update=RunUpdate(position=self.position),
        )
        written = await self._stored(batch, record)
        self.learnt_at = asyncio.get_running_loop().time()
        self._keep(record)
        if written.cancel_requested:
            raise CancelRequested
        return written

    def _tell(self, events: Sequence[Event]) -> None:
        for reader in self.readers:
            reader(events)

    def _with_lost(self, record: EffectRecord | None = None) -> tuple[EffectRecord, ...]:
        lost, self._lost = self._lost, []
        return (*lost, record) if record is not None else tuple(lost)

    async def _stored(self, batch: Batch, record: EffectRecord | None = None) -> WriteResult:
        """Write, however long another process holds the store or its disk is full: the result was paid for, and would
        be paid for again."""
        patience = _Patience(self.feed, self._clock)
        while True:
            try:
                result = await self.store.write(self.lease, batch)
                self._tell(batch.events)
                return result
            except asyncio.CancelledError:
                # A write that is cancelled half-way takes place all the same, and its effect is paid for.
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
            self.cost = add_costs(self.cost, record.usage.cost)

    async def forget(self, path: str) -> None:
        """Remove an effect from the journal, so that it is performed again."""
        await self.open(Batch(supersede=(path,)))

    async def close(self, update: RunUpdate, letters: tuple[Letter, ...] = (), supersede: tuple[str, ...] = ()) -> None:
        """Make the last write of a drive, which says how it ended and sends the letters to the launcher."""
        self.closed = True
        await self._stored(self._with_the_rest(Batch(update=update, letters=letters, supersede=supersede)))

    async def open(self, batch: Batch) -> None:
        """Make a write without an effect, such as the first of a drive.

        It does not wait for a lock, since no result can be lost.
        """
        batch = self._with_the_rest(batch)
        await self.store.write(self.lease, batch)
        self._tell(batch.events)

    def _with_the_rest(self, batch: Batch) -> Batch:
        effects = (*self._with_lost(), *batch.effects)
        return replace(batch, effects=effects, events=self.feed.take(), withdraw=self._withdrawn())

    async def park(self, update: RunUpdate) -> bool:
        """Store that the run waits. Return False, and write nothing, if an answer waits to be taken."""
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
            self._tell(events)
            return True
        self.closed = False
        self.feed.put_back(events)
        return False

    async def look(self) -> WriteResult:
        """Write nothing; learn whether a cancellation was requested or an answer waits."""
        return await self.store.write(self.lease, Batch())

    def _withdrawn(self) -> tuple[str, ...]:
        if not self._withdraw:
            return ()
        paths, self._withdraw = tuple(self._withdraw), []
        return paths


class _Patience:
    """Time that one write keeps trying; the feed is told once."""

    def __init__(self, feed: Feed, clock: Clock) -> None:
        self._feed = feed
        self._clock = clock
        self._until: float | None = None

    async def wait(self, locked: StoreLocked) -> None:
        now = self._clock.now()
        if self._until is None:
            self._until = now + LOCK_PATIENCE_SECONDS
            # Without the advice after the colon: that is for users who have to try again themselves.
            self._feed.held_up(str(locked).rpartition(": ")[0] or str(locked))
        if now >= self._until:
            raise locked
        await self._clock.sleep(LOCK_PAUSE_SECONDS)
