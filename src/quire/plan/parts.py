"""The expressions, the inner steps and the names of a step of a pipeline, to be listed or to be replaced.

Listing and replacing go over the same fields, so that the names of the expressions (their *roles*, such as `until` or
`cases[urgent].passes[letter]`) and the paths of the steps are the same for every reader of a plan.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
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

ChangeStep: TypeAlias = Callable[[str, Step], Step | None]
"""Receives the path of a step and returns the step to use in its place; None drops it from its sequence."""


def formulas(step: Step) -> list[tuple[str, Formula]]:
    """Return the expressions of a step itself with their roles, those of its inner steps excluded."""
    listed: list[tuple[str, Formula]] = []

    def add(role: str, formula: Formula) -> Formula:
        listed.append((role, formula))
        return formula

    with_formulas(step, add)
    return listed


def with_formulas(step: Step, change: ChangeFormula) -> Step:
    """Return a step with its own expressions replaced, those of its inner steps excluded."""
    guard = step.guard
    if guard is not None:
        when = change("when", guard.when) if guard.when is not None else None
        default = change("instead", guard.default) if guard.default is not None else None
        if when is not guard.when or default is not guard.default:
            step = replace(step, guard=replace(guard, when=when, default=default))
    if step.work is not None:
        work = _with_formulas(step.work, change, "")
        if work is not step.work:
            step = replace(step, work=work)
    return step


@cache
def _formula_fields(kind: type) -> tuple[str, ...]:
    """Return the fields of a class of nodes that may contain an expression, or a call that passes some."""
    texts = {name: str(text) for base in kind.__mro__ for name, text in getattr(base, "__annotations__", {}).items()}
    fields: tuple[str, ...] = kind.__struct_fields__  # type: ignore[attr-defined]  # every node is a Struct
    return tuple(name for name in fields if "Formula" in texts[name] or "Call" in texts[name])


def _with_formulas(node: Any, change: ChangeFormula, prefix: str) -> Any:
    kind: type = type(node)
    changes: dict[str, object] = {}
    for name in _formula_fields(kind):
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
        case tuple():
            after = tuple(_named(role, part, change) for part in value)
            return value if all(new is old for new, old in zip(after, value, strict=True)) else after
    return value


def _named(role: str, part: object, change: ChangeFormula) -> object:
    match part:
        case (str() as name, Formula() | Call() as value):
            after = _changed(f"{role}[{name}]", value, change)
            return part if after is value else (name, after)
    return part


def with_inner(step: Step, path: str, change: ChangeStep) -> Step:
    """Return a step with its inner steps replaced. Their paths are those of `Plan.steps`. Raises `ValueError` if the
    only step of a loop, a branch or a `collect` is dropped."""
    if step.match is not None:
        cases = tuple(
            replace(case, body=with_steps(case.body, f"{path}/case[{number}]/", change))
            for number, case in enumerate(step.match.cases, 1)
        )
        step = replace(step, match=replace(step.match, cases=cases))
    return replace(step, work=_with_inner(step.work, path, change))


def with_steps(sequence: Sequence, prefix: str, change: ChangeStep) -> Sequence:
    """Return a sequence with its steps replaced; those that are left keep their positions."""
    steps = (change(f"{prefix}{step.position}", step) for step in sequence.steps)
    return Sequence(tuple(step for step in steps if step is not None))


def _with_inner(work: Work | None, path: str, change: ChangeStep) -> Work | None:
    def only(part: str, step: Step) -> Step:
        changed = change(f"{path}/{part}", step)
        if changed is None:
            raise ValueError(f"step {step.label} is the only one where it stands")
        return changed

    match work:
        case Block():
            return replace(work, body=with_steps(work.body, f"{path}/steps/", change))
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
            return replace(work, do=only("fold", work.do))
        case Repeat():
            return replace(work, do=only("repeat", work.do))
        case ForEach():
            return replace(work, do=only("for_each", work.do), collect=only("collect", work.collect))
        case Parallel():
            branches = tuple((name, only(f"parallel[{name}]", branch)) for name, branch in work.branches)
            return replace(work, branches=branches, collect=only("collect", work.collect))
        case Transform() | Invoke() | Agent() | Call() | Fail() | Stop() | Think() | UseTool() | Thread() | None:
            return work
        case _:
            assert_never(work)


def _target(target: Call | Block, prefix: str, change: ChangeStep) -> Call | Block:
    return replace(target, body=with_steps(target.body, prefix, change)) if isinstance(target, Block) else target


def binds(work: Work, part: str) -> frozenset[str]:
    """Return the names that work binds for the steps at a part of it, such as `collect` or `parallel[left]`."""
    word = part.partition("[")[0].partition("/")[0]
    branches = work.branches if isinstance(work, Parallel) and word == "collect" else ()
    return frozenset((*work.binds.get(word, ()), *(name for name, _ in branches)))
