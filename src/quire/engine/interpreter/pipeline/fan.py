"""Run steps concurrently, one for each item of a list or a set of named branches, and then collect their results."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quire.engine.interpreter.pipeline.steps import PipelineScope, run_step
from quire.engine.requests import Emit, Fan, Outcome, Request, Walk
from quire.errors import StepFailed
from quire.plan.vocabulary import MAX_ITEMS

if TYPE_CHECKING:
    from quire.plan.nodes import Step
    from quire.plan.pipeline_work import (
        ForEach,
        OnError,
        Parallel,
    )
    from quire.values import Value


def run_for_each(step: Step, work: ForEach, path: str, frame: PipelineScope) -> Walk:
    items = frame.items(work.source, path)
    _check_count(len(items), work.max_items, path)
    _check_depth(frame, path)
    walks = (
        _told(
            _attempts(work.do, f"{path}/for_each[{number}]", _item(frame, item, work), work.on_error),
            f"{path}/for_each[{number}]",
            work.do.label,
            {"index": number},
            frame,
        )
        for number, item in enumerate(items)
    )
    yield from _announce(step, path, len(items), work.max_parallel, frame)
    outcomes = yield from _fan(path, walks, work.max_parallel, work.on_error)
    errors: list[Value] = [
        {"index": number, "item": items[number], "message": outcome.failure.message}
        for number, outcome in enumerate(outcomes)
        if outcome.failure is not None
    ]
    results: list[Value] = []
    for number, outcome in enumerate(outcomes):
        if outcome.failure is None:
            results.append(outcome.value)
        elif work.default is not None:
            results.append(_item(frame, items[number], work).value(work.default, path))
    inner = frame.inside(results, near=_errors(errors, frame), fans=1, sees_loops=work.sees_loops)
    return (yield from run_step(work.collect, f"{path}/for_each/collect", inner))


def run_parallel(step: Step, work: Parallel, path: str, frame: PipelineScope) -> Walk:
    _check_depth(frame, path)
    walks = (
        _told(
            _attempts(branch, f"{path}/parallel[{name}]", _branch(frame, work), work.on_error),
            f"{path}/parallel[{name}]",
            branch.label,
            {"name": name},
            frame,
        )
        for name, branch in work.branches
    )
    yield from _announce(step, path, len(work.branches), len(work.branches), frame)
    outcomes = yield from _fan(path, walks, len(work.branches), work.on_error)
    named = [(name, outcome) for (name, _), outcome in zip(work.branches, outcomes, strict=True)]
    instead: dict[str, Value] = {}
    if work.default is not None and any(outcome.failure for outcome in outcomes):
        value = frame.value(work.default, path)
        instead = {name: value for name, outcome in named if outcome.failure}
    results: dict[str, Value] = {
        name: outcome.value if outcome.failure is None else instead[name]
        for name, outcome in named
        if outcome.failure is None or name in instead
    }
    errors: dict[str, Value] = {name: outcome.failure.message for name, outcome in named if outcome.failure}
    near = {**_errors(errors, frame), **results}
    inner = frame.inside(results, near=near, fans=1, sees_loops=work.sees_loops)
    return (yield from run_step(work.collect, f"{path}/parallel/collect", inner))


def _fan(path: str, walks: Iterator[Walk], limit: int, on_error: OnError) -> Generator[Request, Any, Sequence[Outcome]]:
    outcomes: Sequence[Outcome] = yield Fan(path, walks, limit, stop_on_first_failure=not on_error.goes_on)
    return outcomes


def _announce(step: Step, path: str, total: int, limit: int, frame: PipelineScope) -> Generator[Request, Any, None]:
    """Report how many items a fan has. A fan inside another one is part of its item and is not reported."""
    if not frame.depth:
        yield Emit("fan_started", path, step.label, {"total": total, "limit": limit})


def _told(walk: Walk, path: str, label: str, which: Mapping[str, Value], frame: PipelineScope) -> Walk:
    """Wrap a child so that it reports its end to listeners.

    These events are not kept: for every item, that would be a second journal.
    """
    if frame.depth:
        return walk
    return _telling(walk, path, label, which)


def _telling(walk: Walk, path: str, label: str, which: Mapping[str, Value]) -> Walk:
    try:
        value: Value = yield from walk
    except StepFailed as error:
        yield Emit("fan_item", path, label, {**which, "state": "failed", "message": error.message}, kept=False)
        raise
    yield Emit("fan_item", path, label, {**which, "state": "done"}, kept=False)
    return value


def _item(frame: PipelineScope, item: Value, work: ForEach) -> PipelineScope:
    return frame.inside(frame.pipe, bound={"item": item}, fans=1, sees_loops=work.sees_loops)


def _branch(frame: PipelineScope, work: Parallel) -> PipelineScope:
    return frame.inside(frame.pipe, fans=1, sees_loops=work.sees_loops)


def _errors(errors: Value, frame: PipelineScope) -> dict[str, Value]:
    """Return `errors` for a `collect`. A store of that name is read in its place."""
    return {} if "errors" in frame.stores and frame.setting.rules > 3 else {"errors": errors}


def _attempts(step: Step, path: str, frame: PipelineScope, on_error: OnError) -> Walk:
    """Run a step in a scope of its own, and again while its policy allows; each attempt starts from the same values."""
    if on_error.policy != "retry":
        return (yield from run_step(step, path, frame))
    for attempt in range(1, on_error.times + 1):
        try:
            inner = frame.inside(frame.pipe, bound=frame.bound, near=frame.near)
            return (yield from run_step(step, f"{path}/try[{attempt}]", inner))
        except StepFailed:
            continue
    return (yield from run_step(step, f"{path}/try[{on_error.times + 1}]", frame))


def _check_count(count: int, most: int | None, path: str) -> None:
    if most is None and count > MAX_ITEMS:
        message = f"{count:,} items are more than {MAX_ITEMS:,}: a list that long needs max_items"
        raise StepFailed(message, kind="items", path=path)
    if most is not None and count > most:
        raise StepFailed(f"{count:,} items are more than max_items, which is {most:,}", kind="items", path=path)


def _check_depth(frame: PipelineScope, path: str) -> None:
    most = frame.setting.fan_out_depth
    if most and frame.depth + 1 > most:
        message = f"fan-out depth {frame.depth + 1} exceeds max_pipeline_fan_out_depth, which is {most}"
        raise StepFailed(message, kind="depth", path=path)
