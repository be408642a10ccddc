"""Workers killed at random, Temporal and PostgreSQL away for a while. Heavy: QUIRE_CHAOS=1 runs them all."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.test_cluster_runs import started, workflow_result
from tests.cluster.town import ASKING, TemporalServer, Town, marks_pipeline, until
from tests.stores.postgres_server import PostgresServer, own_server

from quire.engine.records import Status

heavy = pytest.mark.skipif(not os.environ.get("QUIRE_CHAOS"), reason="QUIRE_CHAOS is not set")
KILLS = int(os.environ.get("QUIRE_CHAOS_KILLS", "12"))


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[TemporalServer]:
    server = TemporalServer(tmp_path / "temporal", persistent=True)
    yield server
    server.stop()


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    server = own_server()
    yield server
    server.remove()


async def assert_once(town: Town, runs: list[str], before: dict[str, str], count: int) -> None:
    """Every effect is recorded, and none was done again after that: the call that is recorded is its last.

    `before` is what was recorded at some moment: it has not changed since."""
    after, last = await town.recorded(runs), {mark["id"]: mark["token"] for mark in town.marks()}
    assert len(after) == count
    assert before.items() <= after.items()
    assert after == {effect: token for effect, token in last.items() if effect in after}


async def test_temporal_is_not_there_yet(tmp_path: Path, database: PostgresServer) -> None:
    server = TemporalServer(tmp_path / "temporal")
    town = Town(tmp_path, server.address, database.url(schema=database.new_schema()))
    server.stop()
    try:
        worker = town.worker()
        until(lambda: "cannot be reached" in worker.said(), "nobody said that Temporal is away")
        assert "trying again in" in worker.said() and "Traceback" not in worker.said()
        run = await town.create(marks_pipeline(1, 0.0))
        server.start()
        town.drives(worker)
        await town.reach([run], Status.COMPLETED)
    finally:
        await town.close()
        server.stop()


@heavy
async def test_temporal_vanishes_while_runs_go_on(tmp_path: Path, lasting: TemporalServer) -> None:
    database = own_server()
    town = Town(tmp_path, lasting.address, database.url(schema=database.new_schema()))
    try:
        worker, _ = town.workers(2)
        runs = await started(town, marks_pipeline(60, 0.2), 8)
        (asking,) = await started(town, ASKING)
        until(lambda: len(town.marks()) > 40, "the runs do not get going")
        lasting.stop()
        # What is stored now, nobody can be told of.
        await town.reach([asking], Status.AWAITING_INPUT)
        answered = town.quire("answer", asking, "yes")
        assert (answered.returncode, "it is stored all the same" in answered.stderr) == (0, True), answered.stderr
        until(lambda: len(town.marks()) > 120, "the runs stand still without Temporal")
        until(lambda: "is away" in worker.said(), "nobody said that Temporal is away")
        before = await town.recorded(runs)
        lasting.start()
        await town.reach([*runs, asking], Status.COMPLETED)
        await assert_once(town, runs, before, 480)
        until(lambda: "is back" in worker.said(), "nobody said that Temporal is back")
        assert await workflow_result(town, asking) == "completed"
    finally:
        await town.close()
        database.remove()


@heavy
async def test_a_temporal_that_forgot_everything(tmp_path: Path, database: PostgresServer) -> None:
    """A new server at the same address: the sweep makes the workflows anew."""
    server = TemporalServer(tmp_path / "temporal")
    town = Town(tmp_path, server.address, database.url(schema=database.new_schema()))
    try:
        (worker,) = town.workers(1)
        (asking,) = await started(town, ASKING)
        await town.reach([asking], Status.AWAITING_INPUT)
        runs = await started(town, marks_pipeline(20, 0.2), 4)
        until(lambda: len(town.marks()) > 10, "the runs do not get going")
        worker.send(signal.SIGKILL)
        server.stop()
        before = await town.recorded(runs)
        await town.runtime.answer(asking, None, "yes")
        server.start()
        town.workers(1)
        await town.reach([*runs, asking], Status.COMPLETED)
        await assert_once(town, runs, before, 80)
    finally:
        await town.close()
        server.stop()


@heavy
async def test_postgresql_vanishes_for_a_while(
    tmp_path: Path, lasting: TemporalServer, database: PostgresServer
) -> None:
    town = Town(tmp_path, lasting.address, database.url(schema=database.new_schema()))
    try:
        town.workers(2)
        runs = await started(town, marks_pipeline(20, 0.2), 6)
        until(lambda: len(town.marks()) > 30, "the runs do not get going")
        before = await town.recorded(runs)
        database.stop()
        await asyncio.sleep(5)
        database.start()
        await town.reach(runs, Status.COMPLETED)
        await assert_once(town, runs, before, 120)
    finally:
        await town.close()


@heavy
async def test_workers_die_at_random(tmp_path: Path, lasting: TemporalServer, database: PostgresServer) -> None:
    seed = int(os.environ.get("QUIRE_CHAOS_SEED", "0")) or random.randrange(1, 10**6)
    print(f"QUIRE_CHAOS_SEED={seed}")
    chance = random.Random(seed)
    town = Town(tmp_path, lasting.address, database.url(schema=database.new_schema()))
    try:
        workers = town.workers(3, "--concurrency", "15")
        runs = await started(town, marks_pipeline(25, 0.15), 40)
        known: dict[str, str] = {}
        for _ in range(KILLS):
            await asyncio.sleep(chance.uniform(0.2, 2.5))
            victim = chance.randrange(len(workers))
            workers[victim].send(chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
            # Whatever is recorded now stays as it is.
            now = await town.recorded(runs)
            assert known.items() <= now.items()
            known = now
            workers[victim] = town.worker("--concurrency", "15")
        await town.reach(runs, Status.COMPLETED, patience=180)
        await assert_once(town, runs, known, 1000)
    finally:
        await town.close()
