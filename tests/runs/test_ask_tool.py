"""The tool `ask` of pipelines where nobody can be asked (G6), and what a command of a pipeline reads (G16)."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.engine.driver.drive import DriveResult
from quire.engine.driver.journal import Journal
from quire.engine.records import EffectRecord, Status
from quire.engine.request_hashes import request_hash
from quire.engine.requests import HumanRequest
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime

pytestmark = pytest.mark.usefixtures("here")


async def run(folder: Path, steps: str, options: RunOptions, inputs: dict[str, object] | None = None) -> DriveResult:
    file = folder / "p.yaml"
    file.write_text(f"pipeline: p\nsteps:\n{steps}")
    runtime = Runtime.open(folder, model=ScriptedModel([{"default": "fine"}]))
    try:
        made = await runtime.start(load(file), inputs or {}, options)  # type: ignore[arg-type]
        ended = await runtime.drive(made)
        view = await runtime.view(made)
        assert view.replay.finished or view.replay.failure is not None or ended.status is Status.AWAITING_INPUT
        return ended
    finally:
        await runtime.close()


ASK = '- tool: {name: ask, args: {type: %s, prompt: "Delete everything?"%s}}\n'


@pytest.mark.parametrize(
    ("kind", "more", "answer"),
    [
        ("confirm", ', default: "no"', "no"),
        ("confirm", ", default: No", "no"),
        ("select", ", options: [a, b], default: b", "b"),
        ("input", ", default: later", "later"),
        ("select", ", options: [a, b]", "a"),
        ("input", "", ""),
    ],
)
async def test_an_unattended_ask_takes_its_default(tmp_path: Path, kind: str, more: str, answer: str) -> None:
    ended = await run(tmp_path, ASK % (kind, more), RunOptions(unattended=True))
    assert isinstance(ended.result, dict), ended.failure
    assert ended.result["output"] == answer


async def test_an_unattended_confirm_without_a_default_fails_its_step(tmp_path: Path) -> None:
    ended = await run(tmp_path, ASK % ("confirm", ""), RunOptions(unattended=True))
    assert ended.failure is not None
    assert (ended.status, ended.failure.kind) == (Status.FAILED, "unattended")
    assert "no default" in ended.failure.message


async def test_its_failure_is_recorded_where_a_policy_goes_on(tmp_path: Path) -> None:
    ask = "{tool: {name: ask, args: {type: confirm, prompt: 'Go?'}}}"
    steps = f"- for_each: {{over: '[1, 2]', on_error: continue, do: {ask}, collect: {{transform: {{value: pipe}}}}}}\n"
    ended = await run(tmp_path, steps, RunOptions(unattended=True))
    assert ended.status is Status.COMPLETED


async def test_an_answer_given_beforehand_counts(tmp_path: Path) -> None:
    ended = await run(tmp_path, ASK % ("confirm", ""), RunOptions(unattended=True, answers={"1": "yes"}))
    assert isinstance(ended.result, dict)
    assert ended.result["output"] == "yes"


@pytest.mark.parametrize(("more", "said"), [(", default: maybe", "answer yes or no"), (", default: 3", "is a text")])
async def test_a_default_that_does_not_fit_is_a_failure(tmp_path: Path, more: str, said: str) -> None:
    ended = await run(tmp_path, ASK % ("confirm", more), RunOptions())
    assert ended.failure is not None
    assert said in ended.failure.message


async def test_a_playbook_keeps_its_own_rule(tmp_path: Path) -> None:
    file = tmp_path / "p.playbook.md"
    file.write_text('# P\n\n## STEP 1: A\n\n@elicit(confirm, "Go?")\n')
    runtime = Runtime.open(tmp_path, model=ScriptedModel([{"default": "fine"}]))
    made = await runtime.start(load(file), {}, RunOptions(unattended=True))
    assert (await runtime.drive(made)).status is Status.COMPLETED
    await runtime.close()


def test_a_question_that_0_1_0_recorded_without_its_default_is_found() -> None:
    asked = HumanRequest("1/ask", "1", "ask", "confirm", "Go?", default="no", explicit=True)
    old = HumanRequest("1/ask", "1", "ask", "confirm", "Go?")
    record = EffectRecord("1/ask", "ask", "ok", request_hash(old), 0.0, "yes")
    assert Journal([record]).find(asked) is record


@pytest.mark.parametrize(("more", "read"), [(", stdin: given", "given"), ("", "piped")])
async def test_the_stdin_that_is_given_counts(tmp_path: Path, more: str, read: str) -> None:
    steps = f"- transform: {{value: \"'piped'\"}}\n- tool: {{name: shell, args: {{command: cat{more}}}}}\n"
    ended = await run(tmp_path, steps, RunOptions(allow=("shell=unsandboxed",)))
    assert isinstance(ended.result, dict), ended.failure
    assert ended.result["output"] == read
