"""Agents of pipelines that get nowhere: arguments that cannot be read, a failing call made again and again, a limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from quire.engine.conversation import ToolUse
from quire.engine.interpreter.callees import Environment, Profile
from quire.engine.interpreter.pipeline.steps import PipelineScope, run_step
from quire.engine.requests import ModelRequest, Offer, Request, ToolRequest
from quire.errors import StepFailed, ToolFailed
from quire.formats.pipeline.lower import lower
from quire.formats.pipeline.parse import parse
from quire.source import Source
from quire.values import Value

OFFERED: list[Value] = [["file__read", "", {"type": "object"}]]


def walked(
    profile: Profile, replies: Sequence[Mapping[str, Value]], results: Sequence[object]
) -> tuple[Value, list[str]]:
    """What the step gives, and what the model was told by its tools. Both run on with their last item."""
    file = parse(Source.of("pipeline: p\nsteps:\n- agent: {prompt: a}")).file
    assert file is not None
    plan = lower(file, file.pipelines[0])
    walk = run_step(plan.body.steps[0], "1", PipelineScope(Environment(profiles={"default": profile}), plan, {}))
    told: list[str] = []
    answer: Any = None
    left, given = list(replies), list(results)
    try:
        request: Request = next(walk)
        while True:
            if isinstance(request, Offer):
                answer = OFFERED
            elif isinstance(request, ModelRequest):
                told = [one.content for one in request.messages if one.role == "tool"]
                answer = left.pop(0) if len(left) > 1 else left[0]
            elif isinstance(request, ToolRequest):
                result = given.pop(0) if len(given) > 1 else given[0]
                if isinstance(result, StepFailed):
                    request = walk.throw(result)
                    continue
                answer = result
            else:
                answer = None
            request = walk.send(answer)
    except StopIteration as ended:
        return ended.value, told
    except StepFailed as error:
        return f"{error.kind}: {error.message}", told


def calling(path: str = "x", **more: str) -> dict[str, Value]:
    return {"text": "", "uses": [ToolUse("c", "file__read", {"path": path}, **more).as_record()]}


DONE: dict[str, Value] = {"text": "done"}
TOOLS = Profile(tools=("file__read",))
GONE = ToolFailed("no such file")


def test_arguments_that_cannot_be_read_are_told() -> None:
    """§3: instead of failing the step."""
    output, told = walked(TOOLS, [calling(problem="the arguments are not JSON"), DONE], ["read"])
    assert (output, told) == ("done", ['{"error":"the arguments are not JSON"}'])


def test_the_same_failing_call_is_told_and_then_ends_the_step() -> None:
    output, told = walked(TOOLS, [calling()], [GONE])
    assert isinstance(output, str) and output.startswith("repeated: the agent made the same call of file__read 4 times")
    assert [one.count("failed 3 times in the same way") for one in told] == [0, 0, 1]


@pytest.mark.parametrize(
    "replies",
    [[calling(), calling(), calling("y"), calling(), calling(), DONE], [calling(), calling(), calling(), DONE]],
)
def test_what_is_not_repeated_further_goes_on(replies: list[Mapping[str, Value]]) -> None:
    assert walked(TOOLS, replies, [GONE])[0] == "done"


def test_calls_that_go_well_may_be_the_same() -> None:
    assert walked(TOOLS, [*[calling()] * 9, DONE], ["the same"])[0] == "done"


def test_the_limit_of_turns_is_that_of_the_identity() -> None:
    output, told = walked(Profile(tools=("file__read",), turns=2), [calling()], ["read"])
    assert (output, len(told)) == ("turns: the agent used tools for 2 turns and did not answer", 2)


def test_a_run_of_0_1_0_goes_on_as_it_began() -> None:
    output, told = walked(Profile(tools=("file__read",), stops_repetition=False), [*[calling()] * 9, DONE], [GONE])
    assert (output, set(told)) == ("done", {'{"error":"no such file"}'})
