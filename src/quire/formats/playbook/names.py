"""Which names a condition may read, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quire.diagnostics import Diagnostic
from quire.formats.playbook.codes import warnings
from quire.formats.playbook.drafts import Draft
from quire.formats.playbook.making import quick
from quire.formats.playbook.markers import Marker
from quire.formats.playbook.suggest import Suggestions
from quire.formats.playbook.syntax import Condition, ConditionSource, InputDeclaration, Step

_condition = quick(Condition)


class Names:
    """Goes along with the steps: `after` each, what it captures may be read. `found` takes the diagnostics."""

    def __init__(
        self, inputs: Mapping[str, InputDeclaration], steps: Sequence[Draft | Step], found: list[Diagnostic]
    ) -> None:
        self._inputs = inputs
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

    def after(self, parent: Draft | Step) -> None:
        for step in _family(parent):
            if step.output:
                self._known.add(step.output.name)

    def condition(self, marker: Marker, draft: Draft) -> Condition:
        name = marker.variable
        source: ConditionSource = "step_output" if name in self._captured_by or name in self._asked else "input"
        if name in self._inputs:
            source = "input"
        elif not (name in self._known or name in self._asked or (draft.output and draft.output.name == name)):
            self._warn(marker)
        return _condition(name, marker.operator, marker.value, source, marker.span, marker.variable_span)

    def _warn(self, marker: Marker) -> None:
        name = marker.variable
        close = self._suggestions.nearest(name, self._known)
        help = f'did you mean "{close}"?' if close else "declare it in ## INPUTS or capture it with @output before"
        if name in self._captured_by:
            help = f"step {self._captured_by[name]} captures it, which comes later or is an arm of this step"
        self._found.append(
            Diagnostic(
                warnings.UNDECLARED_VARIABLE,
                f'Undeclared branch variable: "{name}"',
                marker.variable_span,
                "neither an input nor captured before",
                help,
            )
        )


def _family(step: Draft | Step) -> Sequence[Draft | Step]:
    """Only steps without branches are finished so early."""
    return step.family() if isinstance(step, Draft) else (step,)
