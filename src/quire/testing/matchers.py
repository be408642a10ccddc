"""Matchers: tell whether a value is as expected, and if not, why.

`mismatch` returns the first reason, with the span of the part of the expectation that does not hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, assert_never

from msgspec import Struct

from quire import safe_regex
from quire.expr import EvalError, compile, parse
from quire.expr.errors import ExprSyntaxError
from quire.formats.test.expected import (
    TESTS,
    Absent,
    AllOf,
    Contains,
    Equal,
    Fields,
    FitsSchema,
    Holds,
    Items,
    JsonAt,
    Limit,
    Listed,
    Matcher,
    Matches,
    OneOf,
    Snapshot,
)
from quire.values import InvalidValue, Value, clean, encode, pretty
from quire.wording import cut, did_you_mean, nearest

if TYPE_CHECKING:
    from quire.plan.pipeline_work import Formula
    from quire.source import Span

LONGEST_SHOWN = 400
LONGEST_SEARCHED = 1_000_000
"""Characters of a text in which a pattern is searched for."""


class Missing:
    """Stands for a value that is not there."""


MISSING = Missing()
Seen: TypeAlias = "Value | Missing"
Snapshots: TypeAlias = "Callable[[str, Value, Span], Mismatch | None]"
"""Compares a value with the one that is kept for a place among the expectations."""


LONGEST_QUOTED = 60
"""A longer text is not quoted in a message; reports show it below."""
MOST_LINES = 2_000
"""Lines in which the nearest ones are looked for."""


class Mismatch(Struct):
    """The reason why an expectation does not hold."""

    message: str
    span: Span
    parts: tuple[tuple[str, str], ...] = ()
    """The paths that an expression reads, with their values."""
    expected: str | None = None
    """With `actual`, two texts whose difference helps."""
    actual: str | None = None
    code: str = ""
    """The id of another code than that of expectations."""


class Scope(Struct):
    """The values that expressions read besides `value`, and the snapshots of the case."""

    bindings: Mapping[str, Value]
    snapshots: Snapshots | None = None
    place: str = ""
    """The place of the expectation among those of its case: `prompts`, `named.best`."""


def mismatch(matcher: Matcher, seen: Seen, scope: Scope) -> Mismatch | None:
    """Return why a value does not match; None if it does."""
    if isinstance(matcher, Absent):
        if isinstance(seen, Missing) == matcher.wanted:
            return None
        return Mismatch("it is there" if matcher.wanted else "it is not there", matcher.span)
    if isinstance(seen, Missing):
        if isinstance(matcher, AllOf):
            return next(filter(None, (mismatch(one, seen, scope) for one in matcher.matchers)), None)
        return Mismatch("it is not there", matcher.span)
    match matcher:
        case Equal():
            return _equal(matcher, seen)
        case Contains():
            return _contains(matcher, seen)
        case Matches():
            return _matches(matcher, seen)
        case Limit():
            return _limit(matcher, seen)
        case JsonAt() | FitsSchema():
            return _as_json(matcher, seen, scope)
        case OneOf():
            reasons = [mismatch(one, seen, scope) for one in matcher.matchers]
            if any(reason is None for reason in reasons):
                return None
            return Mismatch(f"{_said(seen)} matches none of these", matcher.span)
        case AllOf():
            return next(filter(None, (mismatch(one, seen, scope) for one in matcher.matchers)), None)
        case Items():
            return _items(matcher, seen, scope)
        case Listed():
            return _listed(matcher, seen, scope)
        case Fields():
            return _fields(matcher, seen, scope)
        case Holds():
            return holds(matcher.formula, matcher.span, {**scope.bindings, "value": seen})
        case Snapshot():
            if scope.snapshots is None:
                return Mismatch("a snapshot cannot stand here", matcher.span)
            return scope.snapshots(scope.place, seen, matcher.span)
        case _:
            assert_never(matcher)


def holds(formula: Formula, span: Span, bindings: Mapping[str, Value]) -> Mismatch | None:
    """Return why an expression is not true, with the values that it reads; None if it is."""
    try:
        value = formula.compiled.evaluate(bindings)
    except EvalError as error:
        return Mismatch(f"{formula.text} cannot be evaluated: {error}", span, _parts(formula, bindings))
    if value is True:
        return None
    said = "false" if value is False else f"{_said(value)}, which is not true"
    return Mismatch(f"{formula.text} is {said}", span, _parts(formula, bindings))


def shown(value: Value) -> str:
    """Return a value as a text to show, cut to a readable length."""
    return cut(pretty(value), LONGEST_SHOWN)


def _parts(formula: Formula, bindings: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for read in formula.compiled.reads():
        path = ".".join(read.path)
        if path in found:
            continue
        try:
            found[path] = shown(compile(parse(path)).evaluate(bindings))
        except (EvalError, ExprSyntaxError):
            found[path] = "not there"
    return tuple(found.items())


def _equal(matcher: Equal, seen: Value) -> Mismatch | None:
    if same(matcher.value, seen):
        return None
    wanted = matcher.value
    if isinstance(wanted, str) and isinstance(seen, str):
        return Mismatch(f"it is {_said(seen)}", matcher.span, expected=wanted, actual=seen)
    if isinstance(wanted, Mapping | Sequence) and not isinstance(wanted, str):
        return Mismatch(f"it is {_said(seen)}{_meant(wanted, seen)}", matcher.span, (), pretty(wanted), pretty(seen))
    kinds = "" if type(wanted) is type(seen) else f", {_kind(seen)}, and not {_kind(wanted)}"
    return Mismatch(f"it is {_said(seen)}{kinds}", matcher.span)


def _meant(wanted: Value, seen: Value) -> str:
    """Suggest the matcher that is probably meant by a mapping where a text or a number was seen."""
    if not isinstance(wanted, Mapping) or isinstance(seen, Mapping):
        return ""
    close = next(filter(None, (nearest(str(key), TESTS) for key in wanted)), None)
    return did_you_mean(close, lead="; ")


def same(wanted: Value, seen: Value) -> bool:
    """Tell whether two values are equal as JSON: 1 equals 1.0, and true is not 1."""
    if isinstance(wanted, bool) or isinstance(seen, bool):
        return wanted is seen
    if isinstance(wanted, Mapping) and isinstance(seen, Mapping):
        return wanted.keys() == seen.keys() and all(same(one, seen[key]) for key, one in wanted.items())
    if _is_list(wanted) and _is_list(seen):
        return len(wanted) == len(seen) and all(map(same, wanted, seen))  # type: ignore[arg-type]
    return wanted == seen


def _is_list(value: Value) -> bool:
    return isinstance(value, list | tuple)


def _contains(matcher: Contains, seen: Value) -> Mismatch | None:
    for part in matcher.parts:
        there = _has(seen, part)
        if there is None:
            return Mismatch(f"{_said(seen)} cannot contain {_said(part)}", matcher.span)
        if there == matcher.negated:
            verb = "contains" if matcher.negated else "does not contain"
            if not isinstance(seen, str) or not isinstance(part, str):
                return Mismatch(f"{_said(seen)} {verb} {_said(part)}", matcher.span)
            name = "it" if "\n" in seen or len(seen) > LONGEST_QUOTED else _said(seen)
            nearest = None if matcher.negated else _nearest_lines(seen, part)
            wanted = part if nearest is not None else None
            return Mismatch(f"{name} {verb} {_said(part)}", matcher.span, expected=wanted, actual=nearest)
    return None


def _nearest_lines(text: str, part: str) -> str | None:
    """Return the lines of a text that share the most words with a part, long words first; None for a text of one line,
    or if no line shares any."""
    lines = text.split("\n")[:MOST_LINES]
    if len(lines) == 1:
        return None
    words, count = set(part.split()), part.count("\n") + 1
    shared = [sum(map(len, words.intersection(line.split()))) for line in lines]
    best = max(range(len(lines)), key=lambda at: sum(shared[at : at + count]))
    return "\n".join(lines[best : best + count]) if any(shared) else None


def _has(seen: Value, part: Value) -> bool | None:
    """Tell whether a value has a part; None if it cannot have one."""
    if isinstance(seen, str):
        return part in seen if isinstance(part, str) else None
    if isinstance(seen, Mapping):
        if isinstance(part, Mapping):
            return all(key in seen and same(value, seen[key]) for key, value in part.items())
        return part in seen if isinstance(part, str) else None
    if isinstance(seen, list | tuple):
        return any(same(part, item) for item in seen)
    return None


def _matches(matcher: Matches, seen: Value) -> Mismatch | None:
    pattern = safe_regex.compiled(matcher.pattern)
    if pattern is None:
        return Mismatch("patterns need RE2 (`pip install google-re2`)", matcher.span)
    if isinstance(seen, str) and pattern.search(clean(seen[:LONGEST_SEARCHED])) is not None:
        return None
    return Mismatch(f"{_said(seen)} does not match {matcher.pattern}", matcher.span)


def _limit(matcher: Limit, seen: Value) -> Mismatch | None:
    if isinstance(seen, bool) or not isinstance(seen, int | float):
        return Mismatch(f"{_said(seen)} is not a number", matcher.span)
    within = seen >= matcher.bound if matcher.least else seen <= matcher.bound
    word = "less" if matcher.least else "more"
    return None if within else Mismatch(f"{seen:g} is {word} than {matcher.bound:g}", matcher.span)


def _as_json(matcher: JsonAt | FitsSchema, seen: Value, scope: Scope) -> Mismatch | None:
    try:
        value = json_of(seen)
    except ValueError:
        return Mismatch(f"{_said(seen)} is not JSON", matcher.span)
    if isinstance(matcher, FitsSchema):
        return _fits(matcher, value)
    for path, inner in matcher.paths:
        found = mismatch(inner, _at(value, path), scope)
        if found is not None:
            found.message = f"{path}: {found.message}"
            return found
    return None


def json_of(value: Value) -> Value:
    """Return a text as the JSON in it, without the fence around it; any other value as it is. Raises `ValueError`."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text.partition("\n")[2][:-3]
    try:
        found: Value = json.loads(text)
        encode(found)
    except (RecursionError, InvalidValue) as error:
        raise ValueError(str(error)) from None
    return found


def _at(value: Value, path: str) -> Seen:
    """Return the value at a dotted path; numbers are positions in lists."""
    found: Value = value
    for part in path.split("."):
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, list | tuple) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return MISSING
    return found


def _fits(matcher: FitsSchema, value: Value) -> Mismatch | None:
    import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for(dict(matcher.schema))
    except (ValueError, jsonschema_rs.ReferencingError) as wrong:
        return Mismatch(f"this is not a JSON Schema: {cut(str(wrong).partition(chr(10))[0], 200)}", matcher.span)
    for error in validator.iter_errors(value):
        where = ".".join(str(part) for part in error.instance_path)
        place = f"{where}: " if where else ""
        return Mismatch(f"it does not fit the schema: {place}{cut(error.message, 200)}", matcher.span)
    return None


def _items(matcher: Items, seen: Value, scope: Scope) -> Mismatch | None:
    if not isinstance(seen, list | tuple):
        return Mismatch(f"{_said(seen)} is not a list", matcher.span)
    reasons = [mismatch(matcher.matcher, item, scope) for item in seen]
    if matcher.every:
        for number, reason in enumerate(reasons):
            if reason is not None:
                reason.message = f"item {number}: {reason.message}"
                return reason
        return None
    if any(reason is None for reason in reasons):
        return None
    return Mismatch(f"no item of {_said(seen)} matches", matcher.span)


def _listed(matcher: Listed, seen: Value, scope: Scope) -> Mismatch | None:
    if not isinstance(seen, list | tuple):
        return Mismatch(f"{_said(seen)} is not a list", matcher.span)
    if len(seen) != len(matcher.matchers):
        return Mismatch(f"it has {len(seen)} items, and not {len(matcher.matchers)}", matcher.span)
    for number, (inner, item) in enumerate(zip(matcher.matchers, seen, strict=True)):
        if (reason := mismatch(inner, item, scope)) is not None:
            reason.message = f"item {number}: {reason.message}"
            return reason
    return None


def _fields(matcher: Fields, seen: Value, scope: Scope) -> Mismatch | None:
    if not isinstance(seen, Mapping):
        return Mismatch(f"{_said(seen)} is not a mapping", matcher.span)
    for name, inner in matcher.fields:
        if (reason := mismatch(inner, seen.get(name, MISSING), scope)) is not None:
            reason.message = f"{name}: {reason.message}"
            return reason
    left = list(_others(seen, {name for name, _ in matcher.fields}))
    return Mismatch(f"it has {', '.join(left)} as well", matcher.span) if left else None


def _others(seen: Mapping[str, Value], known: set[str]) -> Iterator[str]:
    return (str(name) for name in seen if name not in known)


def _said(value: Value) -> str:
    text = encode(value) if not isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return cut(text, 120)


def _kind(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case Mapping():
            return "a mapping"
    return "a list"
