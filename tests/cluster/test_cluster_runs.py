"""Runs on real workers: driven, parked, answered, cancelled, expired, taken over; nothing recorded happens twice."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.cluster.conftest import MakeTown
from tests.cluster.town import ASKING, PATIENCE, Town, marks_pipeline, until
from tests.given import given
from tests.security.test_pure_work import FOLDS, ITEMS

import quire
from quire.cluster.orders import FIRST_WORKFLOW, Order
from quire.engine.records import Status
from quire.errors import CannotStart, RunState
from quire.runs.options import RunOptions


async def workflow_result(town: Town, run: str) -> str:
    """What the workflow of a run said in the end."""
    handle = (await town.cluster()).client.get_workflow_handle(run)
    return str(await asyncio.wait_for(handle.result(), PATIENCE))


async def started(town: Town, text: str, count: int = 1, options: RunOptions | None = None) -> list[str]:
    cluster = await town.cluster()
    runs = [await town.create(text, options) for _ in range(count)]
    for run in runs:
        await cluster.look(run)
    return runs


async def test_a_dead_workers_runs_end_elsewhere(town: Town) -> None:
    dying, _ = town.workers(2, "--concurrency", "10")
    runs = await started(town, marks_pipeline(5, 0.3), 20)
    until(lambda: len(town.marks()) > 50, "the runs do not get going")
    busy = {mark["pid"] for mark in town.marks()}
    dying.send(signal.SIGKILL)
    before = await town.recorded(runs)
    await town.reach(runs, Status.COMPLETED)
    after, times = await town.recorded(runs), Counter(mark["id"] for mark in town.marks())
    assert len(busy) == 2, "one worker did it all"
    assert len(after) == 100
    assert before.items() <= after.items()
    assert {times[effect] for effect in before} == {1}
    # What the dead one had begun and not recorded: one call of each of its runs at most.
    assert sum(times.values()) <= 100 + 10
    assert await workflow_result(town, runs[0]) == "completed"


async def test_a_stopped_worker_is_fenced_when_it_comes_back(town: Town) -> None:
    (frozen,) = town.workers(1, "--concurrency", "3")
    runs = await started(town, marks_pipeline(3, 0.5), 3)
    until(lambda: len(town.marks()) >= 4, "the runs do not get going")
    frozen.send(signal.SIGSTOP)
    epochs = {run: (await town.row(run)).epoch for run in runs}
    town.workers(1)
    await town.reach(runs, Status.COMPLETED)
    assert {run: (await town.row(run)).epoch - 1 for run in runs} == epochs
    journal = [await town.runtime.store.effects(run) for run in runs]
    events = [await town.runtime.store.events(run) for run in runs]
    frozen.send(signal.SIGCONT)
    until(
        lambda: frozen.said().count("taken over") + frozen.said().count("not this worker's any more") >= 3,
        "the stopped worker never noticed",
    )
    assert [await town.runtime.store.effects(run) for run in runs] == journal
    assert [await town.runtime.store.events(run) for run in runs] == events
    assert len(await town.recorded(runs)) == 9


async def test_a_worker_that_leaves_hands_its_runs_over(town: Town) -> None:
    leaving, _ = town.workers(2, "--concurrency", "6")
    runs = await started(town, marks_pipeline(6, 0.3), 6)
    until(lambda: len(town.marks()) >= 12, "the runs do not get going")
    leaving.send(signal.SIGTERM)
    assert leaving.process.wait(30) == 0, leaving.said()
    await town.reach(runs, Status.COMPLETED)
    times = Counter(mark["id"] for mark in town.marks())
    assert len(times) == 36 and set(times.values()) == {1}


async def test_a_question_is_answered_from_elsewhere(town: Town) -> None:
    town.workers(1)
    (run,) = await started(town, ASKING)
    await town.reach([run], Status.AWAITING_INPUT)
    answered = town.quire("answer", run, "yes")
    assert (answered.returncode, "the cluster continues the run" in answered.stderr) == (0, True), answered.stderr
    await town.reach([run], Status.COMPLETED)
    assert [mark["label"] for mark in town.marks()] == ["before", "after"]
    assert await workflow_result(town, run) == "completed"


async def test_cancelling(town: Town) -> None:
    town.workers(1)
    waiting, busy = [*await started(town, ASKING), *await started(town, marks_pipeline(50, 0.2))]
    await town.reach([waiting], Status.AWAITING_INPUT)
    until(lambda: len(town.marks()) > 2, "the run does not get going")
    for run in (waiting, busy):
        assert town.quire("cancel", run).returncode == 0
    await town.reach([waiting, busy], Status.CANCELLED)
    assert await workflow_result(town, busy) == "cancelled"
    assert not await is_open(town, waiting)


async def test_a_sweep_records_that_a_question_has_expired(make_town: MakeTown) -> None:
    town = make_town(more='\n[runs]\nexpiry = "2s"\n')
    town.workers(1)
    (run,) = await started(town, ASKING)
    await town.reach([run], Status.EXPIRED)
    while await town.runtime.store.expiring(0.0, time.time()):
        await asyncio.sleep(0.05)
    assert (await town.row(run)).status is Status.EXPIRED
    assert not await town.runtime.store.questions(run)


async def is_open(town: Town, run: str) -> bool:
    """Whether Temporal has an open workflow of a run."""
    from temporalio.client import WorkflowExecutionStatus

    handle = (await town.cluster()).client.get_workflow_handle(run)
    return (await handle.describe()).status is WorkflowExecutionStatus.RUNNING


async def test_runs_that_wait_have_no_workflow(town: Town) -> None:
    workers = town.workers(2)
    runs = await started(town, ASKING, 20)
    await town.reach(runs, Status.AWAITING_INPUT)
    assert {await workflow_result(town, run) for run in runs} == {"awaiting_input"}
    assert not any([await is_open(town, run) for run in runs])
    for run in runs:
        await town.runtime.answer(run, None, "yes")
        await (await town.cluster()).look(run)
    await town.reach(runs, Status.COMPLETED)
    assert {await workflow_result(town, run) for run in runs} == {"completed"}
    assert {mark["pid"] for mark in town.marks() if mark["label"] == "after"} == {worker.pid for worker in workers}


async def test_a_workflow_of_the_first_version_is_finished_by_it(town: Town) -> None:
    """A client of 0.1 started it: it waits with its run, and an answer is a signal to it."""
    town.workers(1)
    run, cluster = await town.create(ASKING), await town.cluster()
    handle = await cluster.client.start_workflow(FIRST_WORKFLOW, Order(run), id=run, task_queue=town.queue)
    await town.reach([run], Status.AWAITING_INPUT)
    assert town.quire("answer", run, "yes").returncode == 0
    assert await asyncio.wait_for(handle.result(), PATIENCE) == "completed"
    assert (await town.row(run)).status is Status.COMPLETED


async def test_the_sweep_finds_what_no_signal_told(town: Town) -> None:
    """Created without a workflow; answered without a signal; interrupted without an owner."""
    created, asking, lost = [
        await town.create(text) for text in (marks_pipeline(1, 0.0), ASKING, marks_pipeline(2, 0.0))
    ]
    # Somebody drove it from here, and was killed.
    await town.runtime.store.acquire(lost)
    await town.quit_store()
    town.workers(1)
    await town.reach([created, lost], Status.COMPLETED)
    await town.reach([asking], Status.AWAITING_INPUT)
    await town.runtime.answer(asking, None, "yes")
    await town.reach([asking], Status.COMPLETED)
    assert await workflow_result(town, asking) == "completed"


async def test_runs_of_another_queue_are_left_alone(town: Town, make_town: MakeTown) -> None:
    other = make_town()
    theirs = await other.create(marks_pipeline(1, 0.0))
    town.runtime.queue = ""
    local = await town.create(marks_pipeline(1, 0.0))
    town.runtime.queue = town.queue
    ours = await town.create(marks_pipeline(1, 0.0))
    town.workers(1)
    await town.reach([ours], Status.COMPLETED)
    assert {str((await town.row(run)).status) for run in (theirs, local)} == {"pending"}


async def test_a_run_that_no_worker_can_begin_fails_and_is_resumed(town: Town) -> None:
    script = town.folder / "replies.json"
    script.write_text('["fine"]')
    page = "pipeline: thinks\nsteps:\n- agent: {prompt: hello, output: said}\n"
    (run,) = await started(town, page, options=RunOptions(model=f"script:{script}"))
    script.unlink()
    town.workers(1)
    (row,) = await town.reach([run], Status.FAILED)
    assert row.failure is not None and "no script at" in row.failure.message
    assert await workflow_result(town, run) == "failed"
    script.write_text('["fine"]')
    resumed = town.quire("resume", run, "--cluster", "--quiet")
    assert (resumed.returncode, resumed.stdout) == (0, "fine\n"), resumed.stderr


async def test_quire_run_in_the_cluster(town: Town) -> None:
    town.workers(1)
    page = town.folder / "marks.yaml"
    page.write_text(marks_pipeline(2, 0.1) + "- transform: {value: \"s0.label + ' ' + s1.label\"}\n")
    done = town.quire("run", "marks.yaml", "--cluster")
    assert (done.returncode, done.stdout) == (0, "s0 s1\n"), done.stderr
    lines = [json.loads(line) for line in town.quire("run", "marks.yaml", "--cluster", "--json").stdout.splitlines()]
    types = [line["type"] for line in lines]
    assert types[0] == "run_started" and types[-1] == "result"
    detached = town.quire("run", "marks.yaml", "--cluster", "--detach")
    await town.reach([detached.stdout.strip()], Status.COMPLETED)
    page.write_text(ASKING)
    waits = town.quire("run", "marks.yaml", "--cluster")
    assert waits.returncode == 4 and "quire answer" in waits.stderr


async def test_a_program_hands_runs_over(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """reliability S6."""
    monkeypatch.setenv("QUIRE_HOME", town.environ["QUIRE_HOME"])
    town.workers(1)
    text = "pipeline: hello\nsteps:\n- transform: {value: \"'it works'\"}\n"
    running = [quire.run(text, workspace=town.folder) for _ in range(5)]
    runs = [await one.start(cluster=True) for one in running]
    await town.reach(runs, Status.COMPLETED)
    with pytest.raises(RunState, match=f"run {runs[0]} is driven by another process"):
        await running[0]
    left = await quire.run(text, workspace=town.folder).start()
    assert (await town.row(left)).status is Status.PENDING
    with pytest.raises(CannotStart, match="cannot continue in another process"):
        await quire.run(text, workspace=town.folder, model=quire.ScriptedModel([])).start(cluster=True)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("", "no cluster is configured"),
        ('[cluster]\ntemporal = "127.0.0.1:1"\n', "a cluster needs a store that its workers share"),
        ('[cluster]\ntemporal = "127.0.0.1:1"\n[store]\nurl = "sqlite:///q.db"\n', "Temporal at 127.0.0.1:1"),
    ],
)
async def test_quire_run_without_a_cluster(town: Town, settings: str, said: str) -> None:
    given({"quire.toml": settings, "page.yaml": "pipeline: p\nsteps:\n- transform: {value: '1'}\n"}, town.folder)
    assert town.quire("trust", "workspace", "--yes").returncode == 0
    refused = town.quire("run", "page.yaml", "--cluster")
    assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
    assert "no runs exist" in town.quire("runs").stderr or "no runs yet" in town.quire("runs").stderr


async def test_a_worker_that_cannot_start(town: Town) -> None:
    refused = town.quire("worker", "--namespace", "nowhere")
    assert (refused.returncode, refused.stdout) == (2, ""), refused.stderr
    assert "refuses this worker: Namespace nowhere is not found" in refused.stderr
    (town.folder / "quire.toml").write_text("")
    for options, said in ((["--temporal", "x:1"], "which store?"), (["--database", "q.db"], "which Temporal server?")):
        refused = town.quire("worker", *options)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr


async def computing(town: Town, pure_work: int) -> str:
    """A run that computes for ever on a worker with this budget."""
    home = Path(town.environ["QUIRE_HOME"])
    given({"quire.toml": f"[runs]\npure_work = {pure_work}\n"}, home)
    town.workers(1, "--concurrency", "4")
    run = await town.create(FOLDS, inputs=ITEMS)  # type: ignore[arg-type]
    await (await town.cluster()).look(run)
    return run


async def test_a_run_that_computes_for_ever_holds_up_no_worker(town: Town) -> None:
    """M8: the worker heartbeats, drives other runs and takes a cancellation while it computes."""
    run = await computing(town, 10**9)
    await town.reach([run], Status.RUNNING)
    beside = await started(town, marks_pipeline(1, 0.0))
    await town.reach(beside, Status.COMPLETED, patience=40.0)
    row = await town.row(run)
    assert (row.status, row.epoch) == (Status.RUNNING, 1), "nobody took it for dead"
    assert town.quire("cancel", run).returncode == 0
    await town.reach([run], Status.CANCELLED, patience=40.0)


async def test_a_worker_fails_a_run_that_computes_beyond_its_budget(town: Town) -> None:
    """M8: the run is not given to the next worker, which it would hold up in turn."""
    run = await computing(town, 300_000)
    (row,) = await town.reach([run], Status.FAILED, patience=40.0)
    assert row.failure is not None and row.failure.kind == "pure_work"
    assert await workflow_result(town, run) == "failed"
