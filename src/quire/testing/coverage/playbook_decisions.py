"""Decisions of a playbook: its steps, the arms of its branches, the answers to its questions, its prompts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.formats.playbook.parse import parse
from quire.testing.coverage.decisions import Decision
from quire.testing.coverage.question_ways import answers

if TYPE_CHECKING:
    from quire.formats.playbook import syntax
    from quire.plan.nodes import Comparison, Match, Plan, Step, Template
    from quire.source import Source, Span


def playbook_decisions(plan: Plan, source: Source) -> Iterator[Decision]:
    written = _written(source)
    for path, step in plan.steps():
        tree = written.get(step.span.start)
        name = f"step {step.label}"
        yield Decision("steps", path, "", "", f"{name}: {step.title}" if step.title else name, step.span)
        if step.work is not None and step.work.asks_model:
            yield Decision("prompts", path, "", "", f"{name}: its prompt is looked at", step.span)
        if step.ask is not None:
            place = tree.elicitation.span if tree and tree.elicitation else step.span
            options = [(template_text(option), place) for option in step.ask.options]
            yield from answers(path, step.label, step.ask.kind, options, step.ask.default is not None, place)
        if step.match is not None:
            yield from _branches(path, step, step.match, [arm.span for arm in tree.arms] if tree else [])


def _written(source: Source) -> dict[int, syntax.Step]:
    """Return the steps of the syntax tree by the offset of their heading."""
    playbook = parse(source).playbook
    top = playbook.steps if playbook else ()
    inner = (step for one in top for arm in one.arms for step in arm.steps)
    return {step.start: step for step in (*top, *inner)}


def _branches(path: str, step: Step, match: Match, spans: list[Span]) -> Iterator[Decision]:
    name = f"step {step.label}"
    for number, case in enumerate(match.cases, 1):
        span = spans[number - 1] if len(spans) >= number else step.span
        if case.test is None:
            yield Decision("arms", path, "arm", str(number), f"{name}: else", span)
            return  # an arm after `else` never runs
        test = test_text(case.test)
        word = "if" if number == 1 else "elif"
        yield Decision("arms", path, "arm", str(number), f"{name}: {word} {test}", span)
        for way in ("true", "false"):
            yield Decision("conditions", path, f"if[{number}]", way, f"{name}: `{test}` {way}", span)
    last = spans[-1] if spans else step.span
    yield Decision("arms", path, "arm", "none", f"{name}: no arm (there is no else)", last)


def test_text(test: Comparison) -> str:
    return f'{test.variable} {test.operator} "{test.value}"'


def template_text(template: Template) -> str:
    """Return a template as it is written in the document."""
    return "".join(part if isinstance(part, str) else part.raw for part in template.parts)
