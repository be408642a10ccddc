"""The workers of a cluster are listed, and a cluster that is away is said."""

from __future__ import annotations

import asyncio

import pytest
from tests.cluster.town import Town, free_port

from quire.cluster.client import workers_of
from quire.errors import CannotStart
from quire.workspace.settings import ClusterSettings


async def test_a_worker_that_asks_for_work_is_listed(town: Town) -> None:
    where = town.settings.cluster
    assert await workers_of(where, 5) == []
    worker = town.worker()
    async with asyncio.timeout(30):
        while not (found := await workers_of(where, 5)):
            await asyncio.sleep(0.1)
    assert [(one.identity.split("@")[0], one.unfit) for one in found] == [(f"quire {worker.pid}", "")]


async def test_a_cluster_that_is_away_is_said() -> None:
    with pytest.raises(CannotStart):
        await workers_of(ClusterSettings(temporal=f"127.0.0.1:{free_port()}"), 2)
