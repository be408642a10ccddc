"""The labels of what a callee asks for say the way to it; the journal's paths and hashes do not know of that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quire.engine.interpreter.callees import Environment, below, call_document
from quire.engine.interpreter.pipeline.interpret import interpret_pipeline
from quire.engine.request_hashes import request_hash
from quire.engine.requests import Boundary, Emit, Fan, HumanRequest, Metering, ModelRequest, Outcome, Walk
from quire.errors import StepFailed
from quire.library.document import read
from quire.plan.nodes import Plan
from quire.plan.vocabulary import first_label, is_named, last_label, shell_way, typed_way
from quire.source import Source

OUTER = """
pipeline: outer
steps:
- call: {pipeline: inner}
- for_each: {over: "[1]", do: {call: {pipeline: inner}}, collect: {transform: {value: pipe}}, on_error: abort}
"""
INNER = """
pipeline: inner
steps:
- parallel: {branches: {a: {agent: {prompt: p}}, b: {call: {pipeline: deep}}}, collect: {transform: {value: pipe}}}
- call: {pipeline: page}
"""
DEEP = """
pipeline: deep
steps:
- tool: {name: ask, args: {prompt: "?"}}
"""
PAGE = """# Page

## STEP 5: Write

Write.
"""


def plan(text: str, name: str = "x.yaml") -> Plan:
    found = read(Source.of(text, name)).plan
    assert found is not None
    return found


def setting() -> Environment:
    texts = {"inner": INNER, "deep": DEEP}
    return Environment({**{name: plan(text) for name, text in texts.items()}, "page": plan(PAGE, "page.playbook.md")})


def walked(walk: Walk) -> Iterator[tuple[str, str]]:
    """The path and the label of all that a walk asks for, its fans one child after the other."""
    answer: object = None
    try:
        while True:
            request = walk.send(answer)
            answer = None
            match request:
                case Fan(children=children):
                    outcomes = []
                    for child in children:
                        yield from walked(child)
                        outcomes.append(Outcome("x"))
                    answer = outcomes
                case Emit():
                    continue
                case ModelRequest():
                    yield request.path, request.label
                    answer = {"text": "fine"}
                case HumanRequest():
                    yield request.path, request.label
                    answer = "yes"
                case Boundary():
                    yield request.path, request.label
                    answer = {}
                case Metering():
                    answer = []
    except StopIteration:
        return


def test_the_labels_of_callees_say_the_way_level_by_level() -> None:
    found = dict(walked(interpret_pipeline(plan(OUTER), {}, setting())))
    assert found["1/call/1/parallel[a]/model"] == "1 › 1.a"
    assert found["1/call/1/parallel[b]/call/1/ask"] == "1 › 1.b › 1"
    assert found["1/call/2/call/1/model"] == "1 › 2 › 5"
    assert found["2/for_each[0]/call/2/call/1/model"] == "2.do › 2 › 5"
    assert found["2/break"] == "2"


def test_a_playbook_calls_under_the_number_that_its_step_has() -> None:
    caller = plan("# C\n\n## STEP 4: Call\n\n@tool(quire, page)\n", "c.playbook.md")
    walk = call_document("c", {}, "", "", Environment({**setting().documents, "c": caller}))
    assert dict(walked(walk))["1/call/1/model"] == "4 › 5"


def test_a_boundary_has_the_hash_that_it_had_before_there_were_ways() -> None:
    assert request_hash(Boundary("2/call/1/break", "2 › 1")) == request_hash(Boundary("2/call/1/break", "1"))


@pytest.mark.parametrize(
    ("breakpoints", "inner", "stops"),
    [({"2 › 1"}, True, True), ({"1"}, True, False), ({"1"}, False, True), ({"2"}, False, False)],
)
def test_a_called_pipeline_stops_only_where_the_whole_way_is_named(
    breakpoints: set[str], inner: bool, stops: bool
) -> None:
    assert Boundary("2/call/1/break", "2 › 1", inner).stops_at(breakpoints) is stops


def test_a_failure_in_a_fan_of_a_callee_is_named_once() -> None:
    """The driver throws what one child raised into the walk around it: both are named."""

    def child() -> Walk:
        raised = StepFailed("no")
        raised.label = "1.do"
        raise raised
        yield

    def caller() -> Walk:
        yield Fan("1", iter([child()]))
        return None

    walk = below("3", caller())
    fan = walk.send(None)
    assert isinstance(fan, Fan)
    with pytest.raises(StepFailed) as first:
        next(iter(fan.children)).send(None)
    assert first.value.label == "3 › 1.do"
    with pytest.raises(StepFailed) as again:
        walk.throw(first.value)
    assert again.value.label == "3 › 1.do"


@pytest.mark.parametrize("typed", ["3>1", "3 > 1", "3 › 1", "3›1", " 3 >1 "])
def test_a_way_may_be_typed(typed: str) -> None:
    assert typed_way(typed) == "3 › 1"


def test_labels_and_paths_are_left_as_they_are() -> None:
    assert [typed_way(one) for one in ("2a", "turn 3", "2/for_each[1]/ask", " 2")] == [
        "2a",
        "turn 3",
        "2/for_each[1]/ask",
        " 2",
    ]
    assert (first_label("3 › 1 › 2"), last_label("3 › 1 › 2"), last_label("2")) == ("3", "2", "2")
    assert (shell_way("3 › 1"), shell_way("2a"), shell_way("turn 2")) == ("'3>1'", "2a", "'turn 2'")
    assert is_named("3 › 1", ["1"]) and is_named("3 › 1", ["3 › 1"]) and not is_named("3 › 1", ["3"])
