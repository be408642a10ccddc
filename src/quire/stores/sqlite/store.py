"""The default store: one SQLite file beside the documents, without a server or a thread.

Everything runs on the thread of the event loop: a commit costs less than a hand-over to a thread and back would save,
and writes that become ready during one commit share the next (`quire.stores.sqlite.writer`).

A `SqliteStore` belongs to one thread, and to one event loop at a time. Any number of them, in any number of threads and
processes, may share the file. Waiting for the write lock of another process blocks the whole loop, for `busy_timeout`
seconds at most.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from pathlib import Path

from msgspec.structs import replace

from quire.engine.records import (
    FINAL,
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
from quire.stores.contract import History, Pruned
from quire.stores.sealed_run import SealedRun
from quire.stores.seals import StoredRun, check_pins, seal_answer
from quire.stores.sqlite import archive, statements
from quire.stores.sqlite.database import Database, Durability, explain
from quire.stores.sqlite.locks import OwnerLocks
from quire.stores.sqlite.writer import OwnedRun, Write, Writer, append
from quire.trust.seal import PUBLIC_SEAL, Seal
from quire.values import clean, encode

FILE_NAME = "quire.db"


class SqliteStore:
    """A `quire.engine.ports.Store` in one SQLite file. The first write creates the file; reading creates nothing."""

    def __init__(
        self,
        path: Path,
        *,
        durability: Durability = "power",
        now: Callable[[], float] = time.time,
        busy_timeout: float = 5.0,
        seal: Seal = PUBLIC_SEAL,
    ) -> None:
        self.path = path
        self._now = now
        self._seal = seal
        self._database = Database(path, durability=durability, busy_timeout=busy_timeout)
        self._writer = Writer(self._database, seal)
        # Files under other names may share the folder, and then must not share their locks.
        self._locks = OwnerLocks(path.parent / ("locks" if path.name == FILE_NAME else f"{path.name}.locks"))
        self._held: dict[str, OwnedRun] = {}

    async def create(self, run: NewRun) -> None:
        pins, blobs = archive.pinned_cells(run, self._seal)
        with self._database.transaction() as connection:
            archive.insert_run(connection, self.path, run, pins, blobs, self._seal)

    async def get(self, run: str) -> RunRow | None:
        found = self._database.rows(statements.ONE_RUN, (run,))
        return self._run_now(found[0]) if found else None

    async def find(self, prefix: str) -> Sequence[str]:
        return [
            row_decoder.readable_id(id)
            for (id,) in self._database.rows(statements.FIND, (prefix, prefix + "\U0010ffff"))
        ]

    async def list(self, *, status: Status | None = None, limit: int = 50) -> Sequence[RunRow]:
        read = self._database.rows
        match status:
            case None:
                found = read(statements.LIST, (limit,))
            case Status.RUNNING | Status.INTERRUPTED:
                # Only the locks tell these two apart, so they are looked at before whole rows are read.
                alive = status is Status.RUNNING
                wanted = [id for (id,) in read(statements.RUNNING) if self._locks.alive(id) == alive]
                found = [row for id in wanted[:limit] for row in read(statements.ONE_RUN, (id,))]
            case Status.EXPIRED:
                found = read(statements.LIST_EXPIRED, (self._now(), limit))
            case Status.PAUSED | Status.AWAITING_INPUT:
                found = read(statements.LIST_WAITING, (status.value, self._now(), limit))
            case _:
                found = read(statements.LIST_STATUS, (status.value, limit))
        return [self._run_now(row) for row in found]

    async def text(self, sha256: str) -> str:
        for (text,) in self._database.rows(statements.TEXT, (sha256,)):
            return contract.checked_text(str(text), sha256, str(self.path))
        raise StoreError(f"{self.path} holds no text with the hash {sha256}")

    async def effects(self, run: str) -> Sequence[EffectRecord]:
        """Return the records in the order in which their paths first appeared."""
        found = self._database.rows(statements.EFFECTS, self._places(run))
        latest = {row[0]: row for row in found}.values()
        return [row_decoder.effect_record(row) for row in latest if row[2] != rows.SUPERSEDED]

    async def events(self, run: str, after: int = 0) -> Sequence[Event]:
        found = self._database.rows(statements.EVENTS, self._places(run, after))
        kept = [event for row in found for event in row_decoder.events(run, row) if event.seq > after]
        return sorted(kept, key=attrgetter("seq"))

    async def questions(self, run: str | None = None) -> Sequence[Question]:
        if run is None:
            found = self._database.rows(statements.QUESTIONS, (self._now(),))
        else:
            found = self._database.rows(statements.QUESTIONS_OF_RUN, (self._now(), run))
        return [row_decoder.question(row) for row in found]

    async def answers(self, run: str) -> Sequence[Answer]:
        return [row_decoder.answer(run, row, self._seal) for row in self._database.rows(statements.ANSWERS, (run,))]

    async def answer(self, run: str, path: str, hash: str, value: str, by: str = "") -> None:
        self._expect(run)
        with self._database.transaction() as connection:
            status = self._status(connection, run)
            if status not in contract.ANSWERABLE:
                raise contract.takes_no_answers(run, status)
            found = connection.execute(statements.STATE_OF_QUESTION, (run, path)).fetchone()
            if found is None:
                raise RunState(f"run {run} asks nothing at {path}")
            state, asked, sealed = found
            if state == "withdrawn":
                raise RunState(f"the question of run {run} at {path} has been taken back")
            if state != "open":
                raise RunState(f"the question of run {run} at {path} has been answered already")
            if asked != hash:
                raise RunState(f"the question of run {run} at {path} is worded differently now: look at it again")
            shown = row_decoder.question(connection.execute(statements.QUESTION, (run, path)).fetchone())
            contract.check_question(self._seal, shown, sealed)
            value, by = clean(value), clean(by)
            mine = seal_answer(self._seal, run, path, hash, value, by)
            connection.execute(statements.ANSWER, (value, by or None, mine, run, path))

    async def letters(self, recipient: str | None = None) -> Sequence[Letter]:
        found = (
            self._database.rows(statements.ALL_LETTERS)
            if recipient is None
            else self._database.rows(statements.LETTERS, (recipient,))
        )
        return [row_decoder.letter(row, self._seal) for row in found]

    async def request_cancel(self, run: str) -> bool:
        self._expect(run)
        if self._take_lock(run):
            return self._cancel_and_drop(run)
        with self._database.transaction() as connection:
            self._check_cancellable(connection, run)
            connection.execute(statements.ASK_CANCEL, (run,))
        if not self._take_lock(run):
            return False
        # The owner released the run while the flag was being written, perhaps without having seen it.
        return self._cancel_and_drop(run, asked=True)

    async def evict(self, run: str, epoch: int) -> bool:
        """Implement `quire.stores.contract.SharedStore.evict` by removing the lock file."""
        if self._database.rows(statements.EPOCH, (run,)) != [(epoch,)]:
            return False
        self._locks.evict(run)
        return True

    async def answered(self) -> Sequence[str]:
        return [run for (run,) in self._database.rows(statements.RUNS_ANSWERED)]

    async def acquire(self, run: str, *, after: int | None = None) -> Lease:
        self._expect(run)
        if not self._take_lock(run):
            raise contract.busy(run)
        try:
            return self._next_epoch(run, after)
        except BaseException:
            self._locks.drop(run)
            raise

    async def write(self, lease: Lease, batch: Batch) -> WriteResult:
        return await self._write(lease, batch, park=False)

    async def park(self, lease: Lease, batch: Batch) -> bool:
        return not (await self._write(lease, batch, park=True)).answer_waiting

    async def release(self, lease: Lease) -> None:
        if self._holding(lease) is None:
            return
        self._writer.flush()
        del self._held[lease.run]
        self._locks.drop(lease.run)
        # Checked after the lock is dropped: a flag set between an earlier check and the drop would never be seen.
        with contextlib.suppress(RunState, StoreError):
            if self._database.rows(statements.CANCEL_ASKED, (lease.run,)) and self._take_lock(lease.run):
                self._cancel_and_drop(lease.run)

    async def restore(self, run: NewRun, history: History) -> None:
        archive.restore(self._database, run, history, self._now(), self._seal)

    async def prune(self, before: float, statuses: Collection[Status], *, dry_run: bool, vacuum: bool) -> Pruned:
        if not self._database.exists():
            return Pruned()
        wanted = (encode([status.value for status in statuses]), before, Status.EXPIRED in statuses, before)
        found = [(run, number) for run, number in self._database.rows(archive.ENDED_BEFORE, wanted)]
        # Another process may be about to drive a failed run: runs whose lock is held are left alone.
        taken = {run for run, _ in found if self._take_lock(run)}
        try:
            still = [(run, number) for run, number in self._database.rows(archive.ENDED_BEFORE, wanted) if run in taken]
            pruned = archive.prune(self._database, still, dry_run=dry_run)
        finally:
            for run in taken:
                self._locks.drop(run)
        return pruned if dry_run or not vacuum else replace(pruned, given_back=archive.vacuum(self._database))

    async def backup(self, to: Path) -> int:
        return archive.backup(self._database, to)

    async def close(self) -> None:
        self._writer.flush()
        self._held.clear()
        self._locks.drop_all()
        self._database.close()

    async def _write(self, lease: Lease, batch: Batch, *, park: bool) -> WriteResult:
        held = self._holding(lease)
        if held is None:
            raise contract.fenced(lease.run)
        if batch == Batch() and not park:
            return self._look(held)
        return await self._writer.commit(
            Write(held, rows.encode_batch(lease.run, batch, self._seal), self._now(), park)
        )

    def _look(self, held: OwnedRun) -> WriteResult:
        """Read what a write would report, without taking (and so without waiting for) the write lock. Raises
        `Fenced`."""
        for epoch, cancel, waiting in self._database.rows(statements.LEARN, (held.run,)):
            if epoch == held.epoch:
                return WriteResult(bool(cancel), bool(waiting))
        raise contract.fenced(held.run)

    def _holding(self, lease: Lease) -> OwnedRun | None:
        held = self._held.get(lease.run)
        return held if held is not None and held.epoch == lease.epoch else None

    def _next_epoch(self, run: str, after: int | None) -> Lease:
        with self._database.transaction() as connection:
            status = self._status(connection, run)
            if after is not None and connection.execute(statements.EPOCH, (run,)).fetchone() != (after,):
                raise contract.fenced(run)
            if status is not Status.COMPLETED:
                sealed, held = self._checked(connection, run)
                if status is Status.EXPIRED:
                    self._end(connection, held, sealed.state_as(status))
                else:
                    connection.execute(statements.NEXT_EPOCH, (run,))
                    held.epoch += 1
                    row = row_decoder.run_row(connection.execute(statements.ONE_RUN, (run,)).fetchone())
        if status in FINAL:
            raise contract.cannot_go_on(run, status)
        lease = Lease(run, held.epoch, *sealed.marks(), held.tail.cost, row, sealed.records())
        self._held[run] = held
        return lease

    def _checked(self, connection: sqlite3.Connection, run: str) -> tuple[SealedRun, OwnedRun]:
        """Return the run as stored in the file. Raises `BrokenSeal`."""
        sealed, number, epoch = self._read_whole(connection, run)
        sealed.check(self._seal)
        return sealed, OwnedRun(run, epoch, number, sealed.tail())

    def _read_whole(self, connection: sqlite3.Connection, run: str) -> tuple[SealedRun, int, int]:
        stored = connection.execute(statements.SEALED_RUN, (run,)).fetchone()
        if stored is None:
            raise contract.no_such_run(run)
        number, epoch = connection.execute(statements.NUMBER_AND_EPOCH, (run,)).fetchone()
        journal = connection.execute(statements.SEALED_JOURNAL, rows.places(number)).fetchall()
        return SealedRun(StoredRun(*stored), journal, rows.first_place(number)), number, epoch

    def _end(
        self, connection: sqlite3.Connection, held: OwnedRun, state: rows.Cells, events: Sequence[Event] = ()
    ) -> None:
        """End a run that is not being driven, and withdraw its open questions."""
        ended = replace(rows.encode_batch(held.run, Batch(events=tuple(events)), self._seal), status=state)
        append(connection, held, ended, self._now(), self._seal)
        connection.execute(statements.WITHDRAW_OPEN, (held.run,))

    async def check_seal(self, run: str, *, whole: bool = True) -> None:
        found = self._database.rows(statements.SEALED_RUN, (run,))
        if not found:
            raise contract.no_such_run(run)
        check_pins(self._seal, StoredRun(*found[0]))
        if not whole:
            return
        number, _ = self._database.rows(statements.NUMBER_AND_EPOCH, (run,))[0]
        journal = self._database.rows(statements.SEALED_JOURNAL, rows.places(number))
        SealedRun(StoredRun(*found[0]), journal, rows.first_place(number)).check(self._seal)
        for row in self._database.rows(statements.ASKED, (run,)):
            contract.check_question(self._seal, row_decoder.question(row[:-1]), row[-1])
        await self.answers(run)

    async def reseal(self, run: str) -> None:
        self._expect(run)
        if not self._take_lock(run):
            raise contract.busy(run)
        try:
            with self._database.transaction() as connection:
                sealed, number, _ = self._read_whole(connection, run)
                archive.reseal(connection, sealed, number, self._asked(connection, run), self._seal)
        finally:
            self._locks.drop(run)

    def _asked(self, connection: sqlite3.Connection, run: str) -> Sequence[tuple[Question, str | None]]:
        """Return the questions that are open or answered but not yet consumed, each with its seal."""
        found = connection.execute(statements.ASKED, (run,)).fetchall()
        return [(row_decoder.question(row[:-1]), row[-1]) for row in found]

    def _cancel_and_drop(self, run: str, *, asked: bool = False) -> bool:
        """Cancel a run whose lock was just taken, and drop the lock. The new epoch keeps out an owner whose lock was
        removed by hand.

        Return False if an owner that was `asked` has cancelled the run itself.
        """
        try:
            with self._database.transaction() as connection:
                if asked and self._status(connection, run) is Status.CANCELLED:
                    return False
                self._check_cancellable(connection, run)
                sealed, number, epoch = self._read_whole(connection, run)
                held = OwnedRun(run, epoch, number, sealed.tail())
                cancelled = Event("run_cancelled", run, self._now(), sealed.marks()[0] + 1)
                self._end(connection, held, sealed.state_as(Status.CANCELLED), [cancelled])
                if not sealed.holds(self._seal):
                    connection.execute(statements.SET_ANCHOR, (sealed.stored.anchor, sealed.stored.seal, run))
                connection.execute(statements.CANCELLED, (run,))
                return True
        finally:
            self._locks.drop(run)

    def _check_cancellable(self, connection: sqlite3.Connection, run: str) -> None:
        status = self._status(connection, run)
        if status not in contract.CANCELLABLE:
            raise contract.cannot_be_cancelled(run, status)

    def _expect(self, run: str) -> None:
        """Raise `NoSuchRun` if the file does not exist, so that asking for a run never creates it. Opens the file, so
        that an error in opening it is reported here and not by the lock of the run."""
        if not self._database.exists():
            raise contract.no_such_run(run)
        self._database.connection()

    def _places(self, run: str, after: int = 0) -> tuple[int, int]:
        found = self._database.rows(statements.NUMBER, (run,))
        return rows.places(found[0][0], after) if found else (0, -1)

    def _take_lock(self, run: str) -> bool:
        try:
            return self._locks.take(run)
        except OSError as error:
            raise explain(error, self.path) from error

    def _status(self, connection: sqlite3.Connection, run: str) -> Status:
        found = connection.execute(statements.STATE_OF_RUN, (run,)).fetchone()
        if found is None:
            raise contract.no_such_run(run)
        return contract.status_at(self._now(), Status(found[0]), found[1])

    def _run_now(self, row: row_decoder.Row) -> RunRow:
        run = row_decoder.run_row(row)
        status = contract.status_at(self._now(), run.status, run.expires_at)
        if status is Status.RUNNING and not self._locks.alive(run.id):
            status = Status.INTERRUPTED
        return run if status is run.status else replace(run, status=status)
