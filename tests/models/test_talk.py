"""How a model without tools of its own is told of them, and how its reply is read while it comes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from quire.engine.conversation import Message, Offered, ToolUse
from quire.engine.ports import ModelCall
from quire.models.local import answer_so_far, decided, turns
from quire.values import InvalidValue, Value, clean, encode

LOOK = Offered("look", "Looks\n  it up.", {"type": "object", "properties": {"city": {"type": "string"}}})
USES = (ToolUse("a", "look", {"city": "Rome"}), ToolUse("b", "look", {"city": "Oslo"}))
MESSAGES = (
    Message("user", "Which is warmer?"),
    Message("assistant", "", USES),
    Message("tool", "24 C", answers="a"),
    Message("tool", "5 C", answers="b"),
    Message("user", "Well?"),
    Message("assistant", "Rome."),
    Message("user", "Thanks."),
)


def test_a_long_description_keeps_its_lines() -> None:
    grammar = Offered("launch", "Launches it.\n\n- one\n  - two\n", {"type": "object"})
    told = turns(ModelCall("", MESSAGES[:1], tools=(grammar,)))
    assert told[0]["content"].endswith('- launch: Launches it.\n\n- one\n  - two\n  args: {"type":"object"}')


def test_a_conversation_with_tools_is_told_in_their_shape() -> None:
    told = turns(ModelCall("Be brief.", MESSAGES, tools=(LOOK,)))
    assert told[0] == {
        "role": "system",
        "content": snapshot("""\
Be brief.

You have tools. Every reply is one JSON object, in one of two forms:
{"tool": "NAME", "args": {…}} calls a tool; the next message brings its result.
{"answer": …} ends the work with the answer as text.
Call a tool only for what you do not know yet. When the results hold what was asked for, answer.

The tools, each with the JSON Schema of its args:
- look: Looks it up.
  args: {"type":"object","properties":{"city":{"type":"string"}}}\
"""),
    }
    assert [(turn["role"], turn["content"]) for turn in told[1:]] == [
        ("user", "Which is warmer?"),
        ("assistant", '{"tool":"look","args":{"city":"Rome"}}\n{"tool":"look","args":{"city":"Oslo"}}'),
        ("user", "Result of look:\n24 C\n\nResult of look:\n5 C\n\nWell?"),
        ("assistant", '{"answer":"Rome."}'),
        ("user", "Thanks."),
    ]


def test_without_tools_nothing_is_added() -> None:
    told = turns(ModelCall("Be brief.", MESSAGES))
    assert told[0] == {"role": "system", "content": "Be brief."}
    assert told[-2] == {"role": "assistant", "content": "Rome."}
    assert turns(ModelCall("", (Message("user", "a"), Message("user", "b")))) == [
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
    ]


def test_the_shape_of_the_answer_is_said() -> None:
    told = turns(ModelCall("", MESSAGES[:1], tools=(LOOK,), schema={"type": "object", "title": "Verdict"}))
    assert '{"type":"object","title":"Verdict"}' in told[0]["content"]


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ('{"tool": "look", "args": {}}', ToolUse("call_3", "look", {})),
        ('{"answer": "Rome."}', "Rome."),
        ('{"answer": {"city": "Rome"}}', {"city": "Rome"}),
        ('{"answer": null}', None),
    ],
)
def test_decided(text: str, decision: ToolUse | Value) -> None:
    assert decided(text, ModelCall("", MESSAGES, tools=(LOOK,))) == decision


@pytest.mark.parametrize(
    "text", ['{"tool": "look"}', '{"tool": 1, "args": {}}', '{"tool": "look", "args": []}', "[]", "x", "{"]
)
def test_not_decided(text: str) -> None:
    with pytest.raises(InvalidValue):
        decided(text, ModelCall("", MESSAGES))


@given(st.text(), st.booleans())
def test_an_answer_only_ever_grows(answer: str, escaped: bool) -> None:
    text = json.dumps({"answer": answer}, ensure_ascii=True) if escaped else encode({"answer": answer})
    before = ""
    for end in range(len(text) + 1):
        so_far = answer_so_far(text[:end])
        assert so_far.startswith(before)
        before = so_far
    assert before == clean(answer)


@pytest.mark.parametrize(
    "text", ["", "{", '{"answer"', '{"answer": {"a": "b"}}', '{"tool": "x", "args": {"answer": "y"}}']
)
def test_no_answer_yet(text: str) -> None:
    assert answer_so_far(text) == ""
