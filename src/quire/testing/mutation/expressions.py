"""Mutants of R1 expressions: one node of the tree is changed, and the tree is compiled again.

The text of the expression stays, so that messages about it are the same. No mutant is made where the change cannot
matter: `null` has no other value of its kind, and a chain of one operand has no operator. Nor is one made of `+`
between texts, since every other operator fails there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from quire.expr import Expression, compile
from quire.expr.syntax import (
    Arithmetic,
    ArithmeticOperator,
    Compare,
    CompareOperator,
    Constant,
    Each,
    FunctionCall,
    Get,
    Join,
    ListOf,
    Logic,
    MapOf,
    Negate,
    Node,
    Not,
    Path,
    Total,
)
from quire.source import Source, Span
from quire.testing.mutation.edits import other_literal, shown

if TYPE_CHECKING:
    from quire.plan.pipeline_work import Formula

_COMPARED: dict[CompareOperator, CompareOperator] = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
}
_COMPUTED: dict[ArithmeticOperator, ArithmeticOperator] = {"+": "-", "-": "+", "*": "/", "/": "*"}


class Variant(Struct, frozen=True):
    """An expression with one change."""

    operator: str
    change: str
    """Verb first: `compares with <= instead of <`."""
    formula: Formula
    span: Span
    """In the text of the expression."""


def variants(formula: Formula) -> Iterator[Variant]:
    """Yield every mutant of an expression, from the left to the right."""
    expression = formula.compiled.expression
    for operator, change, span, root in _changed(expression.root):
        yield Variant(operator, change, _compiled(formula, root), span)


def negated(formula: Formula) -> Variant | None:
    """Return the negation of a whole condition; None if one of its variants is the same."""
    root = formula.compiled.expression.root
    if isinstance(root, Not) or (isinstance(root, Compare) and root.operator in ("==", "!=")):
        return None
    if isinstance(root, Constant) and isinstance(root.value, bool):
        return None
    return Variant("negate_condition", "negates", _compiled(formula, Not(root, 1, root.span)), root.span)


def span_in(source: Source, formula: Formula, span: Span) -> Span | None:
    """Return where a part of an expression stands in the document; the whole of it if its text is written otherwise."""
    place = formula.span
    if place.end <= place.start:
        return None
    piece = formula.text[span.start : span.end]
    at = place.start - 1
    for _ in range(formula.text.count(piece, 0, span.start) + 1):
        at = source.text.find(piece, at + 1, place.end)
        if at < 0:
            return place
    return Span(at, at + len(piece))


def _compiled(formula: Formula, root: Node) -> Formula:
    return replace(formula, compiled=compile(Expression(formula.compiled.expression.text, root)))


_Found = Iterator[tuple[str, str, Span, Node]]
"""The operator, the sentence, the place, and the changed node."""


def _changed(node: Node) -> _Found:
    yield from _own(node)
    match node:
        case Constant() | Path():
            return
        case ListOf(items=items):
            yield from _among(items, lambda parts: replace(node, items=parts))
        case MapOf(entries=entries):
            names = [name for name, _ in entries]
            values = tuple(value for _, value in entries)
            yield from _among(values, lambda parts: replace(node, entries=tuple(zip(names, parts, strict=True))))
        case Not(operand=operand) | Negate(operand=operand):
            yield from _among((operand,), lambda parts: replace(node, operand=parts[0]))
        case Logic(operands=operands):
            yield from _among(operands, lambda parts: replace(node, operands=parts))
        case Compare(left=left, right=right):
            yield from _among((left, right), lambda parts: replace(node, left=parts[0], right=parts[1]))
        case Arithmetic(first=first, rest=rest):
            signs = [sign for sign, _ in rest]
            terms = (first, *(part for _, part in rest))
            yield from _among(
                terms,
                lambda parts: replace(node, first=parts[0], rest=tuple(zip(signs, parts[1:], strict=True))),
            )
        case Each(source=source, body=body):
            yield from _among((source, body), lambda parts: replace(node, source=parts[0], body=parts[1]))
        case Total(source=source):
            yield from _among((source,), lambda parts: replace(node, source=parts[0]))
        case Join(source=source, separator=separator):
            yield from _among((source, separator), lambda parts: replace(node, source=parts[0], separator=parts[1]))
        case Get(base=base, default=None):
            yield from _among((base,), lambda parts: replace(node, base=parts[0]))
        case Get(base=base, default=default) if default is not None:
            yield from _among((base, default), lambda parts: replace(node, base=parts[0], default=parts[1]))
        case FunctionCall(arguments=arguments, key=None):
            yield from _among(arguments, lambda parts: replace(node, arguments=parts))
        case FunctionCall(arguments=arguments, key=key) if key is not None:
            both = (*arguments, key)
            yield from _among(both, lambda parts: replace(node, arguments=parts[:-1], key=parts[-1]))


def _among(parts: tuple[Node, ...], build: Callable[[tuple[Node, ...]], Node]) -> _Found:
    for number, part in enumerate(parts):
        for operator, change, span, changed in _changed(part):
            yield operator, change, span, build((*parts[:number], changed, *parts[number + 1 :]))


def _own(node: Node) -> _Found:
    """Yield the changes of one node itself."""
    match node:
        case Compare(operator=sign):
            other = _COMPARED[sign]
            change = f"compares with {other} instead of {sign}"
            yield "change_comparison", change, node.span, replace(node, operator=other)
        case Logic(operator=word, operands=operands) if len(operands) > 1:
            joined: Literal["and", "or"] = "or" if word == "and" else "and"
            yield "change_logic", f"joins with {joined} instead of {word}", node.span, replace(node, operator=joined)
        case Not(operand=operand, times=times):
            yield "drop_not", "drops a `not`", node.span, operand if times == 1 else replace(node, times=times - 1)
        case Arithmetic(rest=rest) if not _is_text(node):
            for number, (mark, part) in enumerate(rest):
                terms = (*rest[:number], (_COMPUTED[mark], part), *rest[number + 1 :])
                change = f"computes with {_COMPUTED[mark]} instead of {mark}"
                yield "change_arithmetic", change, part.span, replace(node, rest=terms)
        case Each(name="filter", source=source):
            yield "drop_filter", "drops a filter", node.span, source
        case Each(name="all"):
            yield "change_quantifier", "asks for any instead of all", node.span, replace(node, name="any")
        case Each(name="any"):
            yield "change_quantifier", "asks for all instead of any", node.span, replace(node, name="all")
        case Get(default=default) if default is not None and default != Constant(None, default.span):
            yield "drop_default", "drops the default of a get", node.span, replace(node, default=None)
        case Constant(value=value) if (literal := other_literal(value)) is not None:
            change = f"has {shown(literal)} instead of {shown(value)}"
            yield "change_constant", change, node.span, replace(node, value=literal)


def _is_text(chain: Arithmetic) -> bool:
    """Tell whether a chain joins texts: with another operator it could only fail."""
    parts = (chain.first, *(part for _, part in chain.rest))
    return any(isinstance(part, Constant) and isinstance(part.value, str) for part in parts)
