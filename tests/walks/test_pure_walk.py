"""Walks that are driven by hand come to the same end as those of the driver, and rest where it would."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.engine.house import House
from tests.engine.test_pipeline_dialect import never
from tests.engine.thread.crew import directive, fork, give, ls, orchestrate
from tests.formats.pipeline.reading import dialect
from tests.testing.scripted import Scripted, down, plan_of, start_of, walked
from tests.walks.answers import Performance, WalkLimits
from tests.walks.pure_walk import run_pure

from quire.engine.interpreter.callees import Environment
from quire.engine.interpreter.thread.compose import Bundle
from quire.engine.records import Status
from quire.engine.requests import HumanRequest, Meter, ModelRequest, ToolRequest
from quire.runs.pins import PinnedRun
from quire.values import Value

TAGLINE = """# Tagline

## INPUTS

- `product` (string): The product
- `tone` (string): The tone

## STEP 1: Draft

Write taglines for {{product}} in a {{tone}} tone.

@output(best, extract:"best")

## STEP 2: Check

@elicit(confirm, "Take this one: {{best}}?")

## STEP 3: Finish

```if __elicit_step_2 == "yes"```

### STEP 3a: Polish

Polish {{best}}.

```else```

### STEP 3b: Again

Write another.

```endif```
"""
INPUTS: dict[str, Value] = {"product": "a bakery", "tone": "dry"}
REPLIES = {"1": 'Three. {"best": "Bread."}', "3a": "Bread, then.", "3b": "Flour power."}


FAN = """pipeline: p
steps:
- for_each:
    over: ctx.l
    on_error: %s
    max_parallel: 2
    do: {agent: {prompt: "Read {item}."}}
    collect: {transform: {value: "{ok: pipe, bad: map(errors, e -> e.index)}"}}
"""


@pytest.mark.parametrize(("answer", "output"), [("yes", "Bread, then."), ("no", "Flour power.")])
def test_a_playbook_is_walked_to_its_end(answer: str, output: str) -> None:
    end = walked(start_of(TAGLINE, INPUTS), script := Scripted(REPLIES, people={"2": answer}))
    assert (end.status, end.result["output"]) == (Status.COMPLETED, output)  # type: ignore[index,call-overload]
    last = "3/case[1]/1/model" if answer == "yes" else "3/case[2]/1/model"
    assert list(end.asked) == ["1/model", "2/ask", last]
    assert "a bakery in a dry tone" in script.prompts[0][1]
    assert [event.path for event in end.events if event.type == "step_completed"][:2] == ["1", "2"]


def test_a_question_without_an_answer_waits() -> None:
    end = walked(start_of(TAGLINE, INPUTS), Scripted(REPLIES))
    assert (end.status, [one.prompt for one in end.questions]) == (
        Status.AWAITING_INPUT,
        ["Take this one: Bread.?"],
    )


def test_an_answer_that_does_not_fit_waits_and_warns() -> None:
    end = walked(start_of(TAGLINE, INPUTS), Scripted(REPLIES, people={"2": "perhaps"}))
    warnings = [str(event.data["message"]) for event in end.events if event.type == "warning"]
    assert (end.status, len(warnings)) == (Status.AWAITING_INPUT, 1)
    assert "does not fit, the question waits (answer yes or no)" in warnings[0]


def test_a_failure_has_its_kind_its_path_and_its_step() -> None:
    end = walked(start_of(TAGLINE, INPUTS), Scripted({"1": down()}))
    assert end.status is Status.FAILED
    assert end.failure is not None
    assert (end.failure.kind, end.failure.path, end.failure.label) == ("server", "1/model", "1")


def test_an_empty_reply_fails_its_step() -> None:
    end = walked(start_of(TAGLINE, INPUTS), Scripted({"1": "  "}))
    assert end.failure is not None
    assert (end.failure.kind, end.failure.message) == ("empty", "script answered nothing")


def test_a_breakpoint_is_a_boundary_without_an_answer() -> None:
    limits = WalkLimits(breakpoints=frozenset({"1"}))
    end = walked(start_of(TAGLINE, INPUTS), Scripted(REPLIES), limits)
    assert (end.status, [one.path for one in end.open]) == (Status.PAUSED, ["1/break"])


@pytest.mark.parametrize(
    ("policy", "items", "status", "asked"),
    [
        ("continue", ["a", "bad", "c"], Status.COMPLETED, 3),
        ("abort", ["bad", "b", "c", "d"], Status.FAILED, 2),
        ("retry(1)", ["a", "bad"], Status.FAILED, 3),
    ],
)
def test_children_of_a_fan(policy: str, items: list[Value], status: Status, asked: int) -> None:
    """After a failure that ends the fan, a child that has no slot yet does not run."""

    def answers(request: object) -> Performance:
        assert isinstance(request, ModelRequest)
        if "bad" in request.messages[0].content:
            raise down()
        return Performance({"text": "fine"})

    end = run_pure(start_of(FAN % policy, {"l": items}).walk, answers)
    assert (end.status, len(end.asked)) == (status, asked)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(1.0, {"a": {"did": "t"}, "e": None}), (9.0, {"a": "late", "e": "timeout"})],
)
def test_a_step_is_cut_off_by_its_time(seconds: float, expected: Value) -> None:
    text = dialect(
        "tool: {name: t, timeout: 5s, on_error: continue, default: \"'late'\", output: a}",
        "transform: {value: \"{a: a, e: get(errors, 'a.kind')}\"}",
    )
    end = walked(start_of(text), Scripted(seconds=seconds))
    assert end.status is Status.COMPLETED, end.failure
    assert end.result["output"] == expected  # type: ignore[index,call-overload]
    assert end.seconds == (1.0 if seconds == 1.0 else 5.0)


def test_an_open_question_is_taken_back_when_its_time_is_up() -> None:
    text = dialect(
        "tool: {name: ask, args: {prompt: Well?}, timeout: 5s, on_error: continue, default: \"'none'\"}",
        "transform: {value: pipe}",
    )
    end = walked(start_of(text), Scripted())
    assert (end.status, end.open, end.seconds) == (Status.COMPLETED, [], 5.0)


def test_time_of_a_fan_is_that_of_its_slots() -> None:
    end = walked(start_of(FAN % "abort", {"l": ["a", "b", "c"]}), Scripted(seconds=2.0))
    assert (end.status, end.seconds) == (Status.COMPLETED, 4.0)


def test_pure_work_has_a_limit() -> None:
    text = dialect("repeat: {init: '1', do: {transform: {value: acc + 1}}, until: acc > 10000, max: 10000}")
    end = walked(start_of(text), Scripted(), WalkLimits(pure_work=200_000))
    assert end.failure is not None
    assert (end.status, end.failure.kind) == (Status.FAILED, "pure_work")


def test_effects_have_a_limit() -> None:
    text = dialect("repeat: {do: {tool: {name: t}}, until: 'false', max: 100}")
    end = walked(start_of(text), Scripted(), WalkLimits(max_effects=7))
    assert end.failure is not None
    assert (end.failure.kind, len(end.asked)) == ("limit", 7)


def test_model_calls_have_a_limit() -> None:
    end = walked(start_of(TAGLINE, INPUTS), Scripted(REPLIES, people={"2": "no"}), WalkLimits(max_model_calls=1))
    assert end.failure is not None
    assert (end.failure.kind, end.failure.label) == ("too_many_calls", "3b")


MAIN = directive(
    "main", permissions="<execute><tool>rye.file-system.read</tool></execute>", meta="<limits turns='2' />"
)


def test_a_directive_has_its_grants_and_its_limits() -> None:
    script = Scripted({"turn 1": [ls()], "turn 2": [("rye_bash", {"command": "rm"})]})
    end = walked(start_of(MAIN), script)
    assert end.failure is not None
    assert (end.failure.kind, script.refused) == ("turns_exceeded", ["rye/bash"])
    assert [tool for tool, _ in script.calls] == ["rye/file-system/read"]
    assert end.meters["thread/turn[1]/model"] == Meter(3, 2)


def test_a_directive_that_may_do_nothing_does_not_start() -> None:
    start = start_of(MAIN)
    pins = replace(start.pins, grants=("rye.execute.tool.rye.bash",))
    end = walked(PinnedRun(pins, start.document, start.setting), Scripted())
    assert end.failure is not None
    assert (end.started, end.failure.kind) == (False, "denied")


def test_a_changed_thread_is_walked_as_it_is() -> None:
    other = directive("main", permissions="<execute><tool>rye.bash</tool></execute>")
    script = Scripted({"turn 1": [("rye_bash", {"command": "ls"})], "turn 2": [give()]})
    end = walked(start_of(MAIN, plan=plan_of(other)), script)
    assert (end.status, [tool for tool, _ in script.calls]) == (Status.COMPLETED, ["rye/bash"])


FORKING = directive("main", permissions="<execute><tool>rye.agent.threads.*</tool></execute>")
SLOW = Performance({"text": "late", "model": "script"}, Meter(elapsed=600.0))


@pytest.mark.parametrize(
    ("operation", "delay", "expected"),
    [
        (("wait_threads", {"timeout": 60}), 0.0, '"status":"completed"'),
        (("wait_threads", {"timeout": 60}), 600.0, '"status":"running"'),
        (("get_status", {}), 600.0, '"status":"running"'),
        (("cancel_thread", {"thread_id": "child#1"}), 600.0, '"cancelled":["child#1"]'),
    ],
)
def test_a_child_goes_on_as_far_as_its_parent(
    operation: tuple[str, dict[str, Value]], delay: float, expected: str
) -> None:
    """The child has an effect under way for ten minutes, and does not go on behind the back of its parent."""
    child = directive("child", permissions="<execute><tool>rye.agent.threads.*</tool></execute>")
    word, more = operation
    reply: object = SLOW if delay else [give()]
    script = Scripted(
        {
            "turn 1": [fork("child", **{"async": True})],
            "turn 2": [orchestrate(word, **more)],
            "turn 3": [give()],
            "child turn 1": reply,
            "child turn 2": [give()],
        },
        texts={"child": Bundle("child", {"child": child}).encoded()},
    )
    end = walked(start_of(FORKING), script)
    told = [str(event.data["result"]) for event in end.events if event.type == "tool_told"]
    assert (end.status, expected in told[1]) == (Status.COMPLETED, True), told
    asked = [label for label, _ in script.prompts if label.startswith("child")]
    assert asked == ["child turn 1"]
    assert end.seconds == (60.0 if delay and word == "wait_threads" else 0.0)


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        (TAGLINE, INPUTS),
        (FAN % "continue", {"l": ["a", "bad", "c"]}),
        (FAN % "abort", {"l": ["a", "b"]}),
        (FAN % "retry(2)", {"l": ["a", "bad"]}),
        (dialect("tool: {name: t, timeout: 5s, output: a}", "agent: {prompt: 'Say {a}.'}"), {}),
        (dialect("repeat: {do: {tool: {name: t}}, until: 'round > 2', max: 5}", "transform: {value: pipe}"), {}),
    ],
)
async def test_the_records_of_a_drive_lead_to_the_same_end(house: House, text: str, inputs: dict[str, Value]) -> None:
    """The driver performs; the pure walk is answered with its records."""
    start = start_of(text, inputs)
    house.people.given = {"2": ["yes"]}
    house.model.replies = {"Read bad.": down()}
    house.clock.sleep = never  # type: ignore[method-assign]
    driven = await house.drive(start.walk(Environment().work))
    records = {record.path: record for record in await house.store.effects(house.run)}

    def answers(request: object) -> Performance:
        assert isinstance(request, ModelRequest | ToolRequest | HumanRequest)
        record = records[request.path]
        return Performance(record.value, failure=record.failure)

    end = run_pure(start.walk, answers)
    assert (end.status, end.result) == (driven.status, driven.result)
    performed = {path for path, record in records.items() if record.kind not in ("join", "halt", "abort")}
    assert {path for path in end.asked if not path.endswith(("/join", "/halt"))} == performed
