"""Limits that a run is certain to reach, found before it starts: model calls, fan-outs, calls within calls, items,
and money whose price is not known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from quire.engine.nesting import MAX_LEVELS
from quire.engine.pipeline.setting import MAX_ITEMS
from quire.engine.ports import ModelCall, Priced
from quire.errors import CannotStart, LimitReached
from quire.models.settings import price_key
from quire.plan.bounds import bounds
from quire.plan.nodes import Call, ForEach, Literal, Parallel, Plan, Select, UseTool
from quire.plan.reach import Reached
from quire.plan.uses import OWN
from quire.runtime.models import Models
from quire.workspace.settings import SpawnSettings


def check_cap(plan: Plan, documents: Mapping[str, Plan], most: int) -> None:
    """Raises `LimitReached` where the fewest model calls of a run are more than it may make. 0 is no limit."""
    if problem := cap_problem(plan, documents, most):
        raise LimitReached(problem)


def cap_problem(plan: Plan, documents: Mapping[str, Plan], most: int) -> str:
    if plan.format != "pipeline" or not most:
        return ""
    least = bounds(plan, documents).model_calls.least
    if least <= most:
        return ""
    return (
        f"{plan.title} makes at least {least:,} model calls, and a run may make {most:,}: raise "
        "max_pipeline_spawns under [safety.spawn] in quire.toml"
    )


def check_prices(models: Models, specs: Sequence[str], budget: float | None) -> None:
    """Raises `CannotStart` for a budget that could not be kept: nobody knows what a call costs."""
    if budget is None:
        return
    for spec in dict.fromkeys(filter(None, specs)):
        if not has_price(models, spec):
            key = price_key(spec, models.settings.models)
            raise CannotStart(
                f"the price of {key} is not known, so a budget cannot be kept; two ways on:\n"
                f"--budget none, or its prices in the quire.toml of your space:\n"
                f'[models.prices."{key}"] with input and output, in dollars per million tokens'
            )


def has_price(models: Models, spec: str) -> bool:
    model = models.open(spec)
    return not isinstance(model, Priced) or model.estimate(ModelCall("", ())) is not None


def nesting_problems(at: Reached, documents: Mapping[str, Plan], spawn: SpawnSettings) -> Iterator[str]:
    """What the engine would fail the step with, whatever the values are."""
    work = at.step.work
    if isinstance(work, ForEach | Parallel):
        most = spawn.max_pipeline_fan_out_depth
        if most and at.fans + 1 > most:
            yield (
                f"step {at.name}: fan-out depth {at.fans + 1} exceeds max_pipeline_fan_out_depth under [safety.spawn], "
                f"which is {most}"
            )
    if isinstance(work, ForEach) and isinstance(work.source, Literal) and isinstance(work.source.value, list | tuple):
        count, allowed = len(work.source.value), MAX_ITEMS if work.max_items is None else work.max_items
        if count > allowed:
            yield f"step {at.name}: {count:,} items are more than max_items, which is {allowed:,}"
    if _calls(at, documents) and at.levels + 2 > MAX_LEVELS:
        yield f"step {at.name}: the calls are nested too deep"


def _calls(at: Reached, documents: Mapping[str, Plan]) -> bool:
    match at.step.work:
        case Call(document=name):
            return name in documents
        case Select():
            return True
        case UseTool(connection=place, tool=tool):
            return place == OWN and tool in documents
    return False
