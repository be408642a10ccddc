"""Calls on hostile values end soon, in a failure of ours, before memory is spent."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.growth import within

from quire.expr import EvalError, ExpressionError, ExprSyntaxError, compile, parse
from quire.expr.functions import FUNCTIONS
from quire.expr.limits import MAX_NESTING
from quire.values import Value, decode, encode

LONG = "ab" * 4_000_000
MANY: list[Value] = list(range(500_000))
SHARED: Any = [1, 2, 3]
for _ in range(40):
    SHARED = [SHARED, SHARED]


Made = Callable[[], Any]
"""Makes a value when its test runs: all of them together are large."""

HOSTILE: list[tuple[str, Made, str]] = [
    ("replace(ctx, 'a', 'aaaaaaaaaa')", lambda: LONG, "characters"),
    ("replace(ctx, 'a', ctx)", lambda: LONG, "characters"),
    ("split(ctx, 'a')", lambda: LONG, "items"),
    ("split(ctx)", lambda: "a " * 1_500_000, "items"),
    ("upper(ctx)", lambda: "ΐ" * 6_000_000, "characters"),
    ("range(1000001)", lambda: None, "items"),
    ("range(0 - 9007199254740992, 9007199254740992)", lambda: None, "items"),
    ("map(range(1000000), x -> range(1000000))", lambda: None, "steps"),
    ("flatten(map(range(100), x -> ctx))", lambda: MANY, "items"),
    ("zip(ctx, ctx, ctx)", lambda: MANY, "items"),
    ("zip({a: ctx, b: ctx, c: ctx})", lambda: MANY, "items"),
    ("entries(ctx)", lambda: {str(number): 1 for number in range(400_000)}, "items"),
    ("map(ctx, x -> sort(ctx))", lambda: MANY, "steps"),
    ("map(range(1000), x -> split(ctx))", lambda: "a " * 100_000, "steps"),
    ("map(range(100000), x -> lower(ctx))", lambda: LONG, "steps"),
    ("map(range(100000), x -> contains(ctx, 'c'))", lambda: LONG, "steps"),
    ("map(range(100000), x -> contains(ctx, -1))", lambda: MANY, "steps"),
    ("map(range(1000), x -> slice(ctx, 1))", lambda: LONG, "steps"),
    ("map(range(1000), x -> slice(ctx, 1))", lambda: MANY, "steps"),
    ("map(range(1000), x -> reverse(ctx))", lambda: MANY, "steps"),
    ("map(range(1000), x -> merge(ctx, ctx))", lambda: {str(number): 1 for number in range(100_000)}, "steps"),
    ("map(range(1000), x -> parse(ctx))", lambda: json.dumps(MANY), "steps"),
    ("map(range(1000), x -> json(ctx))", lambda: MANY, "steps"),
    ("sort(map(range(300000), x -> ctx))", lambda: LONG, "steps"),
    ("max(map(range(300000), x -> ctx))", lambda: LONG, "steps"),
    ("sort(ctx)", lambda: [3 * 2**14_000 + number for number in range(20_000)], "steps"),
    ("map(range(100000), x -> text(ctx))", lambda: 2**14_000, "steps"),
    ("map(range(1000000), x -> number(ctx))", lambda: "9" * 4_300, "steps"),
    ("map(range(100000), x -> trim(ctx))", lambda: LONG, "steps"),
    ("map(range(1000000), x -> starts_with(ctx, ctx))", lambda: LONG, "steps"),
    ("map(range(1000000), x -> ends_with(ctx, ctx))", lambda: LONG, "steps"),
    ("map(range(1000), x -> keys(ctx))", lambda: {str(number): 1 for number in range(100_000)}, "steps"),
    ("map(range(1000), x -> values(ctx))", lambda: {str(number): 1 for number in range(100_000)}, "steps"),
    ("min(map(range(300000), x -> ctx))", lambda: LONG, "steps"),
    ("text(map(range(100000), x -> ctx))", lambda: 2**14_000, "steps"),
    ("distinct([map(range(100000), x -> ctx)])", lambda: 2**14_000, "steps"),
    ("text(ctx)", lambda: SHARED, "items"),
    ("distinct([ctx, 1])", lambda: SHARED, "items"),
    ("format('{}', ctx)", lambda: SHARED, "items"),
    ("json(ctx, 8)", lambda: [[[[[[[[[list(range(300_000))]]]]]]]]], "characters"),
    ("json(ctx)", lambda: "\x00" * 5_000_000, "characters"),
    ("format('{}{}{}', ctx, ctx, ctx)", lambda: LONG, "characters"),
    ("parse(ctx)", lambda: f"[{'[],' * 3_000_000}1]", "items"),
    ("parse(ctx)", lambda: "9" * 20_000_000, "characters"),
    ("group(ctx, x -> range(x))", lambda: MANY, "steps"),
]
SMALL_WORK = {"first", "last", "abs", "round", "floor", "ceil"}
"""Functions whose work does not grow with their arguments."""


@pytest.mark.parametrize(("text", "made", "words"), HOSTILE, ids=[text for text, _, _ in HOSTILE])
def test_hostile_calls_are_refused_soon(text: str, made: Made, words: str) -> None:
    evaluate, ctx = compile(parse(text, dialect=True)).evaluate, made()
    with within(10), pytest.raises(EvalError, match=words):
        evaluate({"ctx": ctx}, {})


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("replace(ctx, 'a', ctx)", lambda: "a" * 1_000_000),
        ("range(900000000)", lambda: None),
        ("zip(ctx, ctx, ctx, ctx, ctx)", lambda: MANY),
        ("flatten(map(range(100), x -> ctx))", lambda: MANY),
        ("parse(ctx)", lambda: f"[{'[],' * 3_000_000}1]"),
        ("json(ctx, 8)", lambda: [[[[[[[[[list(range(300_000))]]]]]]]]]),
    ],
)
def test_a_refusal_comes_before_the_memory_is_spent(text: str, made: Made) -> None:
    evaluate, ctx = compile(parse(text, dialect=True)).evaluate, made()
    tracemalloc.start()
    try:
        with pytest.raises(EvalError):
            evaluate({"ctx": ctx}, {})
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()


def test_numbers_that_were_chosen_to_collide_take_no_longer() -> None:
    text = "[count(distinct(ctx)), count(group(ctx, x -> x)), contains(ctx, 7)]"
    evaluate = compile(parse(text, dialect=True)).evaluate
    colliding = [number * (2**61 - 1) for number in range(1, 60_000)]
    with within(5):
        assert evaluate({"ctx": colliding}, {}) == [len(colliding), len(colliding), False]


def test_large_ordinary_work_is_done() -> None:
    evaluate = compile(parse("count(sort(map(split(ctx), w -> lower(w))))", dialect=True)).evaluate
    assert evaluate({"ctx": "The quick Fox " * 20_000}, {}) == 60_000
    report = compile(parse("parse(json(ctx, 2)) == ctx", dialect=True)).evaluate
    assert report({"ctx": {"rows": [{"id": number, "text": "x" * 50} for number in range(20_000)]}}, {}) is True


def test_deep_calls_are_refused_by_the_limit() -> None:
    for text in ("lower(" * 15_000, "sort([1], x -> " * 6_000, "max(1, " * 14_000):
        with pytest.raises(ExprSyntaxError, match=f"nested deeper than {MAX_NESTING} levels"):
            parse(text, dialect=True)
    deep = compile(parse("lower(" * 48 + "'A'" + ")" * 48, dialect=True))
    assert deep.evaluate({}) == "a"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-20, 20)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a", "{}", "{a}", "[1]", "12", " x ", "ß", "\ud800"])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(st.integers(-5, 5), max_size=4)
        | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(max_examples=depth(150, 1_500), deadline=None)
@given(st.sampled_from(sorted(FUNCTIONS)), st.lists(VALUES, min_size=1, max_size=4), st.booleans())
def test_any_function_on_any_values_ends_in_a_value_or_a_failure(name: str, values: list[Value], keyed: bool) -> None:
    arguments = ", ".join(f"ctx.a{number}" for number in range(len(values)))
    text = f"{name}(ctx.a0, x -> x)" if keyed else f"{name}({arguments})"
    ctx: dict[str, Value] = {f"a{number}": value for number, value in enumerate(values)}
    before = repr(ctx)
    try:
        evaluate = compile(parse(text, dialect=True)).evaluate
        found = evaluate({"ctx": ctx}, {})
    except ExpressionError as error:
        assert 0 <= error.span.start < error.span.end <= len(text) + 1
        assert error.message and "\n" not in error.message[:40]
    else:
        assert "\\ud800" in repr(found) or repr(decode(encode(found))) == repr(found)
        assert repr(evaluate({"ctx": ctx}, {})) == repr(found)
    assert repr(ctx) == before


@settings(max_examples=depth(100, 600), deadline=None)
@given(st.lists(VALUES, max_size=6))
def test_distinct_and_group_agree_with_equality(values: list[Value]) -> None:
    kept: list[Value] = []
    for value in values:
        if value not in kept:
            kept.append(value)
    evaluate = compile(parse("[distinct(ctx), map(group(ctx, x -> x), g -> g.key)]", dialect=True)).evaluate
    assert repr(evaluate({"ctx": values}, {})) == repr([kept, kept])


@settings(max_examples=depth(60, 400), deadline=None)
@given(st.lists(st.integers() | st.floats(allow_nan=False, allow_infinity=False), max_size=8))
def test_sorting_keeps_the_order_of_equals(values: list[int | float]) -> None:
    rows: list[Any] = [{"n": value, "at": at} for at, value in enumerate(values)]
    found = compile(parse("sort(ctx, x -> x.n)", dialect=True)).evaluate({"ctx": rows}, {})
    assert found == sorted(rows, key=lambda row: row["n"])


@settings(max_examples=depth(100, 600), deadline=None)
@given(st.floats(-1e15, 1e15), st.integers(0, 15))
def test_rounding_and_format_agree(value: float, digits: int) -> None:
    evaluate = compile(parse("[round(ctx.x, ctx.d), number(format(ctx.x, ctx.d))]", dialect=True)).evaluate
    rounded, written = evaluate({"ctx": {"x": value, "d": digits}}, {})  # type: ignore[misc]
    assert rounded == written
    assert abs(rounded - value) <= 0.5 * 10**-digits + abs(value) * 1e-15  # type: ignore[operator]
