"""A crew for each test, on a database of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest
from tests.engine.thread.crew import Crew, Reply, SlowClock, Table

from quire.stores import open_store


@pytest.fixture
async def hire(tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[Crew]]]:
    crews: list[Crew] = []

    async def make(
        directives: Mapping[str, str], replies: Mapping[str, Sequence[Reply]], *, cost: float | None = 0.0
    ) -> Crew:
        clock = SlowClock()
        store = open_store(tmp_path / f"{len(crews)}.db", durability="process", now=clock.now)
        crew = Crew(store, clock=clock, directives=dict(directives), table=Table(replies, cost))
        crews.append(crew)
        await crew.create()
        return crew

    yield make
    for crew in crews:
        await crew.store.close()
