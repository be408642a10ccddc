"""Expectations of a draft that was made for one decision: the steps that show it, as its run has seen them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from quire.plan.parts import formulas
from quire.plan.pipeline_work import Select
from quire.testing.tested_values import names_in

if TYPE_CHECKING:
    from quire.plan.nodes import Plan, Step
    from quire.testing.coverage.decisions import Decision
    from quire.testing.observation import Observation
    from quire.values import Value

_SHOWN = ("completed", "skipped", "failed")
MOST_STEPS = 12
_PLAIN = (str, int, float, bool)


def expectations(plan: Plan, seen: Observation, decisions: Sequence[Decision]) -> dict[str, Value]:
    """Return expectations that hold in a run, and that fail if it decides otherwise. Without a decision, or where no
    step shows it, they are about the result."""
    found: dict[str, Value] = {}
    if seen.status != "completed":
        found["status"] = seen.status
    labels = dict.fromkeys(label for one in decisions for label in _labels(plan, one))
    steps: dict[str, Value] = {label: seen.steps[label] for label in labels if seen.steps.get(label) in _SHOWN}
    if steps:
        found["steps"] = dict(list(steps.items())[:MOST_STEPS])
    else:
        found |= _result(seen)
    if seen.warnings:
        found["warnings"] = [message for _, message in seen.warnings]
    return found


def _result(seen: Observation) -> dict[str, Value]:
    """Return expectations about the result of a run. A mapping may look like a matcher: then the calls are counted."""
    outputs = {name: value for name, value in seen.outputs.items() if isinstance(value, _PLAIN)}
    if outputs:
        return {"outputs": outputs}
    if seen.status == "completed" and isinstance(seen.output, _PLAIN):
        return {"output": seen.output}
    return {"used": {"model_calls": seen.used.model_calls, "tool_calls": seen.used.tool_calls}}


def _labels(plan: Plan, decision: Decision) -> Iterator[str]:
    """Yield the labels of the steps that tell which way was taken: the first ones of each arm."""
    step = dict(plan.steps()).get(decision.place)
    if step is None:
        return
    if decision.kind == "steps":
        yield step.label
        return
    for case in step.match.cases if step.match else ():
        yield from (one.label for one in case.body.steps[:1])
    if isinstance(step.work, Select):
        yield from (part.label for _, part in step.work.parts())


def names_before(plan: Plan, wanted: str) -> frozenset[str]:
    """Return the words of the choices that may decide whether a decision is reached: the names that the conditions on
    the way to it read, those from which they are computed, and the labels of the steps that write them."""
    place = wanted.split(":")[1].partition("=")[0] if wanted.count(":") else ""
    steps = list(plan.steps())
    names: set[str] = set()
    for path, step in steps:
        if place == path or place.startswith(f"{path}/") or step.match is not None:
            names.update(_read(step))
    before = -1
    while before != len(names):
        before = len(names)
        for _, step in steps:
            if step.capture is not None and step.capture.name in names:
                names.update((step.label, *_read(step)))
            if names & {f"__elicit_step_{step.label}", f"__elicit_step_{step.number}"}:
                names.add(step.label)
    return frozenset(names)


def _read(step: Step) -> Iterator[str]:
    for case in step.match.cases if step.match else ():
        if case.test is not None:
            yield case.test.variable
    for _, formula in formulas(step):
        yield from names_in(formula.compiled.expression.root)
