"""The combinators that go over a list, as closures.

The names are copied once for each combinator: a lambda cannot outlive it, so all its applications share one copy, in
which the parameter is set anew. What applies its lambda to every element is charged for all of them beforehand.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

from quire.expr.errors import EvalError
from quire.expr.kinds import NUMBERS, is_list, kind
from quire.expr.limits import MAX_TEXT
from quire.expr.operators import SMALL, storable
from quire.expr.run import Code, Run
from quire.expr.syntax import EachName
from quire.source import Span


def each(name: EachName, source: Code, parameter: str, body: Code, cost: int, span: Span, place: Span) -> Code:
    """`cost` is the number of nodes of the lambda, `place` where the list is written."""

    def begin(run: Run, applied: int | None = None) -> tuple[Sequence[Any], dict[str, Any]]:
        items = _items(name, source(run), place)
        run.charge((len(items) if applied is None else applied) * cost + len(run.names), span)
        return items, dict(run.names)

    def mapped(run: Run) -> object:
        items, inner = begin(run)
        outer, run.names = run.names, inner
        found = []
        for item in items:
            inner[parameter] = item
            found.append(body(run))
        run.names = outer
        return found

    def filtered(run: Run) -> object:
        items, inner = begin(run)
        outer, run.names = run.names, inner
        found = []
        for item in items:
            inner[parameter] = item
            if body(run):
                found.append(item)
        run.names = outer
        return found

    def first(run: Run, wanted: bool, instead: object, found: object) -> object:
        """`found` when the lambda comes out as `wanted` for some element, else `instead`."""
        items, inner = begin(run, 0)
        outer, run.names = run.names, inner
        result = instead
        for item in items:
            run.charge(cost, span)
            inner[parameter] = item
            if bool(body(run)) is wanted:
                result = item if found is _ITEM else found
                break
        run.names = outer
        return result

    codes: dict[EachName, Code] = {
        "map": mapped,
        "filter": filtered,
        "all": lambda run: first(run, False, True, False),
        "any": lambda run: first(run, True, False, True),
        "find": lambda run: first(run, True, None, _ITEM),
    }
    return codes[name]


_ITEM = object()


def count(source: Code, place: Span) -> Code:
    return lambda run: len(_items("count", source(run), place))


def total(source: Code, span: Span, place: Span) -> Code:
    def add_up(run: Run) -> object:
        items = _items("sum", source(run), place)
        run.charge(len(items) >> 1, span)
        if not NUMBERS.issuperset(map(type, items)):
            wrong = next(item for item in items if type(item) not in NUMBERS)
            raise EvalError(f"sum needs a list of numbers, but one element is {kind(wrong)}", place)
        long = sum(item.bit_length() for item in items if type(item) is int and not -SMALL < item < SMALL)
        run.charge(long >> 12, span)
        try:
            # Not the built-in sum: since Python 3.12 it rounds floats differently, and a replay must not.
            return storable(reduce(operator.add, items, 0), run, span)
        except OverflowError:
            raise EvalError("the number is too large", span) from None

    return add_up


def join(source: Code, separator: Code, span: Span, place: Span, separator_place: Span) -> Code:
    def put_together(run: Run) -> object:
        items = _items("join", source(run), place)
        between = separator(run)
        if not isinstance(between, str):
            raise EvalError(f"join needs a text as separator, not {kind(between)}", separator_place)
        run.charge(len(items) >> 1, span)
        for item in items:
            if not isinstance(item, str):
                raise EvalError(f"join needs a list of texts, but one element is {kind(item)}", place)
        length = sum(map(len, items)) + len(between) * max(0, len(items) - 1)
        if length > MAX_TEXT:
            raise EvalError(f"the text has more than {MAX_TEXT:,} characters", span)
        run.charge(length >> 4, span)
        return between.join(items)

    return put_together


def _items(name: str, value: object, place: Span) -> Sequence[Any]:
    if not is_list(value):
        raise EvalError(f"{name} needs a list, not {kind(value)}", place)
    return value
