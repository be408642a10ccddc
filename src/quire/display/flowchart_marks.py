"""Marks and ways that a flowchart shows beside the order of its steps: what a step may change, the question that guards
it, and text from outside on its way to it.

A mark is a short text in a node; a way is a line between two nodes that does not say which step comes next. Colour is
never alone: a mark is words, and each kind of way has dashes and a label of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.plan.flowchart import Node

if TYPE_CHECKING:
    from quire.plan.flowchart import Item

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
    found: list[Mark] = []
    for kind in order:
        several = [mark for mark in marks if mark.kind == kind]
        kept = several if len(several) <= MOST_MARKS else several[: MOST_MARKS - 1]
        found += kept
        if len(kept) < len(several):
            found.append(Mark(kind, f"and {len(several) - len(kept):,} more"))
    return tuple(found)


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
        self._folds = sorted(folds, key=lambda one: one[0])
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
        found = bisect_right(self._starts, at) - 1
        if found < 0:
            return ""
        _, last, node = self._folds[found]
        return node.name if at <= last else ""
