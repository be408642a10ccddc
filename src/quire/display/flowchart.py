"""Draw a plan as the text of a Mermaid flowchart, whose layout is left to the renderer.

Labels come from documents, so every character with a meaning in Mermaid, its Markdown or HTML is written as an entity.
No title can end its box, start a directive or insert a tag.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.display.flowchart_marks import NO_OVERLAY, Mark, Overlay, on_nodes
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
                lines.append(f"{indent}{name}{before}{_label(item)}{_marks(drawn.marks.get(name, ()))}{after}")
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


def _marks(marks: tuple[Mark, ...]) -> str:
    return "".join(f", {escaped(mark.text)}" for mark in marks)


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
