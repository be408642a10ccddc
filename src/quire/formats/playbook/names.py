"""Which names a condition may read, step by step. Known only when all is read: a section may declare inputs later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quire.diagnostics import Diagnostic
from quire.formats.near_names import name_fix
from quire.formats.playbook.codes import warnings
from quire.formats.playbook.syntax import Condition, InputDeclaration, Step
from quire.wording import Suggestions


def settle_conditions(steps: Sequence[Step], inputs: Mapping[str, InputDeclaration], found: list[Diagnostic]) -> None:
    """Says of each condition on no input where its value comes from, and warns of those that nothing sets before."""
    names = _Names(inputs, steps, found)
    for step in steps:
        for arm in step.arms:
            if arm.condition and arm.condition.variable not in inputs:
                names.settle(arm.condition, step)
        names.after(step)


def _family(step: Step) -> list[Step]:
    return [step, *(sub for arm in step.arms for sub in arm.steps)]


class _Names:
    """Goes along with the steps: `after` each, what it captures may be read."""

    def __init__(self, inputs: Mapping[str, InputDeclaration], steps: Sequence[Step], found: list[Diagnostic]) -> None:
        self._found = found
        self._known = set(inputs)
        self._asked: set[str] = set()
        self._captured_by: dict[str, str] = {}
        self._suggestions = Suggestions()
        for parent in steps:
            for step in _family(parent):
                if step.elicitation:
                    self._asked |= {f"__elicit_step_{step.number}", f"__elicit_step_{step.label}"}
                if step.output:
                    self._captured_by.setdefault(step.output.name, step.label)

    def after(self, parent: Step) -> None:
        self._known.update(step.output.name for step in _family(parent) if step.output)

    def settle(self, condition: Condition, step: Step) -> None:
        name = condition.variable
        if name in self._captured_by or name in self._asked:
            condition.source = "step_output"
        if not (name in self._known or name in self._asked or (step.output and step.output.name == name)):
            self._warn(condition)

    def _warn(self, condition: Condition) -> None:
        name = condition.variable
        close = self._suggestions.nearest(name, self._known)
        help = f'did you mean "{close}"?' if close else "declare it in ## INPUTS or capture it with @output before"
        if name in self._captured_by:
            help = f"step {self._captured_by[name]} captures it, which comes later or is an arm of this step"
        self._found.append(
            Diagnostic(
                warnings.UNDECLARED_VARIABLE,
                f'Undeclared branch variable: "{name}"',
                condition.variable_span,
                "neither an input nor captured before",
                help,
                name_fix(name, self._known, condition.variable_span) if close and name not in self._captured_by else (),
            )
        )
