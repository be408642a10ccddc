"""Commit to the SQLite file in groups, and hold a lock of the operating system for each run that is being driven.

Writes and transactions of several tasks in one turn of the event loop share a commit. One that survives a loss of power
costs a tenth of a millisecond or more, nearly all of it waiting for the disk, so the branches of a fan and the runs of
a server share one if they can.

The kernel drops a lock when its process dies, however it dies, so a dead owner is noticed at once, without time-outs.
The lock only shows which owner is alive; the epoch keeps a stale owner from writing.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from msgspec import Struct

from quire.engine.records import WriteResult
from quire.errors import Fenced, StoreError
from quire.patterns import late_pattern
from quire.source import try_lock
from quire.stores.contract import fenced
from quire.stores.rows import Encoded, OwnedRun, first_place
from quire.stores.sqlite.database import Database, explain
from quire.stores.sqlite.statements import SqliteStatements
from quire.stores.transactions import Append, Step, Steps, drive
from quire.values import sha256

if TYPE_CHECKING:
    import asyncio

    from quire.stores.row_decoder import Row
    from quire.trust.seal import Seal


T = TypeVar("T")


class Job(Struct, Generic[T], eq=False):
    """One part of a commit, and its outcome."""

    outcome: T | Exception | None = None
    done: bool = False

    def perform(self, connection: sqlite3.Connection, seal: Seal) -> T | Exception:
        """Write inside the open transaction. Return a failure that has written nothing, and concerns only this job."""
        raise NotImplementedError

    def settle(self, outcome: T | Exception) -> None:
        self.outcome, self.done = outcome, True


class Write(Job[WriteResult], kw_only=True):
    """A batch to write to the end of a run's journal."""

    held: OwnedRun
    rows: Encoded
    at: float
    park: bool = False
    """If true, the batch is not written when an answer is waiting."""

    def perform(self, connection: sqlite3.Connection, seal: Seal) -> WriteResult | Exception:
        held, rows = self.held, self.rows
        learnt = learn(connection, held)
        if isinstance(learnt, Fenced):
            return learnt
        if self.park and learnt.answer_waiting:
            answered = connection.execute(SqliteStatements.ANSWERED, (held.run,)).fetchall()
            if any(path not in rows.closed for (path,) in answered):
                return learnt
        append(connection, held, rows, self.at, seal)
        if not (rows.questions or rows.consume or rows.withdraw):
            return learnt
        connection.executemany(SqliteStatements.PUT_QUESTION, rows.questions)
        connection.executemany(SqliteStatements.CONSUME, rows.consume)
        connection.executemany(SqliteStatements.WITHDRAW, rows.withdraw)
        return learn(connection, held)


class Transaction(Job[T], kw_only=True):
    """A transaction of `quire.stores.transactions`. It is begun again if its group fails."""

    begin: Callable[[], Steps[T]]

    def perform(self, connection: sqlite3.Connection, seal: Seal) -> T | Exception:
        before = connection.total_changes
        try:
            return transact(connection, self.begin(), seal)
        except sqlite3.Error:
            raise
        except Exception as error:
            if connection.total_changes != before:
                raise
            return error


class Writer:
    def __init__(self, database: Database, seal: Seal) -> None:
        self._database = database
        self._seal = seal
        self._pending: list[Job[Any]] = []
        self._writer_of_turn: asyncio.Task[object] | None = None
        self._resuming = 0
        """The number of tasks that have shared the last commit and have not resumed yet."""

    def transact(self, begin: Callable[[], Steps[T]]) -> Awaitable[T]:
        """Commit the steps of a transaction."""
        return self.commit(Transaction(begin=begin))

    def write(self, held: OwnedRun, rows: Encoded, at: float, *, park: bool) -> Awaitable[WriteResult]:
        """Commit rows of a run by its owner."""
        return self.commit(Write(held=held, rows=rows, at=at, park=park))

    async def commit(self, job: Job[T]) -> T:
        """Commit a job; it is durable on return. If the caller is cancelled meanwhile, it is written all the same: the
        effect did happen, and must not happen again."""
        self._pending.append(job)
        if len(self._pending) > 1 or not self._alone():
            await self._take_turns(job)
        else:
            self.flush()
        if not job.done:
            raise StoreError(f"{self._database.path}: the write was interrupted")
        if isinstance(job.outcome, Exception):
            raise job.outcome
        return cast("T", job.outcome)

    def _alone(self) -> bool:
        """Tell whether no other task has written since the loop last came round, or is about to write again after a
        commit that it shared; then it has no commit to share."""
        asyncio = sys.modules.get("asyncio")
        if asyncio is None:
            return True  # a verb that needs no loop
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if self._writer_of_turn is None:
            self._writer_of_turn = task
            loop.call_soon(self._end_turn)
        return self._writer_of_turn is task and not self._resuming

    def _end_turn(self) -> None:
        self._writer_of_turn = None

    async def _take_turns(self, job: Job[Any]) -> None:
        """Let all ready tasks queue their jobs; the first task that resumes commits them all."""
        import asyncio

        try:
            await asyncio.sleep(0)
        finally:
            self._end_turn()
            if job.done:
                self._resuming = max(0, self._resuming - 1)
            else:
                self._resuming = len(self._pending) - 1
                self.flush()

    def flush(self) -> None:
        """Commit the queued jobs. If a group fails, its jobs are tried again one by one, so that a bad one fails
        alone."""
        jobs, self._pending = self._pending, []
        if not jobs:
            return
        failure = self._attempt(jobs)
        if failure is None:
            return
        for job in jobs:
            # If the database is locked, trying once for each job would only multiply the waiting time.
            if len(jobs) > 1 and not _is_busy(failure):
                failure = self._attempt([job])
            if failure is not None:
                job.settle(failure)

    def _attempt(self, jobs: Sequence[Job[Any]]) -> Exception | None:
        first = jobs[0]
        if len(jobs) == 1 and isinstance(first, Write) and not first.park and first.held.takes_alone(first.rows):
            return self._attempt_alone(first)
        return self._attempt_together(jobs)

    def _attempt_together(self, jobs: Sequence[Job[Any]]) -> Exception | None:
        tails = [(job.held, job.held.tail) for job in jobs if isinstance(job, Write)]
        try:
            with self._database.transaction() as connection:
                outcomes = [job.perform(connection, self._seal) for job in jobs]
        except BaseException as error:
            for held, tail in reversed(tails):
                held.tail = tail
            if isinstance(error, Exception):
                return error
            raise
        for job, outcome in zip(jobs, outcomes, strict=True):
            job.settle(outcome)
        return None

    def _attempt_alone(self, write: Write) -> Exception | None:
        """Commit a single write that has nothing to learn. One statement is its own transaction, and nothing has to be
        looked up after the sync."""
        held = write.held
        tail, (row,) = held.tail.then(held.number, write.rows, write.at, self._seal)
        try:
            connection = self._database.connection()
            if not connection.execute(SqliteStatements.APPEND_ALONE, (*row, held.number, held.epoch)).rowcount:
                return self._attempt_together([write])
            held.tail = tail
            write.settle(WriteResult())
        except sqlite3.Error as error:
            failure = explain(error, self._database.path)
            failure.__cause__ = error
            return failure
        except StoreError as error:
            return error
        return None


def learn(connection: sqlite3.Connection, held: OwnedRun) -> WriteResult | Fenced:
    epoch, cancel, waiting = connection.execute(SqliteStatements.LEARN, (held.run,)).fetchone()
    return WriteResult(bool(cancel), bool(waiting)) if epoch == held.epoch else fenced(held.run)


def append(connection: sqlite3.Connection, held: OwnedRun, rows: Encoded, at: float, seal: Seal) -> None:
    """Write the journal rows of a batch, its texts and letters, its status, and the seal of the run if its anchor
    moves."""
    anchors = held.tail.anchors(rows)
    held.tail, journal = held.tail.then(held.number, rows, at, seal)
    for row in journal:
        connection.execute(SqliteStatements.APPEND, row)
    if rows.blobs:
        connection.executemany(SqliteStatements.PUT_BLOB, rows.blobs)
    if rows.letters:
        connection.executemany(SqliteStatements.PUT_LETTER, rows.letters)
    if not anchors:
        return
    sealed = held.tail.sealed(seal, first_place(held.number))
    if rows.status is None:
        connection.execute(SqliteStatements.SET_ANCHOR, (*sealed, held.number))
    else:
        connection.execute(SqliteStatements.SET_STATUS, (*rows.status, at, *sealed, *rows.rest, held.number))


def transact(connection: sqlite3.Connection, steps: Steps[T], seal: Seal) -> T:
    """Drive a transaction inside the open one."""

    def perform(step: Step) -> Sequence[Row]:
        if isinstance(step, Append):
            append(connection, step.held, step.batch, step.at, seal)
            return ()
        cursor = connection.execute(*step)
        if cursor.description is not None:
            return cursor.fetchall()
        return [(cursor.lastrowid,)] if cursor.rowcount else ()

    return drive(steps, perform)


def _is_busy(failure: Exception | None) -> bool:
    cause = failure.__cause__ if failure is not None else None
    return isinstance(cause, sqlite3.OperationalError) and cause.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


_PLAIN = late_pattern(r"[a-z0-9][a-z0-9_-]{0,99}")
_TRIES = 50

if sys.platform == "win32":
    import msvcrt

    def _has_owner(file: int) -> bool:
        """Tell whether another process holds the lock. Windows has no shared locks here, so two readers that look at
        the same moment can take each other for the owner."""
        if not try_lock(file):
            return True
        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
        return False

else:

    def _has_owner(file: int) -> bool:
        """Tell whether another process holds the lock. Uses a shared lock, so that readers do not take each other for
        the owner."""
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(file, fcntl.LOCK_UN)
        return False


class OwnerLocks:
    """The locks that this store holds, and a check of the locks of others.

    A lock belongs to an open file, not to a name. Lock files are removed when they are dropped, so after locking, a
    process has to check that the name still leads to its file: the owner may have removed it between opening and
    locking. A child that is forked without exec would inherit the lock; files opened by Python are closed on exec.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, int] = {}

    def take(self, run: str) -> bool:
        """Take the lock of a run; return False if any process holds it, this one included."""
        if run in self._files:
            return False
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(run)
        for _ in range(_TRIES):
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            if try_lock(file):
                if _leads_to(path, file):
                    self._files[run] = file
                    return True
                os.close(file)
                continue
            owned = _has_owner(file)
            os.close(file)
            if owned:
                return False
            # A reader was just looking: it holds its shared lock for microseconds.
            time.sleep(0.001)
        return False

    def drop(self, run: str) -> None:
        file = self._files.pop(run, None)
        if file is None:
            return
        path = self._path(run)
        # If the folder was emptied, the name may lead to another owner's lock by now: that file stays.
        ours = _leads_to(path, file)
        if sys.platform == "win32":
            os.close(file)
            if ours:
                with contextlib.suppress(OSError):
                    path.unlink()
        else:
            if ours:
                with contextlib.suppress(OSError):
                    path.unlink()
            os.close(file)

    def evict(self, run: str) -> None:
        """Remove the lock file of another process, so that the next owner creates a new file of the same name."""
        if run not in self._files:
            with contextlib.suppress(OSError):
                self._path(run).unlink()

    def drop_all(self) -> None:
        for run in tuple(self._files):
            self.drop(run)

    def alive(self, run: str) -> bool:
        """Tell whether a living process holds the run."""
        if run in self._files:
            return True
        try:
            file = os.open(self._path(run), os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
        except FileNotFoundError:
            return False
        except OSError:
            # A file of another account that cannot be opened: assume that its owner is alive.
            return True
        try:
            return _has_owner(file)
        finally:
            os.close(file)

    def _path(self, run: str) -> Path:
        name = run if _PLAIN.fullmatch(run) else sha256(run.encode("utf-8", "replace"))
        return self._folder / f"{name}.lock"


def _leads_to(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False
