"""Steps one after the other; what each kind of step does is registered by the module of that kind."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias

from quire.engine.pipeline.frame import Frame
from quire.engine.pure_work import STEP, WORK
from quire.engine.requests import Boundary, Emit, Request, WorkCheck
from quire.errors import StepFailed
from quire.plan.nodes import Sequence, Step
from quire.values import Value

Steps: TypeAlias = Generator[Request, Any, Value]

RUNNERS: dict[type, Callable[[Step, Any, str, Frame], Steps]] = {}
"""How a step's work is done, by the kind of the work: it gets the step, the work, the step's path and its frame."""


def run_steps(body: Sequence, prefix: str, frame: Frame, *, top: bool = False) -> Steps:
    """Each step's value goes on to the next. Only the steps of the run's own document are told of."""
    for step in body.steps:
        path = f"{prefix}{step.position}"
        if top:
            frame.pipe = yield from _told(step, path, frame, len(body.steps))
        else:
            frame.pipe = yield from _called(step, path, frame)
    return frame.pipe


def _called(step: Step, path: str, frame: Frame) -> Steps:
    """A step of a callee. A run can stop behind it, but what is set there is nothing that its caller sees."""
    try:
        value = yield from run_step(step, path, frame)
    except StepFailed as error:
        error.label = error.label or step.label
        raise
    overrides: Mapping[str, Value] = yield Boundary.after(path, step.label, inner=True)
    for name, changed in overrides.items():
        frame.write(name, changed)
    return value


def _told(step: Step, path: str, frame: Frame, total: int) -> Steps:
    head: dict[str, Value] = {"title": step.title, "total": total}
    yield Emit("step_started", path, step.label, head)
    try:
        value = yield from run_step(step, path, frame)
    except StepFailed as error:
        failed: dict[str, Value] = {"kind": error.kind, "message": error.message, "failed_at": error.path}
        yield Emit("step_failed", path, step.label, {**head, **failed})
        raise
    yield Emit("step_completed", path, step.label, head, {"output": value})
    overrides: Mapping[str, Value] = yield Boundary.after(path, step.label)
    for name, changed in overrides.items():
        frame.write(name, changed)
        yield Emit("store", path, step.label, live={"name": name, "value": changed}, kept=False)
    return value


def check_work(path: str, label: str, frame: Frame) -> Generator[Request, Any, None]:
    """Asks whether pure work may go on. `path` is that of the check, which no other one may have."""
    if frame.setting.work.due(path):
        yield WorkCheck(path, label, frame.setting.work)


def run_step(step: Step, path: str, frame: Frame) -> Steps:
    """One step in its frame: its value, which also goes to its store."""
    work = frame.setting.work
    work.used += STEP
    if work.due(f"{path}{WORK}"):
        yield WorkCheck(f"{path}{WORK}", step.label, work)
    value = yield from RUNNERS[type(step.work)](step, step.work, path, frame)
    if step.capture is not None:
        frame.write(step.capture.name, value)
    return value
