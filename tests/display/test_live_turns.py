"""A thread on a terminal: its turns, the tools that it called, what was denied, and what is left of its limits."""

from __future__ import annotations

import io

from quire.display.live_frame import FrameState, frame, summary
from quire.display.outline_directive import condition_words
from quire.display.run_views import PlainView
from quire.display.text import place
from quire.display.turns import answered, called, element_for
from quire.engine.progress import Progress
from quire.engine.records import EffectRecord, Event, Usage
from quire.engine.thread_progress import CallView
from quire.trust.capabilities import denied_capability
from quire.values import Value


def event(type: str, path: str, label: str = "", /, **data: Value) -> Event:
    return Event(type, "run", 100.0, 1, path, label, data)


def reply(path: str, text: str, *uses: tuple[str, dict[str, Value]]) -> Event:
    value: Value = {"text": text, "uses": [[str(n), name, given] for n, (name, given) in enumerate(uses)]}
    record = EffectRecord(path, "model", "ok", "", 100.0, value, None, Usage(1000, 234, 0.25), 3.0)
    return Event("effect", "run", 100.0, 1, path, "", {}, {}, False, record)


EVENTS = (
    event("step_started", "thread/turn[1]", "turn 1", title="a"),
    reply(
        "thread/turn[1]/model",
        "I \x1b[31mread.",
        ("rye_file_system_read", {"path": "a.txt"}),
        ("rye_bash", {"command": "rm -rf \x07"}),
    ),
    event("tool_told", "thread/turn[1]/tool[0]", "turn 1", tool="rye/file-system/read", result='"hello"', kind=""),
    event(
        "tool_told",
        "thread/turn[1]/tool[1]",
        "turn 1",
        tool="rye/bash",
        result='{"error":"permission denied: rye/bash needs the capability rye.execute.tool.rye.bash; grant it with"}',
        kind="denied",
    ),
    event("step_completed", "thread/turn[1]", "turn 1"),
    event("step_started", "thread/turn[2]", "turn 2", title="a"),
)


def known() -> Progress:
    progress = Progress({}, limits={"turns": 6, "tokens": 20_000, "spend": 1.0, "duration_seconds": 60})
    for one in EVENTS:
        progress.apply(one)
    return progress


def test_a_picture_of_a_thread() -> None:
    lines = frame(known(), 110, 24, FrameState(103.0, 3.0))
    assert [line.plain for line in lines] == [
        "✓ turn 1 I ␛[31mread.  3.0s · 1,234 tokens · $0.2500",
        '  ✓ rye/file-system/read path="a.txt" → "hello"',
        '  ✗ rye/bash command="rm -rf \\u0007" → denied: rye/bash needs the capability rye.execute.tool.rye.bash',
        "⠋ turn 2   3.0s",
        "turns 1 of 6 · tokens 1,234 of 20,000 · spend $0.2500 of $1 · Ctrl-C pauses",
    ]
    assert {str(span.style) for span in lines[2].spans} == {"red"}
    assert "red" not in {str(span.style) for span in lines[1].spans}


def test_what_stays_on_the_screen() -> None:
    lines = [line.plain for line in summary(known(), 200, FrameState(103.0, 3.0))]
    assert lines[-1] == "turns 1 of 6 · tokens 1,234 of 20,000 · spend $0.2500 of $1 · spawns 0 · time 3.0s of 1m 00s"


def test_lines_for_a_log() -> None:
    out, progress = io.StringIO(), Progress({})
    view = PlainView(progress, out)
    for one in EVENTS:
        progress.apply(one)
        view.show(one)
    view.stop()
    assert out.getvalue().splitlines() == [
        "[turn 1] I ␛[31mread. (3.0s)",
        '  > rye/file-system/read path="a.txt"',
        '  > rye/bash command="rm -rf \\u0007"',
        '  < rye/file-system/read "hello"',
        "  ! rye/bash denied: rye/bash needs the capability rye.execute.tool.rye.bash",
        "[turn 2]",
    ]


def test_calls_in_words() -> None:
    many: dict[str, Value] = {f"a{number}": number for number in range(9)}
    assert called(CallView("rye_bash", many)) == "rye/bash a0=0 a1=1 a2=2 a3=3 …"
    given: dict[str, Value] = {"item_type": "tool", "item_id": "rye/bash", "parameters": {"command": "ls"}}
    assert called(CallView("rye_execute", given)) == 'rye/bash command="ls"'
    assert answered(CallView("x", {}, "x")) == ""
    assert answered(CallView("x", {}, "x", "no JSON", "tool")) == "failed: no JSON"


def test_what_a_denial_names() -> None:
    assert denied_capability('{"error":"x needs the capability rye.execute.tool.x, and none."}') == "rye.execute.tool.x"
    assert denied_capability("no") == ""
    assert element_for("rye.fetch.knowledge.a.b") == "<fetch><knowledge>a.b</knowledge></fetch>"
    assert element_for("rye.fetch.knowledge") == "<fetch><knowledge>*</knowledge></fetch>"


def test_places() -> None:
    assert [place(label) for label in ("3a", "turn 3", "a/b turn 12", "turn x", "start", "a/b end", "restart")] == [
        "step 3a",
        "turn 3",
        "a/b turn 12",
        "step turn x",
        "the start",
        "the end of a/b",
        "step restart",
    ]


def test_conditions_in_words() -> None:
    spent: Value = {"path": "cost.spend", "op": "gte", "value": 0.9}
    late: Value = {"path": "turn", "op": "gt", "value": 3}
    assert condition_words({}) == ""
    assert condition_words({"path": "error", "op": "exists"}) == "error exists"
    assert condition_words({"any": [spent, late]}) == "cost.spend is at least 0.9 or turn is above 3"
    assert condition_words({"not": {"all": [spent, late]}}) == "not (cost.spend is at least 0.9 and turn is above 3)"


HOOKED = (
    event("thread_started", "thread", thread="a", depth=0),
    event(
        "hook_action",
        "thread/start/hook[thread_started][0]",
        "start",
        hook="begun",
        event="thread_started",
        item_id="rye/x",
        params={"path": "a\x1b"},
    ),
    event("step_started", "thread/turn[1]", "turn 1", title="a"),
    reply("thread/turn[1]/model", "Go.", ("rye_agent_threads_thread_directive", {"directive_id": "b"})),
    event("thread_started", "thread/turn[1]/tool[0]/thread", thread="b", depth=1),
    event(
        "hook_action",
        "thread/turn[1]/tool[0]/thread/start/hook[thread_started][0]",
        "start",
        hook="inner",
        event="thread_started",
        item_id="rye/y",
        params={},
    ),
    event("step_started", "thread/turn[1]/tool[0]/thread/turn[1]", "b turn 1", title="b"),
    event(
        "hook_action",
        "thread/turn[1]/tool[0]/thread/end/hook[after_complete][0]",
        "end",
        hook="",
        event="after_complete",
        item_id="rye/z",
        params={},
    ),
    event(
        "hook_action",
        "thread/turn[1]/hook[after_step][0]",
        "turn 1",
        hook="far",
        event="after_step",
        item_id="fail",
        params={},
    ),
    event("step_started", "thread/turn[2]", "turn 2", title="a"),
    event(
        "hook_action",
        "thread/end/hook[after_complete][0]",
        "end",
        hook="done",
        event="after_complete",
        item_id="rye/x",
        params={},
    ),
)
BEGUN = '↳ hook begun on thread_started: rye/x path="a\\u001b"'


def hooked(*events: Event) -> Progress:
    progress = Progress({})
    for one in events:
        progress.apply(one)
    return progress


def test_hooks_stand_where_they_acted() -> None:
    progress = hooked(*HOOKED)
    lines = frame(progress, 110, 30, FrameState(103.0, 3.0))[:-1], summary(progress, 110, FrameState(103.0, 3.0))[:-1]
    for shown in lines:
        assert [line.plain.rstrip() for line in shown] == [
            BEGUN,
            "⠋ turn 1 Go.  3.0s · 1,234 tokens · $0.2500",
            '  ⠋ rye/agent/threads/thread_directive directive_id="b"',
            "  ↳ hook inner on thread_started: rye/y",
            "  ⠋ b turn 1   3.0s",
            "  ↳ hook after_complete on after_complete: rye/z",
            "  ↳ hook far on after_step: fail",
            "⠋ turn 2   3.0s",
            "↳ hook done on after_complete: rye/x",
        ]


def test_hooks_of_a_thread_that_came_to_no_turn_are_shown() -> None:
    progress = hooked(*HOOKED[:2])
    [line] = summary(progress, 110, FrameState(103.0, 3.0))
    assert line.plain == BEGUN
    assert frame(progress, 110, 30, FrameState(103.0, 3.0))[0].plain == BEGUN


def test_hooks_on_a_plain_terminal() -> None:
    progress = hooked(*HOOKED[:2])
    [line] = summary(progress, 110, FrameState(103.0, 3.0, unicode=False))
    assert line.plain.startswith("> hook begun on thread_started")
