"""Compile calls of functions to closures. Loaded with the first expression that calls one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quire.expr import json_text, list_functions, number_functions, templates, text_functions
from quire.expr.arguments import At, needs_list

if TYPE_CHECKING:
    from quire.expr.limits import Closure, Run

_WORK: dict[str, Callable[..., Any]] = {
    "text": json_text.text,
    "json": json_text.json,
    "parse": json_text.parse,
    "number": number_functions.number,
    "abs": number_functions.absolute,
    "round": number_functions.nearest,
    "floor": number_functions.floor,
    "ceil": number_functions.ceil,
    "format": templates.fill,
    "split": text_functions.split,
    "trim": text_functions.trim,
    "lower": text_functions.lower,
    "upper": text_functions.upper,
    "replace": text_functions.replace,
    "contains": text_functions.contains,
    "starts_with": text_functions.starts_with,
    "ends_with": text_functions.ends_with,
    "first": list_functions.first,
    "last": list_functions.last,
    "slice": list_functions.slice_of,
    "sort": list_functions.sort,
    "reverse": list_functions.reverse,
    "distinct": list_functions.distinct,
    "keys": list_functions.keys,
    "values": list_functions.values,
    "entries": list_functions.entries,
    "merge": list_functions.merge,
    "range": list_functions.range_of,
    "min": list_functions.least,
    "max": list_functions.greatest,
    "flatten": list_functions.flatten,
    "zip": list_functions.zip_of,
    "group": list_functions.group,
}
"""Each takes the run, the place and the values of its arguments, and raises only `EvalError`."""


def call(arguments: tuple[Closure, ...], at: At) -> Closure:
    """Compile a call without a lambda."""
    work = _WORK[at.name]
    if len(arguments) == 1:
        (only,) = arguments
        return lambda run: work(run, at, only(run))
    if len(arguments) == 2:
        one, other = arguments
        return lambda run: work(run, at, one(run), other(run))
    if len(arguments) == 3:
        first, second, third = arguments
        return lambda run: work(run, at, first(run), second(run), third(run))
    return lambda run: work(run, at, *[argument(run) for argument in arguments])


def call_with_key(source: Closure, parameter: str, body: Closure, cost: int, at: At) -> Closure:
    """Compile a call with a lambda that gives the key of each element. `cost` is the number of nodes of the lambda."""
    work = _WORK[at.name]

    def apply(run: Run) -> object:
        items = needs_list(source(run), at)
        run.charge(len(items) * cost + len(run.names), at.span)
        outer, inner = run.names, dict(run.names)
        run.names = inner
        keys = []
        for item in items:
            inner[parameter] = item
            keys.append(body(run))
        run.names = outer
        return work(run, at, items, by=keys)

    return apply
