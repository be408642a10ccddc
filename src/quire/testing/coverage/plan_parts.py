"""The expressions and the inner steps of a step of a pipeline, to be listed or to be replaced.

Listing and replacing are one function each, so that the names of the expressions (their *roles*) and the paths of the
steps are the same for the decisions of a document and for the plan that is watched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, assert_never

from msgspec.structs import replace

from quire.plan.nodes import Sequence, Step, Think, UseTool, Work
from quire.plan.pipeline_work import (
    Agent,
    Block,
    Call,
    Fail,
    Fold,
    ForEach,
    Formula,
    Invoke,
    Parallel,
    Repeat,
    Select,
    Stop,
    Transform,
)
from quire.plan.thread import Thread

ChangeFormula: TypeAlias = Callable[[str, Formula], Formula]
"""Receives the role of an expression and returns the expression to use in its place."""

ChangeStep: TypeAlias = Callable[[str, Step], Step]
"""Receives the path of a step and returns the step to use in its place."""


def with_formulas(step: Step, change: ChangeFormula) -> Step:
    """Return a step with its own expressions replaced, those of its inner steps excluded."""
    guard = step.guard
    if guard is not None:
        when = change("when", guard.when) if guard.when is not None else None
        default = change("instead", guard.default) if guard.default is not None else None
        guard = replace(guard, when=when, default=default)
    return replace(step, work=_with_formulas(step.work, change, "") if step.work is not None else None, guard=guard)


def _with_formulas(node: Any, change: ChangeFormula, prefix: str) -> Any:
    changes: dict[str, object] = {}
    for name in node.__struct_fields__:
        before = getattr(node, name)
        after = _changed(f"{prefix}{name}", before, change)
        if after is not before:
            changes[name] = after
    return replace(node, **changes) if changes else node


def _changed(role: str, value: object, change: ChangeFormula) -> object:
    match value:
        case Formula():
            return change(role, value)
        case Call():
            return _with_formulas(value, change, f"{role}.")
        case tuple() if any(isinstance(part, tuple) for part in value):
            return tuple(_named(role, part, change) for part in value)
    return value


def _named(role: str, part: object, change: ChangeFormula) -> object:
    match part:
        case (str() as name, Formula() | Call() as value):
            return (name, _changed(f"{role}[{name}]", value, change))
    return part


def with_inner_steps(work: Work | None, path: str, change: ChangeStep) -> Work | None:
    """Return the work of a step with its inner steps replaced. Their paths are those of `Plan.steps`."""
    match work:
        case Block():
            return replace(work, body=_sequence(work.body, f"{path}/steps/", change))
        case Select():
            cases = tuple(
                (name, _target(target, f"{path}/match[{number}]/", change))
                for number, (name, target) in enumerate(work.cases, 1)
            )
            last = work.default
            if isinstance(last, Block):
                last = _target(last, f"{path}/match[{len(cases) + 1}]/", change)
            return replace(work, cases=cases, default=last)
        case Fold():
            return replace(work, do=change(f"{path}/fold", work.do))
        case Repeat():
            return replace(work, do=change(f"{path}/repeat", work.do))
        case ForEach():
            do, collect = change(f"{path}/for_each", work.do), change(f"{path}/collect", work.collect)
            return replace(work, do=do, collect=collect)
        case Parallel():
            branches = tuple((name, change(f"{path}/parallel[{name}]", one)) for name, one in work.branches)
            return replace(work, branches=branches, collect=change(f"{path}/collect", work.collect))
        case Transform() | Invoke() | Agent() | Call() | Fail() | Stop() | Think() | UseTool() | Thread() | None:
            return work
        case _:
            assert_never(work)


def _target(target: Call | Block, prefix: str, change: ChangeStep) -> Call | Block:
    return replace(target, body=_sequence(target.body, prefix, change)) if isinstance(target, Block) else target


def _sequence(sequence: Sequence, prefix: str, change: ChangeStep) -> Sequence:
    return Sequence(tuple(change(f"{prefix}{step.position}", step) for step in sequence.steps))
