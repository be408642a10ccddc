"""Functions of lists and maps, and calls of all functions as closures. Loaded with the first expression with a call.

Work and size are charged before anything is built. Elements are not copied: a result shares them with its source.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from quire.expr import text_functions
from quire.expr.function_arguments import At, charge_list, charge_text, needs_list, needs_map, needs_whole
from quire.expr.operators import SMALL
from quire.expr.text_functions import charge_digits
from quire.expr.values import MAX_ITEMS, NUMBERS, Run, is_list, is_map, kind, measure

if TYPE_CHECKING:
    from quire.expr.values import Closure


_FARTHEST = 1 << 53
"""`range` stays within the whole numbers that every JSON reader keeps exact."""

_DIRECT = 1 << 60
"""Numbers below this are their own hash, so a list cannot be chosen in which many have the same one."""

_FEW = 32
"""Number of values, of any length, up to which they are compared in the time of their steps."""

_canonical = json.JSONEncoder(ensure_ascii=True, allow_nan=False, sort_keys=True, check_circular=False).encode


def first(run: Run, at: At, source: Any) -> Any:
    items = needs_list(source, at)
    return items[0] if items else None


def last(run: Run, at: At, source: Any) -> Any:
    items = needs_list(source, at)
    return items[-1] if items else None


def slice_of(run: Run, at: At, source: Any, start: Any, end: Any = None) -> Any:
    is_text = isinstance(source, str)
    if not is_text and not is_list(source):
        raise at.wants("a list or a text", source, 0)
    begin = needs_whole(start, at, 1)
    stop = needs_whole(end, at, 2) if len(at.places) > 2 else None
    length = len(range(len(source))[begin:stop])
    if is_text:
        charge_text(length, run, at)
        return source[begin:stop]
    charge_list(length, run, at)
    return list(source[begin:stop])


def reverse(run: Run, at: At, source: Any) -> list[Any]:
    items = needs_list(source, at)
    charge_list(len(items), run, at)
    return list(reversed(items))


def flatten(run: Run, at: At, source: Any) -> list[Any]:
    items = needs_list(source, at)
    run.charge(len(items), at.span)
    charge_list(sum([len(item) if is_list(item) else 1 for item in items]), run, at)
    flat: list[Any] = []
    for item in items:
        if is_list(item):
            flat.extend(item)
        else:
            flat.append(item)
    return flat


def zip_of(run: Run, at: At, *sources: Any) -> list[Any]:
    """Return the elements of several lists by position: lists, or maps if the lists are in a map."""
    if len(sources) > 1:
        lists = [needs_list(source, at, position) for position, source in enumerate(sources)]
        length = min(map(len, lists))
        charge_list(length * (len(lists) + 1), run, at)
        return list(map(list, zip(*lists, strict=False)))
    if not is_map(sources[0]):
        raise at.wants("several lists, or a map of lists", sources[0], 0)
    named: dict[str, Sequence[Any]] = {}
    for name, values in sources[0].items():
        if not is_list(values):
            raise at.fails(f"zip needs a map of lists, but {name} is {kind(values)}", 0)
        named[name] = values
    length = min(map(len, named.values()), default=0)
    charge_list(length * (len(named) + 1), run, at, 3)
    return [{name: values[row] for name, values in named.items()} for row in range(length)]


def range_of(run: Run, at: At, start: Any, end: Any = None) -> list[int]:
    bounds = [
        needs_whole(bound, at, position, -_FARTHEST, _FARTHEST)
        for position, bound in enumerate((start, end)[: len(at.places)])
    ]
    begin, stop = bounds if len(bounds) == 2 else (0, bounds[0])
    charge_list(max(0, stop - begin), run, at)
    return list(range(begin, stop))


def keys(run: Run, at: At, source: Any) -> list[str]:
    mapping = needs_map(source, at)
    charge_list(len(mapping), run, at)
    return list(mapping)


def values(run: Run, at: At, source: Any) -> list[Any]:
    mapping = needs_map(source, at)
    charge_list(len(mapping), run, at)
    return list(mapping.values())


def entries(run: Run, at: At, source: Any) -> list[Any]:
    mapping = needs_map(source, at)
    charge_list(3 * len(mapping), run, at, 2)
    return [{"key": key, "value": value} for key, value in mapping.items()]


def merge(run: Run, at: At, *sources: Any) -> dict[str, Any]:
    maps = sources
    if len(sources) == 1 and not is_map(sources[0]):
        if not is_list(sources[0]):
            raise at.wants("maps, or a list of maps", sources[0], 0)
        maps = tuple(sources[0])
    merged: dict[str, Any] = {}
    for position, element in enumerate(maps):
        if not is_map(element):
            if len(sources) > 1:
                raise at.wants("maps", element, position)
            raise at.fails(f"merge needs a list of maps, but one element is {kind(element)}", 0)
        run.charge(1 + 2 * len(element), at.span)
        merged.update(element)
        if len(merged) > MAX_ITEMS:
            raise at.fails(f"the map has more than {MAX_ITEMS:,} items")
    return merged


def sort(run: Run, at: At, items: Any, by: Sequence[Any] | None = None) -> list[Any]:
    """Return the elements in the order of their keys, or of themselves."""
    elements = needs_list(items, at)
    _check_order(elements if by is None else by, run, at, 1 + len(elements).bit_length(), by is not None)
    if by is None:
        return sorted(elements)
    return [elements[position] for position in sorted(range(len(elements)), key=by.__getitem__)]


def least(run: Run, at: At, *values: Any, by: Sequence[Any] | None = None) -> Any:
    return _extreme(min, run, at, values, by)


def greatest(run: Run, at: At, *values: Any, by: Sequence[Any] | None = None) -> Any:
    return _extreme(max, run, at, values, by)


def _extreme(choose: Callable[..., Any], run: Run, at: At, values: Sequence[Any], by: Sequence[Any] | None) -> Any:
    elements = needs_list(values[0], at) if len(values) == 1 else values
    if not elements:
        return None
    _check_order(elements if by is None else by, run, at, 1, by is not None)
    return choose(elements) if by is None else elements[choose(range(len(elements)), key=by.__getitem__)]


def distinct(run: Run, at: At, items: Any, by: Sequence[Any] | None = None) -> list[Any]:
    elements = needs_list(items, at)
    charge_list(len(elements), run, at, 2)
    firsts: dict[object, Any] = {}
    for item, key in zip(elements, elements if by is None else by, strict=True):
        firsts.setdefault(key if type(key) in _HASHABLE else _hashable(key, run, at), item)
    return list(firsts.values())


def group(run: Run, at: At, items: Sequence[Any], by: Sequence[Any]) -> list[Any]:
    """Return `{key, items}` for each distinct key, in the order in which they first appear."""
    charge_list(len(items), run, at, 2)
    groups: dict[object, dict[str, Any]] = {}
    for item, key in zip(items, by, strict=True):
        hashed = key if type(key) in _HASHABLE else _hashable(key, run, at)
        members = groups.get(hashed)
        if members is None:
            run.charge(6, at.span)
            groups[hashed] = {"key": key, "items": [item]}
        else:
            members["items"].append(item)
    return list(groups.values())


def _check_order(values: Sequence[Any], run: Run, at: At, passes: int, keyed: bool) -> None:
    """Charge `passes` passes over values that are compared. Raises `EvalError` if they have no order."""
    run.charge(len(values) * passes, at.span)
    kinds = set(map(type, values))
    if kinds <= {str}:
        run.charge((sum(map(len, values)) * passes) >> 6, at.span)
    elif not kinds <= NUMBERS:
        raise _no_order(values, at, keyed)
    elif len(values) > _FEW and int in kinds and not (min(values) > -SMALL and max(values) < SMALL):
        bits = sum(value.bit_length() for value in values if type(value) is int)
        run.charge((bits * passes) >> 8, at.span)


def _no_order(values: Sequence[Any], at: At, keyed: bool) -> Exception:
    named = list(dict.fromkeys(map(kind, values)))
    strange = [name for name in named if name not in ("a number", "a text")]
    what = "keys" if keyed else "values"
    if strange:
        return at.fails(f"{at.name} needs {what} that are numbers or texts, but one is {strange[0]}", 0)
    return at.fails(f"{at.name} needs {what} of one kind, not {named[0]} and {named[-1]}", 0)


_HASHABLE = frozenset({str, bool, type(None)})


def _hashable(value: Any, run: Run, at: At) -> object:
    """Return a key that is equal for equal values.

    Python hashes texts and bytes with a secret, so that a list cannot be made in which many have the same hash.
    """
    if type(value) in NUMBERS:
        if -_DIRECT < value < _DIRECT:
            return value
        run.charge(16, at.span)
        return b"%x" % int(value)
    sizes = measure(value, at.span)
    run.charge(8 + 6 * sizes.items + (sizes.characters >> 4), at.span)
    charge_digits(value, run, at)
    return _canonical(_plain(value)).encode()


def _plain(value: Any) -> Any:
    """Return the value with equal numbers made alike: true is 1, and so is 1.0. The depth is already limited."""
    if isinstance(value, str) or value is None:
        return value
    if is_list(value):
        return [_plain(item) for item in value]
    if is_map(value):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    return value


_WORK: dict[str, Callable[..., Any]] = {
    "text": text_functions.text,
    "json": text_functions.json,
    "parse": text_functions.parse,
    "number": text_functions.number,
    "abs": text_functions.absolute,
    "round": text_functions.nearest,
    "floor": text_functions.floor,
    "ceil": text_functions.ceil,
    "format": text_functions.fill,
    "split": text_functions.split,
    "trim": text_functions.trim,
    "lower": text_functions.lower,
    "upper": text_functions.upper,
    "replace": text_functions.replace,
    "contains": text_functions.contains,
    "starts_with": text_functions.starts_with,
    "ends_with": text_functions.ends_with,
    "first": first,
    "last": last,
    "slice": slice_of,
    "sort": sort,
    "reverse": reverse,
    "distinct": distinct,
    "keys": keys,
    "values": values,
    "entries": entries,
    "merge": merge,
    "range": range_of,
    "min": least,
    "max": greatest,
    "flatten": flatten,
    "zip": zip_of,
    "group": group,
}
"""Each takes the run, the place and the values of its arguments, and raises only `EvalError`."""


def call(arguments: tuple[Closure, ...], at: At) -> Closure:
    """Compile a call without a lambda."""
    work = _WORK[at.name]
    if len(arguments) == 1:
        (only,) = arguments
        return lambda run: work(run, at, only(run))
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
