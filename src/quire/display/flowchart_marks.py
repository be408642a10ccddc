"""Marks and lines that a flowchart shows beside the order of its steps: the changes that a step may make, the question
that guards it, and the data flow of text from outside.

A mark is a short text in a node; a way is a line between two nodes that does not say which step comes next. Colour is
never alone: a mark is words, and each kind of way has dashes and a label of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.analysis.approvals import gates_of
from quire.analysis.flow_paths import flows_of
from quire.display.lock_diff import capability_name
from quire.plan.flowchart import Node
from quire.plan.nodes import UseTool
from quire.plan.pipeline_work import Invoke
from quire.plan.uses import called_documents
from quire.source import NOWHERE

if TYPE_CHECKING:
    from quire.analysis.approvals import Gate
    from quire.analysis.facts import EffectFact, Place
    from quire.analysis.flow_paths import Flow
    from quire.analysis.proof import Proof
    from quire.plan.flowchart import Item
    from quire.plan.nodes import Plan
    from quire.source import Span


MarkKind = Literal["effect", "asked", "unasked", "outside"]
WayKind = Literal["guard", "flow"]
MOST_MARKS = 3
"""Marks of one kind in a node; the others are counted."""
MOST_WAYS = 60
"""Ways of one chart: more of them cannot be told apart."""

_SHAPES: Mapping[WayKind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "guard": (("ask", "call"), ("tool", "model", "call")),
    "flow": (("tool", "call", "model"), ("tool", "model", "call")),
}
"""The shapes that a way starts and ends at, if a step is drawn as several nodes."""


class Mark(Struct, frozen=True):
    """A short text in a node."""

    kind: MarkKind
    text: str


class Way(Struct, frozen=True):
    """A line between two nodes."""

    kind: WayKind
    start: str
    """The path of a step, or the name of a node."""
    end: str
    label: str


class Overlay(Struct, frozen=True):
    """All marks and ways of a chart: of steps by their paths, or of nodes by their names."""

    marks: Mapping[str, tuple[Mark, ...]] = {}
    ways: tuple[Way, ...] = ()


NO_OVERLAY = Overlay()


def on_nodes(overlay: Overlay, items: Iterable[Item], steps: Sequence[str]) -> Overlay:
    """Return the marks and ways by the names of nodes. `steps` are the paths of all steps in the order of the document:
    those of a folded node are marked and connected together."""
    if not overlay.marks and not overlay.ways:
        return NO_OVERLAY
    drawn = _Drawn(items, steps)
    marks: dict[str, dict[Mark, None]] = {}
    for path, several in overlay.marks.items():
        if node := drawn.node(path, _SHAPES["guard"][1]):
            marks.setdefault(node, {}).update(dict.fromkeys(several))
    ways: dict[Way, None] = {}
    for way in overlay.ways:
        first, last = _SHAPES[way.kind]
        start, end = drawn.node(way.start, first), drawn.node(way.end, last)
        if start and end and start != end and len(ways) < MOST_WAYS:
            ways[Way(way.kind, start, end, way.label)] = None
    return Overlay({node: _few(tuple(several)) for node, several in marks.items()}, tuple(ways))


def _few(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """Return the marks with those of each kind counted that are too many. Effects come first, then what is asked."""
    order: tuple[MarkKind, ...] = ("effect", "asked", "unasked", "outside")
    few: list[Mark] = []
    for kind in order:
        several = [mark for mark in marks if mark.kind == kind]
        shown = several if len(several) <= MOST_MARKS else several[: MOST_MARKS - 1]
        few += shown
        if len(shown) < len(several):
            few.append(Mark(kind, f"and {len(several) - len(shown):,} more"))
    return tuple(few)


class _Drawn:
    """The nodes of a chart by the paths of their steps."""

    def __init__(self, items: Iterable[Item], steps: Sequence[str]) -> None:
        self._nodes: dict[str, list[Node]] = {}
        self._order = {path: at for at, path in enumerate(steps)}
        folds: list[tuple[int, int, Node]] = []
        for item in items:
            if not isinstance(item, Node) or not item.path:
                continue
            if not item.folds:
                self._nodes.setdefault(item.path, []).append(item)
            elif item.path in self._order:
                first = self._order[item.path]
                folds.append((first, first + item.folds - 1, item))
        self._folds = sorted(folds, key=lambda fold: fold[0])
        self._starts = [first for first, _, _ in self._folds]

    def node(self, path: str, shapes: tuple[str, ...]) -> str:
        """Return the name of the node of a step, of these shapes if there are several; empty if it is not drawn."""
        nodes = self._nodes.get(path)
        if nodes:
            fitting = [node for shape in shapes for node in nodes if node.shape == shape]
            return (fitting or nodes)[0].name
        at = self._order.get(path)
        if at is None:
            return ""
        index = bisect_right(self._starts, at) - 1
        if index < 0:
            return ""
        _, last, node = self._folds[index]
        return node.name if at <= last else ""


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
        for question in gate.questions if gate.verdict == "gated" else ():
            ways[Way("guard", steps.path(question.place), path, GUARDS)] = None
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
            return Mark("asked", f"after a yes in step {joint.join(question.place.way for question in gate.questions)}")
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
        traces = [trace for trace in flow.trace.way() if trace.step]
        passed = [self._callers.get(trace.document, "") if trace.document else self._at(trace.span) for trace in traces]
        for path in (*passed, self.path(flow.place)):
            if path and path != last:
                yield path
                last = path
