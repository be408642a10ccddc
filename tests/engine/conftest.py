"""A house with one run in a fresh database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.engine.house import Clock, House

from quire.stores import open_store


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    clock = Clock()
    store = open_store(tmp_path / "quire.db", durability="process", now=clock.now)
    house = House(store, clock=clock)
    await house.create()
    yield house
    await store.close()
