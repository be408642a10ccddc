"""Find stores of pipelines that nothing reads (DD104)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.analysis.rules.codes.dead_code import UNREAD_STORE
from quire.diagnostics import Diagnostic
from quire.expr.syntax import RESERVED
from quire.plan.parts import formulas
from quire.plan.pipeline_work import Agent, Block, Fold, Repeat, Select

if TYPE_CHECKING:
    from quire.plan.nodes import Plan, Step
    from quire.plan.pipeline_work import Formula


def unread_stores(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a finding for each `output` that no expression, prompt or call of the pipeline reads."""
    names: set[str] = set()
    for _, step in plan.steps():
        for _, formula in formulas(step):
            for read in formula.compiled.reads():
                store = read.store
                if store == "errors":
                    names.update(_stores(read.path))
                elif store is not None:
                    names.add(store)
                elif read.path[0] == "ctx" and not _is_base(formula, read.path):
                    return
        if type(step.work) is Agent:
            if step.work.file:
                return  # a prompt of a file can refer to every store
            for reference in step.work.prompt.references():
                if reference.name == "ctx":
                    return
                names.update(_stores(tuple(reference.name.split("."))))
    reported: set[str] = set()
    for step in _kept(plan):
        name = step.capture.name if step.capture else ""
        if name and name not in names and name not in reported:
            reported.add(name)
            message = f"{name} is never read: no expression, prompt or call of the pipeline names it"
            yield Diagnostic(UNREAD_STORE, message, step.span, help="leave the output out, or read it")


def _stores(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names that a path may read: `errors.draft` reads how the step of `draft` failed."""
    if path[0] == "ctx":
        return path[1:3] if path[1:2] == ("errors",) else path[1:2]
    if path[0] == "errors":
        return path[:2]
    return () if path[0] in RESERVED else path[:1]


def _is_base(formula: Formula, path: tuple[str, ...]) -> bool:
    """Tell whether `get` reads a part of it only: then each of its reads has the part as well."""
    reads = formula.compiled.reads()
    plain = sum(1 for one in reads if one.path == path and not one.optional)
    return plain <= sum(1 for one in reads if one.optional and one.path[: len(path)] == path)


def _kept(plan: Plan) -> Iterator[Step]:
    """Yield the steps whose stores the steps after them can see, without the last step of the pipeline."""
    waiting = deque(plan.body.steps[:-1])
    if plan.body.steps:
        waiting += _inside(plan.body.steps[-1])
    while waiting:
        step = waiting.popleft()
        if type(step.work) is not Fold:  # it must have an output
            yield step
        if type(step.work) in _SHARING:
            waiting += _inside(step)


def _inside(step: Step) -> list[Step]:
    return [part for _, part in step.work.parts()] if step.work is not None and type(step.work) in _SHARING else []


_SHARING = frozenset((Block, Select, Repeat))
"""Work whose steps write the stores around it."""
