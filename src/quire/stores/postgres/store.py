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
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from msgspec.structs import replace

from quire.engine.records import Status
from quire.errors import StoreError
from quire.stores import contract, row_decoder, rows
from quire.stores.contract import Pruned
from quire.stores.postgres.database import PATIENCE_SECONDS, Address, Server
from quire.stores.postgres.statements import OWNER_ALIVE, PostgresStatements
from quire.stores.postgres.writer import Transactor, Writer, transact
from quire.stores.sql_store import SqlStore, Work
from quire.trust.seal import PUBLIC_SEAL, Seal

if TYPE_CHECKING:
    from quire.engine.records import Batch, Lease, WriteResult
    from quire.stores.occurrences import Process
    from quire.stores.postgres.statements import Connection
    from quire.stores.rows import OwnedRun
    from quire.stores.run_pages import Condition

T = TypeVar("T")

_TABLES = (
    "quire_runs, quire_pins, quire_journal, quire_questions, quire_letters, quire_blobs, quire_http_replies, "
    "quire_starts, quire_triggers, quire_processes"
)
_SIZE = "SELECT sum(pg_total_relation_size(t::regclass))::bigint FROM unnest(string_to_array(%s, ', ')) AS t"


class PostgresStore(SqlStore):
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
        address = Address(url)
        super().__init__(PostgresStatements, address.place, seal, now)
        self._server = Server(address, durability=durability, patience=patience, retake=self._retake)
        self._writer = Writer(self._server, seal)
        # Only for new runs and for runs whose lock is held: of each there is one at a time, and other transactions that
        # lock several rows do not want them.
        self._creator = Transactor(self._server.transaction, seal)
        self._owner = Transactor(self._server.owner_transaction, seal)
        self._locked: dict[str, int] = {}

    async def acquire(self, run: str, *, after: int | None = None) -> Lease:
        task = asyncio.ensure_future(super().acquire(run, after=after))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # The caller is gone and would never release the lease.
            with contextlib.suppress(Exception):
                await self.release(await task)
            raise

    async def evict(self, run: str, epoch: int) -> bool:
        """Implement `evict` by ending the owner's connection, and so all locks of its
        process. An owner that is alive after all takes back the locks that are still free."""
        if run in self._locked:
            return False
        await self._rows(PostgresStatements.EVICT, (run, epoch))
        return bool(await self._rows(PostgresStatements.AT_EPOCH, (run, epoch)))

    async def beat(self, process: Process) -> None:
        if await self._server.is_current():  # a report alone migrates nothing
            await super().beat(process)

    async def foreign_writes(self) -> int | None:
        return None

    async def prune(self, before: float, statuses: Collection[Status], *, dry_run: bool, vacuum: bool) -> Pruned:
        parameters = ([status.value for status in statuses], before, Status.EXPIRED in statuses, before)
        pruned = await _prune(self._server, PostgresStatements.ENDED_BEFORE, parameters, dry_run=dry_run)
        return pruned if dry_run or not vacuum else replace(pruned, given_back=await _vacuum(self._server))

    async def remove(self, runs: Sequence[str], *, dry_run: bool) -> Pruned:
        parameters = (list(runs), [status.value for status in contract.ENDED], self._now())
        return await _prune(self._server, PostgresStatements.ENDED_RUNS, parameters, dry_run=dry_run)

    async def backup(self, to: Path) -> int:
        raise StoreError(f"{self.place} is copied by PostgreSQL's own tools: pg_dump --format=custom --table='quire_*'")

    async def close(self) -> None:
        await self._settle()
        self._held.clear()
        self._locked.clear()
        await self._server.close()

    async def _rows(self, sql: str, parameters: Sequence[object] = ()) -> Sequence[row_decoder.Row]:
        await self._settle()
        return await self._server.rows(sql, parameters)

    async def _insert(self, work: Work[T]) -> T:
        return await self._creator.commit(work)

    async def _transact(self, work: Work[T]) -> T:
        return await self._server.transaction(lambda connection, again: transact(connection, work(again), self._seal))

    async def _transact_as_owner(self, work: Work[T]) -> T:
        return await self._owner.commit(work)

    async def _write(self, held: OwnedRun, batch: Batch, *, park: bool) -> WriteResult:
        if held.failure is not None:
            raise held.failure
        return await self._writer.commit(held, rows.encode_batch(held.run, batch, self._seal), self._now(), park=park)

    async def _settle(self) -> None:
        await self._writer.settled()

    async def _expect(self, run: str) -> None:
        await self._settle()

    async def _take_lock(self, run: str) -> bool:
        """Take the lock of a run. A session may take its own lock repeatedly, so this store tracks its own locks."""

        async def work(connection: Connection, again: bool) -> bool:
            if run in self._locked:
                return False
            row = await (await connection.execute(PostgresStatements.TAKE, (run,))).fetchone()
            if row is None:
                raise contract.no_such_run(run)
            number, taken = row
            if taken:
                self._locked[run] = number
            return bool(taken)

        return await self._server.as_owner(work)

    async def _drop_lock(self, run: str) -> None:
        async def work(connection: Connection, again: bool) -> None:
            number = self._locked.pop(run, None)
            if number is not None:
                await connection.execute(PostgresStatements.DROP, ([number],))

        await self._server.as_owner(work)

    async def _retake(self, connection: Connection) -> None:
        """Take all locks again on a new connection. A lock that another process has taken meanwhile is lost: that
        process has also taken the next epoch, which stops this store's next write."""
        if self._locked:
            await connection.execute(PostgresStatements.TAKE_BACK, (list(self._locked.values()),))

    def _owner_is(self, alive: bool) -> Condition:
        return f"{OWNER_ALIVE} = ?", (alive,)

    def _has_owner(self, run: str, row: row_decoder.Row) -> bool:
        return bool(row[-1]) or run in self._held


class _TakeBack(Exception):
    """Raised to roll the transaction back."""

    def __init__(self, pruned: Pruned) -> None:
        self.pruned = pruned


async def _prune(server: Server, which: str, parameters: Sequence[object], *, dry_run: bool) -> Pruned:
    """Remove the ended runs that a statement finds, and unused texts. A dry run does everything and rolls it back.
    Runs that are being driven, or are about to be, stay.

    Removing texts locks out all transactions that add texts. Otherwise a new run could find its text in the table, skip
    writing it, and lose it to a cleanup that has not seen the run.
    """
    sql = PostgresStatements

    async def work(connection: Connection, again: bool) -> Pruned:
        await connection.execute(sql.KEEP_TEXTS)
        rows = await (await connection.execute(which, parameters)).fetchall()
        runs, numbers = [run for run, _, free in rows if free], [number for _, number, free in rows if free]
        effects, size = await _count(connection, sql.REMOVE_JOURNAL, (numbers,))
        for statement in (sql.REMOVE_PINS, sql.REMOVE_RUNS):
            await connection.execute(statement, (numbers,))
        for statement in (sql.REMOVE_QUESTIONS, sql.REMOVE_LETTERS, sql.REMOVE_STRAY_LETTERS):
            await connection.execute(statement, (runs,))
        texts, more = await _count(connection, sql.REMOVE_TEXTS, ())
        pruned = Pruned(tuple(runs), effects, texts, size + more, in_file=False)
        if dry_run:
            raise _TakeBack(pruned)
        return pruned

    try:
        return await server.transaction(work)
    except _TakeBack as back:
        return back.pruned


async def _vacuum(server: Server) -> int:
    """Make free space reusable, return the ends of tables to the disk, and return the number of bytes given back."""
    before = (await server.rows(_SIZE, (_TABLES,)))[0][0]
    await server.rows(f"VACUUM {_TABLES}")
    return max(0, int(before) - int((await server.rows(_SIZE, (_TABLES,)))[0][0]))


async def _count(connection: Connection, sql: str, parameters: Sequence[object]) -> tuple[int, int]:
    """Run a statement that removes rows; return their number and size."""
    row = await (await connection.execute(sql, parameters)).fetchone()
    return (0, 0) if row is None else (int(row[0]), int(row[1]))
