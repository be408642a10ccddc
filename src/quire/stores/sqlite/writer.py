"""The journal's way to the disk: whatever several tasks want in one turn of the event loop becomes one commit.

A commit that survives a loss of power costs a tenth of a millisecond and more, nearly all of it waiting for the
disk, so the branches of a fan and the runs of a server share one whenever they can.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.records import Written
from quire.errors import Fenced, StoreError
from quire.stores.contract import fenced
from quire.stores.rows import Encoded, Tail, first_place
from quire.stores.sqlite import statements
from quire.stores.sqlite.database import Database, explain

if TYPE_CHECKING:
    import asyncio

    from quire.trust.seal import Seal


class Held(Struct, eq=False):
    """A run that this store drives: its number in the file, and where its journal ends."""

    run: str
    epoch: int
    number: int
    tail: Tail


class Write(Struct, eq=False):
    """One batch on its way, and what became of it. One that parks gives way to an answer that waits."""

    held: Held
    rows: Encoded
    at: float
    park: bool = False
    outcome: Written | Exception | None = None


class Writer:
    def __init__(self, database: Database, seal: Seal) -> None:
        self._database = database
        self._seal = seal
        self._pending: list[Write] = []
        self._writer_of_turn: asyncio.Task[object] | None = None

    async def commit(self, write: Write) -> Written:
        """Durable when it returns. A caller that is cancelled meanwhile has written all the same: the effect did
        happen, and must not happen again."""
        self._pending.append(write)
        if len(self._pending) > 1 or not self._alone():
            await self._take_turns(write)
        else:
            self.flush()
        if isinstance(write.outcome, Written):
            return write.outcome
        raise write.outcome or StoreError(f"{self._database.path}: the write was interrupted")

    def _alone(self) -> bool:
        """Whether no other task has written since the loop last came round: then nobody is worth waiting for."""
        import asyncio  # not for verbs that only read

        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if self._writer_of_turn is None:
            self._writer_of_turn = task
            loop.call_soon(self._end_turn)
        return self._writer_of_turn is task

    def _end_turn(self) -> None:
        self._writer_of_turn = None

    async def _take_turns(self, write: Write) -> None:
        """Everybody who is ready gets to queue a write; whoever is back first commits them all."""
        import asyncio

        try:
            await asyncio.sleep(0)
        finally:
            self._end_turn()
            if write.outcome is None:
                self.flush()

    def flush(self) -> None:
        """Commits what is queued. A write that fails does not take its neighbours down: they go again, one by one."""
        writes, self._pending = self._pending, []
        if not writes:
            return
        failure = self._attempt(writes)
        if failure is None:
            return
        for write in writes:
            # Where the lock cannot be had, trying once for each would only wait as many times over.
            if len(writes) > 1 and not _is_busy(failure):
                failure = self._attempt([write])
            if failure is not None:
                write.outcome = failure

    def _attempt(self, writes: Sequence[Write]) -> Exception | None:
        write = writes[0]
        if len(writes) == 1 and write.rows.plain and not write.park and not write.held.tail.anchors(write.rows):
            return self._attempt_alone(write)
        return self._attempt_together(writes)

    def _attempt_together(self, writes: Sequence[Write]) -> Exception | None:
        tails = [(write.held, write.held.tail) for write in writes]
        try:
            with self._database.transaction() as connection:
                outcomes = [perform(connection, write, self._seal) for write in writes]
        except BaseException as error:
            for held, tail in reversed(tails):
                held.tail = tail
            if isinstance(error, Exception):
                return error
            raise
        for write, outcome in zip(writes, outcomes, strict=True):
            write.outcome = outcome
        return None

    def _attempt_alone(self, write: Write) -> Exception | None:
        """The short way for a write that shares its commit with nobody and has nothing to learn: one statement is a
        transaction of its own, and nothing has to be looked up after the sync."""
        held = write.held
        tail, (row,) = held.tail.then(held.number, write.rows, write.at, self._seal)
        try:
            connection = self._database.connection()
            if not connection.execute(statements.APPEND_ALONE, (*row, held.number, held.epoch)).rowcount:
                return self._attempt_together([write])
            held.tail = tail
            write.outcome = Written()
        except sqlite3.Error as error:
            failure = explain(error, self._database.path)
            failure.__cause__ = error
            return failure
        except StoreError as error:
            return error
        return None


def perform(connection: sqlite3.Connection, write: Write, seal: Seal) -> Written | Fenced:
    """Writes a batch inside the open transaction; has written nothing where it comes back with `Fenced`."""
    held, rows = write.held, write.rows
    learnt = learn(connection, held)
    if isinstance(learnt, Fenced):
        return learnt
    if write.park and learnt.answer_waiting:
        taken = {path for _, path in (*rows.consume, *rows.withdraw)}
        if any(path not in taken for (path,) in connection.execute(statements.ANSWERED, (held.run,)).fetchall()):
            return learnt
    append(connection, held, rows, write.at, seal)
    if rows.blobs:
        connection.executemany(statements.PUT_BLOB, rows.blobs)
    if rows.letters:
        connection.executemany(statements.PUT_LETTER, rows.letters)
    if not (rows.questions or rows.consume or rows.withdraw):
        return learnt
    connection.executemany(statements.PUT_QUESTION, rows.questions)
    connection.executemany(statements.CONSUME, rows.consume)
    connection.executemany(statements.WITHDRAW, rows.withdraw)
    return learn(connection, held)


def learn(connection: sqlite3.Connection, held: Held) -> Written | Fenced:
    epoch, cancel, waiting = connection.execute(statements.LEARN, (held.run,)).fetchone()
    return Written(bool(cancel), bool(waiting)) if epoch == held.epoch else fenced(held.run)


def append(connection: sqlite3.Connection, held: Held, rows: Encoded, at: float, seal: Seal) -> None:
    """The rows of a batch in the journal, its status, and the seal of the run where that has to move."""
    anchors = held.tail.anchors(rows)
    held.tail, journal = held.tail.then(held.number, rows, at, seal)
    for row in journal:
        connection.execute(statements.APPEND, row)
    if not anchors:
        return
    sealed = held.tail.sealed(seal, first_place(held.number))
    if rows.status is None:
        connection.execute(statements.SET_ANCHOR, (*sealed, held.run))
    else:
        connection.execute(statements.SET_STATUS, (*rows.status, at, *sealed, held.run))


def _is_busy(failure: Exception | None) -> bool:
    cause = failure.__cause__ if failure is not None else None
    return isinstance(cause, sqlite3.OperationalError) and cause.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
