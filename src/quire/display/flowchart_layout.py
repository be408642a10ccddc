"""Layout of a flowchart: steps below each other, branches beside each other, boxes around both.

Documents are nested, so no search for a good order is needed: the size of a part follows from the sizes of its parts,
and then each part gets its place from the top down. The same chart always has the same layout.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections import Counter

from msgspec import Struct, field

from quire.display.flowchart_marks import NO_OVERLAY, Mark, Overlay, WayKind
from quire.plan.flowchart import Close, Item, Lane, Line, Node, Open, shortened

GAP = 52
"""Vertical distance between parts: space for a line to bend and for its label."""
BETWEEN = 28
PAD = 20
TITLE = 26
BACK = 26
SIDE = 44
"""Space that a line leading back, with its label, takes at the right; `BACK` is its space below."""
LINE_HEIGHT = 18
_CHARACTER = 7.4
_WRAP = 34
_LABEL = 32
_LANE = 36
_BESIDE = 18
"""Distance of a way from the nodes that it passes; `_APART` from another way."""
_APART = 14


class Placed(Struct):
    """A node or a box: its centre (`x`), its upper edge (`y`), its size and its lines of text."""

    x: float
    y: float
    width: float
    height: float
    item: Node | Open
    head: list[str]
    what: list[str]
    marks: list[tuple[str, str]] = field(default_factory=list)
    """Lines of marks below the others, each with the kind of its mark."""


class Track(Struct):
    """The corners of a way beside the nodes, and the position of its label, which continues to the right."""

    kind: WayKind
    start: str
    end: str
    points: list[tuple[float, float]]
    label: str
    at: tuple[float, float]


class Route(Struct):
    """The corners of a line, and the position of its label; `start` and `end` are the names of its nodes."""

    points: list[tuple[float, float]]
    label: str
    at: tuple[float, float]
    back: bool = False
    start: str = ""
    end: str = ""


class Chart(Struct):
    width: float
    height: float
    boxes: list[Placed]
    nodes: list[Placed]
    routes: list[Route]
    tracks: list[Track] = field(default_factory=list)


def text_width(text: str) -> float:
    """Estimate the width of a text, rather too wide: the viewer's font is not known."""
    if text.isascii():
        return len(text) * _CHARACTER
    return sum(2 * _CHARACTER if unicodedata.east_asian_width(character) in "WF" else _CHARACTER for character in text)


class _Block(Struct):
    item: Node | Open | Lane
    parts: list[_Block] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    x: float = 0.0
    y: float = 0.0
    loops: bool = False
    marks: tuple[Mark, ...] = ()

    @property
    def kind(self) -> str:
        return self.item.kind if isinstance(self.item, Open) else type(self.item).__name__.lower()


def layout(items: tuple[Item, ...], overlay: Overlay = NO_OVERLAY) -> Chart:
    """Return the places of all parts. `overlay` has marks and ways by the names of nodes."""
    root, lines = _tree(items, overlay)
    _measure(root)
    _place(root, root.width / 2 + PAD, PAD)
    blocks = list(_all(root))
    nodes = {block.item.name: block for block in blocks if isinstance(block.item, Node)}
    lanes = {block.item.name: block for block in blocks if isinstance(block.item, Lane)}
    boxes = {block.item.name: block for block in blocks if block.kind == "box" and isinstance(block.item, Open)}
    forward = [line for line in lines if not line.back]
    out, into = Counter(line.start for line in forward), Counter(line.end for line in forward)
    routes = []
    for line in lines:
        start, end = nodes[line.start], nodes[line.end]
        if line.back:
            route = _back(line, start, end, boxes[line.back])
        else:
            early = out[line.start] > 1 and into[line.end] == 1
            route = _forward(line, start, end, lanes.get(line.lane), early=early)
        route.start, route.end = line.start, line.end
        routes.append(route)
    placed = [_placed(block) for block in blocks if block.kind in ("node", "box")]
    tracks = _tracks(overlay, placed, [(lane.x, lane.y, lane.y + lane.height) for lane in lanes.values()])
    labels = (track.at[0] + text_width(track.label) + PAD for track in tracks)
    return Chart(
        max(root.width + 2 * PAD, *labels) if tracks else root.width + 2 * PAD,
        root.height + 2 * PAD,
        [part for part in placed if isinstance(part.item, Open)],
        [part for part in placed if isinstance(part.item, Node)],
        routes,
        tracks,
    )


def _tree(items: tuple[Item, ...], overlay: Overlay) -> tuple[_Block, list[Line]]:
    root = _Block(Open("arm"))
    stack, lines = [root], []
    boxes: dict[str, _Block] = {}
    for item in items:
        match item:
            case Line():
                lines.append(item)
                if item.back:
                    boxes[item.back].loops = True
            case Close():
                stack.pop()
            case Open():
                block = _Block(item)
                boxes[item.name] = block
                stack[-1].parts.append(block)
                stack.append(block)
            case Node():
                stack[-1].parts.append(_Block(item, marks=overlay.marks.get(item.name, ())))
            case _:
                stack[-1].parts.append(_Block(item))
    return root, lines


def _measure(block: _Block) -> None:
    """Set the size of a block and its parts. The reader's limit on the depth of documents bounds the recursion."""
    for part in block.parts:
        _measure(part)
    item = block.item
    widest = max((part.width for part in block.parts), default=0.0)
    stacked = sum(part.height for part in block.parts) + GAP * max(0, len(block.parts) - 1)
    if isinstance(item, Lane):
        block.width = _LANE
    elif isinstance(item, Node):
        lines = [*_lines(item.head), *_lines(item.what), *(line for _, line in _marked(block.marks))]
        block.width = max(90.0, max(map(text_width, lines), default=0.0) + 28) + (36 if item.shape == "choice" else 16)
        block.height = LINE_HEIGHT * len(lines) + 20
    elif item.kind == "row":
        block.width = sum(part.width for part in block.parts) + BETWEEN * max(0, len(block.parts) - 1)
        block.height = max((part.height for part in block.parts), default=0.0)
    elif item.kind == "arm":
        block.width = max(widest, text_width(_label(item.head)) + 8 if item.head else 0.0)
        block.height = stacked
    else:
        title = max(map(text_width, _box_title(item)), default=0.0)
        block.width = max(widest + 2 * PAD + (2 * SIDE if block.loops else 0), title + 2 * PAD)
        block.height = stacked + _above(item) + PAD + (BACK if block.loops else 0)


def _above(item: Open) -> float:
    """Return the height of a box's title, and of the space below it in which lines bend."""
    return TITLE + LINE_HEIGHT * (len(_box_title(item)) - 1) + GAP * 0.7


def _place(block: _Block, x: float, y: float) -> None:
    block.x, block.y = x, y
    if block.kind == "row":
        left = x - block.width / 2
        for part in block.parts:
            _place(part, left + part.width / 2, y)
            left += part.width + BETWEEN
            if part.parts and isinstance(part.parts[0].item, Lane):
                part.parts[0].height = block.height
        return
    top = y + _above(block.item) if isinstance(block.item, Open) and block.kind == "box" else y
    for part in block.parts:
        _place(part, x, top)
        top += part.height + GAP


def _all(block: _Block) -> list[_Block]:
    blocks = [block]
    for part in block.parts:
        blocks += _all(part)
    return blocks


def _placed(block: _Block) -> Placed:
    item = block.item
    assert not isinstance(item, Lane)  # noqa: S101  # only nodes and boxes are placed
    if isinstance(item, Open):
        return Placed(block.x, block.y, block.width, block.height, item, _box_title(item), [])
    head, what = _lines(item.head), _lines(item.what)
    return Placed(block.x, block.y, block.width, block.height, item, head, what, _marked(block.marks))


def _marked(marks: tuple[Mark, ...]) -> list[tuple[str, str]]:
    return [(mark.kind, line) for mark in marks for line in _lines(mark.text)]


def _lines(text: str) -> list[str]:
    line = shortened(text)
    return textwrap.wrap(line, _WRAP) if len(line) > _WRAP else [line] if line else []


def _box_title(item: Open) -> list[str]:
    return textwrap.wrap(f"{shortened(item.head)} ({shortened(item.what)})", 2 * _WRAP)


def _label(text: str) -> str:
    return shortened(text, _LABEL)


def _forward(line: Line, start: _Block, end: _Block, lane: _Block | None, *, early: bool) -> Route:
    """Route a forward line. Lines that part bend right below their start, lines that meet right above their end."""
    begin, stop = (start.x, start.y + start.height), (end.x, end.y)
    if lane is not None:
        points = [begin, (lane.x, lane.y), (lane.x, max(lane.y + lane.height, stop[1] - GAP)), stop]
        return Route(points, _label(line.label), (lane.x, lane.y - 14))
    if early:
        turn = (stop[0], min(begin[1] + GAP, stop[1]))
        return Route([begin, turn, stop], _label(line.label), (turn[0], turn[1] - 14))
    turn = (begin[0], max(stop[1] - GAP, begin[1]))
    return Route([begin, turn, stop], _label(line.label), (stop[0], stop[1] - 14))


def _back(line: Line, start: _Block, end: _Block, box: _Block) -> Route:
    """Route a line that leads back: below all parts of the box, up at its right, and in from above, where nothing is
    drawn."""
    low = box.y + box.height - PAD - BACK / 2
    high = box.y + (box.parts[0].y - box.y if box.parts else TITLE) - GAP * 0.35
    right = box.x + max((part.width for part in box.parts), default=0.0) / 2 + SIDE * 0.8
    points = [(start.x, start.y + start.height), (start.x, low), (right, low), (right, high), (end.x, high)]
    return Route([*points, (end.x, end.y)], _label(line.label), (right, (low + high) / 2 + 4), back=True)


def _tracks(overlay: Overlay, placed: list[Placed], taken: list[tuple[float, float, float]]) -> list[Track]:
    """Lead each way out of its node to the right, along everything that stands between, and in from the right. `taken`
    are vertical lines that it must not lie upon: `x`, the upper and the lower end."""
    nodes = {node.item.name: node for node in placed if isinstance(node.item, Node)}
    tracks: list[Track] = []
    for way in overlay.ways:
        start, end = nodes[way.start], nodes[way.end]
        # Ways that leave and enter the same node do not share a point: they would look like one.
        out, into = start.y + start.height * 0.35, end.y + end.height * 0.65
        high, low = min(out, into), max(out, into)
        beside = [part for part in placed if part.y <= low and part.y + part.height >= high]
        x = max(part.x + part.width / 2 for part in beside) + _BESIDE
        while any(abs(x - at) < _APART and first <= low and last >= high for at, first, last in taken):
            x += _APART
        taken.append((x, high, low))
        points = [(start.x + start.width / 2, out), (x, out), (x, into), (end.x + end.width / 2, into)]
        tracks.append(Track(way.kind, way.start, way.end, points, _label(way.label), (x + 5, (out + into) / 2 + 4)))
    return tracks
