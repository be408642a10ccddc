"""A flowchart as Mermaid's text, which is arranged by whoever draws it.

Labels come from documents, so every character that means something to Mermaid, to its Markdown or to HTML is written as
an entity: no title can end its box, start a directive or bring a tag.
"""

from __future__ import annotations

from quire.plan.graph import LABEL_LIMIT, Close, Line, Node, Open, graph, shortened
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
    """The text of a flowchart, without a fence and with a last newline.

    Lines inside of a box are held until it is closed: Mermaid draws what they name inside of the box as well.
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
    """Any text as the inside of a quoted label. Letters and digits of all scripts stay readable."""
    return "".join(_entity(char) for char in shortened(text, limit))


def _entity(char: str) -> str:
    if char in _PLAIN or char.isalnum():
        return char
    return "#65533;" if char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff" else f"#{ord(char)};"


def _label(item: Node | Open) -> str:
    """Begins with a word of ours: Mermaid takes a label that begins like a Markdown list for one."""
    return f"{escaped(item.head)} ({escaped(item.what)})" if item.what else escaped(item.head)
