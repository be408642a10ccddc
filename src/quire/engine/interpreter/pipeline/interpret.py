"""Run a pipeline from its input to its result; and the steps that hold others: concurrently for the items of a list or
for named branches, or in sequence."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quire.engine.interpreter.pipeline.agent import run_agent
from quire.engine.interpreter.pipeline.simple import run_call, run_fold, run_invoke, run_select, run_transform
from quire.engine.interpreter.pipeline.steps import (
    RUNNERS,
    PipelineScope,
    PipelineStopped,
    run_block_steps,
    run_step,
    run_steps,
)
from quire.engine.requests import Emit, Fan, Outcome, Request, Walk
from quire.errors import StepFailed
from quire.plan.pipeline_work import (
    Agent,
    Block,
    Call,
    Fail,
    Fold,
    ForEach,
    Invoke,
    Parallel,
    Repeat,
    Select,
    Stop,
    Transform,
)
from quire.plan.vocabulary import MAX_ITEMS
from quire.values import text_or_json

if TYPE_CHECKING:
    from quire.engine.interpreter.callees import Environment
    from quire.plan.nodes import Plan, Step
    from quire.plan.pipeline_work import OnError
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


def run_block(step: Step, work: Block, path: str, frame: PipelineScope) -> Walk:
    return run_block_steps(work.body, f"{path}/steps/", frame)


def run_repeat(step: Step, work: Repeat, path: str, frame: PipelineScope) -> Walk:
    """Run `do` round after round. Stores that it writes stay inside of the loop, from one round to the next."""
    last = frame.value(work.init, path) if work.init is not None else None
    inner = frame.inside(frame.pipe)
    if not frame.depth:
        yield Emit("fan_started", path, step.label, {"total": work.max, "limit": 1, "rounds": True}, kept=False)
    for number in range(1, work.max + 1):
        inner.pipe = frame.pipe
        inner.bound = {**frame.bound, "acc": last}
        inner.near = {**frame.near, "round": number}
        last = yield from run_step(work.do, f"{path}/repeat[{number}]", inner)
        inner.bound = {**frame.bound, "acc": last}
        if not frame.depth:
            yield Emit("fan_item", path, step.label, {"index": number - 1, "state": "done"}, kept=False)
        if inner.value(work.until, path):
            return last
    if work.keeps_last:
        return last
    rounds = "1 round" if work.max == 1 else f"{work.max} rounds"
    raise StepFailed(f"until did not hold after {rounds}: `{work.until.text}`", kind="repeat", path=path)


def run_fail(step: Step, work: Fail, path: str, frame: PipelineScope) -> Walk:
    message = frame.value(work.message, path)
    raise StepFailed(text_or_json(message), kind="fail", path=path)
    yield  # makes this a generator, like all runners


def run_stop(step: Step, work: Stop, path: str, frame: PipelineScope) -> Walk:
    raise PipelineStopped(frame.pipe if work.value is None else frame.value(work.value, path))
    yield  # makes this a generator, like all runners


RUNNERS.update(
    {
        Transform: run_transform,
        Invoke: run_invoke,
        Agent: run_agent,
        Call: run_call,
        Select: run_select,
        Fold: run_fold,
        ForEach: run_for_each,
        Parallel: run_parallel,
        Block: run_block,
        Repeat: run_repeat,
        Fail: run_fail,
        Stop: run_stop,
    }
)


def interpret_pipeline(plan: Plan, input: Mapping[str, Value], setting: Environment) -> Walk:
    """Run a pipeline on its input. Its result has the last step's value and all variables."""
    frame = PipelineScope(setting, plan, dict(input), tells=True)
    output = yield from run_steps(plan.body, "", frame)
    return {"output": output, "stores": dict(frame.stores)}
