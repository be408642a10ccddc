"""The syntax tree of an expression, and the names that it reads.

A chain (`a + b - c`, `a or b or c`, `not not a`) is one node, so the height of a tree depends on its brackets, not on
its length. `reads` lists the values that an expression needs before it is evaluated; inputs are inferred and misspelled
names are found from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from quire.source import Span

RESERVED = frozenset({"ctx", "pipe", "item", "acc"})
"""First segments that are always bindings. Any other first segment may be the name of a store."""

KEYWORDS = frozenset({"true", "false", "null", "not", "and", "or"})

CompareOperator = Literal["==", "!=", "<", ">", "<=", ">="]
ArithmeticOperator = Literal["+", "-", "*", "/"]
EachName = Literal["map", "filter", "all", "any", "find"]


class Constant(Struct, frozen=True):
    value: None | bool | int | float | str
    span: Span


class Path(Struct, frozen=True):
    """A path such as `ctx.review.notes`."""

    segments: tuple[str, ...]
    places: tuple[Span, ...]
    """The span of each segment."""
    span: Span
    store: str = ""
    """The name of the store that the path is, `review` of `ctx.review` and of `review`; empty for any other path."""


def path_of(segments: tuple[str, ...], places: tuple[Span, ...], span: Span) -> Path:
    """Return the path of these segments."""
    first = segments[0]
    is_store = len(segments) == 2 if first == "ctx" else len(segments) == 1 and first not in RESERVED
    return Path(segments, places, span, segments[-1] if is_store else "")


class ListOf(Struct, frozen=True):
    items: tuple[Node, ...]
    span: Span


class MapOf(Struct, frozen=True):
    """A map. If a key is written twice, the later value counts."""

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
    """A chain of `and` or `or`. Its value is the value of the operand that decides."""

    operator: Literal["and", "or"]
    operands: tuple[Node, ...]
    span: Span


class Compare(Struct, frozen=True):
    operator: CompareOperator
    left: Node
    right: Node
    span: Span


class Arithmetic(Struct, frozen=True):
    """A chain of operators of equal precedence, evaluated from left to right."""

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


class FunctionCall(Struct, frozen=True):
    """A call of a function of the Quire dialect."""

    name: str
    arguments: tuple[Node, ...]
    span: Span
    parameter: str = ""
    key: Node | None = None
    """The body of a lambda, which gives a key of each element of the one argument."""


Node: TypeAlias = (
    Constant
    | Path
    | ListOf
    | MapOf
    | Not
    | Negate
    | Logic
    | Compare
    | Arithmetic
    | Each
    | Total
    | Join
    | Get
    | FunctionCall
)


class Expression(Struct, frozen=True):
    """The result of `parse`. Spans in `root` are offsets into `text`."""

    text: str
    root: Node


def children(node: Node) -> tuple[Node, ...]:
    """Return the parts of a node in the order in which they are evaluated."""
    return _PARTS[node.__class__](node)


_PARTS: Mapping[type, Callable[[Any], tuple[Node, ...]]] = {
    Constant: lambda node: (),
    Path: lambda node: (),
    FunctionCall: lambda node: node.arguments if node.key is None else (*node.arguments, node.key),
    Compare: lambda node: (node.left, node.right),
    Arithmetic: lambda node: (node.first, *[part for _, part in node.rest]),
    ListOf: lambda node: node.items,
    MapOf: lambda node: tuple([part for _, part in node.entries]),
    Not: lambda node: (node.operand,),
    Negate: lambda node: (node.operand,),
    Logic: lambda node: node.operands,
    Each: lambda node: (node.source, node.body),
    Total: lambda node: (node.source,),
    Join: lambda node: (node.source, node.separator),
    Get: lambda node: (node.base,) if node.default is None else (node.base, node.default),
}
"""The parts of each kind of node. Every rule asks each node of a document for them, and a chain of tests would take as
long as all else: to find that a node is not of a kind takes several times as long as to find that it is."""


def walk(root: Node) -> Iterator[tuple[Node, int]]:
    """Yield every node with its depth, parents first. The depth of the root is 1."""
    stack = [(root, 1)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack.extend((part, depth + 1) for part in reversed(children(node)))


class Read(Struct, frozen=True):
    """One place that reads a value."""

    path: tuple[str, ...]
    span: Span
    optional: bool
    """True if it is read by `get`: a missing value is not a failure."""
    name: str
    """The path as it is written: `ctx.review.notes`."""
    store: str | None
    """The name after `ctx`, or a bare name (which may still be a binding of the caller)."""


def _read(path: tuple[str, ...], span: Span, *, optional: bool = False) -> Read:
    store = path[0] if path[0] not in RESERVED else path[1] if path[0] == "ctx" and len(path) > 1 else None
    return Read(path, span, optional, ".".join(path), store)


_KNOWN_READS: dict[int, tuple[Expression, tuple[Read, ...]]] = {}
"""The reads of expressions by their identity, with the expression, so that no other one gets it."""
_MOST_KNOWN = 8_000


def reads(expression: Expression) -> tuple[Read, ...]:
    """Return all reads in the order of the text. Lambda parameters are not reads.

    They are found once: the checks of a document, its proof and its rules ask for them, and an editor again after every
    key.
    """
    entry = _KNOWN_READS.get(id(expression))
    if entry is None or entry[0] is not expression:
        if len(_KNOWN_READS) >= _MOST_KNOWN:
            _KNOWN_READS.clear()
        entry = _KNOWN_READS[id(expression)] = expression, tuple(reads_below(expression.root))
    return entry[1]


def reads_below(root: Node) -> list[Read]:
    """Return the reads of a part of an expression, in the order of the text."""
    below: list[Read] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if type(node) is Path:
            below.append(_read(node.segments, node.span))
        elif type(node) is Get and type(node.base) is Path:
            below.append(_read(node.base.segments, node.base.span))
            below.append(_read(node.base.segments + node.keys, node.span, optional=True))
            if node.default is not None:
                waiting.append(node.default)
        elif type(node) is Each:
            below += reads_below(node.source)
            below += _reads_outside(node.body, node.parameter)
        elif type(node) is FunctionCall and node.key is not None:
            below += reads_below(node.arguments[0])
            below += _reads_outside(node.key, node.parameter)
        else:
            waiting += children(node)[::-1]
    return below


def _reads_outside(body: Node, parameter: str) -> list[Read]:
    """Return the reads in the body of a lambda that are not of its parameter."""
    return [read for read in reads_below(body) if read.path[0] != parameter]
