"""The tool `ask` of pipelines where nobody can be asked (G6), and what a command of a pipeline reads (G16)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.given import given
from tests.play import Play

from quire.engine.driver.drive import DriveResult
from quire.engine.driver.journal import Journal
from quire.engine.records import EffectRecord, Status
from quire.engine.request_hashes import request_hash
from quire.engine.requests import HumanRequest


async def run(play: Play, steps: str, **options: Any) -> DriveResult:
    played = await play(given({"p.yaml": f"pipeline: p\nsteps:\n{steps}"}) / "p.yaml", **options)
    replay = (await played.view()).replay
    assert replay.finished or replay.failure is not None or played.ended.status is Status.AWAITING_INPUT
    return played.ended


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
async def test_an_unattended_ask_takes_its_default(play: Play, kind: str, more: str, answer: str) -> None:
    ended = await run(play, ASK % (kind, more), unattended=True)
    assert isinstance(ended.result, dict), ended.failure
    assert ended.result["output"] == answer


async def test_an_unattended_confirm_without_a_default_fails_its_step(play: Play) -> None:
    ended = await run(play, ASK % ("confirm", ""), unattended=True)
    assert ended.failure is not None
    assert (ended.status, ended.failure.kind) == (Status.FAILED, "unattended")
    assert "no default" in ended.failure.message


async def test_its_failure_is_recorded_where_a_policy_goes_on(play: Play) -> None:
    ask = "{tool: {name: ask, args: {type: confirm, prompt: 'Go?'}}}"
    steps = f"- for_each: {{over: '[1, 2]', on_error: continue, do: {ask}, collect: {{transform: {{value: pipe}}}}}}\n"
    ended = await run(play, steps, unattended=True)
    assert ended.status is Status.COMPLETED


async def test_an_answer_given_beforehand_counts(play: Play) -> None:
    ended = await run(play, ASK % ("confirm", ""), unattended=True, answers={"1": "yes"})
    assert isinstance(ended.result, dict)
    assert ended.result["output"] == "yes"


@pytest.mark.parametrize(("more", "said"), [(", default: maybe", "answer yes or no"), (", default: 3", "is a text")])
async def test_a_default_that_does_not_fit_is_a_failure(play: Play, more: str, said: str) -> None:
    ended = await run(play, ASK % ("confirm", more))
    assert ended.failure is not None
    assert said in ended.failure.message


async def test_a_playbook_keeps_its_own_rule(play: Play) -> None:
    given({"p.playbook.md": '# P\n\n## STEP 1: A\n\n@elicit(confirm, "Go?")\n'})
    assert (await play("p.playbook.md", unattended=True)).ended.status is Status.COMPLETED


def test_a_question_that_0_1_0_recorded_without_its_default_is_found() -> None:
    asked = HumanRequest("1/ask", "1", "ask", "confirm", "Go?", default="no", explicit=True)
    old = HumanRequest("1/ask", "1", "ask", "confirm", "Go?")
    record = EffectRecord("1/ask", "ask", "ok", request_hash(old), 0.0, "yes")
    assert Journal([record]).find(asked) is record


@pytest.mark.parametrize(("more", "read"), [(", stdin: given", "given"), ("", "piped")])
async def test_the_stdin_that_is_given_counts(play: Play, more: str, read: str) -> None:
    steps = f"- transform: {{value: \"'piped'\"}}\n- tool: {{name: shell, args: {{command: cat{more}}}}}\n"
    ended = await run(play, steps, allow=("shell=unsandboxed",))
    assert isinstance(ended.result, dict), ended.failure
    assert ended.result["output"] == read
