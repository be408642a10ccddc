"""Evaluate an expression on what is known before a run: the type, the sizes and the labels of its value; how large a
computed number can be, and so how many items `range`, `slice` and `flatten` can give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from math import ceil, floor
from typing import TYPE_CHECKING, Any, assert_never

from msgspec.structs import replace

from quire.analysis.abstract_values import BOOL, NULL, NUMBER, TEXT, AbstractValue, Computed, either, literal
from quire.analysis.amounts import NOTHING, ONE, Amount, number, total
from quire.analysis.labels import AUTHORED, MODEL, Label, joined
from quire.analysis.scope import PER_ITEM, Names
from quire.analysis.written_sizes import LONGEST_NUMBER, PARSED, written_length
from quire.expr.functions import FUNCTIONS
from quire.expr.syntax import (
    Arithmetic,
    Compare,
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
    reads_below,
)
from quire.expr.values import MAX_ITEMS as MOST_ITEMS_OF_A_VALUE
from quire.expr.values import MAX_TEXT as LONGEST_VALUE
from quire.schema_types import Simple
from quire.values import MAX_DEPTH

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
_SAME_ITEMS = frozenset(("distinct", "reverse", "slice", "sort"))
"""Functions that return items of their list, as they are."""
_WHOLE = frozenset(("ceil", "floor", "round"))
"""Functions whose result is not larger than a whole number that their argument is not larger than."""
_KNOWN_ITEMS = 50
"""Items of a list that are known one by one."""
_ESCAPED = 12
"""How much longer a text can be as JSON: one byte as an escape of six characters, twice."""
_WIDEST_INDENT = 8
"""Spaces that `json` puts before a line, for each level that a value is nested."""

_FIGURE, _TRUTH = number(LONGEST_NUMBER), number(5)
_PLACE = number(20)
"""Bytes of a number that `range` makes, with what is between two of them."""
_AROUND_ONE = number(6)
"""Bytes around the only item of a list."""
_ALL_STORES = ("ctx",)
_DEEPEST = 10
"""Expressions in each other that answers of people are followed through."""


def computed(expression: Compiled, names: Names) -> AbstractValue:
    """Return all that is known about the value of an expression, and how it depends on answers of people."""
    root = expression.expression.root
    if names.answers.exist and root.__class__ is not Path:
        return _dependent(root, names)
    return _EVALUATORS[root.__class__](root, names)


def _dependent(root: Node, names: Names) -> AbstractValue:
    value = evaluate(root, names)
    if not names.answers.exist or value.answer is not None or isinstance(root, Path | Constant):
        return value
    reads = {read.name: names.path(read.path) for read in reads_below(root)}
    depth = max((read.depth for read in reads.values()), default=0) + 1
    if depth > _DEEPEST or not any(read.is_answered for read in reads.values()):
        return value.unanswered()
    return replace(value, choices=(), computed=Computed(root, reads, depth))


def evaluate(node: Node, names: Names) -> AbstractValue:
    """Return all that is known about the value of an expression."""
    return _EVALUATORS[node.__class__](node, names)


def label_of(node: Node, names: Names) -> Label:
    """Return the label of the value of an expression. Of a condition nothing else is asked for."""
    return _LABELS[node.__class__](node, names)


def path_value(node: Path, names: Names) -> AbstractValue:
    """Return all that is known about the value of a path."""
    if not names.bound and node.store:
        value = names.stores.get(node.store)
        if value is not None:
            return value
    return names.path(node.segments)


def _compare_label(node: Compare, names: Names) -> Label:
    left, right = node.left, node.right
    label = _LABELS[left.__class__](left, names)
    if right.__class__ is not Constant:
        label = label.join(_LABELS[right.__class__](right, names))
    return label.narrowed()


def _total_label(node: Total, names: Names) -> Label:
    source = node.source
    return _LABELS[source.__class__](source, names).narrowed()


def _list(node: ListOf, names: Names) -> AbstractValue:
    # Items of a list have no names in expressions; rules read them by their numbers.
    if len(node.items) == 1:
        only = evaluate(node.items[0], names)
        return AbstractValue(None, ONE, only.length.plus(_AROUND_ONE), only.label, {"0": only}, only)
    parts = [evaluate(item, names) for item in node.items]
    values = {str(at): part for at, part in enumerate(parts)} if len(parts) <= _KNOWN_ITEMS else {}
    return AbstractValue(
        None, number(len(parts)), _written(parts), _label(parts), values, either(parts) if parts else None
    )


def _map(node: MapOf, names: Names) -> AbstractValue:
    fields = {name: _dependent(entry, names) for name, entry in node.entries}
    keys = number(sum(written_length(name) + 6 for name in fields))
    values = list(fields.values())
    return AbstractValue(None, number(len(fields)), _written(values).plus(keys), _label(values), fields)


def _logic(node: Logic, names: Names) -> AbstractValue:
    parts = [evaluate(operand, names) for operand in node.operands]
    chosen = either(parts)
    return chosen.labelled(chosen.label.join(_label(parts)))


def _total(node: Total, names: Names) -> AbstractValue:
    if node.name != "count":
        return _figure(label_of(node.source, names))
    source = evaluate(node.source, names)
    return _figure(source.label, source.items)


def _join(node: Join, names: Names) -> AbstractValue:
    whole, between = evaluate(node.source, names), evaluate(node.separator, names)
    length = whole.length.plus(whole.items.times(between.length))
    return AbstractValue(TEXT, ONE, length, whole.label.join(between.label))


def _get(node: Get, names: Names) -> AbstractValue:
    keys = node.keys
    if keys and isinstance(node.base, Path) and node.base.segments == _ALL_STORES:
        # A name that no step has written may be that of an input.
        value, keys = names.store(keys[0]) or NULL, keys[1:]
    else:
        value = evaluate(node.base, names)
    for key in keys:
        value = names.entry(value, key)
    instead = evaluate(node.default, names) if node.default is not None else NULL
    return either([value, instead]).labelled(value.label.join(instead.label))


def _label(parts: list[AbstractValue]) -> Label:
    return parts[0].label if len(parts) == 1 else joined([part.label for part in parts])


def _written(parts: list[AbstractValue]) -> Amount:
    return total([part.length for part in parts], 4 * len(parts) + 2)


def _verdict(label: Label) -> AbstractValue:
    return AbstractValue(BOOL, NOTHING, _TRUTH, label.narrowed())


def _figure(label: Label, largest: Amount | None = None) -> AbstractValue:
    return AbstractValue(NUMBER, _FIGURE, _FIGURE, label.narrowed(), largest=largest)


def _arithmetic(node: Arithmetic, names: Names) -> AbstractValue:
    operand = node.first
    first = _EVALUATORS[operand.__class__](operand, names)
    label, length, items = first.label, first.length, first.items
    types, is_sum = [] if first.type is None else [first.type], True
    has_words = first.is_word or first.is_constant
    largest = largest_of(first)
    for operator, operand in node.rest:
        part = _EVALUATORS[operand.__class__](operand, names)
        label = label.join(part.label)
        length = length.plus(part.length)
        items = items.plus(part.items)
        if part.type is not None:
            types.append(part.type)
        if operator != "+":
            is_sum = False
        has_words = has_words and (part.is_word or part.is_constant)
        if largest is not None:
            largest = largest_after(operator, largest, part)
    if not is_sum or types.count(NUMBER) == 1 + len(node.rest):
        return _figure(label, largest)
    if TEXT not in types:
        return AbstractValue(None, items, length, label)
    return AbstractValue(TEXT, ONE, length, label, is_word=has_words)


def _each(node: Each, names: Names) -> AbstractValue:
    source = evaluate(node.source, names)
    item = names.item(source)
    body = _body(node.body, node.parameter, item, names)
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


def _body(body: Node, parameter: str, item: AbstractValue, names: Names) -> AbstractValue:
    """Return the value of the body of a lambda, in which one name more is known."""
    before = names.bound
    names.bound = {**before, parameter: item}
    value = _EVALUATORS[body.__class__](body, names)
    names.bound = before
    return value


def _call(node: FunctionCall, names: Names) -> AbstractValue:
    parts = [_EVALUATORS[argument.__class__](argument, names) for argument in node.arguments]
    label = _label(parts)
    key = NULL
    if node.key is not None and parts:
        key = _body(node.key, node.parameter, names.item(parts[0]), names)
        label = label.join(key.label)
    gives = FUNCTIONS[node.name].gives if node.name in FUNCTIONS else ""
    names.failures.add(label)
    if gives == "boolean":
        return _verdict(label)
    if gives == "number" and node.name != "number":
        return _figure(label, largest_of(parts[0]) if node.name in _WHOLE and len(parts) == 1 else None)
    length = total([part.length for part in parts])
    first = parts[0] if parts else NULL
    if node.name in _NO_LONGER:
        type = first.type if node.name in _SAME_ITEMS else None
        if node.name in ("first", "last"):
            # A list of texts is longer than each of them, so the item may as well be a text as long as the list.
            return either([names.item(first), NULL]).labelled(label)
        if node.name == "number":
            return _or_default(_figure(label), parts[1:])
        items = _items_within(first) if node.name in ("parse", "flatten") else first.items
        if node.name == "parse":
            length = first.length.times(number(PARSED))
            return _or_default(AbstractValue(type, items, length, label), parts[1:])
        if node.name == "slice":
            items = items_between(parts, items)
        if node.name == "flatten":
            items = fewer(items, first.items.times(names.item(first).items.either(ONE)))
        element = first.element if node.name in _SAME_ITEMS else None
        return AbstractValue(type, items, first.length, label, element=element)
    if node.name in _TWICE:
        items = _items_of(node, parts)
        factor = _ESCAPED if node.name in ("json", "text", "group") else 4
        around = items.plus(ONE).times(key.length.plus(number(PER_ITEM)))
        if node.name == "json" and len(parts) > 1:
            factor += _WIDEST_INDENT * MAX_DEPTH
        return AbstractValue(TEXT if gives == "text" else None, items, length.times(number(factor)).plus(around), label)
    if node.name in ("min", "max") and len(parts) > 1:
        return replace(either(parts).labelled(label), largest=largest_extreme(node.name, parts))
    if node.name == "range" and (counted := items_counted(parts)) is not None:
        items, largest = counted
        element = AbstractValue(NUMBER, _PLACE, _PLACE, label.narrowed(), largest=largest)
        return AbstractValue(None, items, items.times(_PLACE).plus(_PLACE), label, element=element)
    return AbstractValue(TEXT if gives == "text" else None, _MOST_ITEMS, _LONGEST, label)


def _items_of(node: FunctionCall, parts: list[AbstractValue]) -> Amount:
    """Return how many items the result of a function has that makes a new list or map of its arguments."""
    if node.name == "split":
        return _MOST_ITEMS if parts[0].label.chosen >= MODEL else parts[0].length.plus(ONE)
    if node.name in ("zip", "merge") and len(parts) == 1:
        # A map of lists, or a list of maps: their items count, not their number.
        within, argument = list(parts[0].fields.values()), node.arguments[0]
        if isinstance(argument, MapOf) and node.name == "zip":
            return reduce(Amount.either, [part.items for part in within], NOTHING)
        if isinstance(argument, ListOf) and node.name == "merge" and len(within) == len(argument.items):
            return total([part.items for part in within])
        return _items_within(parts[0])
    return total([part.items for part in parts])


def _items_within(value: AbstractValue) -> Amount:
    """Return how many items the parts of a value have together. Each takes at least one character to write, but how
    many characters a reply has is not certain."""
    return _MOST_ITEMS if value.label.chosen >= MODEL else value.items.plus(value.length)


def _or_default(value: AbstractValue, default: list[AbstractValue]) -> AbstractValue:
    """Return a value that is replaced by a default if a text does not hold one."""
    values = [value, *default]
    return either(values).labelled(joined([each.label for each in values])) if default else value


_EVALUATORS: Mapping[type, Callable[[Any, Names], AbstractValue]] = {
    Path: path_value,
    Constant: lambda node, names: literal(node.value),
    FunctionCall: _call,
    Compare: lambda node, names: _verdict(label_of(node, names)),
    Arithmetic: _arithmetic,
    ListOf: _list,
    MapOf: _map,
    Not: lambda node, names: _verdict(label_of(node.operand, names)),
    Negate: lambda node, names: _figure(label_of(node.operand, names)),
    Logic: _logic,
    Each: _each,
    Total: _total,
    Join: _join,
    Get: _get,
}
"""The work for each kind of node. Expressions are most of a pipeline, and a chain of tests would ask each node for its
kind a dozen times."""
_LABELS: Mapping[type, Callable[[Any, Names], Label]] = {
    **dict.fromkeys(_EVALUATORS, lambda node, names: _EVALUATORS[node.__class__](node, names).label),
    Path: lambda node, names: path_value(node, names).label,
    Constant: lambda node, names: AUTHORED,
    Compare: _compare_label,
    Total: _total_label,
}
"""The label of the value of each kind of node. Conditions are made of those that have a function of their own here:
nothing else of their values is asked for."""


_FARTHEST = 1 << 50
"""Larger numbers are not followed: a division may round them up."""


def largest_of(value: AbstractValue) -> Amount | None:
    """Return a whole number, or a formula of sizes, that a number is not larger than; None if that is not known."""
    constant = value.constant
    if value.is_constant and isinstance(constant, int | float) and not isinstance(constant, bool):
        return number(max(0, ceil(constant))) if constant <= _FARTHEST else None
    amount = value.largest
    if amount is None:
        most = value.type.maximum if isinstance(value.type, Simple) else None
        return number(max(0, ceil(most))) if most is not None and most <= _FARTHEST else None
    return None if amount.is_endless else amount


def largest_after(operator: str, largest: Amount, operand: AbstractValue) -> Amount | None:
    """Return the largest result of an operator whose first operand has the largest value `largest`.

    Division keeps the order of numbers and rounds to the nearest one, so that it does not pass a whole number.
    """
    if operator == "+":
        more = largest_of(operand)
        return largest.plus(more) if more is not None else None
    by = operand.constant
    if not operand.is_constant or not isinstance(by, int | float) or isinstance(by, bool):
        return None
    if operator == "/" and by >= 1:
        return largest.divided(floor(by))
    if operator == "-" and by >= 0:
        most = largest.as_number
        return number(max(0, most - floor(by))) if most is not None else largest
    return None


def largest_extreme(name: str, parts: list[AbstractValue]) -> Amount | None:
    """Return the largest value of `min` or `max` of several numbers."""
    amounts = [largest_of(part) for part in parts]
    bounds = [amount for amount in amounts if amount is not None]
    if name == "max":
        return reduce(Amount.either, bounds) if len(bounds) == len(parts) else None
    return reduce(fewer, bounds) if bounds else None


def fewer(amount: Amount, other: Amount) -> Amount:
    """Return the smaller one of two bounds of the same, as far as numbers tell; else the first."""
    least = other.as_number
    return amount.at_most(least) if least is not None else amount


def items_between(parts: list[AbstractValue], items: Amount) -> Amount:
    """Return how many items `slice` takes at most: of positions that are not counted from the end, the number of items
    between them."""
    constants = [part.constant for part in parts[1:] if part.is_constant]
    positions = [at for at in constants if isinstance(at, int) and not isinstance(at, bool) and at >= 0]
    if len(positions) < 2:
        return items
    most = max(0, positions[1] - positions[0])
    return number(most) if items.as_number is None else items.at_most(most)


def items_counted(bounds: list[AbstractValue]) -> tuple[Amount, Amount] | None:
    """Return how many items `range` makes at most, and the largest of them: no more than its end says, if it does not
    begin below 0."""
    end = largest_of(bounds[-1]) if bounds else None
    items = end
    if end is not None and len(bounds) == 2:
        begin = bounds[0].constant
        if not bounds[0].is_constant or not isinstance(begin, int) or begin < 0:
            return None
        items = largest_after("-", end, bounds[0])
    return (items.at_most(MOST_ITEMS_OF_A_VALUE), end) if items is not None and end is not None else None
