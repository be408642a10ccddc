"""What a thread launches and does not wait for: a run of the cluster like any other, whatever becomes of its worker."""

from __future__ import annotations

import json
import signal
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from tests.cluster.test_cluster_runs import workflow_result
from tests.cluster.town import Town, until
from tests.directives import directive
from tests.given import given

from quire.engine.records import Status
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.trust.keys import SigningKey
from quire.trust.sign_file import sign_file, signable
from quire.trust.trusted_keys import keep, own_key

DIRECTIVE = directive(
    "starter",
    "<execute><tool>*</tool><pipeline>*</pipeline></execute>",
    "Start it.",
    more='<outputs><output name="said" required="true">What was said</output></outputs>',
)
LATER = """
pipeline: later
steps:
- tool: {name: mark, args: {label: one, seconds: SECONDS}, output: one}
- tool: {name: mark, args: {label: two, seconds: 0.0}, output: two}
"""
DIES_WHEN_IT_IS_STORED = """
import os, signal
from quire.stores.postgres.store import PostgresStore

create = PostgresStore.create

async def create_and_die(self, run, admit=None):
    await create(self, run, admit)
    if run.id.startswith("L"):
        os.kill(os.getpid(), signal.SIGKILL)

PostgresStore.create = create_and_die
"""
TELLS_NOBODY = """
from quire.cluster.client import Cluster

async def nothing(self, run, **how):
    pass

Cluster.look = Cluster.ensure = nothing
"""


async def started(town: Town, seconds: float) -> str:
    """A thread that launches the pipeline, handed over."""
    calls = {"run_pipeline_async": {"name": "later"}, "directive_return": {"said": "done"}}
    turns = [{"tool_calls": [{"name": name, "input": given}]} for name, given in calls.items()]
    keep(town.settings, SigningKey.generate("default"), datetime.now(UTC))
    script = write(town, "replies.json", json.dumps(turns))
    write(town, "pipelines/later.yaml", LATER.replace("SECONDS", str(seconds)))
    page = write(town, ".ai/directives/demo/starter.md", DIRECTIVE)
    assert sign_file(signable(page, town.folder), own_key(town.settings), datetime.now(UTC)) == []
    run = await town.runtime.start(load(page), {}, RunOptions(model=f"script:{script}", allow=("mark",)))
    await (await town.cluster()).look(run)
    return run


def write(town: Town, name: str, text: str) -> Path:
    return given({name: text}, town.folder) / name


async def launched(town: Town) -> list[str]:
    return [row.id for row in await town.runtime.store.list() if row.id.startswith("L")]


def times(town: Town) -> Counter[str]:
    return Counter(mark["label"] for mark in town.marks())


async def test_the_worker_dies_between_the_row_and_the_signal(town: Town) -> None:
    dying = town.worker(code=DIES_WHEN_IT_IS_STORED)
    town.drives(dying)
    thread = await started(town, 0.0)
    assert dying.process.wait(60) == -signal.SIGKILL
    (later,) = await launched(town)
    assert [(await town.row(run)).status for run in (thread, later)] == [Status.INTERRUPTED, Status.PENDING]
    town.workers(1)
    await town.reach([thread, later], Status.COMPLETED)
    assert await launched(town) == [later]
    assert times(town) == {"one": 1, "two": 1}
    assert [await workflow_result(town, run) for run in (thread, later)] == ["completed", "completed"]


async def test_a_launch_that_nobody_was_told_of_is_swept_up(town: Town) -> None:
    """The thread has ended by then: only the sweep can know of it."""
    dying = town.worker("--sweep", "1000", code=TELLS_NOBODY)
    town.drives(dying)
    thread = await started(town, 0.0)
    await town.reach([thread], Status.COMPLETED)
    dying.send(signal.SIGKILL)
    (later,) = await launched(town)
    assert (await town.row(later)).status is Status.PENDING
    town.workers(1)
    await town.reach([later], Status.COMPLETED)
    assert times(town) == {"one": 1, "two": 1}
    assert await workflow_result(town, later) == "completed"


async def test_the_launchers_worker_leaves(town: Town) -> None:
    """The thread has ended, what it launched is under way: on whichever worker, it goes on."""
    first = town.worker()
    town.drives(first)
    thread = await started(town, 3.0)
    await town.reach([thread], Status.COMPLETED)
    until(lambda: times(town)["one"], "what was launched does not begin")
    town.workers(1)
    (later,) = await launched(town)
    first.send(signal.SIGTERM)
    assert first.process.wait(60) == 0, first.said()
    await town.reach([later], Status.COMPLETED)
    assert times(town) == {"one": 1, "two": 1}
    assert await workflow_result(town, later) == "completed"
    assert [letter.run for letter in await town.runtime.store.letters(thread)] == [later]


async def test_the_launchers_worker_is_suspended(town: Town) -> None:
    first = town.worker()
    town.drives(first)
    thread = await started(town, 3.0)
    await town.reach([thread], Status.COMPLETED)
    until(lambda: times(town)["one"], "what was launched does not begin")
    first.send(signal.SIGSTOP)
    town.workers(1)
    (later,) = await launched(town)
    await town.reach([later], Status.COMPLETED, patience=30)
    assert times(town) == {"one": 2, "two": 1}
