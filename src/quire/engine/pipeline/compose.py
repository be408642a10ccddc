"""Steps made of other steps, one after the other: a call, a call that a value selects, a fold."""

from __future__ import annotations

from quire.engine.nesting import check_nesting
from quire.engine.pipeline.frame import Frame
from quire.engine.pipeline.steps import Steps, check_work, run_step, run_steps
from quire.engine.pure_work import WORK
from quire.engine.requests import Emit
from quire.engine.ways import below
from quire.errors import StepFailed
from quire.expr import python_text
from quire.plan.nodes import Call, Fold, Select, Step
from quire.values import InvalidValue, Value


def run_call(step: Step, work: Call, path: str, frame: Frame) -> Steps:
    return (yield from below(step.label, _run_document(work, f"{path}/call/", path, frame)))


def run_select(step: Step, work: Select, path: str, frame: Frame) -> Steps:
    value = frame.value(work.on, path)
    try:
        label = python_text(value)
    except InvalidValue as error:
        raise StepFailed(f"what `match` is on cannot be a label: {error}", kind="match", path=path) from None
    if not isinstance(value, str):
        frame.setting.work.add_text(len(label))
    for name, call in work.cases:
        if name == label:
            return (yield from below(step.label, _run_document(call, f"{path}/match/", path, frame)))
    if work.default is None:
        names = ", ".join(name for name, _ in work.cases)
        raise StepFailed(f"{label!r} is none of the cases ({names}), and there is no default", kind="match", path=path)
    return (yield from below(step.label, _run_document(work.default, f"{path}/match/", path, frame)))


def run_fold(step: Step, work: Fold, path: str, frame: Frame) -> Steps:
    """What `do` writes stays in the fold, from one item to the next."""
    items = frame.items(work.source, path)
    accumulated = frame.value(work.init, path)
    if work.max_items is not None and len(items) > work.max_items:
        message = f"the fold goes through the first {work.max_items} of {len(items)} items"
        yield Emit("warning", path, "", {"message": message})
        items = items[: work.max_items]
    inner = frame.inside(frame.pipe)
    if not frame.depth:
        yield Emit("fan_started", path, step.label, {"total": len(items), "limit": 1}, kept=False)
    for number, item in enumerate(items):
        inner.pipe = frame.pipe
        inner.bound = {"item": item, "acc": accumulated}
        accumulated = yield from run_step(work.do, f"{path}/fold[{number}]", inner)
        if not frame.depth:
            yield Emit("fan_item", path, step.label, {"index": number, "state": "done"}, kept=False)
    return accumulated


def _run_document(work: Call, prefix: str, path: str, frame: Frame) -> Steps:
    """Runs another document on what is passed and nothing else; it sees its own file's schemas."""
    callee = frame.setting.documents.get(work.document)
    if callee is None:
        raise StepFailed(f"there is no pipeline {work.document}", kind="call", path=path)
    check_nesting(prefix, path)
    stores: dict[str, Value] = {}
    for number, (name, value) in enumerate(work.passes):
        yield from check_work(f"{path}{WORK}[{number}]", "", frame)
        stores[name] = frame.value(value, path)
    if callee.format != "pipeline":
        from quire.engine.call_document import call_document

        return (yield from call_document(work.document, stores, prefix, path, frame.setting))
    inner = Frame(frame.setting, callee, stores, frame.pipe, depth=frame.depth)
    return (yield from run_steps(callee.body, prefix, inner))
