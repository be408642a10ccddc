"""Run the work of a step inside of its guard: attempts again, a value in place of a failure, and a limit in time.

The limit uses the requests that threads use for their children: the work is spawned, joined for so many seconds, and
halted. What the join has seen is recorded, so every replay sees the same end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, TypeAlias, cast

from quire.engine.requests import Emit, Halt, Join, Spawn, Walk
from quire.errors import StepFailed
from quire.patterns import late_pattern
from quire.plan.pipeline_work import Agent, Invoke

if TYPE_CHECKING:
    from quire.engine.interpreter.pipeline.steps import PipelineScope
    from quire.plan.nodes import Step
    from quire.plan.pipeline_work import Formula, Guard
    from quire.values import Value

_AGAIN = late_pattern(r"/try\[\d+\]")
Work: TypeAlias = "Callable[[str, PipelineScope], Walk]"
"""Does the work of a step at a path, in a frame."""


def untried(path: str) -> str:
    """Return a path without the numbers of attempts: the place at which events are emitted."""
    return _AGAIN.sub("", path)


def run_guarded(step: Step, guard: Guard, path: str, frame: PipelineScope, run: Work) -> Walk:
    """Run the work of a step at a path, as often as its guard allows. A failed attempt leaves no stores behind.

    If the failure is survived, `errors` has it under the name of the step's store, and the value is the default.
    """
    failure: StepFailed | None = None
    value: Value = None
    try:
        value = yield from _attempts(step, guard, path, frame, run)
    except StepFailed as error:
        if not guard.goes_on:
            raise
        failure = error
        if frame.tells:
            frame.failure = error
            yield Emit("step_undone", untried(path), step.label, kept=False)
    if failure is not None and guard.default is not None:
        value = default_value(step, guard.default, path, frame)
    if guard.goes_on and step.capture is not None:
        told: Value = None if failure is None else {"kind": failure.kind, "message": failure.message}
        frame.survived = {**(frame.survived or {}), step.capture.name: told}
    return value


def default_value(step: Step, default: Formula, path: str, frame: PipelineScope) -> Value:
    """Return the value in place of a result. Raises `StepFailed` if it does not fit the schema of the result."""
    value = frame.value(default, path)
    name = step.work.schema if isinstance(step.work, Agent | Invoke) else None
    if name is None:
        return value
    violations = frame.schema(name, path).violations(value, frame.plan.schemas.get)
    if violations:
        listed = "; ".join(str(one) for one in violations[:20])
        raise StepFailed(f"the default does not fit the schema {name}: {listed}", kind="schema", path=path)
    return value


def _attempts(step: Step, guard: Guard, path: str, frame: PipelineScope, run: Work) -> Walk:
    retries = guard.on_error.times if guard.on_error is not None else 0
    begin = frame.stores, frame.pipe, frame.survived
    for attempt in range(1, retries + 2):
        at = f"{path}/try[{attempt}]" if retries else path
        try:
            if guard.timeout is None:
                return (yield from run(at, frame))
            # A copy: a replay goes on with the frame before the spawned work has begun.
            return (yield from _within(guard.timeout, run(at, copy(frame)), at, step.label))
        except StepFailed:
            frame.stores, frame.pipe, frame.survived = begin
            if attempt > retries:
                raise
            if frame.tells:
                yield Emit("step_undone", untried(path), step.label, kept=False)
    raise AssertionError("the last attempt returns or raises")


def _within(seconds: float, walk: Walk, path: str, label: str) -> Walk:
    """Run a walk for so long at most. Its time begins again when the run is resumed."""
    child, join = f"{path}/within", f"{path}/join"
    yield Spawn(child, _caught(walk))
    states: Sequence[Mapping[str, Value]] = yield Join(join, label, (child,), seconds)
    (state,) = states
    if state["state"] == "done":
        ended = cast("Mapping[str, Value]", state["value"])
        if "kind" not in ended:
            return ended["value"]
        also = cast("Sequence[str]", ended["also"])
        failed = StepFailed(str(ended["message"]), kind=str(ended["kind"]), path=str(ended["path"]))
        failed.label, failed.also = str(ended["label"]), (*also, join)
        raise failed
    yield Halt(f"{path}/halt", label, (child,))
    raise StepFailed(f"it was not done after {seconds:g} seconds (timeout)", kind="timeout", path=join)


def _caught(walk: Walk) -> Walk:
    """Return the walk with its failure as a value, which keeps the place of it."""
    try:
        return {"value": (yield from walk)}
    except StepFailed as error:
        return {
            "kind": error.kind,
            "message": error.message,
            "path": error.path,
            "label": error.label,
            "also": list(error.also),
        }
