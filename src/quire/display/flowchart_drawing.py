"""Draw a plan as an SVG picture, as the text of a Mermaid flowchart, or as JSON for a page that draws it.

A picture has shapes and texts only: no script, no link, nothing that is fetched. Its look is in attributes, because a
page with a strict Content Security Policy drops `<style>` elements and `style` attributes; a file of its own has a
`<style>` all the same, for dark mode alone. Every part has a class, so that the style sheet of a page can replace the
look. Labels come from documents, so they are escaped: no title can end its box, start a directive or insert a tag.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from html import escape
from typing import TYPE_CHECKING

from quire.display.flowchart_layout import LINE_HEIGHT, PAD, TITLE, Chart, Placed, Route, Track, layout
from quire.display.flowchart_marks import NO_OVERLAY, Overlay, on_nodes
from quire.plan.flowchart import LABEL_LIMIT, MOST_NODES, Close, Line, Node, Open, graph, shortened
from quire.plan.flowchart_folds import fold_id

if TYPE_CHECKING:
    from quire.plan.nodes import Plan
    from quire.values import Value


_ROUND = 14
_GREY = "#59636e"
_COLOURS = {
    "model": ("#ddf4ff", "#0969da"),
    "tool": ("#fff8c5", "#9a6700"),
    "ask": ("#fbefff", "#8250df"),
    "choice": ("#ffffff", _GREY),
    "pure": ("#f6f8fa", _GREY),
    "call": ("#dafbe1", "#1a7f37"),
    "end": ("#f6f8fa", _GREY),
    "fold": ("#f6f8fa", _GREY),
}
_MARKS = {"effect": "#9a6700", "asked": "#1a7f37", "unasked": "#cf222e", "outside": "#cf222e"}
_WAYS = {"guard": ("#8250df", "2 3"), "flow": ("#cf222e", "9 4")}
_HALO = 'paint-order="stroke" stroke="#ffffff" stroke-width="4" stroke-linejoin="round"'
_DARK = """
  svg { color-scheme: light dark; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; }
    .box { fill: #9198a1; stroke: #656c76; }
    .line { stroke: #9198a1; }
    .tip { fill: #9198a1; }
    .shape { fill: #151b23; stroke: #9198a1; }
    .model .shape { fill: #121d2f; stroke: #4493f8; }
    .tool .shape { fill: #272115; stroke: #d29922; }
    .ask .shape { fill: #221a2f; stroke: #ab7df8; }
    .choice .shape { fill: #0d1117; }
    .call .shape { fill: #12261e; stroke: #3fb950; }
    text { fill: #f0f6fc; }
    .title, .what, .label { fill: #9198a1; }
    .label, .title { stroke: #0d1117; }
  }
"""
_DARK_OVERLAY = """
  @media (prefers-color-scheme: dark) {
    .mark { fill: #d29922; }
    .mark.asked { fill: #3fb950; }
    .mark.unasked, .mark.outside { fill: #ff7b72; }
    .way.guard { stroke: #ab7df8; }
    .way.flow { stroke: #ff7b72; }
    .tip-guard, .way-label.guard { fill: #ab7df8; }
    .tip-flow, .way-label.flow { fill: #ff7b72; }
    .way-label { stroke: #0d1117; }
  }
"""


def svg(
    plan: Plan,
    *,
    dark: bool = True,
    most: int | None = None,
    opened: Collection[str] = (),
    overlay: Overlay = NO_OVERLAY,
) -> str:
    """Return the whole SVG file, with a final newline. `dark` adds the style of dark mode; `most` and `opened` are as
    in `graph`; `overlay` has marks and ways by the paths of steps."""
    items = graph(plan, most, opened)
    drawn = on_nodes(overlay, items, [path for path, _ in plan.steps()])
    return "\n".join(_file(layout(items, drawn), plan.title, dark, drawn != NO_OVERLAY)) + "\n"


def _file(chart: Chart, title: str, dark: bool, marked: bool) -> Iterator[str]:
    width, height = number(chart.width), number(chart.height)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="group" font-family="ui-sans-serif, system-ui, sans-serif" '
        f'font-size="13" fill="#1f2328" text-anchor="middle">'
    )
    yield f"<title>{printable(title)}</title>"
    if dark:
        yield f"<style>{_DARK}{_DARK_OVERLAY if marked else ''}</style>"
    yield (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path class="tip" fill="{_GREY}" d="M0 0 8 4 0 8z"/></marker></defs>'
    )
    for way in dict.fromkeys(track.kind for track in chart.tracks):
        yield (
            f'<defs><marker id="tip-{way}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path class="tip-{way}" fill="{_WAYS[way][0]}" d="M0 0 8 4 0 8z"/></marker></defs>'
        )
    yield f'<rect class="paper" fill="#ffffff" width="{width}" height="{height}"/>'
    yield f'<g fill="{_GREY}" fill-opacity="0.06" stroke="#8c959f" stroke-dasharray="5 4">'
    for box in chart.boxes:
        yield f'<rect class="box" data-path="{printable(box.item.path)}" {_rect(box)} rx="6"/>'
    yield "</g>"
    yield f'<g fill="none" stroke="{_GREY}" stroke-width="1.5">'
    for route in chart.routes:
        kind = 'class="line back" stroke-dasharray="4 3"' if route.back else 'class="line"'
        yield f'<path {kind} marker-end="url(#tip)" d="{points_path(route.points)}"/>'
    yield "</g>"
    for track in chart.tracks:
        yield from _track(track)
    yield f'<g fill="{_GREY}" text-anchor="start" {_HALO}>'
    for box in chart.boxes:
        for at, line in enumerate(box.head):
            x, y = box.x - box.width / 2 + PAD / 2, box.y + TITLE - 8 + at * LINE_HEIGHT
            yield f'<text class="title" x="{number(x)}" y="{number(y)}">{printable(line)}</text>'
    yield "</g>"
    for node in chart.nodes:
        yield from _node(node)
    yield f'<g fill="{_GREY}" font-size="12" {_HALO}>'
    # Lines that meet share one label, which is written once.
    for label, (x, y) in dict.fromkeys((route.label, route.at) for route in chart.routes if route.label):
        yield f'<text class="label" x="{number(x)}" y="{number(y)}">{printable(label)}</text>'
    yield "</g>"
    for track in chart.tracks:
        colour = _WAYS[track.kind][0]
        x, y = track.at
        yield (
            f'<text class="way-label {track.kind}" fill="{colour}" font-size="12" text-anchor="start" {_HALO} '
            f'x="{number(x)}" y="{number(y)}">{printable(track.label)}</text>'
        )
    yield "</svg>"


def _track(track: Track) -> Iterator[str]:
    colour, dashes = _WAYS[track.kind]
    yield (
        f'<path class="way {track.kind}" data-from="{track.start}" data-to="{track.end}" fill="none" '
        f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}" marker-end="url(#tip-{track.kind})" '
        f'd="{points_path(track.points)}"/>'
    )


def printable(text: str) -> str:
    """Escape any text for the content of an element or of an attribute."""
    return escape(text if text.isprintable() else "".join(sign if sign.isprintable() else "\ufffd" for sign in text))


def _node(node: Placed) -> Iterator[str]:
    item = node.item
    assert isinstance(item, Node)  # noqa: S101  # boxes are drawn elsewhere
    place = f' data-path="{printable(item.path)}"' if item.path else ""
    fold = f' data-fold="{printable(fold_id(item.path, item.until))}"' if item.folds else ""
    name = printable(f"{item.head} ({item.what})" if item.what else item.head)
    name += "".join(f"; {printable(line)}" for _, line in node.marks)
    yield f'<g class="node {item.shape}" data-id="{item.name}"{place}{fold} role="img">'
    yield f"<title>{name}</title>"
    yield from _shape(node, item)
    for at, line in enumerate([*node.head, *node.what]):
        words = f' class="what" fill="{_GREY}"' if at >= len(node.head) else ""
        y = node.y + 10 + LINE_HEIGHT * at + 13
        yield f'<text{words} x="{number(node.x)}" y="{number(y)}">{printable(line)}</text>'
    for at, (kind, line) in enumerate(node.marks, len(node.head) + len(node.what)):
        y = node.y + 10 + LINE_HEIGHT * at + 13
        look = f'class="mark {kind}" fill="{_MARKS[kind]}" font-size="12"'
        yield f'<text {look} x="{number(node.x)}" y="{number(y)}">{printable(line)}</text>'
    yield "</g>"


def _shape(node: Placed, item: Node) -> Iterator[str]:
    fill, stroke = _COLOURS[item.shape]
    kind = f'class="shape" fill="{fill}" stroke="{stroke}" stroke-width="1.5"'
    left, right = node.x - node.width / 2, node.x + node.width / 2
    top, bottom = node.y, node.y + node.height
    middle = (top + bottom) / 2
    match item.shape:
        case "choice":
            corners = [(left, middle), (left + 18, top), (right - 18, top), (right, middle), (right - 18, bottom)]
            yield _polygon(kind, [*corners, (left + 18, bottom)])
        case "ask":
            yield _polygon(kind, [(left + 10, top), (right, top), (right - 10, bottom), (left, bottom)])
        case "end":
            yield f'<rect {kind} {_rect(node)} rx="{number(node.height / 2)}"/>'
        case "pure":
            yield f'<rect {kind} {_rect(node)} rx="{_ROUND}"/>'
        case "fold":
            below = f"M{number(left + 4)} {number(bottom + 4)}H{number(right + 4)}V{number(top + 4)}"
            yield f'<path {kind} d="{below}"/>'
            yield f'<rect {kind} {_rect(node)} rx="4"/>'
        case _:
            yield f'<rect {kind} {_rect(node)} rx="4"/>'
    if item.shape in ("tool", "call"):
        for side in (left + 6, right - 6) if item.shape == "tool" else (left + 6,):
            yield f'<path {kind} d="M{number(side)} {number(top)}V{number(bottom)}"/>'


def points_path(points: list[tuple[float, float]]) -> str:
    """Return the path of a line: straight between points above or beside each other, otherwise a curve."""
    (x, y), *rest = points
    parts = [f"M{number(x)} {number(y)}"]
    for to_x, to_y in rest:
        if (to_x, to_y) == (x, y):
            continue
        if to_x == x:
            parts.append(f"V{number(to_y)}")
        elif to_y == y:
            parts.append(f"H{number(to_x)}")
        else:
            half = (y + to_y) / 2
            parts.append(f"C{number(x)} {number(half)} {number(to_x)} {number(half)} {number(to_x)} {number(to_y)}")
        x, y = to_x, to_y
    return "".join(parts)


def _polygon(kind: str, corners: list[tuple[float, float]]) -> str:
    return f'<polygon {kind} points="{" ".join(f"{number(x)},{number(y)}" for x, y in corners)}"/>'


def _rect(placed: Placed) -> str:
    x = placed.x - placed.width / 2
    return f'x="{number(x)}" y="{number(placed.y)}" width="{number(placed.width)}" height="{number(placed.height)}"'


def number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


_PLAIN = frozenset(" .,!?()/+=-")
_SHAPES = {
    "model": ('["', '"]'),
    "tool": ('[["', '"]]'),
    "ask": ('[/"', '"/]'),
    "choice": ('{"', '"}'),
    "pure": ('("', '")'),
    "call": ('{{"', '"}}'),
    "end": ('(["', '"])'),
    "fold": ('["', '"]'),
}


_ARROWS = {"guard": "-.->", "flow": "==>"}
_LOOKS = {"guard": "stroke:#8250df", "flow": "stroke:#cf222e"}


def mermaid(plan: Plan, overlay: Overlay = NO_OVERLAY) -> str:
    """Return the text of a flowchart, without a fence and with a final newline. `overlay` has marks and ways by the
    paths of steps.

    Lines inside a box are held back until the box is closed: Mermaid would draw every node that they name inside the
    box.
    """
    lines = ["flowchart TD"]
    held: list[str] = []
    opened: list[bool] = []
    items = graph(plan)
    drawn = on_nodes(overlay, items, [path for path, _ in plan.steps()])
    for item in items:
        depth = sum(opened)
        indent = "    " * (depth + 1)
        match item:
            case Node(name=name, shape=shape):
                before, after = _SHAPES[shape]
                marks = "".join(f", {escaped(mark.text)}" for mark in drawn.marks.get(name, ()))
                lines.append(f"{indent}{name}{before}{_label(item)}{marks}{after}")
            case Line(start=start, end=end, label=label):
                words = f'|"{escaped(label)}"|' if label else ""
                (held if depth else lines).append(f"    {start} -->{words} {end}")
            case Open(kind=kind, name=name):
                opened.append(kind == "box")
                if kind == "box":
                    lines.append(f'{indent}subgraph {name}["{_label(item)}"]')
            case Close():
                if opened.pop():
                    lines.append(f"{'    ' * depth}end")
                    if depth == 1:
                        lines += held
                        held.clear()
    return "\n".join([*lines, *_ways(drawn, sum(isinstance(item, Line) for item in items))]) + "\n"


def _ways(drawn: Overlay, count: int) -> Iterator[str]:
    """Yield the ways as dotted and thick lines after all others, which Mermaid numbers from 0 on."""
    numbers: dict[str, list[int]] = {}
    for at, way in enumerate(drawn.ways, count):
        yield f'    {way.start} {_ARROWS[way.kind]}|"{escaped(way.label)}"| {way.end}'
        numbers.setdefault(way.kind, []).append(at)
    for kind, several in numbers.items():
        yield f"    linkStyle {','.join(map(str, several))} {_LOOKS[kind]}"
    unasked = [name for name, marks in drawn.marks.items() if any(mark.kind == "unasked" for mark in marks)]
    if unasked:
        yield "    classDef unasked stroke:#cf222e,stroke-width:3px"
        yield f"    class {','.join(unasked)} unasked"


def escaped(text: str, limit: int = LABEL_LIMIT) -> str:
    """Escape any text for a quoted label. Letters and digits of all scripts stay readable."""
    return "".join(_entity(char) for char in shortened(text, limit))


def _entity(char: str) -> str:
    if char in _PLAIN or char.isalnum():
        return char
    return "#65533;" if char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff" else f"#{ord(char)};"


def _label(item: Node | Open) -> str:
    """Return the label, which begins with a word of ours: Mermaid would take a label that begins like a Markdown list
    for a list."""
    return f"{escaped(item.head)} ({escaped(item.what)})" if item.what else escaped(item.head)


def chart_data(
    plan: Plan, most: int | None = MOST_NODES, opened: Collection[str] = (), overlay: Overlay = NO_OVERLAY
) -> dict[str, Value]:
    """Return the chart of a plan, in pixels from the upper left corner. More than `most` nodes are folded; `opened` are
    the values of `fold` of those nodes that are to be drawn with all they hold. `overlay` has marks and ways by the
    paths of steps: a chart without any has no `marks` and no `ways`."""
    items = graph(plan, most, opened)
    chart = layout(items, on_nodes(overlay, items, [path for path, _ in plan.steps()]))
    return {
        "width": _px(chart.width),
        "height": _px(chart.height),
        "folded": any(isinstance(node.item, Node) and node.item.folds for node in chart.nodes),
        "nodes": [_node_json(node) for node in chart.nodes],
        "edges": [_edge(route) for route in chart.routes],
        "groups": [
            {
                "id": box.item.name,
                "path": box.item.path,
                "label": box.item.head,
                "what": box.item.what,
                "lines": list(box.head),
                **_box(box),
            }
            for box in chart.boxes
        ],
        **({"ways": [_way(track) for track in chart.tracks]} if chart.tracks else {}),
    }


def _node_json(placed: Placed) -> Value:
    item = placed.item
    assert isinstance(item, Node)  # noqa: S101  # boxes are groups
    return {
        "id": item.name,
        "path": item.path or None,
        "kind": item.shape,
        "label": item.head,
        "what": item.what,
        "lines": [*placed.head, *placed.what],
        "titles": len(placed.head),
        **_box(placed),
        **({"marks": [{"kind": kind, "text": line} for kind, line in placed.marks]} if placed.marks else {}),
        **({"fold": fold_id(item.path, item.until), "until": item.until, "steps": item.folds} if item.folds else {}),
    }


def _edge(route: Route) -> Value:
    return {
        "from": route.start,
        "to": route.end,
        "label": route.label,
        "label_at": [_px(route.at[0]), _px(route.at[1])],
        "points": [[_px(x), _px(y)] for x, y in route.points],
        "route": points_path(route.points),
        "back": route.back,
    }


def _way(track: Track) -> Value:
    return {
        "kind": track.kind,
        "from": track.start,
        "to": track.end,
        "label": track.label,
        "label_at": [_px(track.at[0]), _px(track.at[1])],
        "route": points_path(track.points),
        "end": [_px(track.points[-1][0]), _px(track.points[-1][1])],
    }


def _box(placed: Placed) -> dict[str, Value]:
    left = placed.x - placed.width / 2
    return {"x": _px(left), "y": _px(placed.y), "w": _px(placed.width), "h": _px(placed.height)}


def _px(value: float) -> Value:
    return round(value, 1)
