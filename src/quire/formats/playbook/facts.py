"""What the lints need to know about a playbook as a whole: who sets which name, and what it can hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from quire.formats.playbook.syntax import Playbook, Step


def family(step: Step) -> Iterator[Step]:
    """The step, then its sub-steps."""
    yield step
    for arm in step.arms:
        yield from arm.steps


def asked_names(step: Step) -> set[str]:
    """The names under which the answer to this step's own question can be read."""
    if not step.elicitation:
        return set()
    return {f"__elicit_step_{step.number}", f"__elicit_step_{step.label}"}


@dataclass(slots=True)
class Facts:
    """`values` has the only texts a name can hold, where they are known; `untyped` the captures without a type."""

    inputs: set[str] = field(default_factory=set)
    outputs: dict[str, str] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    values: dict[str, set[str]] = field(default_factory=dict)
    untyped: set[str] = field(default_factory=set)

    @property
    def names(self) -> set[str]:
        return self.inputs | self.outputs.keys() | self.asked


def gather(playbook: Playbook) -> Facts:
    facts = Facts(inputs={declared.name for declared in playbook.inputs})
    known: dict[str, list[tuple[str, ...] | None]] = {}
    for declared in playbook.inputs:
        if declared.type == "enum" and declared.options:
            facts.values[declared.name] = set(declared.options)
    for parent in playbook.steps:
        for step in family(parent):
            answers = _answers(step)
            for name in asked_names(step):
                facts.asked.add(name)
                known.setdefault(name, []).append(answers)
            if step.output:
                facts.outputs.setdefault(step.output.name, step.label)
                alone = step.elicitation and not (step.content or step.prompt or step.tool)
                options = step.output.options if step.output.type == "enum" and step.output.options else None
                known.setdefault(step.output.name, []).append(answers if alone else options)
                if step.output.type is None and not alone and not step.output.field:
                    facts.untyped.add(step.output.name)
    for name, all_options in known.items():
        if name not in facts.inputs and all(options is not None for options in all_options):
            facts.values[name] = {value for options in all_options if options for value in options}
    return facts


def _answers(step: Step) -> tuple[str, ...] | None:
    asked = step.elicitation
    if not asked or asked.kind == "input":
        return None
    if asked.kind == "confirm":
        return ("yes", "no")
    return asked.options if asked.options and not any("{{" in option for option in asked.options) else None
