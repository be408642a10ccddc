"""The SQLite store in the memory of one process: nothing is written to a disk, and everything ends with the process.

It is made for tests of documents, which start and forget thousands of runs. `Memory` holds the database; each
`MemoryStore` that is opened on it is like another process with locks of its own, so a process that dies and the one
that continues can be played in one event loop. Runs have no seals here: only this process can write to its memory.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quire.errors import StoreError
from quire.stores import contract
from quire.stores.sqlite.database import Database, Parameters
from quire.stores.sqlite.statements import migrate
from quire.stores.sqlite.store import SqliteStore
from quire.stores.sqlite.writer import OwnerLocks
from quire.trust.seal import Seal

PLACE = Path("the memory of this process")
_FREE: list[sqlite3.Connection] = []
"""Empty databases. Making the tables, or preparing all statements for a copy of them, takes as long as a small run, so
a database is used again."""


class Memory:
    """A database that the stores of one process share, and the locks that hold each run that is being driven."""

    def __init__(self) -> None:
        self.connection: sqlite3.Connection | None = _FREE.pop() if _FREE else None
        if self.connection is None:
            self.connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            migrate(self.connection, PLACE)
        self.owners: dict[str, _MemoryLocks] = {}

    def lose_owners(self) -> None:
        """Take the locks from all owners, as if their processes had died. An owner that still lives can write until
        the next one begins."""
        self.owners.clear()

    def close(self) -> None:
        """Forget everything. The stores of this memory are closed with it."""
        if self.connection is not None:
            tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            for (table,) in self.connection.execute(tables).fetchall():
                self.connection.execute(f"DELETE FROM {table}")  # noqa: S608  # a name of ours
            _FREE.append(self.connection)
            self.connection = None


class _NoSeal(Seal):
    def row(self, content: bytes) -> str:
        return "memory"

    def facts(self, kind: str, *facts: str | int | float | None) -> str:
        return "memory"


_NO_SEAL = _NoSeal.of("")


class MemoryStore(SqliteStore):
    """A `quire.engine.ports.Store` in memory."""

    def __init__(self, memory: Memory | None = None, *, now: Callable[[], float] = time.time) -> None:
        super().__init__(PLACE, now=now, seal=_NO_SEAL)
        self._memory = memory or Memory()
        self._database = _MemoryDatabase(self._memory)
        self._locks = _MemoryLocks(self._memory)

    async def check_seal(self, run: str, *, whole: bool = True) -> None:
        if not self._database.rows("SELECT 1 FROM runs WHERE id = ?", (run,)):
            raise contract.no_such_run(run)

    async def foreign_writes(self) -> int | None:
        """Return None: all stores of one memory share a connection, for which SQLite counts no foreign commits."""
        return None


class _MemoryDatabase(Database):
    def __init__(self, memory: Memory) -> None:
        super().__init__(PLACE, durability="process", busy_timeout=0.0)
        self._memory: Memory | None = memory

    def exists(self) -> bool:
        return True

    def connection(self) -> sqlite3.Connection:
        connection = self._memory.connection if self._memory is not None else None
        if connection is None:
            raise StoreError(f"this store in {self.path} has been closed")
        return connection

    def rows(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        return self.connection().execute(sql, parameters).fetchall()

    def close(self) -> None:
        """Leave the database to the other stores of its memory."""
        self._memory = None


class _MemoryLocks(OwnerLocks):
    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def take(self, run: str) -> bool:
        return run not in self._memory.owners and self._memory.owners.setdefault(run, self) is self

    def drop(self, run: str) -> None:
        if self._memory.owners.get(run) is self:
            del self._memory.owners[run]

    def evict(self, run: str) -> None:
        if self._memory.owners.get(run) is not self:
            self._memory.owners.pop(run, None)

    def drop_all(self) -> None:
        for run in tuple(self._memory.owners):
            self.drop(run)

    def alive(self, run: str) -> bool:
        return run in self._memory.owners
