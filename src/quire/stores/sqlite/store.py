"""The default store: one SQLite file beside the documents, without a server or a thread.

Everything runs on the thread of the event loop: a commit costs less than a hand-over to a thread and back would save,
and writes that become ready during one commit share the next (`quire.stores.sqlite.writer`).

A `SqliteStore` belongs to one thread, and to one event loop at a time. Any number of them, in any number of threads and
processes, may share the file. Waiting for the write lock of another process blocks the whole loop, for `busy_timeout`
seconds at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from quire.engine.records import Batch, Status, WriteResult
from quire.stores import contract, row_decoder, rows
from quire.stores.contract import Pruned
from quire.stores.sql_store import SqlStore, Work
from quire.stores.sqlite.database import Database, Durability, explain
from quire.stores.sqlite.statements import SqliteStatements
from quire.trust.seal import PUBLIC_SEAL, Seal
from quire.values import encode

if TYPE_CHECKING:
    from quire.stores.rows import OwnedRun
    from quire.stores.run_pages import Condition
    from quire.stores.sqlite.writer import OwnerLocks, Writer

FILE_NAME = "quire.db"

T = TypeVar("T")


class SqliteStore(SqlStore):
    """A `quire.engine.ports.Store` in one SQLite file. The first write creates the file; reading creates nothing."""

    def __init__(
        self,
        path: Path,
        *,
        durability: Durability = "power",
        now: Callable[[], float] = time.time,
        busy_timeout: float = 5.0,
        seal: Seal = PUBLIC_SEAL,
        read_only: bool = False,
    ) -> None:
        """With `read_only` nothing is ever written: no file beside the database, and no migration of an old one."""
        super().__init__(SqliteStatements, str(path), seal, now)
        self.path = path
        self._database = Database(path, durability=durability, busy_timeout=busy_timeout, read_only=read_only)

    @cached_property
    def _locks(self) -> OwnerLocks:
        from quire.stores.sqlite.writer import OwnerLocks

        # Files under other names may share the folder, and then must not share their locks.
        path = self.path
        return OwnerLocks(path.parent / ("locks" if path.name == FILE_NAME else f"{path.name}.locks"))

    @cached_property
    def _writer(self) -> Writer:
        """Made when something is first written: most verbs only read."""
        from quire.stores.sqlite.writer import Writer

        return Writer(self._database, self._seal)

    async def evict(self, run: str, epoch: int) -> bool:
        """Implement `evict` by removing the lock file."""
        if not self._database.rows(SqliteStatements.AT_EPOCH, (run, epoch)):
            return False
        self._locks.evict(run)
        return True

    async def foreign_writes(self) -> int | None:
        """Return SQLite's own count of commits by other connections, which costs no look at the tables."""
        versions = self._database.rows("PRAGMA data_version")
        older = self._database.older
        return int(versions[0][0]) + (older.made if older else 0) if versions else 0

    async def prune(self, before: float, statuses: Collection[Status], *, dry_run: bool, vacuum: bool) -> Pruned:
        from quire.stores.sqlite import archive  # only for verbs about the whole file

        if not self._database.exists():
            return Pruned()
        pruned = await self._remove(lambda: archive.ended_before(self._database, before, statuses), dry_run)
        return pruned if dry_run or not vacuum else replace(pruned, given_back=archive.vacuum(self._database))

    async def remove(self, runs: Sequence[str], *, dry_run: bool) -> Pruned:
        from quire.stores.sqlite import archive

        if not self._database.exists():
            return Pruned()
        return await self._remove(lambda: archive.ended(self._database, runs, self._now()), dry_run)

    async def _remove(self, find: Callable[[], list[tuple[str, int]]], dry_run: bool) -> Pruned:
        from quire.stores.sqlite import archive

        # Another process may be about to drive a failed run: runs whose lock is held are left alone.
        taken = {run for run, _ in find() if await self._take_lock(run)}
        try:
            return archive.prune(self._database, [run for run in find() if run[0] in taken], dry_run=dry_run)
        finally:
            for run in taken:
                self._locks.drop(run)

    async def backup(self, to: Path) -> int:
        from quire.stores.sqlite import archive

        return archive.backup(self._database, to)

    async def close(self) -> None:
        self._flush()
        self._held.clear()
        if "_locks" in vars(self):
            self._locks.drop_all()
        self._database.close()

    async def _rows(self, sql: str, parameters: Sequence[object] = ()) -> Sequence[row_decoder.Row]:
        return self._database.rows(sql, parameters)

    async def _transact(self, work: Work[T]) -> T:
        return await self._writer.transact(lambda: work(False))

    _insert = _transact_as_owner = _transact

    async def _write(self, held: OwnedRun, batch: Batch, *, park: bool) -> WriteResult:
        if batch == Batch() and not park:
            return self._look(held)
        encoded = rows.encode_batch(held.run, batch, self._seal)
        return await self._writer.write(held, encoded, self._now(), park=park)

    def _look(self, held: OwnedRun) -> WriteResult:
        """Read the result that a write would report, without taking (and so without waiting for) the write lock. Raises
        `Fenced`."""
        for epoch, cancel, waiting in self._database.rows(SqliteStatements.LEARN, (held.run,)):
            if epoch == held.epoch:
                return WriteResult(bool(cancel), bool(waiting))
        raise contract.fenced(held.run)

    def _is_ready(self) -> bool:
        return self._database.is_current()

    async def _settle(self) -> None:
        self._flush()

    def _flush(self) -> None:
        if "_writer" in vars(self):
            self._writer.flush()

    async def _expect(self, run: str) -> None:
        """Raise `NoSuchRun` if the file does not exist, so that asking for a run never creates it. Opens the file, so
        that an error in opening it is reported here and not by the lock of the run."""
        if not self._database.exists():
            raise contract.no_such_run(run)
        self._database.connection()

    async def _take_lock(self, run: str) -> bool:
        await self._expect(run)
        try:
            return self._locks.take(run)
        except OSError as error:
            raise explain(error, self.path) from error

    async def _drop_lock(self, run: str) -> None:
        self._locks.drop(run)

    def _owner_is(self, alive: bool) -> Condition:
        ids = [id for (id,) in self._database.rows(SqliteStatements.RUNNING) if self._locks.alive(id) == alive]
        return "r.id IN (SELECT value FROM json_each(?))", (encode(ids),)

    def _has_owner(self, run: str, row: row_decoder.Row) -> bool:
        return self._locks.alive(run)
