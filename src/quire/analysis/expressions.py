"""Evaluate an expression on what is known before a run: the type, the sizes and the labels of its value."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from quire.analysis.abstract_values import (
    NULL,
    AbstractValue,
    Computed,
    either,
    literal,
    sized,
)
from quire.analysis.amounts import NOTHING, ONE, Amount, number, total
from quire.analysis.labels import Integrity, Label, joined
from quire.analysis.names import BOOL, NUMBER, PER_ITEM, TEXT, Names
from quire.expr.functions import FUNCTIONS
from quire.expr.limits import MAX_ITEMS as MOST_ITEMS_OF_A_VALUE
from quire.expr.limits import MAX_TEXT as LONGEST_VALUE
from quire.expr.syntax import (
    Arithmetic,
    Compare,
    Constant,
    Each,
    Expression,
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
from quire.expr.syntax import reads as reads_of

if TYPE_CHECKING:
    from quire.expr import Compiled

_LONGEST = number(LONGEST_VALUE * 4)
_MOST_ITEMS = number(MOST_ITEMS_OF_A_VALUE)
_NO_LONGER = frozenset(
    ("number", "parse", "trim", "slice", "first", "last", "sort", "reverse", "distinct", "flatten", "keys", "values")
)
"""Functions whose result is made of parts of their first argument."""
_TWICE = frozenset(("json", "text", "lower", "upper", "split", "entries", "group", "zip", "merge"))
"""Functions whose result is at most a few times as long as their arguments together: quotes, escapes, case, keys."""
_KNOWN_ITEMS = 50
"""Items of a list that are known one by one."""
_ESCAPED = 12
"""How much longer a text can be as JSON: one byte as an escape of six characters, twice."""

_ALL_STORES = ("ctx",)
_DEEPEST = 10
"""Expressions in each other that answers of people are followed through."""


def computed(expression: Compiled, names: Names) -> AbstractValue:
    """Return all that is known about the value of an expression, and how it depends on answers of people."""
    return _dependent(expression.expression.root, names)


def _dependent(root: Node, names: Names) -> AbstractValue:
    value = evaluate(root, names)
    if not names.answers.exist or value.answer is not None or isinstance(root, Path | Constant):
        return value
    reads = {".".join(one.path): names.path(one.path) for one in reads_of(Expression("", root))}
    depth = max((one.depth for one in reads.values()), default=0) + 1
    if depth > _DEEPEST or not any(one.is_answered for one in reads.values()):
        return value.unanswered()
    return replace(value, choices=(), computed=Computed(root, reads, depth))


def evaluate(node: Node, names: Names) -> AbstractValue:
    """Return all that is known about the value of an expression."""
    match node:
        case Path(segments=segments):
            return names.path(segments)
        case Constant(value=value):
            return literal(value)
        case FunctionCall():
            return _call(node, names)
        case Compare(left=left, right=right):
            return _verdict(evaluate(left, names).label.join(evaluate(right, names).label))
        case Arithmetic(first=first, rest=rest):
            return _arithmetic([evaluate(first, names), *(evaluate(one, names) for _, one in rest)], rest)
        case ListOf(items=items):
            parts = [evaluate(one, names) for one in items]
            element = either(parts) if parts else None
            # Items of a list have no names in expressions; rules read them by their numbers.
            known = {str(at): part for at, part in enumerate(parts)} if len(parts) <= _KNOWN_ITEMS else {}
            return AbstractValue(None, number(len(parts)), _written(parts), _label(parts), known, element)
        case MapOf(entries=entries):
            fields = {name: _dependent(one, names) for name, one in entries}
            keys = number(sum(len(name) * 4 + 6 for name in fields))
            values = list(fields.values())
            return AbstractValue(None, number(len(fields)), _written(values).plus(keys), _label(values), fields)
        case Not(operand=operand):
            return _verdict(evaluate(operand, names).label)
        case Negate(operand=operand):
            return _figure(evaluate(operand, names).label)
        case Logic(operands=operands):
            parts = [evaluate(one, names) for one in operands]
            chosen = either(parts)
            return chosen.labelled(chosen.label.join(_label(parts)))
        case Each():
            return _each(node, names)
        case Total(source=source):
            return _figure(evaluate(source, names).label)
        case Join(source=source, separator=separator):
            whole, between = evaluate(source, names), evaluate(separator, names)
            length = whole.length.plus(whole.items.times(between.length))
            return AbstractValue(TEXT, ONE, length, whole.label.join(between.label))
        case Get(base=base, keys=keys, default=default):
            found = evaluate(base, names)
            for key in keys:
                found = names.entry(found, key)
            if keys and isinstance(base, Path) and base.segments == _ALL_STORES:
                # From now on the name is known as that of an input.
                names.store(keys[0])
            instead = evaluate(default, names) if default is not None else NULL
            return either([found, instead]).labelled(found.label.join(instead.label))
        case _:
            assert_never(node)


def _label(parts: list[AbstractValue]) -> Label:
    return joined([part.label for part in parts])


def _written(parts: list[AbstractValue]) -> Amount:
    return total([part.length for part in parts]).plus(number(4 * len(parts) + 2))


def _verdict(label: Label) -> AbstractValue:
    return AbstractValue(BOOL, NOTHING, number(5), label.narrowed())


def _figure(label: Label) -> AbstractValue:
    return sized(NUMBER, _LONGEST, label.narrowed())


def _arithmetic(parts: list[AbstractValue], rest: tuple[tuple[str, Node], ...]) -> AbstractValue:
    label = _label(parts)
    if any(operator != "+" for operator, _ in rest) or all(part.type == NUMBER for part in parts):
        return _figure(label)
    items = total([part.items for part in parts])
    text = any(part.type == TEXT for part in parts)
    type = TEXT if text else None
    return AbstractValue(type, ONE if text else items, total([part.length for part in parts]), label)


def _each(node: Each, names: Names) -> AbstractValue:
    source = evaluate(node.source, names)
    item = names.item(source)
    body = evaluate(node.body, names.with_bound(node.parameter, item))
    label = source.label.join(body.label)
    match node.name:
        case "map":
            length = source.items.times(body.length.plus(number(4))).plus(number(2))
            return AbstractValue(None, source.items, length, label, element=body)
        case "filter":
            return replace(source.unanswered(), label=label, fields={}, name="", is_constant=False, constant=None)
        case "find":
            return either([item, NULL]).labelled(label.join(item.label))
        case "all" | "any":
            return _verdict(label)
        case _:
            assert_never(node.name)


def _call(node: FunctionCall, names: Names) -> AbstractValue:
    parts = [evaluate(one, names) for one in node.arguments]
    label = _label(parts)
    if node.key is not None and parts:
        key = evaluate(node.key, names.with_bound(node.parameter, names.item(parts[0])))
        label = label.join(key.label)
    gives = FUNCTIONS[node.name].gives if node.name in FUNCTIONS else ""
    names.failures.add(label)
    if gives == "boolean":
        return _verdict(label)
    if gives == "number" and node.name != "number":
        return _figure(label)
    length = total([part.length for part in parts])
    first = parts[0] if parts else NULL
    if node.name in _NO_LONGER:
        type = first.type if node.name in ("slice", "sort", "reverse", "distinct") else None
        if node.name in ("first", "last"):
            # A list of texts is longer than each of them, so the item may as well be a text as long as the list.
            return either([names.item(first), NULL]).labelled(label)
        if node.name == "number" and len(parts) == 1:
            return _figure(label)
        items = first.items
        if node.name in ("parse", "flatten"):
            # Each item takes at least one character to write, but how many a reply has is not certain.
            items = _MOST_ITEMS if first.label.chosen >= Integrity.MODEL else items.plus(first.length)
        return AbstractValue(type, items, length, label)
    if node.name in _TWICE:
        items = total([part.items for part in parts])
        if node.name == "split":
            items = _MOST_ITEMS if first.label.chosen >= Integrity.MODEL else first.length.plus(ONE)
        factor = _ESCAPED if node.name in ("json", "text", "group") else 4
        around = items.plus(ONE).times(number(PER_ITEM))
        return AbstractValue(TEXT if gives == "text" else None, items, length.times(number(factor)).plus(around), label)
    if node.name in ("min", "max") and len(parts) > 1:
        return either(parts).labelled(label)
    return AbstractValue(TEXT if gives == "text" else None, _MOST_ITEMS, _LONGEST, label)
