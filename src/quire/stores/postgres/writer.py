"""Write batches to PostgreSQL, those of a group in one transaction. A single waiting write, as in a run without a fan,
is one statement and one round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import psycopg
from msgspec import Struct

from quire.engine.records import WriteResult
from quire.errors import StoreError
from quire.stores.contract import fenced
from quire.stores.postgres.group_commit import Groups, Job, append
from quire.stores.postgres.statements import PostgresStatements
from quire.stores.rows import EMPTY_ROW, Encoded, JournalEnd, OwnedRun

if TYPE_CHECKING:
    from quire.stores.postgres.connection import Server
    from quire.stores.postgres.schema import Connection
    from quire.trust.seal import Seal


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
        if not rows.journal and not _is_empty(rows):
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
            if len(jobs) == 1 and _goes_alone(jobs[0]):
                alone = await _write_alone(connection, jobs[0], self._seal)
                if alone is not None:
                    return [alone]
            return await _write_together(connection, jobs, self._seal)

        return await self._server.as_owner_unshielded(attempt)


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


def _forgotten(run: str) -> StoreError:
    return StoreError(
        f'the database has lost effects of run {run} that it had confirmed (durability is "process", or an older copy '
        "was restored): resume the run, and it goes on from what is there"
    )
