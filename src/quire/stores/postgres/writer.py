"""Commit journal writes to PostgreSQL in groups: writes queued during a commit form the next one.

A commit costs a round trip and a sync of the server's disk, however many writes share it. So one task writes, one
transaction after the other, with everything that waits. A single waiting write, as in a run without a fan, is one
statement and one round trip.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import psycopg
from msgspec import Struct

from quire.engine.records import WriteResult
from quire.errors import StoreError
from quire.stores.contract import fenced
from quire.stores.postgres.statements import PostgresStatements
from quire.stores.rows import EMPTY_ROW, Encoded, JournalEnd, OwnedRun
from quire.stores.transactions import Append, Step, Steps, drive_async

if TYPE_CHECKING:
    from quire.stores.postgres.connection import Server
    from quire.stores.postgres.schema import Connection
    from quire.stores.row_decoder import Row
    from quire.trust.seal import Seal

GROUP = 200
T = TypeVar("T")


class Write(Struct, eq=False):
    """One batch to commit."""

    held: OwnedRun
    rows: Encoded
    at: float
    done: asyncio.Future[WriteResult | Exception]
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


_Outcomes: TypeAlias = "list[WriteResult | Exception]"


class Writer:
    def __init__(self, server: Server, seal: Seal) -> None:
        self._server = server
        self._seal = seal
        self._pending: list[Write] = []
        self._task: asyncio.Task[None] | None = None
        self._last: asyncio.Future[WriteResult | Exception] | None = None

    async def commit(self, held: OwnedRun, rows: Encoded, at: float, *, park: bool = False) -> WriteResult:
        """Write a batch; it is durable on return. If the caller is cancelled meanwhile, the batch is written all the
        same: the effect did happen, and must not happen again."""
        loop = asyncio.get_running_loop()
        write = Write(held, rows, at, loop.create_future(), park)
        if not rows.journal and not _is_empty(rows):
            # Every write leaves a row: its place shows later whether the write was committed.
            rows.journal = (EMPTY_ROW,)
        self._pending.append(write)
        self._last = write.done
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work())
        outcome = await asyncio.shield(write.done)
        if isinstance(outcome, WriteResult):
            return outcome
        raise outcome

    async def settled(self) -> None:
        """Wait until everything queued so far has been written or has failed."""
        if self._last is not None and not self._last.done():
            await asyncio.wait([self._last])

    async def _work(self) -> None:
        while self._pending:
            writes, self._pending = self._pending[:GROUP], self._pending[GROUP:]
            try:
                await self._flush(writes)
            except Exception as error:
                _fail(writes, error)
            except BaseException:
                _fail([*writes, *self._pending], StoreError("the write was interrupted"))
                raise

    async def _flush(self, writes: Sequence[Write]) -> None:
        """Commit a group. If the server refuses it, the writes are tried again one by one, so that one bad write fails
        alone."""
        failure = await self._try(writes)
        if failure is None:
            return
        one_by_one = len(writes) > 1 and _is_refused(failure)
        for write in writes:
            if one_by_one:
                failure = await self._try([write])
            if failure is not None:
                if write.tried is not None:
                    write.held.failure = failure
                _fail([write], failure)

    async def _try(self, writes: Sequence[Write]) -> StoreError | None:
        async def attempt(connection: Connection, again: bool) -> _Outcomes:
            if len(writes) == 1 and _goes_alone(writes[0]):
                alone = await _write_alone(connection, writes[0], self._seal)
                if alone is not None:
                    return [alone]
            return await _write_together(connection, writes, self._seal)

        try:
            outcomes = await self._server.as_owner_unshielded(attempt)
        except StoreError as error:
            return error
        for write, outcome in zip(writes, outcomes, strict=True):
            write.done.set_result(outcome)
        return None


def _goes_alone(write: Write) -> bool:
    return write.tried is None and write.rows.plain and not write.park and not write.held.tail.anchors(write.rows)


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


async def _write_together(connection: Connection, writes: Sequence[Write], seal: Seal) -> _Outcomes:
    numbers = sorted({write.held.number for write in writes})
    tails: dict[OwnedRun, JournalEnd] = {}
    outcomes: _Outcomes = []
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
                elif write.park and state.answered - _closed_by(write.rows):
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
    found = await (await connection.execute(PostgresStatements.LEARN, (list(numbers),))).fetchall()
    return {n: _State(epoch, cancel, frozenset(answered), place) for n, epoch, cancel, answered, place in found}


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
        await connection.execute(PostgresStatements.SET_STATUS, (*rows.status, at, *sealed, number))
    elif before.anchors(rows):
        await connection.execute(PostgresStatements.SET_ANCHOR, (*tail.sealed(seal, 0), number))
    # In the order of their hashes, so that two writers with the same texts never deadlock.
    for digest, text in sorted(rows.blobs):
        await connection.execute(PostgresStatements.PUT_BLOB, (digest, str(text).encode()))
    for letter in rows.letters:
        await connection.execute(PostgresStatements.PUT_LETTER, letter)
    return tail


async def transact(connection: Connection, steps: Steps[T], seal: Seal) -> T:
    """Drive a transaction inside the open one."""

    async def perform(step: Step) -> Sequence[Row]:
        if isinstance(step, Append):
            held = step.held
            held.tail = await append(connection, held.number, held.tail, step.batch, step.at, seal)
            return ()
        cursor = await connection.execute(*step)
        return await cursor.fetchall() if cursor.description else ()

    return await drive_async(steps, perform)


async def _update_questions(connection: Connection, rows: Encoded) -> bool:
    for statement, all_cells in (
        (PostgresStatements.PUT_QUESTION, rows.questions),
        (PostgresStatements.CONSUME, rows.consume),
        (PostgresStatements.WITHDRAW, rows.withdraw),
    ):
        for cells in all_cells:
            await connection.execute(statement, cells)
    return bool(rows.questions or rows.consume or rows.withdraw)


def _closed_by(rows: Encoded) -> set[str]:
    return {str(path) for _, path in (*rows.consume, *rows.withdraw)}


def _is_empty(rows: Encoded) -> bool:
    return not (rows.status or rows.blobs or rows.questions or rows.consume or rows.withdraw or rows.letters)


def _is_refused(failure: StoreError) -> bool:
    """Tell whether the server refused a statement of a group; the other writes of the group may be fine."""
    return isinstance(failure.__cause__, psycopg.Error) and failure.__cause__.sqlstate is not None


def _fail(writes: Sequence[Write], failure: Exception) -> None:
    for write in writes:
        if not write.done.done():
            write.done.set_result(failure)


def _forgotten(run: str) -> StoreError:
    return StoreError(
        f'the database has lost effects of run {run} that it had confirmed (durability is "process", or an older copy '
        "was restored): resume the run, and it goes on from what is there"
    )
