"""The stores under test. `shelf` is parametrised: every store that is to keep the contract is one more `Shelf`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

import pytest
from tests.stores.postgres_server import PostgresServer, shared_server

from quire.engine.ports import Store
from quire.stores import open_store
from quire.stores.sqlite.in_memory import Memory, MemoryStore


class Clock:
    def __init__(self) -> None:
        self.time = 1_000.0

    def __call__(self) -> float:
        return self.time


class Shelf(Protocol):
    """One database. Each `open` is as good as another process: own connection, own locks."""

    clock: Clock

    def open(self) -> Store: ...

    def lose_owner(self, run: str) -> None:
        """Makes the owner look dead to others while it can still try to write."""
        ...

    async def close(self) -> None: ...


class SqliteShelf:
    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.path = folder / ".quire" / "quire.db"
        self._opened: list[Store] = []

    def open(self) -> Store:
        store = open_store(self.path, now=self.clock, durability="process")
        self._opened.append(store)
        return store

    def lose_owner(self, run: str) -> None:
        (self.path.parent / "locks" / f"{run}.lock").unlink()

    async def close(self) -> None:
        for store in self._opened:
            await store.close()


class PostgresShelf:
    def __init__(self, server: PostgresServer) -> None:
        self.clock = Clock()
        self._server = server
        self.schema = server.new_schema()
        self.url = server.url(schema=self.schema)
        self._opened: list[Store] = []

    def open(self) -> Store:
        store = open_store(self.url, now=self.clock, durability="process")
        self._opened.append(store)
        return store

    def lose_owner(self, run: str) -> None:
        self._server.end_owner(self.schema, run)

    async def close(self) -> None:
        for store in self._opened:
            await store.close()


class MemoryShelf:
    def __init__(self) -> None:
        self.clock = Clock()
        self._memory = Memory()

    def open(self) -> Store:
        return MemoryStore(self._memory, now=self.clock)

    def lose_owner(self, run: str) -> None:
        self._memory.lose_owners()

    async def close(self) -> None:
        self._memory.close()


def open_shelf(name: str, folder: Path) -> Shelf:
    match name:
        case "sqlite":
            return SqliteShelf(folder)
        case "postgresql":
            return PostgresShelf(shared_server())
        case _:
            return MemoryShelf()


@pytest.fixture(params=["sqlite", "postgresql", "memory"])
async def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shelf]:
    if request.param == "memory" and (marker := request.node.get_closest_marker("lasting_store")) is not None:
        pytest.skip(marker.args[0])
    shelf = open_shelf(request.param, tmp_path)
    yield shelf
    await shelf.close()


@pytest.fixture
def store(shelf: Shelf) -> Store:
    return shelf.open()
