"""Calls of pipeline agents and their turns, in every view: while the run goes on, and afterwards."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Said
from tests.given import given

from quire.cli import main
from quire.display.live_frame import AGENT_CALLS, FrameState, frame, summary
from quire.display.turns import PAGE_CALLS, call_lines
from quire.engine.progress import KEPT_CALLS, Progress, StepView
from quire.engine.records import Event
from quire.values import Value

PIPELINE = """
pipeline: p
steps:
- agent: {prompt: "Read a.txt.", identity: reader, output: x}
- for_each:
    over: ctx.files
    on_error: continue
    do: {agent: {prompt: "Read {item}.", identity: reader}}
    collect: {transform: {value: pipe}}
- agent: {prompt: "End."}
"""
SCRIPT: list[Value] = [
    {
        "contains": "Read a.txt.",
        "text": "I look \x1b[31mfirst.",
        "tool_calls": [
            {"name": "file__read", "input": {"path": "a.txt"}},
            {"name": "file__read", "input": {"path": "nope.txt"}},
        ],
    },
    {"contains": "Read a.txt.", "tool_calls": [{"name": "nosuch", "input": {"x": "\x1b]0;title\x07"}}]},
    {"contains": "Read a.txt.", "reply": "hello"},
    {"contains": "Read b.txt.", "tool_calls": [{"name": "file__read", "input": {"path": "b.txt"}}]},
    {"contains": "Read b.txt.", "reply": "evil"},
    {"contains": "Read c.txt.", "tool_calls": [{"name": "file__read", "input": {"path": "../c.txt"}}]},
    {"contains": "Read c.txt.", "reply": "none"},
    {"default": "end"},
]
RUN = ("run", "p.yaml", "--script", "s.json", "-i", 'files=["b.txt", "c.txt"]')


@pytest.fixture
def project(workspace: Path, tmp_path: Path, said: Said) -> Path:
    home = tmp_path / "home"
    given({"quire.toml": '[agents.reader]\ntools = ["file__read"]\n'}, home)
    return given(
        {"a.txt": "hello", "b.txt": "evil \x1b[31mred\x1b]0;title\x07", "p.yaml": PIPELINE, "s.json": SCRIPT}, workspace
    )


def test_the_plain_log_shows_turns_calls_and_results(project: Path, said: Said) -> None:
    assert main([*RUN]) == 0
    lines = said()[1].splitlines()
    assert lines[2:10] == [
        "  turn 1: I look ␛[31mfirst.",
        '  > file__read path="a.txt"',
        '  < file__read "hello"',
        '  > file__read path="nope.txt"',
        "  ! file__read failed: nope.txt: no such file or directory",
        "  turn 2",
        '  > nosuch x="\\u001b]0;title\\u0007"',
        "  ! nosuch failed: there is no tool nosuch (known: file__read)",
    ]
    assert '  [0] > file__read path="b.txt"' in lines
    assert '  [0] < file__read "evil \\u001b[31mred\\u001b]0;title\\u0007"' in lines
    assert "  [1] ! file__read failed: ../c.txt: a path must not contain .." in lines
    assert not any("\x1b" in line or "\x07" in line for line in lines)


def test_the_page_of_the_run_shows_them_afterwards(project: Path, said: Said) -> None:
    assert main([*RUN, "-q"]) == 0
    said()
    assert main(["runs", "last"]) == 0
    page = said()[0]
    assert "\x1b" not in page
    lines = [line.strip() for line in page.splitlines()]
    at = lines.index("turn 1: I look ␛[31mfirst.")
    assert lines[at + 1 : at + 5] == [
        'file__read path="a.txt" → "hello"',
        'file__read path="nope.txt" → failed: nope.txt: no such file or directory',
        "turn 2",
        'nosuch x="\\u001b]0;title\\u0007" → failed: there is no tool nosuch (known: file__read)',
    ]
    assert "[0] turn 1" in lines
    assert "[1] turn 1" in lines


def test_programs_get_them_too(project: Path, said: Said) -> None:
    assert main([*RUN, "--json"]) == 0
    events = [json.loads(line) for line in said()[0].splitlines()]
    called = [one for one in events if one["type"] == "agent_called"]
    assert [one["turn"] for one in called] == [1, 1, 2, 1, 1]
    assert [one.get("text") for one in called] == ["I look \x1b[31mfirst.", None, None, None, None]
    assert main(["runs", "last", "--json"]) == 0
    out = said()[0]
    assert "\x1b" not in out
    first, second, third = json.loads(out)["steps"]
    assert (first["turns"], first["calls_total"], second["turns"], second["calls_total"]) == (2, 3, 2, 2)
    assert [(one["name"], one["turn"], one["item"], one["error"]) for one in first["calls"]] == [
        ("file__read", 1, None, None),
        ("file__read", 1, None, "file"),
        ("nosuch", 2, None, "unknown_tool"),
    ]
    assert [(one["path"], one["item"]) for one in second["calls"]] == [
        ("2/for_each[0]/turn[1]/tool[0]", "0"),
        ("2/for_each[1]/turn[1]/tool[0]", "1"),
    ]
    assert "calls" not in third


def test_events_that_were_kept_name_the_calls(project: Path, said: Said) -> None:
    assert main([*RUN, "-q"]) == 0
    said()
    assert main(["runs", "last", "--follow"]) == 0
    out = said()[0]
    assert "\x1b" not in out
    assert 's I look ␛[31mfirst. → file__read path="a.txt", file__read path="nope.txt"' in out
    assert re.search(r'tool ok [0-9.]+s "hello"', out)
    assert 's [0] "evil \\u001b[31mred' in out


def told(progress: Progress, type: str, path: str, **data: Value) -> None:
    progress.apply(Event(type, "r", 1.0, 0, path, "1", data))


def many(calls: int) -> Progress:
    progress = Progress({"1": StepView("1", "1", "agent", 0)})
    told(progress, "step_started", "1")
    for number in range(calls):
        path = f"1/turn[{number // 2 + 1}]/tool[{number % 2}]"
        told(progress, "agent_called", path, tool="look", arguments={"n": number}, turn=number // 2 + 1, text="Well.")
        told(progress, "agent_told", path, tool="look", result=f"{number}\x1b[2J", kind="")
    return progress


def test_the_live_view_shows_the_last_calls_below_their_turns() -> None:
    lines = [line.plain for line in frame(many(10), 100, 40, FrameState(2.0, 1.0))]
    assert lines[1] == f"    … {10 - AGENT_CALLS} earlier calls"
    assert lines[2].strip() == "turn 3: Well."
    assert lines[3].strip() == "✓ look n=4 → 4␛[2J"
    assert sum("look n=" in line for line in lines) == AGENT_CALLS
    assert not any("\x1b" in line for line in lines)
    assert any("look n=9" in line.plain for line in summary(many(10), 100, FrameState(2.0, 1.0)))


def test_a_step_with_thousands_of_calls_keeps_the_last() -> None:
    step = many(3_000).steps["1"]
    assert (len(step.calls), step.agent_calls, step.agent_turns) == (KEPT_CALLS, 3_000, 1_500)
    first, *rest = [line for line, _ in call_lines(step)]
    assert first == f"  … {3_000 - PAGE_CALLS} before these: quire runs RUN --journal"
    assert sum("look n=" in line for line in rest) == PAGE_CALLS
