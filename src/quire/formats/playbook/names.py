"""Names of a playbook: which step sets each name, which values it can have, and which names a condition may read.

Conditions are resolved only when the whole document is read: a later section may declare inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.diagnostics import Diagnostic
from quire.formats.near_names import name_fix
from quire.formats.playbook.codes import reader
from quire.wording import Suggestions, did_you_mean

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import Condition, Playbook, Step


def settle_conditions(steps: Sequence[Step], inputs: Collection[str], findings: list[Diagnostic]) -> None:
    """Set the source of each condition that does not read an input, and report those whose name is not set before."""
    names = _Names(inputs, steps, findings)
    for step in steps:
        for arm in step.arms:
            if arm.condition and arm.condition.variable not in inputs:
                names.settle(arm.condition, step)
        names.after(step)


class _Names:
    """The names that may be read, step by step: after each step its captures are added."""

    def __init__(self, inputs: Collection[str], steps: Sequence[Step], findings: list[Diagnostic]) -> None:
        self._findings = findings
        self._known = set(inputs)
        self._asked: set[str] = set()
        self._captured_by: dict[str, str] = {}
        self._suggestions = Suggestions.wide()
        for parent in steps:
            for step in family(parent):
                if step.elicitation:
                    self._asked |= asked_names(step)
                if step.output:
                    self._captured_by.setdefault(step.output.name, step.label)

    def after(self, parent: Step) -> None:
        self._known.update([step.output.name for step in family(parent) if step.output])

    def settle(self, condition: Condition, step: Step) -> None:
        name = condition.variable
        if name in self._captured_by or name in self._asked:
            condition.source = "step_output"
        if not (name in self._known or name in self._asked or (step.output and step.output.name == name)):
            self._warn(condition)

    def _warn(self, condition: Condition) -> None:
        name = condition.variable
        close = self._suggestions.nearest(name, self._known)
        help = did_you_mean(close, "declare it in ## INPUTS or capture it with @output before", form='"{}"')
        if name in self._captured_by:
            help = f"step {self._captured_by[name]} captures it, which comes later or is a branch of this step"
        is_certain = close and name not in self._captured_by
        fix = name_fix(name, self._known, condition.variable_span) if is_certain else None
        message = f'Undeclared branch variable: "{name}"'
        span, label = condition.variable_span, "neither an input nor captured before"
        self._findings.append(Diagnostic(reader.UNDECLARED_VARIABLE, message, span, label, help, fix))


def family(step: Step) -> Sequence[Step]:
    """Return the step and its sub-steps, in order."""
    return [step, *[substep for arm in step.arms for substep in arm.steps]] if step.arms else (step,)


def asked_names(step: Step) -> set[str]:
    """Return the names under which the answer to this step's own question can be read."""
    if not step.elicitation:
        return set()
    return {f"__elicit_step_{step.number}", f"__elicit_step_{step.label}"}


class Facts(Struct):
    """Names of a whole playbook, for the lints."""

    inputs: set[str] = field(default_factory=set)
    outputs: dict[str, str] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    values: dict[str, set[str]] = field(default_factory=dict)
    """The only texts that a name can hold, if they are known."""
    untyped: set[str] = field(default_factory=set)
    """Captures without a type."""

    @property
    def names(self) -> set[str]:
        return self.inputs | self.outputs.keys() | self.asked


def gather(playbook: Playbook) -> Facts:
    """Collect the names of a playbook."""
    facts = Facts(inputs={declared.name for declared in playbook.inputs})
    choices: dict[str, list[tuple[str, ...] | None]] = {}
    for declared in playbook.inputs:
        if declared.type == "enum" and declared.options:
            facts.values[declared.name] = set(declared.options)
    for parent in playbook.steps:
        for step in family(parent):
            answers = _answers(step)
            for name in asked_names(step):
                facts.asked.add(name)
                choices.setdefault(name, []).append(answers)
            if step.output:
                facts.outputs.setdefault(step.output.name, step.label)
                alone = step.elicitation and not (step.has_text or step.prompt or step.tool)
                options = step.output.options if step.output.type == "enum" and step.output.options else None
                choices.setdefault(step.output.name, []).append(answers if alone else options)
                if step.output.type is None and not alone and not step.output.field:
                    facts.untyped.add(step.output.name)
    for name, all_options in choices.items():
        if name not in facts.inputs and all(options is not None for options in all_options):
            facts.values[name] = {value for options in all_options if options for value in options}
    return facts


def _answers(step: Step) -> tuple[str, ...] | None:
    elicitation = step.elicitation
    if not elicitation or elicitation.kind == "input":
        return None
    if elicitation.kind == "confirm":
        return ("yes", "no")
    is_open = not elicitation.options or any("{{" in option for option in elicitation.options)
    return None if is_open else elicitation.options
