"""The boolean parts of an expression: comparisons, and everything whose truth decides.

The value of `get(a, 'b') or 'none'` is a text, so only its first part decides something; in a `when`, both would.
Constants decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.expr.functions import FUNCTIONS
from quire.expr.syntax import Compare, Constant, Each, FunctionCall, Logic, Node, Not, children

if TYPE_CHECKING:
    from quire.expr import Expression

CONDITIONS = ("when", "until")
"""The roles of expressions that are conditions as a whole."""

_TESTED = ("filter", "all", "any", "find")
_BOOLEAN = ("all", "any")


def boolean_parts(expression: Expression, role: str) -> tuple[Node, ...]:
    """Return the boolean parts of the expression of a step, in the order of the text."""
    found = _parts(expression.root, role in CONDITIONS)
    return tuple(sorted(found, key=lambda node: (node.span.start, -node.span.end)))


def _parts(node: Node, decides: bool) -> Iterator[Node]:
    """Yield the parts of a node. `decides` says that only the truth of its value matters."""
    match node:
        case Logic(operands=operands):
            if decides:
                yield node
            *first, last = operands
            for operand in first:
                yield from _parts(operand, True)
            yield from _parts(last, decides)
            return
        case Not(operand=operand):
            yield from _parts(operand, True)
            return
        case Each(name=name, source=source, body=body):
            if decides or name in _BOOLEAN:
                yield node
            yield from _parts(source, False)
            yield from _parts(body, name in _TESTED)
            return
        case Compare():
            yield node
        case FunctionCall(name=name) if FUNCTIONS[name].gives == "boolean":
            yield node
        case Constant():
            pass
        case _ if decides:
            yield node
    for part in children(node):
        yield from _parts(part, False)
