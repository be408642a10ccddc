"""Spans from events alone, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from quire.engine.conversation import Message
from quire.engine.records import EffectRecord, Event, RunRow, Status, Usage
from quire.engine.requests import Failure, ModelRequest, ToolRequest
from quire.telemetry.spans import RunSpans, Span
from quire.values import encode

ROW = RunRow(
    "r1", "T", "pipeline", "t.yaml", Status.RUNNING, "", 0.0, 0.0, None, 0, 0, 0.0, None, (), 1, {"model": "a:m > b:n"}
)
START: Any = ("run_started", "", {})
FAILED = ("run_failed", "", {"kind": "model", "message": "it said SECRET"})


def effect(path: str, kind: str, **more: Any) -> tuple[str, str, Any]:
    state: Any = "failed" if "failure" in more else more.pop("state", "ok")
    return "effect", path, EffectRecord(path, kind, state, "", 0.0, **more)


def told(*events: tuple[str, str, Any], requests: Any = None, content: Any = None) -> list[Span]:
    spans = RunSpans(ROW, content)
    spans.request_of = (requests or {}).get
    ended = []
    for seq, (type, path, data) in enumerate(events, 1):
        record = data if isinstance(data, EffectRecord) else None
        if record is not None:
            record.at = float(seq)
        ended += spans.add(Event(type, "r1", float(seq), seq, path, path, {} if record else data, record=record))
    return ended


def test_a_model_call() -> None:
    request = ModelRequest("1/model", "1", "SYSTEM", (Message("user", "PROMPT"),), model="x:big")
    switch = {"from": "a:m", "to": "b:n", "reason": "it said SECRET"}
    reply = {
        "text": "REPLY",
        "model": "b:n",
        "finish_reason": "tool_call",
        "uses": [["c1", "look", {"at": "ARGUMENT"}]],
    }
    usage = Usage(5, 7, 0.25)
    call = effect("1/model", "model", value=reply, usage=usage, delays=(0.5, 1.0), elapsed=2.0)
    events: Any = (START, ("step_started", "1", {}), ("model_switched", "1/model", switch), call)
    (span,) = told(*events, requests={"1/model": request})
    assert (span.name, span.start, span.end) == ("chat big", 4.0, 6.0)
    assert span.attributes == {
        "quire.run": "r1",
        "quire.path": "1/model",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "b",
        "gen_ai.request.model": "big",
        "gen_ai.response.model": "n",
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 7,
        "quire.cost": 0.25,
        "quire.retries": 2,
        "quire.retry_delays": (0.5, 1.0),
        "quire.model_switches": ["a:m > b:n"],
    }
    (whole,) = told(*events, requests={"1/model": request}, content=encode)
    for text in ("SYSTEM", "PROMPT", "REPLY", "ARGUMENT"):
        assert text in str(whole.attributes) and text not in str(span.attributes)


def test_a_price_that_is_not_known_is_left_out() -> None:
    (span,) = told(START, effect("1/model", "model", value={"text": "x", "model": "b:n"}, usage=Usage(1, 1, None)))
    assert "quire.cost" not in span.attributes


@pytest.mark.parametrize("kind", ["load", "offer", "break", "join", "work", "terms", "spent"])
def test_effects_that_are_no_work_of_others_have_no_span(kind: str) -> None:
    assert told(START, effect("1/x", kind)) == []


def test_an_intent_is_not_the_call() -> None:
    assert told(START, effect("1/tool", "tool", state="intent")) == []


def test_a_failure_has_its_kind_and_not_its_message() -> None:
    failure = Failure("denied", "it said SECRET")
    spans = told(START, ("step_started", "1", {}), effect("1/tool", "tool", failure=failure), FAILED)
    assert [(span.name, span.attributes.get("error.type")) for span in spans] == [
        ("execute_tool", "denied"),
        ("step 1", None),
        ("invoke_workflow T", "model"),
    ]
    assert "SECRET" not in str(spans)


def test_work_in_a_loop_stands_below_the_nearest_step() -> None:
    request = ToolRequest("1/for_each[3]/try[1]/tool", "1", "srv", "look", {})
    call, step, run = told(
        START,
        ("step_started", "1", {}),
        effect(request.path, "tool"),
        ("step_completed", "1", {}),
        ("run_completed", "", {}),
        requests={request.path: request},
    )
    assert (call.name, call.parent, step.parent) == ("execute_tool look", step.id, run.id)


def test_what_is_open_ends_with_what_holds_it() -> None:
    """Such as the last turn of a thread, or a question that is withdrawn."""
    thread = {"thread": "a/b", "success": False, "status": "error"}
    spans = told(
        START,
        ("thread_started", "thread", thread),
        ("step_started", "thread/turn[1]", {}),
        ("question", "thread/turn[1]/ask", {}),
        ("thread_ended", "thread", thread),
    )
    assert [(span.name, span.end, span.attributes.get("error.type")) for span in spans] == [
        ("ask thread/turn[1]/ask", 5.0, None),
        ("step thread/turn[1]", 5.0, None),
        ("invoke_agent a/b", 5.0, "error"),
    ]


def test_work_that_is_done_again_is_another_span() -> None:
    failure = Failure("model", "no")
    first: Any = (
        START,
        ("step_started", "1", {}),
        effect("1/model", "model", failure=failure),
        ("step_failed", "1", {}),
    )
    again: Any = (
        ("run_resumed", "", {}),
        effect("1/model", "model"),
        ("step_completed", "1", {}),
        ("run_completed", "", {}),
    )
    spans = told(*first, FAILED, *again)
    assert len({span.id for span in spans}) == 6
    run, *_, rerun = spans[2:]
    step = spans[-2]
    assert (run.parent, rerun.parent, step.parent) == ("", run.id, rerun.id)
    assert step.start == 6.0, "it began again with the run"


def test_a_run_that_was_killed_begins_once() -> None:
    spans = told(START, ("step_started", "1", {}), ("run_resumed", "", {}), ("step_completed", "1", {}))
    assert [(span.name, span.start) for span in spans] == [("step 1", 2.0)]


def test_a_fork_has_its_own_spans_only() -> None:
    spans = told(
        START, ("step_started", "1", {}), ("run_forked", "", {}), ("run_started", "", {}), ("run_completed", "", {})
    )
    assert [(span.name, span.start) for span in spans] == [("invoke_workflow T", 3.0)]
