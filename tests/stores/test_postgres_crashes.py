"""A death at any write changes nothing, on PostgreSQL: the tests of the engine, with another store behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from tests.engine import test_crashes as crashes
from tests.engine.thread import test_children as threads
from tests.stores.postgres_server import shared_server

from quire.engine.ports import Store
from quire.stores import open_store

When = Literal["before", "after"]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A schema instead of a file, the same one for the same path."""
    server = shared_server()
    schemas: dict[Path, str] = {}

    def opened(path: Path, *, durability: Literal["power", "process"], now: Callable[[], float] | None = None) -> Store:
        if path not in schemas:
            schemas[path] = server.new_schema()
        url = server.url(schema=schemas[path])
        return (
            open_store(url, durability=durability) if now is None else open_store(url, durability=durability, now=now)
        )

    monkeypatch.setattr(crashes, "open_store", opened)
    monkeypatch.setattr(threads, "open_store", opened)
    yield
    assert schemas


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_playbook(tmp_path: Path, when: When) -> None:
    await crashes.test_a_death_at_any_write_changes_nothing(tmp_path, crashes.PLAYBOOK, "tea.playbook.md", {}, 0, when)


@pytest.mark.usefixtures("elsewhere")
async def test_a_pipeline(tmp_path: Path) -> None:
    await crashes.test_a_death_at_any_write_changes_nothing(tmp_path, crashes.FANS, "p.yaml", crashes.LIST, 0, "after")


@pytest.mark.usefixtures("elsewhere")
async def test_a_directive(tmp_path: Path) -> None:
    await threads.test_a_death_at_any_write_changes_nothing(tmp_path, "before")
