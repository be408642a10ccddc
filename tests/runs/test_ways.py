"""Ways into callees that a person names at the start of a run: checked before anything is asked or paid."""

from __future__ import annotations

import pytest
from tests.engine.test_ways import plan

from quire.errors import BadInputs
from quire.plan.nodes import Plan, Sequence, Step
from quire.plan.thread import Thread
from quire.runs.options import check_step_labels

DOCUMENTS = {
    "inner": plan(
        "pipeline: inner\nsteps:\n"
        "- tool: {name: ask, args: {type: confirm, prompt: Ship?}}\n"
        '- for_each: {over: "[1]", do: {call: {pipeline: page}}, collect: {transform: {value: pipe}},'
        " on_error: abort}\n"
    ),
    "page": plan(
        '# Page\n\n## STEP 5: Ask\n\n@elicit(confirm, "Go on?")\n\n## STEP 6: Write\n\nWrite.\n', "p.playbook.md"
    ),
}
OUTER = plan(
    "pipeline: outer\nsteps:\n- call: {pipeline: inner}\n"
    "- match: {on: ctx.x, cases: {a: {pipeline: inner}, b: {pipeline: page}}}\n"
    '- transform: {value: "1"}\n'
)


def problems(breakpoints: tuple[str, ...] = (), answers: dict[str, str] | None = None) -> list[str]:
    try:
        check_step_labels(OUTER, breakpoints, answers or {}, DOCUMENTS)
    except BadInputs as error:
        return str(error).splitlines()
    return []


@pytest.mark.parametrize("way", ["1>1", "1 > 2", "1 › 2.do › 5", "2>1", "2>6", "1>2.do>6"])
def test_ways_that_lead_somewhere(way: str) -> None:
    assert problems((way,)) == []


@pytest.mark.parametrize(
    ("way", "problem"),
    [
        ("1>9", "breakpoint 1>9: unknown step 1 › 9: the steps are 1 › 1, 1 › 2, 1 › 2.do, 1 › 2.collect"),
        ("9>1", "breakpoint 9>1: unknown step 9: the steps are 1, 2, 3"),
        ("3>1", "breakpoint 3>1: step 3 calls no document, so step 3 › 1 does not exist"),
        ("1>2.od", "breakpoint 1>2.od: unknown step 1 › 2.od: did you mean 1 › 2.do?"),
        ("1>2.do", "breakpoint 1>2.do: a run does not stop after 1 › 2.do: the steps are 1 › 1, 1 › 2"),
        ("9", "breakpoint 9: unknown step 9: the steps are 1, 2, 3"),
    ],
)
def test_ways_that_lead_nowhere(way: str, problem: str) -> None:
    assert problems((way,)) == [problem]


def test_answers_are_held_to_the_question_at_the_end_of_the_way() -> None:
    assert problems(answers={"1>1": "yes", "1>2.do>5": "no"}) == []
    assert problems(answers={"1>1": "maybe"}) == ["answer 1>1: answer yes or no"]
    assert problems(answers={"1>2.do>6": "x"}) == ["answer 1>2.do>6: step 1 › 2.do › 6 asks nothing"]


def test_a_label_alone_may_be_that_of_a_callee() -> None:
    assert problems(answers={"5": "yes"}) == []
    assert problems(answers={"8": "yes"}) == ["answer 8: unknown step 8: the steps are 1, 2, 3"]


def test_what_a_thread_calls_only_its_run_can_tell() -> None:
    """The steps of a directive are its turns; those of the documents that it calls come after them."""
    thread = plan("pipeline: t\nsteps:\n- call: {pipeline: d}\n")
    directive = Plan("d", "directive", (), Sequence((Step(1, "thread", "d", work=Thread("d")),)))
    check_step_labels(thread, ("1>turn 2", "1>turn 2>1"), {"1>start": "x"}, {"d": directive})
    with pytest.raises(BadInputs, match=r"1 › 4 is not a turn of a directive: its steps are turn 1, turn 2"):
        check_step_labels(thread, ("1>4",), {}, {"d": directive})
