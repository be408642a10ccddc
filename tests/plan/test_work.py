"""Each kind of work answers for its own parts: a kind that holds steps, calls or tools and does not say so is found."""

from __future__ import annotations

import re
import typing

import pytest

from quire.plan import nodes, pipeline_work
from quire.plan.nodes import StepWork
from quire.plan.thread import Thread

KINDS = [kind for kind in StepWork.__subclasses__() if kind is not Thread]


def words_of_fields(kind: type[StepWork]) -> dict[str, set[str]]:
    """The words of each field's annotation."""
    return {name: set(re.findall(r"\w+", str(text))) for name, text in kind.__annotations__.items()}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_kind_names_its_steps_calls_and_tools(kind: type[StepWork]) -> None:
    fields = words_of_fields(kind)
    words = set().union(*fields.values())
    assert bool({"Step", "Sequence", "Block"} & words) == (kind.parts is not StepWork.parts)
    calls = "Call" in words or kind is pipeline_work.Call
    assert calls == (kind.calls is not StepWork.calls)
    assert ("tool" in fields) == (kind.tool_calls is not StepWork.tool_calls)
    assert kind.asks_model == ("prompt" in fields)


def test_every_step_inside_is_a_part() -> None:
    def step(position: int) -> nodes.Step:
        return nodes.Step(position, str(position), "")

    on_error = pipeline_work.OnError("abort")
    init = typing.cast("pipeline_work.Formula", None)
    works = [
        (pipeline_work.Fold(None, init, step(1)), [("fold", 1)]),
        (pipeline_work.ForEach(None, step(1), step(2), on_error), [("for_each", 1), ("collect", 2)]),
        (pipeline_work.Block(nodes.Sequence((step(1), step(2)))), [("steps/1", 1), ("steps/2", 2)]),
        (pipeline_work.Repeat(None, step(1), init, 3), [("repeat", 1)]),
        (
            pipeline_work.Parallel((("a", step(1)), ("b", step(2))), step(3), on_error),
            [("parallel[a]", 1), ("parallel[b]", 2), ("collect", 3)],
        ),
    ]
    for work, parts in works:
        assert [(name, part.position) for name, part in work.parts()] == parts
    first, second = pipeline_work.Call("x"), pipeline_work.Call("y")
    assert pipeline_work.Select(init, (("a", first),), second).calls() == (first, second)
    assert pipeline_work.Select(init, (("a", first),)).calls() == (first,)
