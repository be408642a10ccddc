"""Draw a plan as a flowchart: as Mermaid text, whose layout is left to the renderer, or as an SVG picture.

Mermaid: labels come from documents, so every character with a meaning in Mermaid, its Markdown or HTML is written as
an entity. No title can end its box, start a directive or insert a tag.

SVG: one self-contained file for light and dark mode, with shapes and texts only: no script, no link, nothing that is
fetched. Texts of a document are escaped, and unprintable characters are shown as U+FFFD.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from quire.display.flowchart_layout import LINE_HEIGHT, PAD, TITLE, Chart, Placed, Route, layout
from quire.plan.flowchart import LABEL_LIMIT, Close, Line, Node, Open, graph, shortened

if TYPE_CHECKING:
    from quire.plan.nodes import Plan

_PLAIN = frozenset(" .,!?()/+=-")
_SHAPES = {
    "model": ('["', '"]'),
    "tool": ('[["', '"]]'),
    "ask": ('[/"', '"/]'),
    "choice": ('{"', '"}'),
    "pure": ('("', '")'),
    "call": ('{{"', '"}}'),
    "end": ('(["', '"])'),
}


def mermaid(plan: Plan) -> str:
    """Return the text of a flowchart, without a fence and with a final newline.

    Lines inside a box are held back until the box is closed: Mermaid would draw every node that they name inside the
    box.
    """
    lines = ["flowchart TD"]
    held: list[str] = []
    opened: list[bool] = []
    for item in graph(plan):
        depth = sum(opened)
        indent = "    " * (depth + 1)
        match item:
            case Node(name=name, shape=shape):
                before, after = _SHAPES[shape]
                lines.append(f"{indent}{name}{before}{_label(item)}{after}")
            case Line(start=start, end=end, label=label):
                said = f'|"{escaped(label)}"|' if label else ""
                (held if depth else lines).append(f"    {start} -->{said} {end}")
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
    return "\n".join(lines) + "\n"


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


_ROUND = 14
_STYLE = """
  svg { color-scheme: light dark; }
  .paper { fill: #ffffff; }
  .box { fill: #59636e; fill-opacity: 0.06; stroke: #8c959f; stroke-dasharray: 5 4; }
  .line { fill: none; stroke: #59636e; stroke-width: 1.5; }
  .back { stroke-dasharray: 4 3; }
  .tip { fill: #59636e; }
  .node { stroke-width: 1.5; }
  .model { fill: #ddf4ff; stroke: #0969da; }
  .tool { fill: #fff8c5; stroke: #9a6700; }
  .ask { fill: #fbefff; stroke: #8250df; }
  .choice { fill: #ffffff; stroke: #59636e; }
  .pure { fill: #f6f8fa; stroke: #59636e; }
  .call { fill: #dafbe1; stroke: #1a7f37; }
  .end { fill: #f6f8fa; stroke: #59636e; }
  text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #1f2328; text-anchor: middle; }
  .title { text-anchor: start; fill: #59636e; }
  .what { fill: #59636e; }
  .label { font-size: 12px; fill: #59636e; }
  .label, .title { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; }
    .box { fill: #9198a1; stroke: #656c76; }
    .line { stroke: #9198a1; }
    .tip { fill: #9198a1; }
    .model { fill: #121d2f; stroke: #4493f8; }
    .tool { fill: #272115; stroke: #d29922; }
    .ask { fill: #221a2f; stroke: #ab7df8; }
    .choice { fill: #0d1117; stroke: #9198a1; }
    .pure, .end { fill: #151b23; stroke: #9198a1; }
    .call { fill: #12261e; stroke: #3fb950; }
    text { fill: #f0f6fc; }
    .title, .what, .label { fill: #9198a1; }
    .label, .title { stroke: #0d1117; }
  }
"""


def svg(plan: Plan) -> str:
    """Return the whole SVG file, with a final newline."""
    return "\n".join(_file(layout(graph(plan)), plan.title)) + "\n"


def _file(chart: Chart, title: str) -> Iterator[str]:
    width, height = _n(chart.width), _n(chart.height)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">'
    )
    yield f"<title>{printable(title)}</title>"
    yield f"<style>{_STYLE}</style>"
    yield (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>'
    )
    yield f'<rect class="paper" width="{width}" height="{height}"/>'
    for box in chart.boxes:
        yield f'<rect class="box" {_rect(box)} rx="6"/>'
    for route in chart.routes:
        yield f'<path class="line{" back" if route.back else ""}" marker-end="url(#tip)" d="{_path(route)}"/>'
    for box in chart.boxes:
        for number, line in enumerate(box.head):
            x, y = box.x - box.width / 2 + PAD / 2, box.y + TITLE - 8 + number * LINE_HEIGHT
            yield f'<text class="title" x="{_n(x)}" y="{_n(y)}">{printable(line)}</text>'
    for node in chart.nodes:
        yield from _node(node)
    # Lines that meet share one label, which is written once.
    for label, (x, y) in dict.fromkeys((route.label, route.at) for route in chart.routes if route.label):
        yield f'<text class="label" x="{_n(x)}" y="{_n(y)}">{printable(label)}</text>'
    yield "</svg>"


def printable(text: str) -> str:
    """Escape any text for the content of an element."""
    return escape("".join(one if one.isprintable() else "\ufffd" for one in text))


def _node(node: Placed) -> Iterator[str]:
    shape = node.item.shape if isinstance(node.item, Node) else ""
    kind = f'class="node {shape}"'
    left, right, top, bottom = (
        node.x - node.width / 2,
        node.x + node.width / 2,
        node.y,
        node.y + node.height,
    )
    middle = (top + bottom) / 2
    match shape:
        case "choice":
            corners = [(left, middle), (left + 18, top), (right - 18, top), (right, middle), (right - 18, bottom)]
            yield _polygon(kind, [*corners, (left + 18, bottom)])
        case "ask":
            yield _polygon(kind, [(left + 10, top), (right, top), (right - 10, bottom), (left, bottom)])
        case "end":
            yield f'<rect {kind} {_rect(node)} rx="{_n(node.height / 2)}"/>'
        case "pure":
            yield f'<rect {kind} {_rect(node)} rx="{_ROUND}"/>'
        case _:
            yield f'<rect {kind} {_rect(node)} rx="4"/>'
    if shape in ("tool", "call"):
        sides = (left + 6, right - 6) if shape == "tool" else (left + 6,)
        for side in sides:
            yield f'<path {kind} d="M{_n(side)} {_n(top)}V{_n(bottom)}"/>'
    for number, line in enumerate([*node.head, *node.what]):
        words = ' class="what"' if number >= len(node.head) else ""
        y = top + 10 + LINE_HEIGHT * number + 13
        yield f'<text{words} x="{_n(node.x)}" y="{_n(y)}">{printable(line)}</text>'


def _path(route: Route) -> str:
    """Return the path of a line: straight if both ends are above or beside each other, otherwise a curve."""
    (x, y), *rest = route.points
    parts = [f"M{_n(x)} {_n(y)}"]
    for to_x, to_y in rest:
        if (to_x, to_y) == (x, y):
            continue
        if to_x == x:
            parts.append(f"V{_n(to_y)}")
        elif to_y == y:
            parts.append(f"H{_n(to_x)}")
        else:
            half = (y + to_y) / 2
            parts.append(f"C{_n(x)} {_n(half)} {_n(to_x)} {_n(half)} {_n(to_x)} {_n(to_y)}")
        x, y = to_x, to_y
    return "".join(parts)


def _polygon(kind: str, corners: list[tuple[float, float]]) -> str:
    return f'<polygon {kind} points="{" ".join(f"{_n(x)},{_n(y)}" for x, y in corners)}"/>'


def _rect(placed: Placed) -> str:
    x = placed.x - placed.width / 2
    return f'x="{_n(x)}" y="{_n(placed.y)}" width="{_n(placed.width)}" height="{_n(placed.height)}"'


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
