"""A worker that is suspended at the worst moment: it has taken a run, and none of its heartbeats has left it."""

from __future__ import annotations

import signal

from tests.cluster.test_cluster_runs import started, workflow_result
from tests.cluster.town import Town, marks_pipeline, until

from quire.engine.records import Status
from quire.runs.options import RunOptions

STOPS_WHEN_IT_HAS_A_RUN = """
import os, signal
import temporalio.activity
from quire.stores.postgres.store import PostgresStore

acquire = PostgresStore.acquire

async def acquire_and_stop(self, run, **seen):
    lease = await acquire(self, run, **seen)
    os.kill(os.getpid(), signal.SIGSTOP)
    return lease

PostgresStore.acquire = acquire_and_stop
temporalio.activity.heartbeat = lambda *details: None
"""
STOPS_BEFORE_IT_HAS_ONE = """
import os, signal
from quire.stores.postgres.store import PostgresStore

acquire = PostgresStore.acquire

async def stop_and_acquire(self, run, **seen):
    os.kill(os.getpid(), signal.SIGSTOP)
    return await acquire(self, run, **seen)

PostgresStore.acquire = stop_and_acquire
"""


async def test_a_run_that_a_suspended_worker_has_just_taken(town: Town) -> None:
    frozen = town.worker(code=STOPS_WHEN_IT_HAS_A_RUN)
    town.drives(frozen)
    (run,) = await started(town, marks_pipeline(2, 0.0))
    until(lambda: frozen.stopped, f"it is not stopped: {frozen.said()}")
    row = await town.row(run)
    assert (row.epoch, town.marks()) == (1, [])
    town.workers(1)
    (row,) = await town.reach([run], Status.COMPLETED, patience=30)
    assert row.epoch == 2
    journal = await town.runtime.store.effects(run)
    frozen.send(signal.SIGCONT)
    until(lambda: "taken over" in frozen.said(), f"the stopped worker never noticed: {frozen.said()}")
    assert await town.runtime.store.effects(run) == journal
    assert [mark["label"] for mark in town.marks()[:2]] == ["s0", "s1"]
    assert await workflow_result(town, run) == "completed"


async def test_a_run_that_a_suspended_worker_was_about_to_take(town: Town) -> None:
    frozen = town.worker(code=STOPS_BEFORE_IT_HAS_ONE)
    town.drives(frozen)
    (run,) = await started(town, marks_pipeline(2, 0.0))
    until(lambda: frozen.stopped, f"it is not stopped: {frozen.said()}")
    assert (await town.row(run)).status is Status.PENDING
    town.workers(1)
    (row,) = await town.reach([run], Status.COMPLETED, patience=30)
    frozen.send(signal.SIGCONT)
    assert await workflow_result(town, run) == "completed"
    assert [mark["label"] for mark in town.marks()] == ["s0", "s1"]
    assert row.epoch == 1


async def test_a_worker_that_wakes_up_does_not_pass_a_breakpoint_that_others_came_to(town: Town) -> None:
    frozen = town.worker(code=STOPS_BEFORE_IT_HAS_ONE)
    town.drives(frozen)
    (run,) = await started(town, marks_pipeline(2, 0.0), options=RunOptions(breakpoints=("1",)))
    until(lambda: frozen.stopped, f"it is not stopped: {frozen.said()}")
    town.workers(1)
    (row,) = await town.reach([run], Status.PAUSED, patience=30)
    frozen.send(signal.SIGCONT)
    until(lambda: "taken over" in frozen.said(), f"the stopped worker never noticed: {frozen.said()}")
    assert await town.row(run) == row
    assert [mark["label"] for mark in town.marks()] == ["s0"]
