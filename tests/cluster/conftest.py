"""One Temporal server for all tests of a process; a store, a workspace and a task queue for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.town import TemporalServer, Town
from tests.stores.postgres_server import shared_server

MakeTown = Callable[..., Town]


@pytest.fixture(scope="session")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    server = TemporalServer(tmp_path_factory.mktemp("temporal"))
    yield server
    server.stop()


@pytest.fixture
async def make_town(temporal: TemporalServer, tmp_path: Path) -> AsyncIterator[MakeTown]:
    server = shared_server()
    schema = server.new_schema()
    towns: list[Town] = []

    def make(address: str = "", **options: object) -> Town:
        folder = tmp_path / f"town-{len(towns)}"
        url = server.url(schema=schema)
        towns.append(Town(folder, address or temporal.address, url, **options))  # type: ignore[arg-type]
        return towns[-1]

    yield make
    for town in towns:
        await town.close()


@pytest.fixture
def town(make_town: MakeTown) -> Town:
    return make_town()
