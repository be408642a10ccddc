from __future__ import annotations

from pathlib import Path

import pytest

from quire.engine.conversation import Message, ToolUse
from quire.engine.ports import ModelCall
from quire.engine.records import Usage
from quire.errors import CannotStart, ModelFailed
from quire.models.choose import ModelSettings
from quire.models.open import open_model
from quire.models.scripted import ScriptedModel
from quire.values import Value


def call(text: str = "", label: str = "") -> ModelCall:
    return ModelCall("system", (Message("user", text),), label=label)


async def said(model: ScriptedModel, text: str = "", label: str = "") -> str:
    pieces: list[str] = []
    reply = await model.complete(call(text, label), pieces.append)
    assert "".join(pieces) == reply.text
    return reply.text


@pytest.mark.parametrize(
    ("entries", "calls", "replies"),
    [
        (["a", "b"], [("", ""), ("", "")], ["a", "b"]),
        ([{"reply": "a"}, "b", {"default": "z"}], [("", "")] * 4, ["a", "b", "z", "z"]),
        (["x", {"step": "2", "reply": "two"}], [("", "2"), ("", "1")], ["two", "x"]),
        ([{"step": "1", "reply": "a"}, {"step": "1", "reply": "b"}], [("", "1")] * 3, ["a", "b", "b"]),
        ([{"contains": "cat", "reply": "meow"}, {"default": "?"}], [("a cat", "1"), ("a dog", "1")], ["meow", "?"]),
        ([{"contains": "cat", "reply": "text"}, {"step": "1", "reply": "step"}], [("a cat", "1")], ["step"]),
        ([{"contains": "system", "reply": "seen"}], [("", "")], ["seen"]),
        ([{"step": "1", "contains": "b", "reply": "both"}, {"default": "z"}], [("a", "1"), ("b", "1")], ["z", "both"]),
        ([{"reply": {"a": [1, "é"]}}], [("", "")], ['{"a":[1,"é"]}']),
        (["one  two\nthree four five six "], [("", "")], ["one  two\nthree four five six "]),
        (["", "   "], [("", "")] * 2, ["", "   "]),
    ],
)
async def test_which_entry_answers(entries: list[Value], calls: list[tuple[str, str]], replies: list[str]) -> None:
    model = ScriptedModel(entries)
    assert [await said(model, text, label) for text, label in calls] == replies
    assert [one.label for one in model.calls] == [label for _, label in calls]


async def test_a_reply_comes_in_a_few_pieces() -> None:
    pieces: list[str] = []
    await ScriptedModel(["one two three four five six seven eight nine"]).complete(call(), pieces.append)
    assert 2 <= len(pieces) <= 4


async def test_a_script_that_runs_out() -> None:
    model = ScriptedModel(["only one"])
    await said(model)
    with pytest.raises(ModelFailed, match="no reply for step 2") as caught:
        await said(model, label="2")
    assert caught.value.kind == "script"


@pytest.mark.parametrize(
    ("error", "kind", "message", "transient"),
    [
        ("down", "model", "down", False),
        ({"kind": "rate_limit", "message": "slow", "transient": True}, "rate_limit", "slow", True),
        ({"kind": "auth"}, "auth", "a scripted failure of kind auth", False),
    ],
)
async def test_scripted_failures(error: Value, kind: str, message: str, transient: bool) -> None:
    with pytest.raises(ModelFailed) as caught:
        await said(ScriptedModel([{"error": error}]))
    assert (caught.value.kind, caught.value.message, caught.value.transient) == (kind, message, transient)


async def test_delays_and_usage() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    entries: list[Value] = [
        {"delay_ms": 50},
        {"delay_ms": 25, "reply": "a", "usage": {"input_tokens": 3, "output_tokens": 2, "cost": 0.5}},
        "b",
    ]
    model = ScriptedModel(entries, sleep=sleep)
    reply = await model.complete(call(), lambda piece: None)
    assert (reply.text, reply.usage) == ("a", Usage(3, 2, 0.5))
    assert await said(model) == "b"
    assert waited == [0.075]


async def test_tool_calls() -> None:
    entries: list[Value] = [
        {"tool_calls": [{"name": "read", "input": {"path": "a"}}, {"name": "now"}], "text": "Two at once."},
        {"step": "2", "tool_calls": [{"name": "read"}], "usage": {"cost": 0.25}},
        {"contains": "what was read", "reply": "done"},
    ]
    model, pieces = ScriptedModel(entries), list[str]()
    first = await model.complete(call("go"), pieces.append)
    assert first.uses == (ToolUse("call_1", "read", {"path": "a"}), ToolUse("call_2", "now", {}))
    assert ("".join(pieces), first.text, first.finish_reason) == ("Two at once.", "Two at once.", "tool_call")
    history: tuple[Message, ...] = (Message("user", "go"), Message("assistant", "", first.uses))
    second = await model.complete(ModelCall("", history, label="2"), pieces.append)
    assert (second.text, second.uses, second.usage.cost) == ("", (ToolUse("call_3", "read", {}),), 0.25)
    history += (Message("tool", "what was read", answers="call_1"),)
    last = await model.complete(ModelCall("", history), pieces.append)
    assert (last.text, last.uses, last.finish_reason) == ("done", (), "stop")


async def test_tool_calls_in_yaml(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    path = tmp_path / "x.yaml"
    path.write_text("- tool_calls:\n  - {name: read, input: {lines: 3, all: true}}\n  text: no\n")
    reply = await ScriptedModel.from_file(path).complete(call(), lambda piece: None)
    assert (reply.text, reply.uses) == ("no", (ToolUse("call_1", "read", {"lines": 3, "all": True}),))


YAML = """\
# a comment
model:
  - plain
  - {step: 1, reply: no}
  - step: 2
    reply: {score: 5}
  - default: |
      two
      lines
"""


async def test_yaml_texts_stay_texts(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    path = tmp_path / "x.yaml"
    path.write_text(YAML)
    model = open_model(f"script:{path}", ModelSettings())
    assert isinstance(model, ScriptedModel)
    assert model.name == f"script:{path}"
    assert [await said(model, label=label) for label in ("1", "2", "3", "4")] == [
        "no",
        '{"score":5}',
        "plain",
        "two\nlines\n",
    ]


@pytest.mark.parametrize("name", ["x.json", "x.yaml", "x"])
async def test_a_script_may_be_json(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('["a",\n {"step": "1", "reply": "b"}]')
    model = ScriptedModel.from_file(path)
    assert [await said(model, label="1"), await said(model)] == ["b", "a"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("x.json", '["a",\n\n  {"reply": 1, "errr": 2}]', "x.json:3: the entry does not know 'errr'"),
        ("x.json", '["a",\n', "x.json:2: not JSON"),
        ("x.json", '"a"', "x.json:1: a script is a list of replies"),
        ("x.json", '[\n{"step": "1"}]', "x.json:2: the entry needs a reply, a default or an error"),
        ("x.json", '[{"reply": "a", "error": "b"}]', "the entry has both reply and error"),
        ("x.json", '[{"reply": "a", "delay_ms": "soon"}]', "delay_ms that is not a number"),
        ("x.json", '[{"default": "a", "step": "1"}]', "it cannot have step or contains"),
        ("x.json", "[[]]", "is neither a text nor a mapping"),
        ("x.json", '[{"reply": "a", "usage": {"tokens": 1}}]', "has a usage that is not a mapping"),
        ("x.json", '[{"reply": "a", "tool_calls": [{"name": "x"}]}]', "has both reply and tool_calls"),
        ("x.json", '[{"reply": "a", "text": "b"}]', "has a text without tool_calls"),
        ("x.json", '[{"tool_calls": []}]', "has tool_calls that are not a list"),
        ("x.json", '[{"tool_calls": [{"name": "x", "args": {}}]}]', "a tool call that is not a mapping of name and"),
        ("x.json", '[{"tool_calls": [{"input": {}}]}]', "a tool call that is not a mapping of name and input"),
        ("x.json", '[{"tool_calls": [{"name": "x", "input": "y"}]}]', "calls x with an input that is not a mapping"),
        ("x.yaml", "- tool_calls: [{name: x, input: {a: 2026-01-01}}]\n", "calls x with an input that is not JSON"),
        ("x.yaml", "- a\n- {step: 1}\n", "x.yaml:2: the entry needs a reply"),
        ("x.yaml", "- a\n- {step: 1\n", "x.yaml:3: not YAML"),
        ("x.yaml", "", "x.yaml:1: a script is a list of replies"),
        ("x.yaml", "- reply: !!python/object:os.system {}\n", "x.yaml:1: not YAML"),
    ],
)
def test_bad_scripts_are_said_with_their_line(tmp_path: Path, name: str, text: str, says: str) -> None:
    if name.endswith(".yaml"):
        pytest.importorskip("yaml")
    (tmp_path / name).write_text(text)
    with pytest.raises(CannotStart) as caught:
        ScriptedModel.from_file(tmp_path / name)
    assert says in str(caught.value)
