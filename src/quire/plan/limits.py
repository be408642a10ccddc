"""Limits that the steps of a plan are certain to meet: model calls, fan-outs, calls within calls, items of a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quire.plan.bounds import bounds
from quire.plan.nodes import ForEach, Literal, Parallel, Plan, Select, UseTool, calls_of
from quire.plan.reach import Reached
from quire.plan.uses import OWN
from quire.values import Value

MAX_ITEMS = 10_000
"""Items of a `for_each` that does not say how many there may be."""

MAX_LEVELS = 200
"""Parts of a path: a call takes two of them, an iteration of a fold one."""


def cap_problem(plan: Plan, documents: Mapping[str, Plan], most: int) -> str:
    """Says that the fewest model calls of a run are more than it may make; empty where they are not. 0 is no limit."""
    if plan.format != "pipeline" or not most:
        return ""
    least = bounds(plan, documents).model_calls.least
    if least <= most:
        return ""
    return (
        f"{plan.title} makes at least {least:,} model calls, and a run may make {most:,}: raise "
        "max_pipeline_spawns under [safety.spawn] in quire.toml"
    )


def depth_problem(at: Reached, documents: Mapping[str, Plan], most_fans: int) -> str:
    """What the engine would fail the step with because it is nested too deep; empty where it is not."""
    if isinstance(at.step.work, ForEach | Parallel) and most_fans and at.fans + 1 > most_fans:
        return (
            f"fan-out depth {at.fans + 1} exceeds max_pipeline_fan_out_depth under [safety.spawn], which is {most_fans}"
        )
    return "the calls are nested too deep" if _calls(at, documents) and at.levels + 2 > MAX_LEVELS else ""


def too_many_items(value: Value, most: int | None) -> str:
    """Says that a list is longer than a `for_each` allows; empty where it is not."""
    count = len(value) if isinstance(value, list | tuple) else 0
    if most is None and count > MAX_ITEMS:
        return f"{count:,} items are more than {MAX_ITEMS:,}: a list that long needs max_items"
    if most is not None and count > most:
        return f"{count:,} items are more than max_items, which is {most:,}"
    return ""


def nesting_problems(at: Reached, documents: Mapping[str, Plan], most_fans: int) -> Iterator[str]:
    """What the engine would fail the step with, whatever the values are."""
    items = ""
    match at.step.work:
        case ForEach(source=Literal(value=value), max_items=most):
            items = too_many_items(value, most)
    for problem in (depth_problem(at, documents, most_fans), items):
        if problem:
            yield f"step {at.place}: {problem}"


def _calls(at: Reached, documents: Mapping[str, Plan]) -> bool:
    match at.step.work:
        case Select():
            return True
        case UseTool(connection=place, tool=tool):
            return place == OWN and tool in documents
    return any(call.document in documents for call in calls_of(at.step.work))
