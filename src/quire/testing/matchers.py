"""Matchers: tell whether a value is as expected, and if not, why.

`mismatch` returns the first reason, with the span of the part of the expectation that does not hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """Stands for a missing value."""


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


def mismatch(matcher: Matcher, actual: Seen, scope: Scope) -> Mismatch | None:
    """Return why a value does not match; None if it does."""
    if isinstance(matcher, AllOf):
        return next(filter(None, (mismatch(inner, actual, scope) for inner in matcher.matchers)), None)
    if isinstance(matcher, Absent):
        if isinstance(actual, Missing) == matcher.wanted:
            return None
        return Mismatch("it exists" if matcher.wanted else "it is missing", matcher.span)
    if isinstance(actual, Missing):
        return Mismatch("it is missing", matcher.span)
    match matcher:
        case Equal():
            return _equal(matcher, actual)
        case Contains():
            return _contains(matcher, actual)
        case Matches():
            return _matches(matcher, actual)
        case Limit():
            return _limit(matcher, actual)
        case JsonAt() | FitsSchema():
            return _as_json(matcher, actual, scope)
        case OneOf():
            reasons = [mismatch(inner, actual, scope) for inner in matcher.matchers]
            if any(reason is None for reason in reasons):
                return None
            return Mismatch(f"{_said(actual)} matches none of these", matcher.span)
        case Items():
            return _items(matcher, actual, scope)
        case Listed():
            return _listed(matcher, actual, scope)
        case Fields():
            return _fields(matcher, actual, scope)
        case Holds():
            return holds(matcher.formula, matcher.span, {**scope.bindings, "value": actual})
        case Snapshot():
            if scope.snapshots is None:
                return Mismatch("a snapshot cannot stand here", matcher.span)
            return scope.snapshots(scope.place, actual, matcher.span)
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
    what = "false" if value is False else f"{_said(value)}, which is not true"
    return Mismatch(f"{formula.text} is {what}", span, _parts(formula, bindings))


def shown(value: Value) -> str:
    """Return a value as a text to show, cut to a readable length."""
    return cut(pretty(value), LONGEST_SHOWN)


def _parts(formula: Formula, bindings: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
    values: dict[str, str] = {}
    for read in formula.compiled.reads():
        path = ".".join(read.path)
        if path in values:
            continue
        try:
            values[path] = shown(compile(parse(path)).evaluate(bindings))
        except (EvalError, ExprSyntaxError):
            values[path] = "not there"
    return tuple(values.items())


def _equal(matcher: Equal, actual: Value) -> Mismatch | None:
    if same(matcher.value, actual):
        return None
    expected = matcher.value
    if isinstance(expected, str) and isinstance(actual, str):
        return Mismatch(f"it is {_said(actual)}", matcher.span, expected=expected, actual=actual)
    if isinstance(expected, Mapping | Sequence) and not isinstance(expected, str):
        message = f"it is {_said(actual)}{_meant(expected, actual)}"
        return Mismatch(message, matcher.span, (), pretty(expected), pretty(actual))
    kinds = "" if type(expected) is type(actual) else f", {_kind(actual)}, and not {_kind(expected)}"
    return Mismatch(f"it is {_said(actual)}{kinds}", matcher.span)


def _meant(expected: Value, actual: Value) -> str:
    """Suggest the matcher that is probably meant by a mapping where a text or a number was seen."""
    if not isinstance(expected, Mapping) or isinstance(actual, Mapping):
        return ""
    close = next(filter(None, (nearest(str(key), TESTS) for key in expected)), None)
    return did_you_mean(close, lead="; ")


def same(expected: Value, actual: Value) -> bool:
    """Tell whether two values are equal as JSON: 1 equals 1.0, and true is not 1."""
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return expected.keys() == actual.keys() and all(same(part, actual[key]) for key, part in expected.items())
    if _is_list(expected) and _is_list(actual):
        return len(expected) == len(actual) and all(map(same, expected, actual))  # type: ignore[arg-type]
    return expected == actual


def _is_list(value: Value) -> bool:
    return isinstance(value, list | tuple)


def _contains(matcher: Contains, actual: Value) -> Mismatch | None:
    for part in matcher.parts:
        there = _has(actual, part)
        if there is None:
            return Mismatch(f"{_said(actual)} cannot contain {_said(part)}", matcher.span)
        if there == matcher.negated:
            verb = "contains" if matcher.negated else "does not contain"
            if not isinstance(actual, str) or not isinstance(part, str):
                return Mismatch(f"{_said(actual)} {verb} {_said(part)}", matcher.span)
            name = "it" if "\n" in actual or len(actual) > LONGEST_QUOTED else _said(actual)
            nearest = None if matcher.negated else _nearest_lines(actual, part)
            expected = part if nearest is not None else None
            return Mismatch(f"{name} {verb} {_said(part)}", matcher.span, expected=expected, actual=nearest)
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


def _has(actual: Value, part: Value) -> bool | None:
    """Tell whether a value has a part; None if it cannot have one."""
    if isinstance(actual, str):
        return part in actual if isinstance(part, str) else None
    if isinstance(actual, Mapping):
        if isinstance(part, Mapping):
            return all(key in actual and same(value, actual[key]) for key, value in part.items())
        return part in actual if isinstance(part, str) else None
    if isinstance(actual, list | tuple):
        return any(same(part, item) for item in actual)
    return None


def _matches(matcher: Matches, actual: Value) -> Mismatch | None:
    pattern = safe_regex.compiled(matcher.pattern)
    if pattern is None:
        return Mismatch("patterns need the package google-re2", matcher.span)
    if isinstance(actual, str) and pattern.search(clean(actual[:LONGEST_SEARCHED])) is not None:
        return None
    return Mismatch(f"{_said(actual)} does not match {matcher.pattern}", matcher.span)


def _limit(matcher: Limit, actual: Value) -> Mismatch | None:
    if isinstance(actual, bool) or not isinstance(actual, int | float):
        return Mismatch(f"{_said(actual)} is not a number", matcher.span)
    within = actual >= matcher.bound if matcher.least else actual <= matcher.bound
    word = "less" if matcher.least else "more"
    return None if within else Mismatch(f"{actual:g} is {word} than {matcher.bound:g}", matcher.span)


def _as_json(matcher: JsonAt | FitsSchema, actual: Value, scope: Scope) -> Mismatch | None:
    try:
        value = json_of(actual)
    except ValueError:
        return Mismatch(f"{_said(actual)} is not JSON", matcher.span)
    if isinstance(matcher, FitsSchema):
        return _fits(matcher, value)
    return _first((path, mismatch(inner, _at(value, path), scope)) for path, inner in matcher.paths)


def _first(reasons: Iterable[tuple[str, Mismatch | None]]) -> Mismatch | None:
    """Return the first of several reasons, with its place in front of its message; None if there is none."""
    for place, reason in reasons:
        if reason is not None:
            reason.message = f"{place}: {reason.message}"
            return reason
    return None


def json_of(value: Value) -> Value:
    """Return a text as the JSON in it, without the fence around it; any other value as it is. Raises `ValueError`."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text.partition("\n")[2][:-3]
    try:
        parsed: Value = json.loads(text)
        encode(parsed)
    except (RecursionError, InvalidValue) as error:
        raise ValueError(str(error)) from None
    return parsed


def _at(value: Value, path: str) -> Seen:
    """Return the value at a dotted path; numbers are positions in lists."""
    inner: Value = value
    for part in path.split("."):
        if isinstance(inner, Mapping) and part in inner:
            inner = inner[part]
        elif isinstance(inner, list | tuple) and part.isdecimal() and int(part) < len(inner):
            inner = inner[int(part)]
        else:
            return MISSING
    return inner


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


def _items(matcher: Items, actual: Value, scope: Scope) -> Mismatch | None:
    if not isinstance(actual, list | tuple):
        return Mismatch(f"{_said(actual)} is not a list", matcher.span)
    reasons = [mismatch(matcher.matcher, item, scope) for item in actual]
    if matcher.every:
        return _first((f"item {number}", reason) for number, reason in enumerate(reasons))
    if any(reason is None for reason in reasons):
        return None
    return Mismatch(f"no item of {_said(actual)} matches", matcher.span)


def _listed(matcher: Listed, actual: Value, scope: Scope) -> Mismatch | None:
    if not isinstance(actual, list | tuple):
        return Mismatch(f"{_said(actual)} is not a list", matcher.span)
    if len(actual) != len(matcher.matchers):
        return Mismatch(f"it has {len(actual)} items, and not {len(matcher.matchers)}", matcher.span)
    pairs = enumerate(zip(matcher.matchers, actual, strict=True))
    return _first((f"item {number}", mismatch(inner, item, scope)) for number, (inner, item) in pairs)


def _fields(matcher: Fields, actual: Value, scope: Scope) -> Mismatch | None:
    if not isinstance(actual, Mapping):
        return Mismatch(f"{_said(actual)} is not a mapping", matcher.span)
    if reason := _first((name, mismatch(inner, actual.get(name, MISSING), scope)) for name, inner in matcher.fields):
        return reason
    names = {name for name, _ in matcher.fields}
    left = [str(name) for name in actual if name not in names]
    return Mismatch(f"it has {', '.join(left)} as well", matcher.span) if left else None


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
