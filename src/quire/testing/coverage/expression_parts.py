"""The boolean parts of an expression: comparisons, and everything whose truth decides.

The value of `get(a, 'b') or 'none'` is a text, so only its first part decides something; in a `when`, both would.
A part that is always true or always false decides nothing: of `a and 'yes' or 'no'`, which is how a choice between two
texts is written, only `a` is left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from quire.expr.functions import FUNCTIONS
from quire.expr.syntax import (
    Arithmetic,
    Compare,
    Constant,
    Each,
    FunctionCall,
    ListOf,
    Logic,
    MapOf,
    Node,
    Not,
    Path,
    children,
)
from quire.patterns import late_pattern

if TYPE_CHECKING:
    from quire.expr import Expression

CONDITIONS = ("when", "until")
"""The roles of expressions that are conditions as a whole."""

_PLACE = late_pattern(r"\{[^{}]*\}")
_TESTED = ("filter", "all", "any", "find")
_BOOLEAN = ("all", "any")


def boolean_parts(expression: Expression, role: str) -> tuple[Node, ...]:
    """Return the boolean parts of the expression of a step, in the order of the text."""
    found = _parts(expression.root, role in CONDITIONS)
    return tuple(sorted(found, key=lambda node: (node.span.start, -node.span.end)))


def is_boolean(node: Node, booleans: Collection[str] = ()) -> bool:
    """Tell whether the value of a node is true or false whenever it has one. `booleans` are names of which that is
    known."""
    match node:
        case Constant(value=bool()) | Compare() | Not():
            return True
        case Each(name=name):
            return name in _BOOLEAN
        case FunctionCall(name=name):
            return FUNCTIONS[name].gives == "boolean"
        case Logic(operands=operands):
            return all(is_boolean(operand, booleans) for operand in operands)
        case Path(segments=("ctx", name) | (name,)):
            return name in booleans
    return False


def _parts(node: Node, decides: bool) -> Iterator[Node]:
    """Yield the parts of a node. `decides` says that only the truth of its value matters."""
    match node:
        case Logic(operands=operands):
            if decides and sum(1 for operand in operands if _truth(operand) is None) > 1:
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
        case _ if decides and _truth(node) is None:
            yield node
    for part in children(node):
        yield from _parts(part, False)


def _truth(node: Node) -> bool | None:
    """Return whether the value of a node is always true or always false, as far as its text tells; None if not."""
    match node:
        case Constant(value=value):
            return bool(value)
        case ListOf(items=parts) | MapOf(entries=parts):
            return bool(parts)
        case Not(operand=operand, times=times):
            truth = _truth(operand)
            return None if truth is None else truth != bool(times % 2)
        case Arithmetic(first=first, rest=rest) if any(_is_words(part) for part in (first, *(one for _, one in rest))):
            return True  # a sum of texts, one of which is not empty
        case FunctionCall(name="format", arguments=(Constant(value=str() as text), *_)):
            return True if _PLACE.sub("", text) else None
        case Logic(operator="or", operands=operands) if any(_truth(operand) for operand in operands):
            return True
        case Logic(operator="and", operands=operands) if any(_truth(operand) is False for operand in operands):
            return False
    return None


def _is_words(node: Node) -> bool:
    return isinstance(node, Constant) and isinstance(node.value, str) and node.value != ""
