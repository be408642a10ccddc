"""Write batches to PostgreSQL in groups: jobs that are queued during a commit form the next one.

A commit costs a round trip and a sync of the server's disk, however many jobs share it. So one task commits, one
transaction after the other, with everything that waits. A single waiting write, as in a run without a fan, is one
statement and one round trip.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import psycopg
from msgspec import Struct

from quire.engine.records import WriteResult
from quire.errors import StoreError
from quire.stores.contract import fenced
from quire.stores.postgres.statements import PostgresStatements
from quire.stores.rows import EMPTY_ROW, Encoded, JournalEnd, OwnedRun
from quire.stores.transactions import Append, Step, Steps, drive_async

if TYPE_CHECKING:
    from quire.stores.postgres.database import Server, Work
    from quire.stores.postgres.statements import Connection
    from quire.stores.row_decoder import Row
    from quire.trust.seal import Seal


GROUP = 200


class Job(Struct, eq=False):
    """One part of a commit. Its outcome is an exception if it failed."""

    done: asyncio.Future[Any]


T = TypeVar("T")
J = TypeVar("J", bound=Job)
Outcomes: TypeAlias = Sequence[Any]
Cursor: TypeAlias = "psycopg.AsyncCursor[Row]"


class Broken(Exception):
    """Raised to roll a group back: one of its jobs has failed after it had written."""


class Groups(ABC, Generic[J]):
    """A queue of jobs, and the task that commits them while there are any."""

    def __init__(self) -> None:
        self._pending: list[J] = []
        self._task: asyncio.Task[None] | None = None
        self._last: asyncio.Future[Any] | None = None

    @abstractmethod
    async def _commit(self, jobs: Sequence[J]) -> Outcomes:
        """Commit the jobs as one transaction, and return the outcome of each."""

    def _give_up(self, job: J, failure: Exception) -> None:
        if not job.done.done():
            job.done.set_result(failure)

    async def _put(self, job: J) -> Any:
        """Commit a job; it is durable on return. If the caller is cancelled meanwhile, it is written all the same: the
        effect did happen, and must not happen again."""
        self._pending.append(job)
        self._last = job.done
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())
        outcome = await asyncio.shield(job.done)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def settled(self) -> None:
        """Wait until everything queued so far has been written or has failed."""
        if self._last is not None and not self._last.done():
            await asyncio.wait([self._last])

    async def _work(self) -> None:
        while self._pending:
            jobs, self._pending = self._pending[:GROUP], self._pending[GROUP:]
            try:
                await self._flush(jobs)
            except BaseException:
                for job in (*jobs, *self._pending):
                    if not job.done.done():
                        job.done.set_result(StoreError("the write was interrupted"))
                raise

    async def _flush(self, jobs: Sequence[J]) -> None:
        """Commit a group. If it fails because of one job, the jobs are tried again one by one, so that a bad one fails
        alone."""
        failure = await self._attempt(jobs)
        one_by_one = len(jobs) > 1 and _is_of_one_job(failure)
        for job in jobs if failure is not None else ():
            if one_by_one:
                failure = await self._attempt([job])
            if failure is not None:
                self._give_up(job, failure)

    async def _attempt(self, jobs: Sequence[J]) -> Exception | None:
        try:
            outcomes = await self._commit(jobs)
        except Exception as error:
            return error
        for job, outcome in zip(jobs, outcomes, strict=True):
            job.done.set_result(outcome)
        return None


def _is_of_one_job(failure: Exception | None) -> bool:
    """Tell whether the other jobs of a group may be fine: a transaction has failed, or the server has refused a
    statement."""
    cause = None if failure is None else failure.__cause__
    return isinstance(failure, Broken) or (isinstance(cause, psycopg.Error) and cause.sqlstate is not None)


class Transaction(Job):
    begin: Callable[[bool], Steps[Any]]


class Transactor(Groups[Transaction]):
    """Drives transactions inside those that `transact` opens. Those of a group run side by side, so they must be about
    different runs."""

    def __init__(self, transact: Callable[[Work[Outcomes]], Awaitable[Outcomes]], seal: Seal) -> None:
        super().__init__()
        self._transact = transact
        self._seal = seal

    async def commit(self, begin: Callable[[bool], Steps[T]]) -> T:
        result: T = await self._put(Transaction(asyncio.get_running_loop().create_future(), begin))
        return result

    async def _commit(self, jobs: Sequence[Transaction]) -> Outcomes:
        async def attempt(connection: Connection, again: bool) -> Outcomes:
            if len(jobs) == 1:
                return [await transact(connection, jobs[0].begin(again), self._seal)]
            return await _drive_together(connection, [job.begin(again) for job in jobs], self._seal)

        return await self._transact(attempt)


async def transact(connection: Connection, steps: Steps[T], seal: Seal) -> T:
    """Drive a transaction inside the open one."""

    async def perform(step: Step) -> Sequence[Row]:
        cursor = await _execute(connection, step, seal)
        return await cursor.fetchall() if cursor is not None and cursor.description else ()

    return await drive_async(steps, perform)


async def _drive_together(connection: Connection, transactions: Sequence[Steps[Any]], seal: Seal) -> Outcomes:
    """Drive transactions side by side: the next steps of all of them share a round trip."""
    walks = moving = [_Walk(steps) for steps in transactions]
    async with connection.pipeline() as pipeline:
        while moving:
            steps = [(walk, step) for walk in moving if (step := walk.next_step()) is not None]
            sent = [(walk, await _execute(connection, step, seal)) for walk, step in steps]
            await pipeline.sync()
            for walk, cursor in sent:
                await walk.receive(cursor)
            moving = [walk for walk, _ in sent]
    return [walk.outcome for walk in walks]


class _Walk(Struct):
    """One of several transactions that are driven side by side."""

    steps: Steps[Any]
    rows: Any = None
    has_written: bool = False
    outcome: Any = None

    def next_step(self) -> Step | None:
        """Return the next step; None at the end, with the outcome. Raises `Broken` if the transaction has failed after
        it had written."""
        try:
            return self.steps.send(self.rows)
        except StopIteration as end:
            self.outcome = end.value
        except Exception as error:
            if self.has_written:
                raise Broken from error
            self.outcome = error
        return None

    async def receive(self, cursor: Cursor | None) -> None:
        self.rows = await cursor.fetchall() if cursor is not None and cursor.description else ()
        if cursor is None or (cursor.rowcount and not (cursor.statusmessage or "").startswith("SELECT")):
            self.has_written = True


async def _execute(connection: Connection, step: Step, seal: Seal) -> Cursor | None:
    if isinstance(step, Append):
        held = step.held
        held.tail = await append(connection, held.number, held.tail, step.batch, step.at, seal)
        return None
    return await connection.execute(*step)


async def append(
    connection: Connection, number: int, before: JournalEnd, rows: Encoded, at: float, seal: Seal
) -> JournalEnd:
    """Write a batch inside the open transaction: its journal rows, texts and letters, the status, and the seal of the
    run if its anchor moves. Return the new end of the journal."""
    tail, journal = before.then(0, rows, at, seal)
    for row in journal:
        await connection.execute(PostgresStatements.APPEND, (number, *row), prepare=True)
    if rows.status is not None:
        sealed = tail.sealed(seal, 0)
        await connection.execute(PostgresStatements.SET_STATUS, (*rows.status, at, *sealed, *rows.rest, number))
    elif before.anchors(rows):
        await connection.execute(PostgresStatements.SET_ANCHOR, (*tail.sealed(seal, 0), number))
    # In the order of their hashes, so that two writers with the same texts never deadlock.
    for digest, text in sorted(rows.blobs):
        await connection.execute(PostgresStatements.PUT_BLOB, (digest, str(text).encode()))
    for letter in rows.letters:
        await connection.execute(PostgresStatements.PUT_LETTER, letter)
    return tail


class Write(Job):
    """One batch to commit."""

    held: OwnedRun
    rows: Encoded
    at: float
    park: bool = False
    """If true, the batch is not written when an answer is waiting."""
    tried: JournalEnd | None = None
    """The end of the journal if an attempt with an unknown outcome did commit."""


class _State(Struct):
    """The state of a run, read after its row was locked."""

    epoch: int
    cancel: bool
    answered: frozenset[str]
    place: int

    def learnt(self) -> WriteResult:
        return WriteResult(self.cancel, bool(self.answered))


class Writer(Groups[Write]):
    def __init__(self, server: Server, seal: Seal) -> None:
        super().__init__()
        self._server = server
        self._seal = seal

    async def commit(self, held: OwnedRun, rows: Encoded, at: float, *, park: bool = False) -> WriteResult:
        """Write a batch to the end of a run's journal."""
        if not rows.journal and not rows.only_journal:
            # Every write leaves a row: its place shows later whether the write was committed.
            rows.journal = (EMPTY_ROW,)
        result: WriteResult = await self._put(Write(asyncio.get_running_loop().create_future(), held, rows, at, park))
        return result

    def _give_up(self, job: Write, failure: Exception) -> None:
        if job.tried is not None and isinstance(failure, StoreError):
            job.held.failure = failure
        super()._give_up(job, failure)

    async def _commit(self, jobs: Sequence[Write]) -> list[WriteResult | Exception]:
        async def attempt(connection: Connection, again: bool) -> list[WriteResult | Exception]:
            first = jobs[0]
            if len(jobs) == 1 and first.tried is None and not first.park and first.held.takes_alone(first.rows):
                alone = await _write_alone(connection, first, self._seal)
                if alone is not None:
                    return [alone]
            return await _write_together(connection, jobs, self._seal)

        return await self._server.as_owner_unshielded(attempt)


async def _write_alone(connection: Connection, write: Write, seal: Seal) -> WriteResult | None:
    """Commit a write with one statement. Return None, with nothing written, if there is something to learn."""
    held = write.held
    tail, (row,) = held.tail.then(0, write.rows, write.at, seal)
    write.tried = tail
    parameters = (held.number, held.epoch, *row, held.tail.place)
    try:
        cursor = await connection.execute(PostgresStatements.APPEND_ALONE, parameters, prepare=True)
    except psycopg.errors.UniqueViolation:
        return None  # stored already: an earlier attempt was still under way when this statement began
    except psycopg.Error:
        if not connection.closed:
            write.tried = None
        raise
    if cursor.rowcount:
        held.tail = tail
        return WriteResult()
    write.tried = None
    return None


async def _write_together(connection: Connection, writes: Sequence[Write], seal: Seal) -> list[WriteResult | Exception]:
    numbers = sorted({write.held.number for write in writes})
    tails: dict[OwnedRun, JournalEnd] = {}
    outcomes: list[WriteResult | Exception] = []
    fresh: list[Write] = []
    try:
        async with connection.pipeline():
            await connection.execute("BEGIN")
            await connection.execute(PostgresStatements.LOCK_ROWS, (numbers,))
            states = await _look(connection, numbers)
            settled = _settled(writes, states)
            tails = {write.held: write.tried for write in settled if write.tried is not None}
            for write in writes:
                state, held = states.get(write.held.number), write.held
                if state is None or state.epoch != held.epoch:
                    outcomes.append(fenced(held.run))
                elif write in settled:
                    outcomes.append(state.learnt())
                elif held not in tails and state.place != held.tail.place:
                    outcomes.append(_forgotten(held.run))
                elif write.park and state.answered - write.rows.closed:
                    outcomes.append(state.learnt())
                else:
                    fresh.append(write)
                    tail = await append(connection, held.number, tails.get(held, held.tail), write.rows, write.at, seal)
                    write.tried = tails[held] = tail
                    if await _update_questions(connection, write.rows):
                        (state,) = (await _look(connection, [held.number])).values()
                        states[held.number] = state
                    outcomes.append(state.learnt())
            await connection.execute("COMMIT")
    except psycopg.Error as error:
        if not connection.closed:
            await connection.rollback()
            for write in fresh:
                write.tried = None
        raise error
    for held, tail in tails.items():
        held.tail = tail
    return outcomes


def _settled(writes: Sequence[Write], states: Mapping[int, _State]) -> set[Write]:
    """Return the writes that an earlier attempt with an unknown outcome has committed."""
    settled = set()
    for write in writes:
        state = states.get(write.held.number)
        if write.tried is not None and state is not None and state.place >= write.tried.place:
            settled.add(write)
    return settled


async def _look(connection: Connection, numbers: Sequence[int]) -> dict[int, _State]:
    rows = await (await connection.execute(PostgresStatements.LEARN, (list(numbers),))).fetchall()
    return {n: _State(epoch, cancel, frozenset(answered), place) for n, epoch, cancel, answered, place in rows}


async def _update_questions(connection: Connection, rows: Encoded) -> bool:
    for statement, all_cells in (
        (PostgresStatements.PUT_QUESTION, rows.questions),
        (PostgresStatements.CONSUME, rows.consume),
        (PostgresStatements.WITHDRAW, rows.withdraw),
    ):
        for cells in all_cells:
            await connection.execute(statement, cells)
    return bool(rows.questions or rows.consume or rows.withdraw)


def _forgotten(run: str) -> StoreError:
    return StoreError(
        f'the database has lost effects of run {run} that it had confirmed (durability is "process", or an older copy '
        "was restored): resume the run, and it continues from the stored effects"
    )
