"""How a run ended has one answer (U2): the view, the command line, programs, launchers and letters say the same."""

from __future__ import annotations

import pytest
from tests.runs.travel import Travel

from quire.api.runs import result_of
from quire.cli.run_end import RunReport, result_line
from quire.engine.driver.drive import DriveResult
from quire.engine.records import Status
from quire.runs.launch import envelope_of
from quire.runs.options import RunOptions
from quire.runs.outcome import EXIT_FAILED, RunView, letter_text
from quire.values import Value, decode


def report(view: RunView, ended: DriveResult) -> RunReport:
    return RunReport(view.row, view.progress, ended, view.questions)


ENDS: dict[str, tuple[Value, str, str, str]] = {
    "everything": ("the end", "the end", "markdown", "markdown"),
    "board": ("done", "done", "", "text"),
    "parent": ({"said": "hello Bo"}, '{\n  "said": "hello Bo"\n}', "", "json"),
}
"""The value, the artifact, the type of the artifact and the type of its file."""


@pytest.mark.parametrize("document", ENDS)
async def test_every_door_says_the_same_of_a_run_that_completed(travel: Travel, document: str) -> None:
    value, artifact, artifact_type, file_type = ENDS[document]
    run = await getattr(travel, document)("a-run")
    async with travel.runtime() as runtime:
        view = await runtime.view(run)
    result = result_of(view, view.rest)
    end = report(view, view.rest)
    assert (end.value, end.artifact, end.artifact_type, end.file_type) == (value, artifact, artifact_type, file_type)
    assert (result.value, result.artifact, result.artifact_type) == (value, artifact, artifact_type)
    line, envelope = result_line(end), envelope_of(run, view.rest)
    assert line["output"] == envelope.data["output"] == value
    assert decode(letter_text(view.row, view.rest).partition("Output:\n")[2]) == value
    assert (line["artifact_type"], line["error"], end.exit_code) == (artifact_type or None, None, 0)
    assert line.get("stores", {}) == result.stores == view.stores
    assert envelope.data["named_stores"] == (view.stores or view.named)
    assert line.get("outputs", {}) == result.outputs == view.ending.get("outputs", {})
    assert line["steps"] == {**dict.fromkeys(view.step_outputs(), "completed"), **_not_taken(view)}


def _not_taken(view: RunView) -> dict[str, str]:
    return {step.label: step.status for step in view.own_steps if step.output is None}


async def test_a_failure_is_placed_alike_by_the_journal_and_by_the_drive(travel: Travel) -> None:
    script: list[Value] = [{"contains": "Mark", "reply": "no mark"}] * 8
    options = RunOptions(answers={"2": "Ann"})
    run, ended = await travel.run("board.yaml", {"papers": ["one", "two"]}, script, options)
    assert ended.status is Status.FAILED
    async with travel.runtime() as runtime:
        view = await runtime.view(run)
    assert (view.rest.failure, view.rest.status) == (ended.failure, ended.status)
    end = report(view, ended)
    assert (end.position, end.way, end.exit_code) == (view.position, view.way, EXIT_FAILED) == ("3", "3", EXIT_FAILED)
    error = result_line(end)["error"]
    assert isinstance(error, dict) and error["path"].startswith("3/for_each[0]/")
    assert (view.value, view.output, view.ending) == (None, "null", {})
    assert view.stores["loud"] == ["one!", "two!"] and result_line(end)["stores"] == view.stores


async def test_a_run_that_waits_has_no_output_yet(travel: Travel) -> None:
    run, ended = await travel.run("everything.playbook.md", {"topic": "x", "depth": "quick"}, ['{"gist": "rust"}'])
    async with travel.runtime() as runtime:
        view = await runtime.view(run)
    assert (view.status, view.value, view.artifact, view.file_type, view.stores) == (ended.status, "", "", "", {})
    assert envelope_of(run, ended).status == envelope_of(run, view.rest).status == "started"
