"""Threads in what is known of a run: turns are made when they begin, wherever a thread runs."""

from __future__ import annotations

import pytest

from quire.engine.progress import Progress
from quire.engine.records import EffectRecord, Event, Usage
from quire.engine.thread_progress import path_order, thread_of, turn_of
from quire.library.document import read
from quire.source import Source
from quire.values import Value

PAGE = "# Doc\n\n## STEP 1: First\n\nOne.\n\n## STEP 2: Second\n\nTwo.\n"
CHILD = "thread/turn[2]/tool[0]/thread"


def event(type: str, path: str, label: str = "", /, **data: Value) -> Event:
    return Event(type, "run", 100.0, 1, path, label, data)


def reply(path: str, text: str, *uses: tuple[str, dict[str, Value]]) -> EffectRecord:
    value: Value = {"text": text, "uses": [[str(n), name, given] for n, (name, given) in enumerate(uses)]}
    return EffectRecord(path, "model", "ok", "", 100.0, value, None, Usage(10, 5, 0.5), 2.0)


def told(path: str, record: EffectRecord) -> Event:
    return Event("effect", "run", 100.0, 1, path, "", {}, {}, False, record)


@pytest.mark.parametrize(
    ("path", "turn", "thread"),
    [
        ("thread/turn[2]/model", "thread/turn[2]", "thread"),
        ("thread/offer", "", "thread"),
        (f"{CHILD}/offer", "thread/turn[2]", CHILD),
        (f"{CHILD}/turn[11]/tool[0]", f"{CHILD}/turn[11]", CHILD),
        ("thread/turn[1]/hook[after_step][0]/thread/turn[1]", "", "thread/turn[1]/hook[after_step][0]/thread"),
        ("3/call/thread/turn[1]/model", "3/call/thread/turn[1]", "3/call/thread"),
        ("2/parallel[thread]/model", "", "thread"),
    ],
)
def test_where_a_path_belongs(path: str, turn: str, thread: str) -> None:
    assert turn_of(path) == (turn or turn_of(path.rpartition("/thread/")[0]) if "hook" not in path else path)
    assert thread_of(path) == thread


def test_numbers_are_sorted_by_their_size() -> None:
    paths = [f"thread/turn[{number}]" for number in (1, 2, 10, 11)]
    assert sorted([*paths[2:], *paths[:2]], key=path_order) == paths


def test_turns_of_children_stand_below_the_call_that_started_them() -> None:
    known = Progress({})
    for one in (
        event("thread_started", "thread", thread="a", depth=0),
        event("step_started", "thread/turn[1]", "turn 1", title="a", depth=0),
        event("step_started", "thread/turn[2]", "turn 2", title="a", depth=0),
        event("thread_started", "thread/turn[2]/tool[1]/thread", thread="c", depth=1),
        event("step_started", "thread/turn[2]/tool[1]/thread/turn[1]", "c turn 1", title="c", depth=1),
        event("thread_started", CHILD, thread="b", depth=1),
        event("step_started", f"{CHILD}/turn[1]", "b turn 1", title="b", depth=1),
        event("step_started", "thread/turn[3]", "turn 3", title="a", depth=0),
    ):
        known.apply(one)
    assert [(step.label, step.depth) for step in known.steps.values()] == [
        ("turn 1", 0),
        ("turn 2", 0),
        ("b turn 1", 1),
        ("c turn 1", 1),
        ("turn 3", 0),
    ]
    assert [thread.id for thread in known.threads.values()] == ["a", "c", "b"]


@pytest.mark.parametrize("first", ["record", "events"])
def test_calls_are_known_by_the_reply_and_by_what_was_told_in_any_order(first: str) -> None:
    record = reply("thread/turn[1]/model", "I go.", ("x_read", {"path": "a"}), ("directive_return", {"b": 1}))
    said = [
        event("step_started", "thread/turn[1]", "turn 1", title="a"),
        event("tool_told", "thread/turn[1]/tool[0]", "turn 1", tool="x/read", result="{}", kind="denied"),
    ]
    known = Progress({})
    if first == "record":
        known.add_effect(record)
    for one in said:
        known.apply(one)
    if first == "events":
        known.add_effect(record)
    (step,) = known.steps.values()
    assert (step.output, step.input_tokens, step.cost) == ("I go.", 10, 0.5)
    call = step.calls[0]
    assert (call.name, call.arguments, call.tool, call.kind) == ("x_read", {"path": "a"}, "x/read", "denied")
    assert step.calls[-1].arguments == {"b": 1}


@pytest.mark.parametrize(("success", "status"), [(True, "completed"), (False, "failed")])
def test_the_turn_in_which_a_thread_ends_is_over(success: bool, status: str) -> None:
    known = Progress({})
    known.apply(event("step_started", "thread/turn[1]", "turn 1"))
    known.apply(event("thread_ended", "thread", thread="a", success=success, error="why"))
    assert [step.status for step in known.steps.values()] == [status]


def test_a_document_that_a_step_calls_does_not_end_the_step() -> None:
    known = Progress.of(read(Source.of(PAGE, "doc.md")).runnable())
    known.apply(event("step_started", "2", "2"))
    known.apply(event("step_started", "2/tool/1", "1"))
    known.apply(event("step_completed", "2/tool/1", "1"))
    known.apply(event("step_started", "2/tool/thread/turn[1]", "turn 1", title="x"))
    known.apply(event("step_completed", "2/tool/thread/turn[1]", "turn 1"))
    assert [(step.path, step.status, step.depth) for step in known.steps.values()] == [
        ("1", "pending", 0),
        ("2", "running", 0),
        ("2/tool/thread/turn[1]", "completed", 1),
    ]


def test_turns_side_by_side_in_a_fan_are_not_told_of() -> None:
    pipeline = "pipeline: p\nsteps:\n  - transform: {value: '1'}\n"
    known = Progress.of(read(Source.of(pipeline, "p.yaml")).runnable())
    known.apply(event("step_started", "1", "1"))
    known.apply(event("fan_started", "1", "1", total=9, limit=3))
    known.apply(event("step_started", "1/for_each[1]/thread/turn[1]", "turn 1", title="x"))
    assert list(known.steps) == ["1"]
    known.add_effect(reply("1/for_each[1]/thread/turn[1]/model", "x"))
    assert known.steps["1"].input_tokens == 10


def test_an_effect_of_a_turn_that_nobody_told_of_makes_it() -> None:
    known = Progress({})
    known.apply(told("thread/turn[4]/model", reply("thread/turn[4]/model", "x")))
    (step,) = known.steps.values()
    assert (step.label, step.thread) == ("turn 4", "thread")
