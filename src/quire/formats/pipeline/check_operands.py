"""Check the operands of operators and combinators: kinds with which they fail, values that may be null, and comparisons
that never hold.

Nothing is reported for an operand whose kind is not known before a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from quire.expr import python_text
from quire.expr.syntax import Arithmetic, Compare, Constant, Each, Get, Join, Negate, Node, Path, Total
from quire.formats.pipeline.codes import types as codes
from quire.formats.pipeline.function_types import kind_of_node, kind_of_type, with_article
from quire.schema import Enum, FieldType, ListOf, Object

if TYPE_CHECKING:
    from quire.diagnostics import Code
    from quire.source import Span
    from quire.values import Value

TypeOf: TypeAlias = "Callable[[Node], FieldType | None]"
"""Gives the type of an expression, with references followed; None if it is not known."""

_ADDED = frozenset({"number", "text", "list"})
_COMPARED_AS_NUMBER = frozenset({"number", "boolean"})
_SHOWN = 8


class OperandFinding(Struct, frozen=True):
    """A place of an expression, and the problem there."""

    code: Code
    span: Span
    message: str
    help: str = ""
    word: Constant | None = None
    """A text that is perhaps misspelled."""
    meant: tuple[str, ...] = ()
    """The texts that it may stand for."""


def operand_findings(node: Node, type_of: TypeOf, *, guarded: bool) -> Iterator[OperandFinding]:
    """Yield the problems of one operator, without those of its operands. `guarded` says that an `and`, an `or` or the
    `when` of the step may have looked at a value before."""
    match node:
        case Arithmetic():
            yield from _arithmetic(node, type_of)
        case Negate(operand=operand):
            if (given := kind_of_node(operand, type_of)) not in (None, "number"):
                yield _wrong(operand, "-", "a number", given)
        case Total(name=name, source=source):
            yield from _list(name, source, type_of, "number" if name == "sum" else "")
        case Join(source=source, separator=separator):
            yield from _list("join", source, type_of, "text")
            if (given := kind_of_node(separator, type_of)) not in (None, "text"):
                yield _wrong(separator, "join", "a text as separator", given)
        case Each(name=name, source=source):
            yield from _list(name, source, type_of, "")
        case Compare(operator="==" | "!="):
            yield from _equality(node, type_of)
    if not guarded:
        for operand in _failing_on_null(node):
            if (what := _may_be_null(operand, type_of)) is not None:
                help = "give get a default" if isinstance(operand, Get) else "write (… or DEFAULT)"
                yield OperandFinding(codes.MAY_BE_NULL, operand.span, f"{what} may be null, and then this fails", help)


def _wrong(node: Node, what: str, wanted: str, given: str | None) -> OperandFinding:
    return OperandFinding(codes.OPERAND_TYPE, node.span, f"{what} needs {wanted}, not {with_article(given or 'null')}")


def _arithmetic(node: Arithmetic, type_of: TypeOf) -> Iterator[OperandFinding]:
    """Follow the chain from left to right, and yield the first operator that is certain to fail."""
    left = kind_of_node(node.first, type_of)
    if node.rest[0][0] != "+" and left not in (None, "number"):
        yield _wrong(node.first, node.rest[0][0], "two numbers", left)
        return
    if left is not None and left not in _ADDED:
        yield _wrong(node.first, "+", "two numbers, two texts or two lists", left)
        return
    for operator, operand in node.rest:
        right = kind_of_node(operand, type_of)
        if operator != "+":
            wrong = next((kind for kind in (left, right) if kind not in (None, "number")), None)
            if wrong is not None:
                yield _wrong(operand, operator, "two numbers", wrong)
                return
            left = "number"
        elif right is not None and (right not in _ADDED or (left is not None and left != right)):
            message = "+ needs two numbers, two texts or two lists"
            both = f"{message}, not {with_article(left)} and {with_article(right)}" if left else None
            help = "text(…) makes a text of a number" if {left, right} == {"text", "number"} else ""
            yield OperandFinding(
                codes.OPERAND_TYPE, operand.span, both or f"{message}, not {with_article(right)}", help
            )
            return
        else:
            left = left or right


def _list(what: str, source: Node, type_of: TypeOf, of: str) -> Iterator[OperandFinding]:
    given = kind_of_node(source, type_of)
    if given not in (None, "list"):
        yield _wrong(source, what, "a list", given)
        return
    type = type_of(source) if of else None
    item = kind_of_type(type.of) if isinstance(type, ListOf) else None
    # An empty list passes, so only a list that has items fails.
    if item is not None and item != of:
        yield _wrong(source, what, f"a list of {of}s", item)


def _equality(node: Compare, type_of: TypeOf) -> Iterator[OperandFinding]:
    left, right = kind_of_node(node.left, type_of), kind_of_node(node.right, type_of)
    if left is None or right is None or "null" in (left, right):
        return
    outcome = "never" if node.operator == "==" else "always"
    if left != right and not {left, right} <= _COMPARED_AS_NUMBER:
        message = f"{node.operator} {outcome} holds: {with_article(left)} is not equal to {with_article(right)}"
        yield OperandFinding(codes.NEVER_EQUAL, node.span, message)
        return
    values, others = _values(node.left, type_of), _values(node.right, type_of)
    if values is None or others is None or any(one == other for one in values for other in others):
        return
    if isinstance(node.left, Constant) and isinstance(node.right, Constant):
        return  # DD103 says it
    named, given = (values, others) if not isinstance(node.left, Constant) else (others, values)
    told = ", ".join(python_text(one) for one in given[:_SHOWN])
    message = f"{node.operator} {outcome} holds: the value is never {told}"
    help = f"it is one of {', '.join(python_text(one) for one in named[:_SHOWN])}"
    word = next((one for one in (node.left, node.right) if isinstance(one, Constant)), None)
    meant = tuple(one for one in named if isinstance(one, str))
    yield OperandFinding(codes.NEVER_EQUAL, node.span, message, help, word, meant)


def _values(node: Node, type_of: TypeOf) -> Sequence[Value] | None:
    """Return all values that an expression can have; None if they are not known."""
    if isinstance(node, Constant):
        return (node.value,)
    type = type_of(node)
    return type.values if isinstance(type, Enum) else None


def _failing_on_null(node: Node) -> tuple[Node, ...]:
    """Return the operands with which an operator fails if they are null."""
    match node:
        case Arithmetic(first=first, rest=rest):
            return (first, *(operand for _, operand in rest))
        case Negate(operand=operand):
            return (operand,)
        case Compare(operator="<" | ">" | "<=" | ">=", left=left, right=right):
            return (left, right)
        case Total(source=source) | Join(source=source) | Each(source=source):
            return (source,)
    return ()


def _may_be_null(node: Node, type_of: TypeOf) -> str | None:
    """Return the operand for people if it may be null."""
    match node:
        case Each(name="find"):
            return "find(…)"
        case Get(base=Path(segments=("ctx", *_) as segments) as base, keys=keys, default=None):
            # Parameters of lambdas are left out: the list may have been filtered by the same value.
            return None if _is_required(type_of(base), keys) else f"get({'.'.join(segments)}, '{keys[0]}')"
    return None


def _is_required(type: FieldType | None, keys: tuple[str, ...]) -> bool:
    if not isinstance(type, Object) or len(keys) != 1:
        return False
    return any(one.name == keys[0] and one.required for one in type.fields)
