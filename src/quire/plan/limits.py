"""Limits that a plan is certain to break: too many model calls or items, fan-outs or calls nested too deep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from quire.plan.nodes import (
    Plan,
    UseTool,
)
from quire.plan.pipeline_work import (
    ForEach,
    Literal,
    Parallel,
    Select,
)
from quire.plan.reach import Reached
from quire.plan.uses import OWN
from quire.plan.vocabulary import MAX_ITEMS, MAX_LEVELS

if TYPE_CHECKING:
    from quire.plan.reach import Reached
    from quire.values import Value


def cap_problem(plan: Plan, documents: Mapping[str, Plan], most: int, inputs: Mapping[str, Value] | None = None) -> str:
    """Return an error message if even the fewest model calls of a pipeline exceed `most`, else an empty text.

    A limit of 0 means no limit. `inputs` are those of a run, where they are known.
    """
    if not plan.has_call_cap or not most:
        return ""
    from quire.plan.bounds import least_model_calls  # Other formats do not need it.

    least = least_model_calls(plan, documents, inputs)
    if least <= most:
        return ""
    return (
        f"{plan.title} makes at least {least:,} model calls, and a run may make {most:,}: run it with --limit "
        f"calls={least}, or raise max_pipeline_spawns under [safety.spawn] in quire.toml"
    )


def depth_problem(at: Reached, documents: Mapping[str, Plan], most_fans: int) -> str:
    """Return the engine's error message if this step is nested too deep, else an empty text."""
    if isinstance(at.step.work, ForEach | Parallel) and most_fans and at.fans + 1 > most_fans:
        return (
            f"fan-out depth {at.fans + 1} exceeds max_pipeline_fan_out_depth under [safety.spawn], which is {most_fans}"
        )
    return "the calls are nested too deep" if _calls(at, documents) and at.levels + 2 > MAX_LEVELS else ""


def too_many_items(value: Value, most: int | None) -> str:
    """Return an error message if a list is longer than its `for_each` allows, else an empty text."""
    count = len(value) if isinstance(value, list | tuple) else 0
    if most is None and count > MAX_ITEMS:
        return f"{count:,} items are more than {MAX_ITEMS:,}: a list that long needs max_items"
    if most is not None and count > most:
        return f"{count:,} items are more than max_items, which is {most:,}"
    return ""


def nesting_problems(at: Reached, documents: Mapping[str, Plan], most_fans: int) -> Iterator[str]:
    """Yield the messages with which the engine would fail this step regardless of its values."""
    items = ""
    match at.step.work:
        case ForEach(source=Literal(value=value), max_items=most):
            items = too_many_items(value, most)
    for problem in (depth_problem(at, documents, most_fans), items):
        if problem:
            yield f"step {at.place}: {problem}"


def _calls(at: Reached, documents: Mapping[str, Plan]) -> bool:
    if not documents:
        return isinstance(at.step.work, Select)
    match at.step.work:
        case Select():
            return True
        case UseTool(connection=place, tool=tool):
            return place == OWN and tool in documents
    return any(call.document in documents for call in at.step.calls())
