"""The shared store: one PostgreSQL database, any number of processes on any number of hosts.

It gives the same guarantees as the SQLite store. An owner holds an advisory lock of its session, which the server drops
when the process dies or its host is gone. An owner that was cut off and comes back learns from the epoch whether the
run is still its own. Transactions that lock the row of a run are ordered by it: `answer` against `park`, a write
against a take-over.

A `PostgresStore` belongs to one thread, and to one event loop at a time. Reads wait for the writes that the same store
has queued before.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

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
from quire.stores.postgres import archive, statements
from quire.stores.postgres.archive import one
from quire.stores.postgres.connection import PATIENCE_SECONDS, Address, Server
from quire.stores.postgres.writer import OwnedRun, Writer, append
from quire.stores.seals import StoredRun, check_pins, seal_answer
from quire.trust.seal import PUBLIC_SEAL, Seal
from quire.values import clean

if TYPE_CHECKING:
    from quire.stores.contract import History, Pruned
    from quire.stores.postgres.schema import Connection


class PostgresStore:
    """A `quire.engine.ports.Store` in PostgreSQL. Connects when it is first used and creates its tables if they are
    missing."""

    def __init__(
        self,
        url: str,
        *,
        durability: Literal["power", "process"] = "power",
        now: Callable[[], float] = time.time,
        patience: float = PATIENCE_SECONDS,
        seal: Seal = PUBLIC_SEAL,
    ) -> None:
        self._now = now
        self._seal = seal
        self._server = Server(Address(url), durability=durability, patience=patience, retake=self._retake)
        self._writer = Writer(self._server, seal)
        self._held: dict[str, OwnedRun] = {}
        self._locked: dict[str, int] = {}

    @property
    def place(self) -> str:
        """The database as messages name it, without the password."""
        return self._server.place

    async def create(self, run: NewRun) -> None:
        await archive.create(self._server, run, self._seal)

    async def get(self, run: str) -> RunRow | None:
        found = await self._rows(statements.ONE_RUN, (run,))
        return self._run_now(found[0]) if found else None

    async def find(self, prefix: str) -> Sequence[str]:
        return [
            row_decoder.readable_id(id) for (id,) in await self._rows(statements.FIND, (prefix, prefix + "\U0010ffff"))
        ]

    async def list(self, *, status: Status | None = None, limit: int = 50) -> Sequence[RunRow]:
        match status:
            case None:
                found = await self._rows(statements.LIST, (limit,))
            case Status.RUNNING | Status.INTERRUPTED:
                found = await self._rows(statements.LIST_RUNNING, (status is Status.RUNNING, limit))
            case Status.EXPIRED:
                found = await self._rows(statements.LIST_EXPIRED, (self._now(), limit))
            case Status.PAUSED | Status.AWAITING_INPUT:
                found = await self._rows(statements.LIST_WAITING, (status.value, self._now(), limit))
            case _:
                found = await self._rows(statements.LIST_STATUS, (status.value, limit))
        return [self._run_now(row) for row in found]

    async def text(self, sha256: str) -> str:
        for (body,) in await self._rows(statements.TEXT, (sha256,)):
            return contract.checked_text(bytes(body).decode(), sha256, self.place)
        raise StoreError(f"{self.place} holds no text with the hash {sha256}")

    async def effects(self, run: str) -> Sequence[EffectRecord]:
        """Return the records in the order in which their paths first appeared."""
        found = await self._rows(statements.EFFECTS, (run,))
        latest = {row[0]: row for row in found}.values()
        return [row_decoder.effect_record(row) for row in latest if row[2] != rows.SUPERSEDED]

    async def events(self, run: str, after: int = 0) -> Sequence[Event]:
        found = await self._rows(statements.EVENTS, (run, rows.places(0, after)[0]))
        kept = [event for row in found for event in row_decoder.events(run, row) if event.seq > after]
        return sorted(kept, key=attrgetter("seq"))

    async def questions(self, run: str | None = None) -> Sequence[Question]:
        if run is None:
            found = await self._rows(statements.QUESTIONS, (self._now(),))
        else:
            found = await self._rows(statements.QUESTIONS_OF_RUN, (self._now(), run))
        return [row_decoder.question(row) for row in found]

    async def answers(self, run: str) -> Sequence[Answer]:
        return [row_decoder.answer(run, row, self._seal) for row in await self._rows(statements.ANSWERS, (run,))]

    async def answer(self, run: str, path: str, hash: str, value: str, by: str = "") -> None:
        value, by = clean(value), clean(by)

        async def work(connection: Connection, again: bool) -> None:
            status = await self._status(connection, run)
            found = await one(connection, statements.STATE_OF_QUESTION, (run, path))
            if again and found is not None and found[0] in ("answered", "consumed") and found[1:3] == (hash, value):
                return  # by the previous attempt, whose outcome never arrived
            if status not in contract.ANSWERABLE:
                raise contract.takes_no_answers(run, status)
            if found is None:
                raise RunState(f"run {run} asks nothing at {path}")
            state, asked, _, sealed = found
            if state == "withdrawn":
                raise RunState(f"the question of run {run} at {path} has been taken back")
            if state != "open":
                raise RunState(f"the question of run {run} at {path} has been answered already")
            if asked != hash:
                raise RunState(f"the question of run {run} at {path} is worded differently now: look at it again")
            row = await one(connection, statements.QUESTION, (run, path))
            if row is not None:
                contract.check_question(self._seal, row_decoder.question(row), sealed)
            mine = seal_answer(self._seal, run, path, hash, value, by)
            await connection.execute(statements.ANSWER, (value, by or None, mine, run, path))

        await self._writer.settled()
        await self._server.transaction(work)

    async def letters(self, recipient: str | None = None) -> Sequence[Letter]:
        found = (
            await self._rows(statements.ALL_LETTERS)
            if recipient is None
            else await self._rows(statements.LETTERS, (recipient,))
        )
        return [row_decoder.letter(row, self._seal) for row in found]

    async def request_cancel(self, run: str) -> bool:
        await self._writer.settled()
        if await self._take_lock(run):
            return await self._cancel_and_drop(run)

        async def work(connection: Connection, again: bool) -> None:
            await self._check_cancellable(connection, run)
            await connection.execute(statements.ASK_CANCEL, (run,))

        await self._server.transaction(work)
        if not await self._take_lock(run):
            return False
        # The owner released the run while the flag was being written, perhaps without having seen it.
        return await self._cancel_and_drop(run, asked=True)

    async def acquire(self, run: str, *, after: int | None = None) -> Lease:
        task = asyncio.ensure_future(self._acquire(run, after))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # The caller is gone and would never release the lease.
            with contextlib.suppress(Exception):
                await self.release(await task)
            raise

    async def evict(self, run: str, epoch: int) -> bool:
        """Implement `quire.stores.contract.SharedStore.evict` by ending the owner's connection, and so all locks of its
        process. An owner that is alive after all takes back the locks that are still free."""
        if run in self._locked:
            return False
        await self._rows(statements.EVICT, (run, epoch))
        return bool(await self._rows(statements.AT_EPOCH, (run, epoch)))

    async def answered(self) -> Sequence[str]:
        return [run for (run,) in await self._rows(statements.RUNS_ANSWERED)]

    async def write(self, lease: Lease, batch: Batch) -> WriteResult:
        return await self._write(lease, batch, park=False)

    async def park(self, lease: Lease, batch: Batch) -> bool:
        return not (await self._write(lease, batch, park=True)).answer_waiting

    async def release(self, lease: Lease) -> None:
        if self._holding(lease) is None:
            return
        await self._writer.settled()
        self._held.pop(lease.run, None)
        # If the server is away, the lock is gone already and nothing can be settled.
        with contextlib.suppress(RunState, StoreError):
            await self._drop_lock(lease.run)
            # Checked after the lock is dropped: a flag set between an earlier check and the drop would never be seen.
            if await self._rows(statements.CANCEL_ASKED, (lease.run,)) and await self._take_lock(lease.run):
                await self._cancel_and_drop(lease.run)

    async def restore(self, run: NewRun, history: History) -> None:
        await archive.create(self._server, run, self._seal, history, self._now())

    async def prune(self, before: float, statuses: Collection[Status], *, dry_run: bool, vacuum: bool) -> Pruned:
        pruned = await archive.prune(self._server, before, statuses, dry_run=dry_run)
        return pruned if dry_run or not vacuum else replace(pruned, given_back=await archive.vacuum(self._server))

    async def backup(self, to: Path) -> int:
        raise StoreError(f"{self.place} is copied by PostgreSQL's own tools: pg_dump --format=custom --table='quire_*'")

    async def close(self) -> None:
        await self._writer.settled()
        self._held.clear()
        self._locked.clear()
        await self._server.close()

    async def _rows(self, sql: str, parameters: Sequence[object] = ()) -> Sequence[row_decoder.Row]:
        await self._writer.settled()
        return await self._server.rows(sql, parameters)

    async def _write(self, lease: Lease, batch: Batch, *, park: bool) -> WriteResult:
        held = self._holding(lease)
        if held is None:
            raise contract.fenced(lease.run)
        if held.failure is not None:
            raise held.failure
        return await self._writer.commit(held, rows.encode_batch(lease.run, batch, self._seal), self._now(), park=park)

    def _holding(self, lease: Lease) -> OwnedRun | None:
        held = self._held.get(lease.run)
        return held if held is not None and held.epoch == lease.epoch else None

    async def _acquire(self, run: str, after: int | None) -> Lease:
        if not await self._take_lock(run):
            raise contract.busy(run)
        try:
            return await self._next_epoch(run, after)
        except BaseException:
            with contextlib.suppress(StoreError):
                await self._drop_lock(run)
            raise

    async def _next_epoch(self, run: str, after: int | None) -> Lease:
        async def work(connection: Connection, again: bool) -> tuple[Status, Lease | None, OwnedRun | None]:
            status = await self._status(connection, run)
            if after is not None:
                seen = await connection.execute(statements.AT_EPOCH, (run, after))
                if await seen.fetchone() is None:
                    raise contract.fenced(run)
            if status is Status.COMPLETED:
                return status, None, None
            sealed, number, epoch = await archive.read_whole(connection, run)
            sealed.check(self._seal)
            held = OwnedRun(run, epoch + 1, number, sealed.tail())
            if status is Status.EXPIRED:
                await self._end(connection, held, sealed.state_as(status))
                return status, None, None
            await connection.execute(statements.NEXT_EPOCH, (run,))
            found = await one(connection, statements.ONE_RUN, (run,))
            row = None if found is None else row_decoder.run_row(found)
            return status, Lease(run, held.epoch, *sealed.marks(), held.tail.cost, row, sealed.records()), held

        status, lease, held = await self._server.owner_transaction(work)
        if lease is None or held is None:
            raise contract.cannot_go_on(run, status)
        self._held[run] = held
        return lease

    async def _end(
        self, connection: Connection, held: OwnedRun, state: rows.Cells, events: Sequence[Event] = ()
    ) -> None:
        """End a run that is not being driven, and withdraw its open questions."""
        ended = replace(rows.encode_batch(held.run, Batch(events=tuple(events)), self._seal), status=state)
        await append(connection, held.number, held.tail, ended, self._now(), self._seal)
        await connection.execute(statements.WITHDRAW_OPEN, (held.run,))

    async def check_seal(self, run: str, *, whole: bool = True) -> None:
        async def work(connection: Connection, again: bool) -> None:
            if not whole:
                stored = await one(connection, statements.SEALED_RUN, (run,))
                if stored is None:
                    raise contract.no_such_run(run)
                return check_pins(self._seal, StoredRun(*stored[2:]))
            sealed, _, _ = await archive.read_whole(connection, run)
            sealed.check(self._seal)
            for question, found in await archive.asked(connection, run):
                contract.check_question(self._seal, question, found)

        await self._writer.settled()
        await self._server.transaction(work)
        if whole:
            await self.answers(run)

    async def reseal(self, run: str) -> None:
        async def work(connection: Connection, again: bool) -> None:
            await archive.reseal(connection, run, self._seal)

        if not await self._take_lock(run):
            raise contract.busy(run)
        try:
            await self._server.owner_transaction(work)
        finally:
            with contextlib.suppress(StoreError):
                await self._drop_lock(run)

    async def _cancel_and_drop(self, run: str, *, asked: bool = False) -> bool:
        """Cancel a run whose lock was just taken, and drop the lock. The new epoch keeps out an owner that has lost its
        lock.

        Return False if an owner that was `asked` has cancelled the run itself.
        """

        async def work(connection: Connection, again: bool) -> bool:
            if (again or asked) and await self._status(connection, run) is Status.CANCELLED:
                return again
            await self._check_cancellable(connection, run)
            sealed, number, epoch = await archive.read_whole(connection, run)
            held = OwnedRun(run, epoch, number, sealed.tail())
            cancelled = Event("run_cancelled", run, self._now(), sealed.marks()[0] + 1)
            await self._end(connection, held, sealed.state_as(Status.CANCELLED), [cancelled])
            if not sealed.holds(self._seal):
                await connection.execute(statements.SET_ANCHOR, (sealed.stored.anchor, sealed.stored.seal, number))
            await connection.execute(statements.CANCELLED, (run,))
            return True

        try:
            return await self._server.owner_transaction(work)
        finally:
            with contextlib.suppress(StoreError):
                await self._drop_lock(run)

    async def _check_cancellable(self, connection: Connection, run: str) -> None:
        status = await self._status(connection, run)
        if status not in contract.CANCELLABLE:
            raise contract.cannot_be_cancelled(run, status)

    async def _take_lock(self, run: str) -> bool:
        """Take the lock of a run; return False if it is held. A session may take its own lock repeatedly, so this store
        tracks its own locks."""

        async def work(connection: Connection, again: bool) -> tuple[int, bool] | None:
            if run in self._locked:
                return self._locked[run], False
            found = await one(connection, statements.TAKE, (run,))
            if found is None:
                return None
            if found[1]:
                self._locked[run] = found[0]
            return found[0], found[1]

        taken = await self._server.as_owner(work)
        if taken is None:
            raise contract.no_such_run(run)
        return taken[1]

    async def _drop_lock(self, run: str) -> None:
        async def work(connection: Connection, again: bool) -> None:
            number = self._locked.pop(run, None)
            if number is not None:
                await connection.execute(statements.DROP, ([number],))

        await self._server.as_owner(work)

    async def _retake(self, connection: Connection) -> None:
        """Take all locks again on a new connection. A lock that another process has taken meanwhile is lost: that
        process has also taken the next epoch, which stops this store's next write."""
        if self._locked:
            await connection.execute(statements.TAKE_BACK, (list(self._locked.values()),))

    async def _status(self, connection: Connection, run: str) -> Status:
        """Return the current status and lock the row, so that it stays true until the transaction ends."""
        found = await one(connection, statements.STATE_OF_RUN, (run,))
        if found is None:
            raise contract.no_such_run(run)
        return contract.status_at(self._now(), Status(found[0]), found[1])

    def _run_now(self, row: row_decoder.Row) -> RunRow:
        run, alive = row_decoder.run_row(row), row[-1]
        status = contract.status_at(self._now(), run.status, run.expires_at)
        if status is Status.RUNNING and not alive and run.id not in self._held:
            status = Status.INTERRUPTED
        return run if status is run.status else replace(run, status=status)
