"""The part of a store that does not depend on the database: reading, and the order of locks and transactions."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import inf
from operator import attrgetter
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from msgspec.structs import astuple, replace

from quire.engine.records import (
    Answer,
    Batch,
    EffectRecord,
    Event,
    Lease,
    Letter,
    NewRun,
    Question,
    RunRow,
    Status,
    WriteResult,
)
from quire.errors import RunState, StoreError
from quire.stores import contract, row_decoder, rows
from quire.stores.occurrences import EnabledTrigger, Process, Start
from quire.stores.run_pages import Condition, JournalPages, RunFilters, RunPage, RunQueries, Sort, cursor
from quire.values import clean

if TYPE_CHECKING:
    from quire.stores.contract import History, KeptReply
    from quire.stores.occurrences import Occurrence, StartState
    from quire.stores.rows import OwnedRun
    from quire.stores.statements import Statements
    from quire.stores.transactions import Admit, Steps, Transactions
    from quire.trust.seal import Seal
    from quire.values import Value

T = TypeVar("T")
Work: TypeAlias = "Callable[[bool], Steps[T]]"
"""Begins a transaction. The argument is `again`: true after an attempt whose outcome is unknown."""


_ALL = 2**62
"""The limit of a statement that is not limited."""
_MOST_WAITS = 1000
_MOST_EXPIRING = 500


class SqlStore(ABC):
    """A `quire.engine.ports.Store` in an SQL database."""

    def __init__(self, sql: type[Statements], place: str, seal: Seal, now: Callable[[], float]) -> None:
        self.place = place
        """The database as messages name it, without a password."""
        self._sql = sql
        self._seal = seal
        self._now = now
        self._queries = RunQueries(sql, now, self._owner_is)
        self._held: dict[str, OwnedRun] = {}
        self.process = ""
        """The id of this process, if it reports itself to the store."""
        self.observers: list[Callable[[Lease, Batch, float], None]] = []
        self.claims = Counter[tuple[str, str]]()

    @cached_property
    def _transactions(self) -> Transactions:
        """Made when one is first needed: most verbs only read."""
        from quire.stores.transactions import Transactions

        return Transactions(self._sql, self.place, self._seal, self._now)

    @abstractmethod
    async def _rows(self, sql: str, parameters: Sequence[object] = ()) -> Sequence[row_decoder.Row]:
        """Return the rows of a query outside of a transaction."""

    @abstractmethod
    async def _transact(self, work: Work[T]) -> T:
        """Drive a transaction about a run that any process may own."""

    @abstractmethod
    async def _insert(self, work: Work[T]) -> T:
        """Drive a transaction that makes a new run."""

    @abstractmethod
    async def _transact_as_owner(self, work: Work[T]) -> T:
        """Drive a transaction about a run whose lock this store holds."""

    @abstractmethod
    async def _write(self, held: OwnedRun, batch: Batch, *, park: bool) -> WriteResult: ...

    @abstractmethod
    async def _settle(self) -> None:
        """Finish the writes that are queued."""

    @abstractmethod
    async def _expect(self, run: str) -> None:
        """Make ready to change a stored run. Raises `NoSuchRun` if nothing is stored at all."""

    @abstractmethod
    async def _take_lock(self, run: str) -> bool:
        """Take the lock of a run; return False if a process holds it, this one included. May raise `NoSuchRun`."""

    @abstractmethod
    async def _drop_lock(self, run: str) -> None: ...

    @abstractmethod
    def _owner_is(self, alive: bool) -> Condition:
        """Return the condition that the owner of a running run is alive, or that it is not."""

    @abstractmethod
    def _has_owner(self, run: str, row: row_decoder.Row) -> bool:
        """Tell whether the owner of a running run is alive."""

    async def create(self, run: NewRun, admit: Admit | None = None) -> None:
        await self.restore(run, None, admit)

    async def restore(self, run: NewRun, history: History | None, admit: Admit | None = None) -> None:
        from quire.stores.transactions import encode_run

        new = encode_run(run, self._seal, history)
        # Runs that are inserted side by side do not see each other, so none of them could be admitted.
        insert = self._insert if admit is None else self._transact
        await insert(lambda again: self._transactions.create(new, admit, again=again))

    async def reserve(self, run: str, most: float | None, admit: Admit) -> None:
        await self._transact(lambda again: self._transactions.reserve(run, most, admit))

    async def start_once(
        self,
        run: NewRun | None,
        occurrence: Occurrence,
        admit: Admit | None = None,
        *,
        state: StartState = "started",
        reason: str = "",
    ) -> tuple[Start, bool]:
        from quire.stores.transactions import encode_run

        new = None if run is None else encode_run(run, self._seal)
        source, key, request = (clean(text) for text in (occurrence.source, occurrence.key, occurrence.request))
        named = run.id if run else ""
        claim = Start(source, key, request, occurrence.due, self._now(), state, clean(reason), named)
        once = self._transactions.start_once
        claim, is_new = await self._transact(lambda again: once(new, claim, admit, again=again))
        self.claims[claim.source, claim.state] += is_new
        return claim, is_new

    async def starts(self, source: str = "", state: str = "", limit: int = 100) -> Sequence[Start]:
        rows = await self._rows(self._sql.STARTS, (source, source, state, state, limit))
        return [row_decoder.of_struct(Start, row) for row in rows]

    async def start_of(self, occurrence: Occurrence) -> Start | None:
        rows = await self._rows(self._sql.CLAIMED, (clean(occurrence.source), clean(occurrence.key)))
        return row_decoder.of_struct(Start, rows[0]) if rows else None

    async def triggers(self) -> Sequence[EnabledTrigger]:
        return [row_decoder.of_struct(EnabledTrigger, row) for row in await self._rows(self._sql.TRIGGERS)]

    async def enable(self, trigger: EnabledTrigger) -> None:
        await self._transact(lambda again: self._transactions.change("PUT_TRIGGER", astuple(trigger)))

    async def disable(self, name: str) -> None:
        await self._transact(lambda again: self._transactions.change("DROP_TRIGGER", (name,)))

    async def move_trigger(self, name: str, cursor: float, to: float) -> None:
        await self._transact(lambda again: self._transactions.change("MOVE_TRIGGER", (to, name, cursor)))

    async def under_way(self) -> Sequence[tuple[str, str, str]]:
        return [(source, run, status) for source, run, status in await self._rows(self._sql.UNDER_WAY)]

    async def beat(self, process: Process) -> None:
        self.process = process.id
        await self._transact(lambda again: self._transactions.beat(process))

    async def leave(self, process: str) -> None:
        await self._transact(lambda again: self._transactions.change("DROP_PROCESSES", (process, 0.0)))

    async def processes(self) -> Sequence[Process]:
        return [row_decoder.of_struct(Process, row) for row in await self._rows(self._sql.PROCESSES)]

    async def due(self, now: float) -> Sequence[str]:
        return [row_decoder.readable_id(run) for (run,) in await self._rows(self._sql.DUE, (now,))]

    async def get(self, run: str) -> RunRow | None:
        rows = await self._rows(self._sql.ONE_RUN, (run,))
        return self._run_now(rows[0]) if rows else None

    async def find(self, prefix: str) -> Sequence[str]:
        ids = await self._rows(self._sql.FIND, (prefix, prefix + "\U0010ffff"))
        return [row_decoder.readable_id(id) for (id,) in ids]

    async def list(self, *, status: Status | None = None, limit: int = 50) -> Sequence[RunRow]:
        filters = RunFilters((status,) if status else (), tries=True)
        rows = await self._rows(*self._queries.page(filters, None, limit, "started", True))
        return [self._run_now(row) for row in rows]

    async def marks(self) -> contract.Marks:
        for row in await self._rows(self._sql.MARKS):
            return contract.Marks(*row)
        return contract.Marks()

    async def written_since(self, at: float) -> Sequence[RunRow]:
        return [self._run_now(row) for row in await self._rows(self._sql.WRITTEN_SINCE, (at, at))]

    async def page(
        self, filters: RunFilters, after: str | None = None, limit: int = 100, sort: Sort = "started", pins: bool = True
    ) -> RunPage:
        rows = await self._rows(*self._queries.page(filters, after, limit + 1, sort, pins))
        runs = [self._run_now(row) for row in rows[:limit]]
        if len(rows) <= limit:
            return RunPage(runs)
        ((key, number),) = await self._rows(*self._queries.place(rows[limit - 1][0], sort))
        return RunPage(runs, cursor(key, number, sort))

    async def named(self, runs: Sequence[str]) -> Sequence[RunRow]:
        return [self._run_now(row) for row in await self._rows(*self._queries.named(runs))] if runs else ()

    async def count(self, filters: RunFilters) -> int:
        rows = await self._rows(*self._queries.count(filters))
        return int(rows[0][0]) if rows else 0

    async def counts(self, filters: RunFilters) -> Mapping[Status, int]:
        return {status: await self.count(replace(filters, statuses=(status,))) for status in Status}

    async def claim_key(self, key: str, request: str) -> KeptReply | str:
        claim = os.urandom(8).hex()
        return await self._transact(lambda again: self._transactions.claim_key(key, request, claim))

    async def keep_reply(self, key: str, claim: str, reply: str | None) -> None:
        await self._transact(lambda again: self._transactions.keep_reply(key, claim, reply))

    async def spent(self, since: float, until: float = inf) -> contract.Spent:
        for cost, unknown, runs, completed, failed in await self._rows(self._sql.SPENT, (since, until)):
            return contract.Spent(runs, cost, unknown, completed, failed)
        return contract.Spent()

    async def waited(self, since: float) -> Sequence[tuple[float, float]]:
        return [(at, seconds) for at, seconds in await self._rows(self._sql.WAITED, (since, since, _MOST_WAITS))]

    async def label(self, run: str, changes: Mapping[str, str | float | None]) -> None:
        await self._expect(run)
        await self._transact(lambda again: self._transactions.label(run, changes))

    async def recent_inputs(self, document: str, limit: int) -> Sequence[Mapping[str, Value]]:
        return [row_decoder.inputs(row) for row in await self._rows(self._sql.RECENT_PINS, (document, limit))]

    async def text(self, sha256: str) -> str:
        for (body,) in await self._rows(self._sql.TEXT, (sha256,)):
            text = body.decode(errors="replace") if isinstance(body, bytes) else str(body)
            return contract.checked_text(text, sha256, self.place)
        raise StoreError(f"{self.place} holds no text with the hash {sha256}")

    async def effects(self, run: str) -> Sequence[EffectRecord]:
        """Return the records in the order in which their paths first appeared."""
        latest = {row[0]: row for row in await self._rows(self._sql.EFFECTS, (run,))}.values()
        return [row_decoder.effect_record(row) for row in latest if row[2] != rows.SUPERSEDED]

    async def events(self, run: str, after: int = 0) -> Sequence[Event]:
        page = await self._rows(self._sql.EVENTS_FROM, (run, rows.places(0, after)[0], _ALL))
        events = [event for row in page for event in row_decoder.events(run, row[1:]) if event.seq > after]
        return sorted(events, key=attrgetter("seq"))

    def journal(self) -> JournalPages:
        return JournalPages(self._sql, self._rows)

    async def questions(self, run: str | None = None) -> Sequence[Question]:
        if run is None:
            rows = await self._rows(self._sql.QUESTIONS, (self._now(),))
        else:
            rows = await self._rows(self._sql.QUESTIONS_OF_RUN, (self._now(), run))
        return [row_decoder.question(row) for row in rows]

    async def oldest_questions(
        self, limit: int, after: tuple[float, str, str] | None = None
    ) -> tuple[Sequence[Question], int]:
        place = after or (-inf, "", "")
        rows = await self._rows(self._sql.OLDEST_QUESTIONS, (self._now(), place[0], *place, limit))
        questions = [row_decoder.question(row) for row in rows]
        if after is None and len(questions) < limit:
            return questions, min(len(questions), contract.MOST_QUESTIONS + 1)
        counted = await self._rows(self._sql.COUNT_QUESTIONS, (self._now(), contract.MOST_QUESTIONS + 1))
        return questions, int(counted[0][0])

    async def expiring(self, since: float, until: float) -> Sequence[str]:
        return [run for (run,) in await self._rows(self._sql.EXPIRING, (since, until, _MOST_EXPIRING))]

    async def answers(self, run: str) -> Sequence[Answer]:
        return [row_decoder.answer(run, row, self._seal) for row in await self._rows(self._sql.ANSWERS, (run,))]

    async def answer(self, run: str, path: str, hash: str, value: str, by: str = "") -> None:
        value, by = clean(value), clean(by)
        await self._expect(run)
        await self._transact(lambda again: self._transactions.answer(run, path, hash, value, by, again=again))

    async def answered(self) -> Sequence[str]:
        return [run for (run,) in await self._rows(self._sql.RUNS_ANSWERED)]

    async def letters(self, recipient: str | None = None) -> Sequence[Letter]:
        if recipient is None:
            rows = await self._rows(self._sql.ALL_LETTERS)
        else:
            rows = await self._rows(self._sql.LETTERS, (recipient,))
        return [row_decoder.letter(row, self._seal) for row in rows]

    async def request_cancel(self, run: str) -> bool:
        await self._expect(run)
        if await self._take_lock(run):
            return await self._cancel_and_drop(run)
        await self._transact(lambda again: self._transactions.ask_cancel(run))
        if not await self._take_lock(run):
            return False
        # The owner released the run while the flag was being written, perhaps without having seen it.
        return await self._cancel_and_drop(run, requested=True)

    async def acquire(self, run: str, *, after: int | None = None) -> Lease:
        if not await self._take_lock(run):
            raise contract.busy(run)
        try:
            status, lease, held = await self._transact_as_owner(
                lambda again: self._transactions.acquire(run, after, self.process)
            )
            if lease is None or held is None:
                raise RunState(f"run {run} is {status.words} and cannot continue: fork it instead")
        except BaseException:
            with contextlib.suppress(StoreError):
                await self._drop_lock(run)
            raise
        self._held[run] = held
        return lease

    async def write(self, lease: Lease, batch: Batch) -> WriteResult:
        return await self._observed(lease, batch)

    async def park(self, lease: Lease, batch: Batch) -> bool:
        return not (await self._observed(lease, batch, park=True)).answer_waiting

    async def _observed(self, lease: Lease, batch: Batch, *, park: bool = False) -> WriteResult:
        began = perf_counter()
        result = await self._write(self._owned(lease), batch, park=park)
        for observe in self.observers if batch.update and not (park and result.answer_waiting) else ():
            observe(lease, batch, perf_counter() - began)
        return result

    async def release(self, lease: Lease) -> None:
        if self._holding(lease) is None:
            return
        await self._settle()
        self._held.pop(lease.run, None)
        # If a server is away, the lock is gone already and nothing can be settled.
        with contextlib.suppress(RunState, StoreError):
            await self._drop_lock(lease.run)
            # Checked after the lock is dropped: a flag set between an earlier check and the drop would never be seen.
            if await self._rows(self._sql.CANCEL_ASKED, (lease.run,)) and await self._take_lock(lease.run):
                await self._cancel_and_drop(lease.run)

    async def check_seal(self, run: str, *, whole: bool = True) -> None:
        from quire.stores.transactions import drive_async

        await drive_async(self._transactions.check_seal(run, whole=whole), lambda query: self._rows(*query))
        if whole:
            await self.answers(run)

    async def reseal(self, run: str) -> None:
        if not await self._take_lock(run):
            raise contract.busy(run)
        try:
            await self._transact_as_owner(lambda again: self._transactions.reseal(run))
        finally:
            with contextlib.suppress(StoreError):
                await self._drop_lock(run)

    async def _cancel_and_drop(self, run: str, *, requested: bool = False) -> bool:
        """Cancel a run whose lock was just taken, and drop the lock."""
        try:
            cancel = self._transactions.cancel
            return await self._transact_as_owner(lambda again: cancel(run, requested=requested, again=again))
        finally:
            with contextlib.suppress(StoreError):
                await self._drop_lock(run)

    def _holding(self, lease: Lease) -> OwnedRun | None:
        held = self._held.get(lease.run)
        return held if held is not None and held.epoch == lease.epoch else None

    def _owned(self, lease: Lease) -> OwnedRun:
        held = self._holding(lease)
        if held is None:
            raise contract.fenced(lease.run)
        return held

    def _run_now(self, row: row_decoder.Row) -> RunRow:
        run = row_decoder.run_row(row)
        status = contract.status_at(self._now(), run.status, run.expires_at)
        if status is Status.RUNNING and not self._has_owner(run.id, row):
            status = Status.INTERRUPTED
        return run if status is run.status else replace(run, status=status)
