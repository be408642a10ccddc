"""A worker whose workspace is bad fails no run: it leaves them to others, says why, and comes back by itself."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.cluster.town import Town, marks_pipeline, until

from quire.engine.records import Status
from quire.runs.options import RunOptions
from quire.stores.occurrences import Process
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import Workspace


async def started(town: Town, text: str, count: int) -> list[str]:
    cluster = await town.cluster()
    runs = [await town.create(text) for _ in range(count)]
    for run in runs:
        await cluster.look(run)
    return runs


async def listed(town: Town, wanted: Callable[[Sequence[Process]], bool]) -> Sequence[Process]:
    async with asyncio.timeout(60):
        while not wanted(processes := [one for one in await town.runtime.store.processes() if one.queue == town.queue]):
            await asyncio.sleep(0.2)
    return processes


def calls(*folders: Path) -> Counter[int]:
    """The number of calls of the tool in workers of these folders, by process."""
    lines = [line for folder in folders for line in (folder / "marks.jsonl").read_text().splitlines()]
    return Counter(json.loads(line)["pid"] for line in lines)


def edit_code(folder: Path) -> None:
    with (folder / "counted.py").open("a") as file:
        file.write("\n# A comment that a pull has brought.\n")


def edit_settings(folder: Path) -> None:
    with (folder / "quire.toml").open("a") as file:
        file.write('\n[agents.new]\nsystem = "Be brief."\n')


def break_settings(folder: Path) -> None:
    (folder / "quire.toml").write_text("[store\n")


def remove(folder: Path) -> None:
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (edit_code, "requests permissions that you have not confirmed yet"),
        (edit_settings, "requests permissions that you have not confirmed yet"),
        (break_settings, "is not TOML"),
        (remove, "cannot be the workspace: it does not exist"),
    ],
)
async def test_a_stale_worker_fails_nothing(town: Town, edit: Callable[[Path], None], reason: str) -> None:
    """reliability G1: of two workers one is edited under way; 100 runs, none fails."""
    second = town.second_workspace()
    healthy, stale = town.worker("--concurrency", "4"), town.worker("--concurrency", "4", folder=second)
    town.drives(healthy)
    town.drives(stale)
    runs = await started(town, marks_pipeline(2, 0.1), 10)
    await town.reach(runs, Status.COMPLETED)
    edit(second)
    runs += await started(town, marks_pipeline(2, 0.1), 90)
    await town.reach(runs, Status.COMPLETED)
    until(lambda: "unfit: " in stale.said(), "the worker does not notice")
    assert reason in stale.said()
    assert "unfit" not in healthy.said()
    workers = await listed(town, lambda workers: any(reason in worker.reason for worker in workers))
    assert {worker.pid: worker.state for worker in workers} == {healthy.pid: "fit", stale.pid: "unfit"}
    assert [reason in worker.reason for worker in workers if worker.reason] == [True]


async def test_a_worker_comes_back_with_the_new_code_once_its_workspace_is_well(town: Town) -> None:
    second = town.second_workspace()
    worker = town.worker(folder=second)
    town.drives(worker)
    (second / "counted.py").write_text((second / "counted.py").read_text().replace('"label": label', '"label": "new"'))
    runs = await started(town, marks_pipeline(1, 0.0), 5)
    until(lambda: "unfit: " in worker.said(), "the worker does not notice")
    assert {(await town.row(run)).status for run in runs} == {Status.PENDING}
    confirm(load_settings(Workspace(second), town.environ))
    await town.reach(runs, Status.COMPLETED)
    assert (second / "marks.jsonl").read_text().count('"label": "new"') == 5
    assert worker.process.poll() is None, "it is the same process"
    assert worker.said().count("driving runs") == 2
    assert await listed(town, lambda workers: [worker.state for worker in workers] == ["fit"])


async def test_runs_under_way_are_left_to_others_with_nothing_done_twice(town: Town) -> None:
    second = town.second_workspace()
    stale = town.worker(folder=second)
    town.drives(stale)
    runs = await started(town, marks_pipeline(8, 0.4), 3)
    until(lambda: (second / "marks.jsonl").exists(), "the runs do not get going")
    edit_settings(second)
    until(lambda: "unfit: " in stale.said(), "the worker does not notice")
    town.drives(town.worker())
    await town.reach(runs, Status.COMPLETED)
    assert len(calls(second, town.folder)) == 2
    assert sum(calls(second, town.folder).values()) == 24


async def test_a_run_fails_only_after_every_fit_worker_had_it(town: Town) -> None:
    """One worker lacks the key of the model; the other has it, and is asked too."""
    document = "pipeline: asks\nsteps:\n- agent: {prompt: Say}\n"
    (town.folder / "s.json").write_text('[{"default": "said"}]')
    hidden = """
import quire.models.scripted as scripted
from quire.errors import CannotStart
def refuse(*_, **__): raise CannotStart("there is no key here")
scripted.ScriptedModel.from_file = refuse
"""
    town.drives(town.worker(code=hidden))
    cluster = await town.cluster()
    model = f"script:{town.folder / 's.json'}"
    failing = await town.create(document, RunOptions(model=model))
    await cluster.look(failing)
    (row,) = await town.reach([failing], Status.FAILED)
    assert row.failure is not None and "there is no key here" in row.failure.message
    town.drives(town.worker("--concurrency", "1"))
    runs = [await town.create(document, RunOptions(model=model)) for _ in range(8)]
    for run in runs:
        await cluster.look(run)
    await town.reach(runs, Status.COMPLETED)


def test_a_worker_that_stops_while_it_is_unfit_ends_well(town: Town) -> None:
    second = town.second_workspace()
    worker = town.worker(folder=second)
    town.drives(worker)
    remove(second)
    until(lambda: "unfit: " in worker.said(), "the worker does not notice")
    worker.send(15)
    assert worker.process.wait(30) == 0
