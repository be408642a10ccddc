from __future__ import annotations

import pytest

from quire.engine.inputs import complete_inputs, input_value, missing_inputs
from quire.errors import BadInputs
from quire.plan.nodes import Input, Plan, Sequence
from quire.values import Value

PLAN = Plan(
    "T",
    "playbook",
    (
        Input("topic", "string", None, (), "What about", True),
        Input("lang", "string", "Go", (), "", False),
        Input("count", "number", "5", (), "", False),
        Input("loud", "boolean", "false", (), "", False),
        Input("tone", "enum", None, ("formal", "casual"), "How", True),
    ),
    Sequence(()),
)


def test_values_and_defaults_make_the_inputs_complete() -> None:
    given: dict[str, Value] = {"topic": "tea", "tone": " casual ", "lang": "  ", "count": 7, "loud": True}
    assert complete_inputs(PLAN, given) == {
        "topic": "tea",
        "lang": "Go",
        "count": "7",
        "loud": "true",
        "tone": "casual",
    }


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(BadInputs) as raised:
        complete_inputs(PLAN, {"topc": "x", "count": "many", "loud": "perhaps", "tone": "casul"})
    assert raised.value.problems == [
        "unknown input topc (did you mean topic?)",
        "missing input topic (string): What about",
        'input count: "many" is not a number',
        'input loud: "perhaps" is not true or false',
        'input tone: "casul" is not one of formal, casual (did you mean casual?)',
    ]


def test_what_a_terminal_asks_for() -> None:
    assert [wanted.name for wanted in missing_inputs(PLAN, {"topic": ""})] == ["topic", "tone"]
    assert missing_inputs(PLAN, {"topic": "x", "tone": "wrong"}) == []


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb\r\n", "a\rb"])
def test_a_string_is_one_line(text: str) -> None:
    """S11."""
    with pytest.raises(BadInputs, match="input topic: a string is one line, and this has 2; a text"):
        complete_inputs(PLAN, {"topic": text, "tone": "casual"})
    # A value that another document computed was written for nobody's field.
    assert complete_inputs(PLAN, {"topic": text, "tone": "casual"}, one_line=False)["topic"] == text


def test_the_line_end_of_a_file_is_not_part_of_a_string() -> None:
    assert complete_inputs(PLAN, {"topic": "tea\n", "tone": "casual"})["topic"] == "tea"
    wanted = Input("body", "text", None, (), "", True)
    assert input_value(wanted, "a\nb\n") == "a\nb\n"
