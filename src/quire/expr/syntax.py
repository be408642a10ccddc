"""The tree of an expression. Chains (`a + b - c`, `a or b or c`, `not not a`) are one node each, so that the height of
a tree follows its brackets and never its length.

What an expression reads from outside, known before it is evaluated: inputs are inferred from it, slips found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from quire.source import Span

RESERVED = frozenset({"ctx", "pipe", "item", "acc"})
"""First segments that are only ever bindings; any other may be the name of a store."""

KEYWORDS = frozenset({"true", "false", "null", "not", "and", "or"})

CompareOperator = Literal["==", "!=", "<", ">", "<=", ">="]
ArithmeticOperator = Literal["+", "-", "*", "/"]
EachName = Literal["map", "filter", "all", "any", "find"]


class Constant(Struct, frozen=True):
    value: None | bool | int | float | str
    span: Span


class Path(Struct, frozen=True):
    """`places` has the span of each segment."""

    segments: tuple[str, ...]
    places: tuple[Span, ...]
    span: Span


class ListOf(Struct, frozen=True):
    items: tuple[Node, ...]
    span: Span


class MapOf(Struct, frozen=True):
    """A key that is written twice takes the later value."""

    entries: tuple[tuple[str, Node], ...]
    span: Span


class Not(Struct, frozen=True):
    operand: Node
    times: int
    span: Span


class Negate(Struct, frozen=True):
    operand: Node
    times: int
    span: Span


class Logic(Struct, frozen=True):
    """The value is that of the operand that decides."""

    operator: Literal["and", "or"]
    operands: tuple[Node, ...]
    span: Span


class Compare(Struct, frozen=True):
    operator: CompareOperator
    left: Node
    right: Node
    span: Span


class Arithmetic(Struct, frozen=True):
    """From left to right; all operators of one node bind equally."""

    first: Node
    rest: tuple[tuple[ArithmeticOperator, Node], ...]
    span: Span


class Each(Struct, frozen=True):
    """A combinator with a lambda."""

    name: EachName
    source: Node
    parameter: str
    body: Node
    span: Span


class Total(Struct, frozen=True):
    name: Literal["count", "sum"]
    source: Node
    span: Span


class Join(Struct, frozen=True):
    source: Node
    separator: Node
    span: Span


class Get(Struct, frozen=True):
    base: Node
    keys: tuple[str, ...]
    default: Node | None
    span: Span


Node: TypeAlias = (
    Constant | Path | ListOf | MapOf | Not | Negate | Logic | Compare | Arithmetic | Each | Total | Join | Get
)


class Expression(Struct, frozen=True):
    """What `parse` gives: spans in `root` are offsets into `text`."""

    text: str
    root: Node


def children(node: Node) -> tuple[Node, ...]:
    """The parts of a node in the order in which they are evaluated."""
    match node:
        case Constant() | Path():
            return ()
        case ListOf(items=items):
            return items
        case MapOf(entries=entries):
            return tuple(part for _, part in entries)
        case Not(operand=operand) | Negate(operand=operand):
            return (operand,)
        case Logic(operands=operands):
            return operands
        case Compare(left=left, right=right):
            return (left, right)
        case Arithmetic(first=first, rest=rest):
            return (first, *(part for _, part in rest))
        case Each(source=source, body=body):
            return (source, body)
        case Total(source=source):
            return (source,)
        case Join(source=source, separator=separator):
            return (source, separator)
        case Get(base=base, default=default):
            return (base,) if default is None else (base, default)


def walk(root: Node) -> Iterator[tuple[Node, int]]:
    """Every node with its depth, the root's being 1; parents come first."""
    stack = [(root, 1)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack.extend((part, depth + 1) for part in reversed(children(node)))


class Read(Struct, frozen=True):
    """One place that reads. It is `optional` where a `get` does: that it is missing is no failure."""

    path: tuple[str, ...]
    span: Span
    optional: bool = False

    @property
    def store(self) -> str | None:
        """The name after `ctx`, or a bare name (which may still be a binding of the caller's)."""
        if self.path[0] == "ctx":
            return self.path[1] if len(self.path) > 1 else None
        return None if self.path[0] in RESERVED else self.path[0]


def reads(expression: Expression) -> tuple[Read, ...]:
    """In the order of the text; lambda parameters are no reads."""
    found: list[Read] = []
    stack: list[tuple[Node, frozenset[str]]] = [(expression.root, frozenset())]
    while stack:
        node, bound = stack.pop()
        if isinstance(node, Path) and node.segments[0] not in bound:
            found.append(Read(node.segments, node.span))
        elif isinstance(node, Get) and isinstance(node.base, Path) and node.base.segments[0] not in bound:
            found.append(Read(node.base.segments, node.base.span))
            found.append(Read(node.base.segments + node.keys, node.span, optional=True))
            if node.default is not None:
                stack.append((node.default, bound))
        elif isinstance(node, Each):
            stack += [(node.body, bound | {node.parameter}), (node.source, bound)]
        else:
            stack.extend((part, bound) for part in reversed(children(node)))
    return tuple(found)
