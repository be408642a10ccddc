"""Hostile expressions and hostile data end soon, in a failure of ours."""

from __future__ import annotations

import sys

import pytest

from quire.expr import EvalError, ExpressionError, ExprSyntaxError, compile, parse
from quire.expr.values import MAX_ITEMS, MAX_LENGTH, MAX_NESTING, MAX_TEXT
from quire.values import Value, decode, encode

DEEP = {
    "parentheses": "(" * 50_000,
    "lists": "[" * 50_000,
    "maps": "{a:" * 20_000,
    "negated": "-(" * 30_000,
    "not": "not (" * 15_000,
    "lambdas": "map([1], x -> " * 7_000,
    "arguments": "count(" * 15_000,
    "defaults": "get(1,''," * 10_000,
    "mixed": "1 or 1 and not 1 == 1 + 1 * -(" * 3_000,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_deep_expressions_are_refused_by_the_limit(text: str) -> None:
    with pytest.raises(ExprSyntaxError, match=f"nested deeper than {MAX_NESTING} levels") as caught:
        parse(text)
    assert caught.value.span.start < 4_000 and "several steps" in caught.value.help


def test_a_height_without_brackets_is_counted_too() -> None:
    text = "1 or 1 and not 1 == 1 + 1 * -(" * 20 + "1" + ")" * 20
    with pytest.raises(ExprSyntaxError, match="nested deeper"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(" * 90 + "1" + ")" * 90, 1),
        ("1 + (" * 45 + "0" + ")" * 45, 45),
        ("not (" * 45 + "1" + ")" * 45, False),
        ("count(map([1], x -> " * 22 + "[1]" + "))" * 22, 1),
        ("count([" * 45 + "1" + "])" * 45, 1),
    ],
)
def test_what_people_could_write_works(text: str, value: Value) -> None:
    assert compile(parse(text)).evaluate({}) == value


def test_long_expressions() -> None:
    assert compile(parse(" + ".join(["1"] * 20_000))).evaluate({}) == 20_000
    assert compile(parse("-" * 99_998 + "1")).evaluate({}) == 1
    with pytest.raises(ExprSyntaxError, match="100,001 characters"):
        parse(" " * MAX_LENGTH + "1")


def test_a_caller_that_stands_deep_gets_a_failure_of_ours() -> None:
    text = "map([1], x -> " * 45 + "1" + ")" * 45
    compiled = compile(parse(text))

    def deeper(levels: int) -> int:
        """How many of three attempts failed in our way."""
        if levels:
            return deeper(levels - 1)
        failed = 0
        for attempt in (lambda: parse(text), lambda: compile(compiled.expression), lambda: compiled.evaluate({})):
            try:
                attempt()
            except ExpressionError:
                failed += 1
        return failed

    frames = 0
    frame = sys._getframe()
    while frame.f_back is not None:
        frames, frame = frames + 1, frame.f_back
    assert deeper(sys.getrecursionlimit() - frames - 40) == 3


NUMBERS: list[Value] = list(range(1_000))
MANY: list[Value] = list(range(100_000))


@pytest.mark.parametrize(
    ("text", "ctx", "words"),
    [
        ("map(ctx, x -> map(ctx, y -> map(ctx, z -> x)))", NUMBERS, "steps"),
        ("filter(ctx, x -> all(ctx, y -> any(ctx, z -> false) == false))", NUMBERS, "steps"),
        ("map(ctx, x -> sum(ctx))", MANY, "steps"),
        ("map(ctx, x -> count(ctx + ctx))", MANY, "steps"),
        ("map(ctx.l, x -> ctx.a == ctx.b)", {"l": MANY, "a": "x" * 10**7, "b": "x" * (10**7 - 1) + "y"}, "steps"),
        ("map(ctx.l, x -> ctx.a < ctx.b)", {"l": MANY, "a": "x" * 10**7, "b": "x" * (10**7 - 1) + "y"}, "steps"),
        ("map(ctx.l, x -> ctx.a == ctx.b)", {"l": MANY, "a": NUMBERS, "b": [*NUMBERS]}, "steps"),
        ("map(ctx.l, x -> count(ctx.rows + ctx.rows))", {"l": NUMBERS[:50], "rows": [NUMBERS] * 400}, "steps"),
        ("*".join(["ctx"] * 5_000), 10**400, "more than 4,300 digits"),
        ("+".join(["ctx"] * 5_000), 10**4_299 * 9, "more than 4,300 digits"),
        ("map(ctx.l, x -> ctx.n + 1)", {"l": MANY, "n": 10**4_000}, "steps"),
        ("map(ctx.l, x -> ctx.n / 1)", {"l": MANY, "n": 10**4_000}, "steps"),
        ("*".join(["ctx"] * 400), 10.5, "too large"),
        ("+".join(["ctx"] * 5), "x" * 4 * 10**6, f"more than {MAX_TEXT:,} characters"),
        (f"[{','.join(['ctx + ctx'] * 5_000)}]", "x" * 5 * 10**6, "steps"),
        (f"[{','.join(['ctx'] * 20)}]", "x" * 10**6, f"more than {MAX_TEXT:,} characters"),
        ("+".join(["ctx"] * 11), MANY, f"more than {MAX_ITEMS:,} items"),
        (f"[{','.join(['ctx'] * 11)}]", MANY, f"more than {MAX_ITEMS:,} items"),
        ("join(ctx, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')", ["x" * 100] * 200_000, f"more than {MAX_TEXT:,} characters"),
    ],
    ids=range(19),
)
def test_too_much_is_refused(text: str, ctx: Value, words: str) -> None:
    with pytest.raises(EvalError, match=words) as caught:
        compile(parse(text)).evaluate({"ctx": ctx})
    assert caught.value.span.end <= len(text)


def folded(text: str, times: int, acc: Value) -> Value:
    evaluate = compile(parse(text)).evaluate
    for item in range(times):
        acc = evaluate({"acc": acc, "item": item, "ctx": NUMBERS[:40]})
    return acc


@pytest.mark.parametrize(
    ("text", "acc", "words"),
    [
        ("[acc]", 1, "nested deeper than 200"),
        ("{a: acc}", 1, "nested deeper than 200"),
        ("[acc] + map([1], x -> x)", [], "nested deeper than 200"),
        ("[acc, acc]", 1, "items"),
        ("{a: acc, b: acc}", 1, "items"),
        ("map([1, 2], x -> acc)", 1, "items"),
        ("acc + [acc]", [], "items"),
        ("ctx + [acc]", [], "nested deeper than 200"),
        ("acc + acc", [1], "items"),
        ("acc + acc", ["x" * 1000], "characters"),
        ("acc + acc", "x", "characters"),
        ("{l: acc.l + [acc.l]}", {"l": list(range(40))}, "items|nested"),
    ],
)
def test_values_that_grow_from_step_to_step_are_refused(text: str, acc: Value, words: str) -> None:
    with pytest.raises(EvalError, match=words):
        folded(text, 300, acc)


def test_equality_of_widely_shared_values_is_charged() -> None:
    shared: list[Value] = []
    for _ in range(2):
        value: Value = 1
        for _ in range(60):
            value = [value, value]
        shared.append(value)
    with pytest.raises(EvalError, match="steps"):
        compile(parse("ctx == pipe")).evaluate({"ctx": shared[0], "pipe": shared[1]})
    assert compile(parse("ctx == ctx")).evaluate({"ctx": shared[0]}) is True


def test_a_growing_list_stays_an_ordinary_list() -> None:
    grown = folded("acc + [{n: item}]", 2_000, [])
    assert grown == [{"n": number} for number in range(2_000)]
    assert decode(encode(grown)) == grown
    assert compile(parse("count(filter(acc, x -> x.n > 1000))")).evaluate({"acc": grown}) == 999
