"""Run the steps of a pipeline in sequence, each in a frame (the variables, the incoming value, the bindings of a
loop) and inside of its guard: attempts again, a value in place of a failure, and a limit in time.

The limit uses the requests that threads use for their children: the work is spawned, joined for that time, and halted.
The result of the join is recorded, so every replay sees the same end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from msgspec import Struct, field

from quire.engine.premises import STEP, WORK
from quire.engine.requests import Boundary, Emit, Halt, Join, Request, Spawn, Walk, WorkCheck
from quire.errors import LimitReached, StepFailed
from quire.expr import RESERVED, EvalError
from quire.expr.values import MAX_TEXT, kind
from quire.patterns import late_pattern
from quire.plan.descriptions import step_name
from quire.plan.nodes import remembered
from quire.plan.pipeline_work import Agent, Formula, Invoke, Literal, Parallel, Repeat
from quire.wording import cut

if TYPE_CHECKING:
    from quire.engine.interpreter.callees import Environment
    from quire.plan.nodes import Plan, Reference, Step, Template
    from quire.plan.nodes import Sequence as StepSequence
    from quire.plan.pipeline_work import Guard
    from quire.schema import Schema
    from quire.values import Value


_prompt_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class PipelineStopped(Exception):
    """Ends the pipeline whose step raises it, well and with this value. No policy for errors catches it."""

    def __init__(self, value: Value) -> None:
        super().__init__("the pipeline ends here")
        self.value = value


class PipelineScope(Struct):
    """A scope. Only the walk that owns it writes `stores` and `pipe`; values themselves are never changed.

    The stores together are the value `ctx`, so they are replaced, not modified: a step that keeps `ctx` must not see
    what later steps write.
    """

    setting: Environment
    plan: Plan
    stores: Mapping[str, Value]
    pipe: Value = None
    bound: Mapping[str, Value] = field(default_factory=dict)
    """`item` and `acc`."""
    near: Mapping[str, Value] = field(default_factory=dict)
    """Names that take precedence over a store of the same name: branches and `errors` in a `collect`."""
    depth: int = 0
    """Number of fans around this frame."""
    survived: Mapping[str, Value] | None = None
    """In the Quire dialect: the value of `errors`, by store. Null for a step that did not fail."""
    failure: StepFailed | None = None
    """The failure that the step which just ended has survived, until its end is told."""
    tells: bool = False
    """True if the steps in this frame emit events: those of the run's own document, outside of loops and fans."""

    def inside(
        self,
        pipe: Value,
        *,
        bound: Mapping[str, Value] | None = None,
        near: Mapping[str, Value] | None = None,
        fans: int = 0,
        sees_loops: bool = False,
    ) -> PipelineScope:
        """Return a scope of its own: stores written there are not visible outside. With `sees_loops`, `acc` and `round`
        of the loops around it are seen there."""
        if sees_loops and self.setting.rules > 3:
            bound = {**({"acc": self.bound["acc"]} if "acc" in self.bound else {}), **(bound or {})}
            near = {**({"round": self.near["round"]} if "round" in self.near else {}), **(near or {})}
        depth = self.depth + fans
        return PipelineScope(self.setting, self.plan, self.stores, pipe, bound or {}, near or {}, depth, self.survived)

    def write(self, name: str, value: Value) -> None:
        self.setting.work.used += len(self.stores) >> 2
        self.stores = {**self.stores, name: value}

    def value(self, what: Formula | Literal, path: str) -> Value:
        if isinstance(what, Literal):
            return what.value
        try:
            bindings = {"ctx": self.stores, "pipe": self.pipe, **self.bound}
            return what.compiled.evaluate(bindings, self._names(), self.setting.work)
        except EvalError as error:
            formula = cut(" ".join(what.text.split()), 80, 77)
            raise StepFailed(f"{error.message} in `{formula}`", kind="expression", path=path) from None

    def items(self, source: Formula | Literal | None, path: str) -> list[Value]:
        items = self.pipe if source is None else self.value(source, path)
        if not isinstance(items, list | tuple):
            what = "text" if isinstance(items, str) else kind(items)
            raise StepFailed(f"the list to go through is {what}, not a list", kind="list", path=path)
        self.setting.work.used += len(items) >> 3
        return list(items)

    def render(self, prompt: Template, path: str, *, strict: bool = False) -> str:
        """Fill in the prompt.

        A reference with an unknown root stays as text; a known root with a missing path fails the step. With `strict`,
        every name that a step of the plan may set is known.
        """
        names = self._names()
        may_be_set = readable_names(self.plan) if strict and self.setting.rules > 3 else frozenset[str]()
        texts: list[str] = []
        room = MAX_TEXT
        for part in prompt.parts:
            texts.append(part if isinstance(part, str) else self._refer(part, names, path, may_be_set))
            room -= len(texts[-1])
            if room < 0:
                raise StepFailed(f"the prompt has more than {MAX_TEXT:,} characters", kind="prompt", path=path)
        self.setting.work.add_text(MAX_TEXT - room)
        return "".join(texts)

    def schema(self, name: str, path: str) -> Schema:
        schema = self.plan.schemas.get(name)
        if schema is None:
            raise StepFailed(f"there is no schema {name} in this file", kind="schema", path=path)
        return schema

    def _refer(self, reference: Reference, names: Mapping[str, Value], path: str, may_be_set: frozenset[str]) -> str:
        root, *rest = reference.name.split(".")
        if reference.default is not None:
            # Double braces: an escape if the root is known, otherwise plain text.
            return reference.default if root in names or root in may_be_set else reference.raw
        if root == "ctx":
            value: Value = self.stores
        elif root == "pipe":
            value = self.pipe
        elif root in self.bound:
            value = self.bound[root]
        elif root in names and root not in RESERVED:
            value = names[root]
        elif root in RESERVED or root in may_be_set:
            raise _missing(reference, root, path)
        else:
            return reference.raw
        for segment in rest:
            if not isinstance(value, Mapping) or segment not in value:
                raise _missing(reference, segment, path)
            value = value[segment]
        return value if isinstance(value, str) else _prompt_json(value)

    def _names(self) -> Mapping[str, Value]:
        if self.survived is not None:
            return {**self.stores, "errors": self.survived, **self.near}
        return {**self.stores, **self.near} if self.near else self.stores

    def skips(self, step: Step, path: str) -> bool:
        """Tell whether the step says `when`, and it does not hold."""
        when = step.guard.when if step.guard is not None else None
        return when is not None and not self.value(when, path)


@remembered
def readable_names(plan: Plan) -> frozenset[str]:
    """Return everything that a bare name in a prompt of this plan may refer to."""
    names = {*(field.name for field in plan.declared or ()), *plan.written}
    for _, step in plan.steps():
        if isinstance(step.work, Parallel):
            names |= {name for name, _ in step.work.branches} | {"errors"}
        if isinstance(step.work, Repeat):
            names.add("round")
        if step.guard is not None and step.guard.goes_on:
            names.add("errors")
    return frozenset(names)


def _missing(reference: Reference, segment: str, path: str) -> StepFailed:
    return StepFailed(f"the prompt refers to {reference.name}, and there is no {segment}", kind="prompt", path=path)


RUNNERS: dict[type, Callable[[Step, Any, str, PipelineScope], Walk]] = {}
"""Functions that do a step's work, by the kind of the work. Arguments: the step, the work, the step's path and its
frame."""


def run_steps(body: StepSequence, prefix: str, frame: PipelineScope) -> Walk:
    """Run the steps of a document in sequence; each step's value continues to the next. A step may end it early."""
    total = len(body.steps)
    begun = 0
    try:
        for step in body.steps:
            begun += 1
            path = f"{prefix}{step.position}"
            if frame.tells:
                frame.pipe = yield from _told(step, path, path, frame, total, stops=True)
            else:
                frame.pipe = yield from _called(step, path, frame)
    except PipelineStopped as stopped:
        frame.pipe = stopped.value
        for step in body.steps[begun:] if frame.tells else ():
            skipped: dict[str, Value] = {"title": step.kind, "name": step_name(step), "total": total}
            yield Emit("step_skipped", f"{prefix}{step.position}", step.label, skipped)
    return frame.pipe


def run_block_steps(body: StepSequence, prefix: str, frame: PipelineScope) -> Walk:
    """Run the steps of a block in sequence, in the frame of the block. A run does not stop between them."""
    total = len(body.steps)
    again = frame.tells and "/try[" in prefix
    for step in body.steps:
        path = f"{prefix}{step.position}"
        if frame.tells:
            frame.pipe = yield from _told(step, path, untried(path) if again else path, frame, total)
        else:
            frame.pipe = yield from run_step(step, path, frame)
    return frame.pipe


def _called(step: Step, path: str, frame: PipelineScope) -> Walk:
    """Run a step of a called document. A run can stop after it, but its caller does not see values set there."""
    try:
        value = yield from run_step(step, path, frame)
    except StepFailed as error:
        error.label = error.label or step.label
        raise
    overrides: Mapping[str, Value] = yield Boundary.after(path, step.label, inner=True)
    for name, changed in overrides.items():
        frame.write(name, changed)
    return value


def _told(step: Step, path: str, shown: str, frame: PipelineScope, total: int, *, stops: bool = False) -> Walk:
    """Run a step that emits events, all at its place in the plan.

    With `stops` a run can stop after it, and its events are kept; those of the steps of a block are for listeners only.
    """
    head: dict[str, Value] = {"title": step.kind, "name": step_name(step), "total": total}
    try:
        if step.guard is not None and frame.skips(step, path):
            yield Emit("step_skipped", shown, step.label, head, kept=stops)
            return _left_out(step, step.guard, path, frame)
        yield Emit("step_started", shown, step.label, head, kept=stops)
        value = yield from _do(step, path, frame)
    except PipelineStopped as stopped:
        head["stops"] = True
        yield Emit("step_completed", shown, step.label, head, {"output": stopped.value}, kept=stops)
        raise
    except (StepFailed, LimitReached) as error:
        if error.path == path:
            # It failed without an effect, so nothing has moved the position of the run to it.
            error.label = error.label or step.label
        failed: dict[str, Value] = {"kind": error.kind, "message": str(error), "failed_at": error.path}
        yield Emit("step_failed", shown, step.label, {**head, **failed}, kept=stops)
        raise
    if frame.failure is not None:
        head["survived"] = {"kind": frame.failure.kind, "message": frame.failure.message}
        frame.failure = None
    yield Emit("step_completed", shown, step.label, head, {"output": value}, kept=stops)
    if not stops:
        return value
    overrides: Mapping[str, Value] = yield Boundary.after(path, step.label)
    for name, changed in overrides.items():
        frame.write(name, changed)
        yield Emit("store", path, step.label, live={"name": name, "value": changed}, kept=False)
    return value


def check_work(path: str, label: str, frame: PipelineScope) -> Generator[Request, Any, None]:
    """Ask whether pure work may continue. `path` is that of the check, which must be unique."""
    if frame.setting.work.due(path):
        yield WorkCheck(path, label, frame.setting.work)


def run_step(step: Step, path: str, frame: PipelineScope) -> Walk:
    """Run one step in its frame and return its value, which also goes to its store.

    A step that its `when` skips has its default; without one it writes nothing, and the incoming value passes by.
    """
    if step.guard is not None and frame.skips(step, path):
        return _left_out(step, step.guard, path, frame)
    return (yield from _do(step, path, frame))


def _left_out(step: Step, guard: Guard, path: str, frame: PipelineScope) -> Value:
    if guard.default is None or frame.setting.rules < 4:
        return frame.pipe
    value = default_value(step, guard.default, path, frame)
    if step.capture is not None:
        frame.write(step.capture.name, value)
    return value


def _do(step: Step, path: str, frame: PipelineScope) -> Walk:
    work = frame.setting.work
    work.used += STEP
    if work.due(f"{path}{WORK}"):
        yield WorkCheck(f"{path}{WORK}", step.label, work)
    run, guard = RUNNERS[type(step.work)], step.guard
    if guard is None:
        value = yield from run(step, step.work, path, frame)
    else:
        value = yield from run_guarded(step, guard, path, frame, lambda at, inner: run(step, step.work, at, inner))
    if step.capture is not None:
        frame.write(step.capture.name, value)
    return value


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
        survived: Value = None if failure is None else {"kind": failure.kind, "message": failure.message}
        frame.survived = {**(frame.survived or {}), step.capture.name: survived}
    return value


def default_value(step: Step, default: Formula, path: str, frame: PipelineScope) -> Value:
    """Return the value in place of a result. Raises `StepFailed` if it does not fit the schema of the result."""
    value = frame.value(default, path)
    name = step.work.schema if isinstance(step.work, Agent | Invoke) else None
    if name is None:
        return value
    violations = frame.schema(name, path).violations(value, frame.plan.schemas.get)
    if violations:
        listed = "; ".join(str(violation) for violation in violations[:20])
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
            # A copy: a replay continues with the frame before the spawned work has begun.
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
