"""Marks and ways of a flowchart that a proof gives: effects with their classes, gates, and flows from outside."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from quire.analysis.flow_paths import flows_of
from quire.analysis.gates import gates_of
from quire.display.capability_names import capability_name
from quire.display.flowchart_marks import Mark, Overlay, Way
from quire.plan.envelope import called_documents
from quire.plan.nodes import UseTool
from quire.plan.pipeline_work import Invoke
from quire.source import NOWHERE

if TYPE_CHECKING:
    from quire.analysis.facts import EffectFact, Place
    from quire.analysis.flow_paths import Flow
    from quire.analysis.gates import Gate
    from quire.analysis.labels import Trace
    from quire.analysis.proof import Proof
    from quire.plan.nodes import Plan
    from quire.source import Span

FROM_OUTSIDE = "from outside"
PRIVATE = "private"
GUARDS = "guards"
ENTERS = Mark("outside", "text from outside enters here")
_CLASSES = {"write": "writes", "idempotent": "writes", "read": "reads"}
_NOTABLE = ("elevated", "unrestricted")
"""Tiers of risk that are shown."""


def overlay_of(proof: Proof) -> Overlay:
    """Return the marks and ways of a document, by the paths of its steps."""
    steps = _Steps(proof.plan)
    marks: dict[str, dict[Mark, None]] = {}
    ways: dict[Way, None] = {}
    for effect in proof.effects:
        path, text = steps.path(effect.place), effect_text(effect)
        if path and text:
            marks.setdefault(path, {})[Mark("effect", text)] = None
    for gate in gates_of(proof):
        path = steps.path(gate.effect.place)
        if path:
            marks.setdefault(path, {})[_gate_mark(gate)] = None
        for asked in gate.questions if gate.verdict == "gated" else ():
            ways[Way("guard", steps.path(asked.place), path, GUARDS)] = None
    for flow in flows_of(proof):
        passed = list(steps.passed(flow))
        label = PRIVATE if flow.kind == "private" else FROM_OUTSIDE
        if passed and label == FROM_OUTSIDE:
            marks.setdefault(passed[0], {})[ENTERS] = None
        ways.update(dict.fromkeys(Way("flow", *hop, label) for hop in pairwise(passed)))
    return Overlay({path: tuple(several) for path, several in marks.items()}, tuple(ways))


def effect_text(effect: EffectFact) -> str:
    """Return the class and the tier of an effect in words; empty for one that only reads, at no risk."""
    tool = effect.tool
    words = _CLASSES[tool.effect] if tool.certain else "may write"
    if tool.tier in _NOTABLE:
        words = f"{words}, {tool.tier}"
    elif tool.effect == "read":
        return ""
    name = capability_name(tool.name) if tool.name == tool.capability else tool.name
    if effect.by_model:
        return f"may use {name}: {words}"
    # The node of a plain step names its tool already; a call, a thread and its hooks may use several.
    plain = isinstance(effect.place.step.work, UseTool | Invoke) and not effect.place.document
    return words if plain else f"uses {name}: {words}"


def _gate_mark(gate: Gate) -> Mark:
    match gate.verdict:
        case "gated":
            joint = " or " if gate.jointly else " and "
            return Mark("asked", f"after a yes in step {joint.join(one.place.way for one in gate.questions)}")
        case "ignored":
            return Mark("unasked", "asked, but a no comes through")
        case "open":
            return Mark("unasked", "no question before it")
        case "never":
            return Mark("effect", "never runs")


class _Steps:
    """The steps of a document by their places in its text."""

    def __init__(self, plan: Plan) -> None:
        self._spans: dict[Span, str] = {}
        self._callers: dict[str, str] = {}
        for path, step in plan.steps():
            self._spans.setdefault(step.span, path)
            for name in called_documents(step):
                self._callers.setdefault(name, path)
        self._spans.pop(NOWHERE, None)

    def path(self, place: Place) -> str:
        """Return the path of a step, or of the step that calls the document of the step; empty if it is not known."""
        if place.document:
            return self._at(place.site) or self._callers.get(place.document, "")
        return place.path

    def _at(self, span: Span | None) -> str:
        return self._spans.get(span, "") if span is not None else ""

    def passed(self, flow: Flow) -> Iterator[str]:
        """Yield the paths of the steps that a flow passes, one after the other, the same never twice in a row."""
        last = ""
        # The name of a store stands between the steps that write and read it: it is not a place of its own.
        passed = [self._traced(one) for one in flow.trace.way() if one.step]
        for path in (*passed, self.path(flow.place)):
            if path and path != last:
                yield path
                last = path

    def _traced(self, trace: Trace) -> str:
        return self._callers.get(trace.document, "") if trace.document else self._at(trace.span)
