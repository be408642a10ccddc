"""The workers of a cluster are listed, and a cluster that is away is said."""

from __future__ import annotations

import json

import pytest
from tests.cluster.town import Town, free_port, until

from quire.cluster.client import connect
from quire.errors import CannotStart
from quire.workspace.settings import ClusterSettings


async def test_a_worker_is_listed_until_it_ends(town: Town) -> None:
    def listed() -> list[tuple[int, str]]:
        processes = json.loads(town.quire("worker", "list", "--json").stdout)["processes"]
        return [(process["pid"], process["state"]) for process in processes if process["queue"] == town.queue]

    assert listed() == []
    worker = town.worker()
    until(lambda: listed() == [(worker.pid, "fit")], "the worker is not listed")
    worker.send(15)
    assert worker.process.wait(30) == 0
    assert listed() == []


async def test_a_cluster_that_is_away_is_said() -> None:
    with pytest.raises(CannotStart):
        await connect(ClusterSettings(temporal=f"127.0.0.1:{free_port()}"), 2)
