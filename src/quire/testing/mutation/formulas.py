"""The expressions of a step of a pipeline that mutations change, each with its place in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.plan.parts import formulas, with_formulas
from quire.plan.pipeline_work import ForEach, Formula, Parallel

if TYPE_CHECKING:
    from quire.plan.nodes import Step

_PLACES = {"when": "when", "instead": "the default", "source": "over", "on": "on", "init": "init", "until": "until"}
"""The words for roles; other roles are the word itself: `the value`, `the argument city`."""


def changed_formulas(step: Step) -> Iterator[tuple[str, str, Formula]]:
    """Yield the place, the role and the expression for each one of a step itself. A default that never counts, because
    a failure ends the run, is left out."""
    guard, work = step.guard, step.work
    for role, formula in formulas(step):
        fan_ends = role == "default" and isinstance(work, ForEach | Parallel) and not work.on_error.goes_on
        run_ends = role == "instead" and guard is not None and not guard.goes_on
        if not (fan_ends or run_ends):
            yield _place(role), role, formula


def with_formula(step: Step, role: str, formula: Formula) -> Step:
    """Return the step with another expression in a role."""
    return with_formulas(step, lambda name, old: formula if name == role else old)


def _place(role: str) -> str:
    """Return the words for a role: `the passed letter` for `cases[urgent].passes[letter]`."""
    if role.startswith("arguments["):
        return f"the argument {role.removeprefix('arguments[').removesuffix(']')}"
    _, passed, name = role.rpartition("passes[")
    return f"the passed {name.removesuffix(']')}" if passed else _PLACES.get(role, f"the {role}")
