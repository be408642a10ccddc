"""Where the runs of one simulated life are kept: a file, memory, or a schema of a PostgreSQL server that is really
there.

A file or memory is what seeds are for: it answers at once, so the same case does the same again to the letter. A server
answers when it likes. Time stands still meanwhile and nobody overtakes anybody (`loop`), but which of two connections
gets a row first is the server's to say: there, a seed does nearly always the same again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias
from urllib.parse import quote

from quire.engine.ports import Store
from quire.stores import open_store
from quire.stores.sqlite.in_memory import Memory, MemoryStore

Now: TypeAlias = Callable[[], float]


class Shelf(Protocol):
    """Each `open` is as good as another process: connections and locks of its own."""

    def open(self, now: Now) -> Store: ...

    async def lose_owner(self, run: str, now: Now) -> None:
        """Makes whoever drives it look dead to others, while it can still try to write."""
        ...

    def close(self) -> None: ...


Shelves: TypeAlias = Callable[[Path], Shelf]
"""One for each life, which has a folder."""


class FileShelf:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, now: Now) -> Store:
        return open_store(self._folder / "quire.db", durability="process", now=now)

    async def lose_owner(self, run: str, now: Now) -> None:
        for lock in (self._folder / "locks").glob("*"):
            lock.unlink()

    def close(self) -> None:
        """The folder is its maker's."""


class MemoryShelf:
    """The memory of this process, which outlives those that are played in it."""

    def __init__(self, folder: Path) -> None:
        self._memory = Memory()

    def open(self, now: Now) -> Store:
        return MemoryStore(self._memory, now=now)

    async def lose_owner(self, run: str, now: Now) -> None:
        self._memory.lose_owners()

    def close(self) -> None:
        self._memory.close()


class SchemaShelf:
    """A new schema in the database of a URL, and gone when it is closed."""

    def __init__(self, url: str) -> None:
        self._server = url
        self.schema = f"simulated_{secrets.token_hex(6)}"
        options = quote(f"-csearch_path={self.schema}", safe="")
        self._url = f"{url}{'&' if '?' in url else '?'}options={options}"
        self._do(f"CREATE SCHEMA {self.schema}")

    def open(self, now: Now) -> Store:
        return open_store(self._url, durability="process", now=now)

    async def lose_owner(self, run: str, now: Now) -> None:
        """In the way in which a cluster gives up a worker that it does not hear of."""
        from quire.stores.postgres.store import PostgresStore

        store = PostgresStore(self._url, durability="process", now=now)
        try:
            row = await store.get(run)
            if row is not None:
                await store.evict(run, row.epoch)
        finally:
            await store.close()

    def close(self) -> None:
        self._do(f"DROP SCHEMA {self.schema} CASCADE")

    def _do(self, sql: str) -> None:
        import psycopg

        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute("SET client_min_messages = 'warning'")
            connection.execute(sql.encode())


def shelves_of(url: str) -> Shelves:
    """Schemas of that database; files where there is none."""
    return (lambda folder: SchemaShelf(url)) if url else FileShelf
