"""Journals of every version so far, replayed by this one: import, walk, the same result, for ever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.runs.travel import Travel

from quire.engine.records import Status
from quire.runs.export import result_of
from quire.runs.fork import Changes, fork
from quire.runs.imports import import_run, prove, read_export
from quire.runs.why import traced, why

JOURNALS = sorted((Path(__file__).parents[1] / "fixtures" / "journals").glob("*.jsonl"))


def test_each_format_has_one() -> None:
    formats = {json.loads(file.open().readline())["run"]["format"] for file in JOURNALS}
    assert formats == {"playbook", "pipeline", "directive"}


@pytest.mark.parametrize("file", JOURNALS, ids=lambda file: file.stem)
async def test_it_replays_to_what_it_states(file: Path, tmp_path: Path) -> None:
    exported = read_export(file)
    travel = Travel(tmp_path / "work")
    await prove(exported, travel.settings)
    async with travel.runtime() as runtime:
        run = await import_run(runtime, exported)
        view = await traced(runtime, run)
        assert view.row.status is Status.COMPLETED and view.replay.finished
        assert result_of(view) == dict(exported.result)
        assert len(view.effects) == len(exported.effects)
        for step in view.replay.progress.steps.values():
            assert why(view, step.path).path == step.path


SIGNED_ELSEWHERE = ("parent", "halted")
"""Runs of directives: these do not go on in a workspace that has not signed the same ones."""


@pytest.mark.parametrize(
    "file",
    [file for file in JOURNALS if not any(name in file.stem for name in SIGNED_ELSEWHERE)],
    ids=lambda it: it.stem,
)
async def test_it_goes_on_from_its_last_step(file: Path, tmp_path: Path) -> None:
    travel = Travel(tmp_path / "work")
    async with travel.runtime([{"default": "a new end"}]) as runtime:
        run = await import_run(runtime, read_export(file))
        last = list((await runtime.view(run)).replay.progress.steps.values())[-1]
        made = await fork(runtime, run, last.label, Changes())
        ended = await runtime.drive(made.run)
        steps = (await runtime.view(made.run)).replay.progress.steps
    assert ended.result is not None and list(steps.values())[-1].displayed == "a new end"


def test_which_children_0_1_0_stopped_in_the_end_depended_on_their_timing() -> None:
    """0.1.0 itself could not look at either of these two runs: in the one it named a child that it had stopped before,
    and in the other it did not, though the same calls had the same results."""
    halts = [
        one
        for file in JOURNALS
        if "halted" in file.stem
        for one in read_export(file).effects
        if one.path == "thread/end/halt"
    ]
    assert [one.value for one in halts] == [None, None]
    assert halts[0].request != halts[1].request


@pytest.mark.parametrize("file", JOURNALS, ids=lambda file: file.stem)
def test_it_names_no_place_of_a_machine(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert not [part for part in ("/tmp", "/home", "/root", "/work", "\\\\Users") if part in text]
