"""The outline of a playbook: its sections, inputs, steps, arms and sub-steps."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING

from quire.lsp.answers import Symbol
from quire.lsp.playbook.layout import Part, Section, layout_of
from quire.source import Span

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import Arm, InputDeclaration, Playbook, Step
    from quire.lsp.views import View


def outline(view: View, tree: Playbook) -> tuple[Symbol, ...]:
    """Return the parts of a playbook in the order of its text."""
    layout = layout_of(view)
    parts = {part.heading.start: part for part in layout.parts}
    found = [_section(section, tree) for section in layout.sections if section.kind]
    ends = [one.line.start() for one in layout.markers if one.word == "endif"]
    found += [_step(step, parts, ends) for step in tree.steps if step.start in parts]
    return tuple(sorted(found, key=lambda one: one.span.start))


def arm_words(arm: Arm) -> str:
    """Return an arm in words: `depth == "thorough"`, or `else`."""
    one = arm.condition
    return f'{one.variable} {one.operator} "{one.value}"' if one else "else"


def work_words(step: Step) -> str:
    """Return what a step does in short words."""
    words: list[str] = []
    if step.tool:
        words.append(f"calls {step.tool.connection}/{step.tool.tool}")
    elif step.elicitation:
        words.append("asks a person")
    if not step.tool and (step.has_text or step.prompt):
        words.append("asks a model")
    kept = f" → {step.output.name}" if step.output else ""
    return ", ".join(words) + kept


def input_words(declared: InputDeclaration) -> str:
    """Return the type of an input in words: `enum: a, b`, `string = Go`."""
    if declared.options:
        return f"{declared.type}: {', '.join(declared.options)}"
    return declared.type if declared.default is None else f"{declared.type} = {declared.default}"


def _section(section: Section, tree: Playbook) -> Symbol:
    children: tuple[Symbol, ...] = ()
    if section.kind == "inputs":
        # The inputs are in the order of the text.
        first = bisect_left(tree.inputs, section.start, key=attrgetter("start"))
        last = bisect_left(tree.inputs, section.end, key=attrgetter("start"))
        children = tuple(
            Symbol(one.name, "input", one.span, one.name_span, input_words(one)) for one in tree.inputs[first:last]
        )
    return Symbol(section.name, "element", Span(section.start, section.end), section.heading, "", children)


def _step(step: Step, parts: dict[int, Part], ends: list[int]) -> Symbol:
    part = parts[step.start]
    arms = []
    for number, arm in enumerate(step.arms):
        if number + 1 < len(step.arms):
            end = step.arms[number + 1].start
        else:
            at = bisect_left(ends, arm.end)
            end = ends[at] if at < len(ends) and ends[at] < part.end else part.end
        arms.append(_arm(arm, max(end, arm.end), parts))
    return Symbol(_name(step), "step", Span(part.start, part.end), part.heading, work_words(step), tuple(arms))


def _arm(arm: Arm, end: int, parts: dict[int, Part]) -> Symbol:
    children = []
    for step in arm.steps:
        part = parts.get(step.start)
        span = Span(part.start, part.end) if part else Span(step.start, max(step.start, step.end))
        children.append(Symbol(_name(step), "step", span, part.heading if part else span, work_words(step)))
    word = "" if arm.condition is None else "if "
    return Symbol(word + arm_words(arm), "branch", Span(arm.start, end), arm.span, "", tuple(children))


def _name(step: Step) -> str:
    return f"STEP {step.label}: {step.title}" if step.title else f"STEP {step.label}"
