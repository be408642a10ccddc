"""Mutants of R1 expressions: one node of the tree is changed, and the tree is compiled again.

The text of the expression stays, so that messages about it are the same. No mutant is made where the change cannot
matter: `null` has no other value of its kind, and a chain of one operand has no operator. Nor is one made of `+`
between texts, since every other operator fails there.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    Get,
    Logic,
    Node,
    Not,
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
    """Yield the changes of a node itself, then those of its parts, in the order of its fields."""
    yield from _own(node)
    for field in node.__struct_fields__:
        value = getattr(node, field)
        if isinstance(value, tuple):
            for number, part in enumerate(value):
                for operator, change, span, changed in _changed_part(part):
                    edited = (*value[:number], changed, *value[number + 1 :])
                    yield operator, change, span, replace(node, **{field: edited})
        else:
            for operator, change, span, changed in _changed_part(value):
                yield operator, change, span, replace(node, **{field: changed})


def _changed_part(part: object) -> Iterator[tuple[str, str, Span, object]]:
    """Yield the changes of a node in a field, also of one that stands beside its name or its operator."""
    match part:
        case (str() as beside, Struct() as inner) if isinstance(inner, Node):
            for operator, change, span, changed in _changed(inner):
                yield operator, change, span, (beside, changed)
        case Struct() if isinstance(part, Node):
            yield from _changed(part)


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
