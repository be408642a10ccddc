"""Journals of every version so far, replayed by this one: import, walk, the same result, for ever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.runs.travel import DIALECT_SCRIPT, Travel

from quire.engine.records import Status
from quire.runs.export import result_of
from quire.runs.fork import Changes, fork
from quire.runs.imports import import_run, prove, read_export
from quire.runs.why import traced, why
from quire.values import encode

JOURNALS = sorted((Path(__file__).parents[1] / "fixtures" / "journals").glob("*.jsonl"))
STATUSES = {"0.2.0-dialect-waiting": Status.EXPIRED, "0.2.0-dialect-failed": Status.FAILED}
"""Of the runs that have not completed. Nobody can answer an imported run, so a question in it has expired."""


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
        assert view.row.status is STATUSES.get(file.stem, Status.COMPLETED)
        assert view.replay.finished is (view.row.status is Status.COMPLETED)
        stated = encode(dict(exported.result)).replace('"awaiting_input"', f'"{view.row.status}"')
        assert encode(result_of(view)) == stated
        assert len(view.effects) == len(exported.effects)
        for step in view.replay.progress.steps.values():
            assert why(view, step.path).path == step.path


async def test_a_journal_of_the_dialect_has_everything() -> None:
    paths = [one.path for one in read_export(_named("0.2.0-dialect")).effects]
    for part in ("/steps/", "/match[1]/", "/repeat[2]/", "/try[2]/", "/join", "/halt", "/prompt"):
        assert any(part in path for path in paths), part


async def test_a_waiting_journal_goes_on_where_it_waits(tmp_path: Path) -> None:
    """Its question is inside of a loop, after a block, survived failures and a limit in time that was reached."""
    travel = Travel(tmp_path / "work")
    travel.write("prompts/draft.md", "Draft about two things.\n")
    async with travel.runtime(DIALECT_SCRIPT[9:]) as runtime:
        imported = await import_run(runtime, read_export(_named("0.2.0-dialect-waiting")))
        assert "5/repeat[1]/steps/2/ask" in (await runtime.view(imported)).replay.asked
        run = (await fork(runtime, imported, "5", Changes())).run
        await runtime.drive(run)
        await runtime.answer(run, None, "no")
        await runtime.drive(run)
        await runtime.answer(run, None, "yes")
        ended = await runtime.drive(run)
        assert ended.status is Status.COMPLETED, ended
        assert result_of(await runtime.view(run)) == dict(read_export(_named("0.2.0-dialect")).result)


async def test_a_failed_journal_fails_again_where_it_failed(tmp_path: Path) -> None:
    travel = Travel(tmp_path / "work")
    async with travel.runtime(["alike again"]) as runtime:
        imported = await import_run(runtime, read_export(_named("0.2.0-dialect-failed")))
        assert (await runtime.row(imported)).position == "3.2.2"
        ended = await runtime.drive((await fork(runtime, imported, "3", Changes())).run)
    assert (ended.status, ended.position) == (Status.FAILED, "3.2.2")
    assert ended.failure is not None and ended.failure.message == "too strict"


def _named(stem: str) -> Path:
    return next(file for file in JOURNALS if file.stem == stem)


SIGNED_ELSEWHERE = ("parent", "halted", "launcher")
"""Runs of directives: these do not go on in a workspace that has not signed the same ones."""


@pytest.mark.parametrize(
    "file",
    [file for file in JOURNALS if not any(name in file.stem for name in (*SIGNED_ELSEWHERE, "dialect"))],
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
