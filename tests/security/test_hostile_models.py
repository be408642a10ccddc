"""A model that makes no sense, makes too much of it, or makes the same for ever: told, counted, stopped."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.growth import within
from tests.security.stage import FILES, Call, Stage, completed, directive

from quire.engine.conversation import ToolUse
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Event, Status, Usage
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.stores import open_store
from quire.values import Value

ODD_NAMES = [
    "",
    " ",
    "\0",
    "\n",
    "no_such_tool",
    "x" * 2_000_000,
    "%" * 10_000,
    "../../../bin/sh",
    "rye_bash; rm -rf /",
    "directive_return",
    "__import__('os').system",
    "{{7*7}}",
    "\ud800",
    "😈" * 1000,
    "mcp/a/b",
    "mcp/../quire/shell",
    "mcp__x__y",
    "python/os.system",
    "python__os.system",
    "quire/launch",
    "rye",
    "rye/",
    "quire",
]


@pytest.mark.parametrize("name", ODD_NAMES, ids=range(len(ODD_NAMES)))
async def test_a_tool_that_is_none_is_told(stage: Stage, name: str) -> None:
    stage.directive("main")
    with within(2):
        calls: list[Call] = [(name, {}), ("rye_execute", {"item_type": "tool", "item_id": name})]
        played = await stage.play("main", calls)
        assert played.ended.status in (Status.COMPLETED, Status.FAILED)
        assert all(len(one) < 61_000 for one in played.told)
        assert played.dispatched == []
        assert all(played.kinds)


ODD: list[Value] = [
    None,
    True,
    -1,
    10**400,
    1.5,
    "",
    "\0",
    "x" * 20_000,
    [],
    [[[]]],
    {},
    {"a": {"b": None}},
    ["x"] * 1000,
]


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
async def test_arguments_that_are_none_are_told(stage: Stage, value: Value) -> None:
    """Every argument of every tool that a thread has."""
    permissions = (
        "<execute><tool>rye.file-system.*</tool><tool>rye.agent.threads.*</tool><tool>rye.bash</tool>"
        "<directive>*</directive><knowledge>*</knowledge><playbook>*</playbook><pipeline>*</pipeline></execute>"
        "<fetch>*</fetch><sign>*</sign><acknowledge risk='elevated'>x</acknowledge>"
    )
    stage.directive("main", permissions)
    stage.write("a.txt", "x")
    calls: list[Call] = []
    for tool, names in ARGUMENTS.items():
        calls += [(tool, {name: value}) for name in names]
        calls.append((tool, dict.fromkeys(names, value)))
    played = await stage.play("main", calls)
    assert completed(played), played.ended
    assert len(played.told) == len(calls) and all(len(one) < 61_000 for one in played.told)
    assert sorted(file.name for file in stage.work.iterdir()) == [".ai", "a.txt"]


ARGUMENTS = {
    "rye_file_system_read": ("path", "offset", "limit", "line_ids"),
    "rye_file_system_write": ("path", "content", "files"),
    "rye_file_system_edit": ("path", "old", "new", "all"),
    "rye_file_system_edit_lines": ("path", "changes"),
    "rye_file_system_glob": ("pattern", "path"),
    "rye_file_system_grep": ("pattern", "path", "glob", "limit"),
    "rye_bash": ("working_dir", "timeout", "stdin"),
    "rye_fetch": ("item_type", "item_id", "query", "scope", "source", "destination", "limit"),
    "rye_execute": ("item_type", "item_id", "parameters", "thread", "async", "dry_run", "limit_overrides"),
    "rye_sign": ("item_type", "item_id", "source"),
    "rye_agent_threads_thread_directive": ("directive_id", "inputs", "limit_overrides"),
    "rye_agent_threads_orchestrator": ("operation", "thread_ids", "thread_id", "timeout"),
    "run_pipeline": ("name", "input"),
    "run_pipeline_inline": ("definition", "input"),
}


async def test_the_same_call_for_ever_is_told_and_stopped(stage: Stage) -> None:
    stage.directive("main")
    stage.write("a.txt", "x")
    calls: list[list[Call]] = [[("rye_file_system_read", {"path": "a.txt"})]] * 200
    played = await stage.play("main", *calls, limits={"turns": 1000})
    assert played.ended.status is Status.FAILED and len(played.model.calls) < 60
    assert played.ended.failure is not None and "the same calls" in played.ended.failure.message
    notes = [message.content for message in played.model.calls[-1].messages if message.role == "user"]
    assert any("exactly this call" in one for one in notes)


async def test_a_denied_call_for_ever_is_stopped_by_the_turns(stage: Stage) -> None:
    stage.directive("main")
    calls: list[list[Call]] = [[("rye_bash", {"command": f"echo {number}"})] for number in range(200)]
    played = await stage.play("main", *calls)
    assert played.ended.status is Status.FAILED and len(played.model.calls) == 25
    assert set(played.kinds) == {"denied"}


async def test_thousands_of_calls_in_one_turn(stage: Stage) -> None:
    stage.directive("main")
    calls: list[Call] = [("rye_file_system_write", {"path": f"f{number}", "content": "x"}) for number in range(5000)]
    with within(10):
        played = await stage.play("main", calls)
        assert completed(played)
        assert len(list(stage.work.glob("f*"))) == len(played.dispatched) == 200
        assert played.kinds.count("too_many_calls") == 1 and "only the first 200" in played.told[-1]


async def test_megabytes_of_arguments(stage: Stage) -> None:
    stage.directive("main")
    played = await stage.play("main", [("rye_file_system_write", {"path": "big", "content": "x" * 2_000_000})])
    assert played.kinds == ["too_large"] and not (stage.work / "big").exists()
    played = await stage.play("main", [("rye_file_system_write", {"path": "big", "content": "x" * 20_000_000})])
    assert played.ended.status is Status.FAILED and not (stage.work / "big").exists()
    assert played.ended.failure is not None and played.ended.failure.kind == "bad_reply"
    assert "xxxxxxxx" not in played.everything(), "none of it is kept"


class Raw:
    """A provider that hands over whatever it likes."""

    name = "raw"

    def __init__(self, *uses: ToolUse, text: str = "") -> None:
        self.uses = uses
        self.text = text
        self.asked = 0

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self.asked += 1
        return ModelReply(self.text or "done", self.name, Usage(), uses=self.uses if self.asked == 1 else ())


@pytest.mark.parametrize(
    "given",
    [
        {"path": float("nan")},
        {"path": float("inf")},
        {"path": "\ud800"},
        {"\ud800": 1},
        {"path": b"bytes"},
        {"path": object()},
        {1: 2},
        {"path": {"set"}},
    ],
    ids=range(8),
)
async def test_what_is_no_json_never_reaches_a_tool(stage: Stage, given: dict[str, Value]) -> None:
    stage.directive("main")
    raw = Raw(ToolUse("1", "rye_file_system_read", given))
    runtime = Runtime(stage.settings, open_store(stage.base / "q.db", durability="process"), environ={}, model=raw)
    events: list[Event] = []
    try:
        from quire.library.document import load

        run = await runtime.start(load(stage.work / ".ai/directives/main.md"), {}, RunOptions())
        ended = await runtime.drive(run, listen=events.append)
    finally:
        await runtime.close()
    assert ended.status in (Status.FAILED, Status.COMPLETED)
    kinds = [event.data["kind"] for event in events if event.type == "tool_told"]
    assert ended.status is Status.FAILED or kinds in (["file"], ["arguments"])


async def test_outputs_that_nobody_declared_are_not_handed_back(stage: Stage) -> None:
    outputs = '<outputs><output name="x" required="true">x</output></outputs>'
    stage.write("a.txt", "x")
    stage.sign(".ai/directives/main.md", directive("main", FILES, more=outputs))
    played = await stage.play(
        "main", [("directive_return", {"x": 1, "grants": ["rye.*"]})], [("directive_return", {"x": 2})]
    )
    assert completed(played) and "unknown output grants" in played.told[0]
    assert played.ended.result["thread"]["outputs"] == {"x": 2}  # type: ignore[index,call-overload]
