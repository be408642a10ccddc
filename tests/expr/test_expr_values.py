"""What expressions are worth, and how they fail. Values are compared with their types: 2, 2.0 and true differ."""

from __future__ import annotations

import json
from types import MappingProxyType

import pytest

from quire.expr import EvalError, compile, parse, python_text
from quire.values import InvalidValue, Value

STORES: dict[str, Value] = {
    "n": 3,
    "f": 2.5,
    "s": "abc",
    "t": True,
    "z": None,
    "items": [1, 2, 3],
    "obj": {"a": {"b": 7}, "k": "v"},
    "rows": [{"id": 1, "ok": True}, {"id": 2, "ok": False}],
    "review": {"passed": False, "notes": "no"},
    "a-b": 1,
    "pipe": "a store",
    "item": "a store",
    "big": 10**400,
    "deep": {"w": {"x": {"y": {"z": 5}}}},
    "true": 9,
    "name": "Ada",
    "map": 4,
}
BINDINGS: dict[str, Value] = {"ctx": STORES, "pipe": "P"}


def value_of(text: str, bindings: dict[str, Value] | None = None) -> Value:
    return compile(parse(text)).evaluate(BINDINGS | (bindings or {}), STORES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # literals
        ("true", True),
        ("null", None),
        ("007", 7),
        ("1.50", 1.5),
        ("12345678901234567890123", 12345678901234567890123),
        (r"'it\'s'", "it's"),
        (r'"a\n\t\\\"b"', 'a\n\t\\"b'),
        (r"'\r\u0041'", "ru0041"),
        ("'line\nbreak'", "line\nbreak"),
        ("'a\\\nb'", "a\nb"),
        ("'é😀'", "é😀"),
        ("\u00a01\t+\r\n1 ", 2),
        # paths
        ("ctx.n", 3),
        ("ctx . obj\n. a . b", 7),
        ("ctx.deep.w.x.y.z", 5),
        ("ctx.true", 9),
        ("ctx.map", 4),
        ("map", 4),
        ("pipe", "P"),
        ("ctx.pipe", "a store"),
        ("obj.a.b", 7),
        ("get(ctx, 'a-b')", 1),
        # logic
        ("true and 'x'", "x"),
        ("0 or ''", ""),
        ("null or []", []),
        ("1 and 2 and 3", 3),
        ("1 and 0 and ctx.nope", 0),
        ("0 or 5 or ctx.nope", 5),
        ("not 1 == 2", True),
        ("not not 5", True),
        ("not not not {}", True),
        ("not true or true", True),
        ("false and true or true", True),
        ("true or false and false", True),
        ("review.passed and 'OK' or 'NEEDS WORK'", "NEEDS WORK"),
        # comparison
        ("1 == 1.0", True),
        ("1 == true", True),
        ("null == false", False),
        ("'1' == 1", False),
        ("[1, {a: [2]}] == [true, {a: [2.0]}]", True),
        ("{a: 1, b: 2} == {b: 2, a: 1}", True),
        ("{a: 1} == {b: 1}", False),
        ("[] == {}", False),
        ("[1] != [1, 2]", True),
        ("[[1]] == [1]", False),
        ("[1] == [[1]]", False),
        ("['a'] == [{}]", False),
        ("'a' < 'b'", True),
        ("'2' < '10'", False),
        ("true < 2", True),
        ("false <= 0.0", True),
        ("2 >= 2.0", True),
        ("1 + 1 == 2", True),
        ("(1 < 2) == true", True),
        # arithmetic
        ("7 / 2", 3.5),
        ("6 / 2", 3),
        ("6.0 / 2", 3.0),
        ("-7 / 7", -1),
        ("8 / -2", -4),
        ("12 / 3 / 2", 2),
        ("0 / 5", 0),
        ("9007199254740993 / 1", 9007199254740993),
        ("2--2", 4),
        ("---3", -3),
        ("-2 * -3", 6),
        ("10 - 2 - 3", 5),
        ("2 + 3 * 4 - 6 / 2", 11),
        ("(2 + 3) * 4", 20),
        ("0.1 + 0.2", 0.30000000000000004),
        ("-ctx.n", -3),
        ("'a' + 'b' + \"c\"", "abc"),
        ("[1] + [] + [2]", [1, 2]),
        ("ctx.big - ctx.big", 0),
        ("ctx.big / ctx.big", 1),
        # lists and maps
        ("[1, 'a', [null], {}]", [1, "a", [None], {}]),
        ("{a: 1, 'b c': 2, and: 3, \"it's\": 4}", {"a": 1, "b c": 2, "and": 3, "it's": 4}),
        ("{a: 1, b: 0, a: 2}", {"a": 2, "b": 0}),
        # combinators
        ("map(ctx.items, x -> x * 2)", [2, 4, 6]),
        ("filter(ctx.rows, r -> r.ok)", [{"id": 1, "ok": True}]),
        ("filter([0, 1, '', 'a', null], x -> x)", [1, "a"]),
        ("all([], x -> ctx.nope)", True),
        ("any([], x -> ctx.nope)", False),
        ("all([1, 0, 'x'], x -> x)", False),
        ("any([0, 2], x -> x)", True),
        ("any([1, 'a'], x -> x > 0)", True),
        ("all([0, 'a'], x -> x > 0)", False),
        ("find([0, 5, 6], x -> x)", 5),
        ("find([0, null], x -> x)", None),
        ("find([[], [1]], x -> x)", [1]),
        ("count (ctx.items)", 3),
        ("sum([])", 0),
        ("sum([1, 2.5])", 3.5),
        ("sum([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])", 0.9999999999999999),
        ("join(['a', 'b'], ', ')", "a, b"),
        ("join([], ',')", ""),
        ("map([1, 2], x -> map([x], x -> x + 10))", [[11], [12]]),
        ("map([1, 2], x -> map([10, 20], y -> x + y))", [[11, 21], [12, 22]]),
        ("map([1], x -> [map([2], x -> x), x])", [[[2], 1]]),
        ("map([{n: 1}], ctx -> ctx.n)", [1]),
        ("map([10], n -> n + ctx.n)", [13]),
        ("map([1], map -> map)", [1]),
        ("[map([1], n -> n), n]", [[1], 3]),
        ("[filter([1], n -> n), n]", [[1], 3]),
        ("[any([1], n -> n), n, all([1], n -> n), n]", [True, 3, True, 3]),
        ("[find([1], pipe -> pipe), pipe]", [1, "P"]),
        ("map([1, 2], x -> x > 1 and 'big' or 'small')", ["small", "big"]),
        # get
        ("get(ctx, 'obj.a.b')", 7),
        ("get(ctx, 'obj.x.b')", None),
        ("get(ctx, 'obj.k.x', 1)", 1),
        ("get(ctx, 'z', 'default')", None),
        ("get(ctx, 'items.0', 'default')", "default"),
        ("get(null, 'a', 1)", 1),
        ("get('abc', 'x')", None),
        ("get({'': {'': 5}}, '.')", 5),
        ("get(get(ctx, 'obj'), 'k')", "v"),
    ],
)
def test_values(text: str, expected: Value) -> None:
    assert json.dumps(value_of(text)) == json.dumps(expected)


@pytest.mark.parametrize(
    ("text", "words", "at"),
    [
        ("1 + ctx.missing.x", "ctx.missing.x is absent: ctx has no missing", "missing"),
        ("ctx.n.x", "ctx.n is a number", "x"),
        ("ctx.items.length", "ctx.items is a list", "length"),
        ("ctx.z.x", "ctx.z is null", "x"),
        ("ctx.obj.and", "ctx.obj.and", "and"),
        ("nope.x", "nope.x is absent: nothing is called nope", "nope"),
        ("None", "nothing is called None", "None"),
        ("item", "there is no item here", "item"),
        ("acc.x", "there is no acc here", "acc"),
        ("map(ctx.rows, r -> r.nope)", "r.nope is absent", "nope"),
        ("[1] + map([1], x -> x) + x", "nothing is called x", "x"),
        ("1 < 'a'", "< compares two numbers or two texts, not a number and a text", "1 < 'a'"),
        ("[1] < [2]", "a list and a list", "[1] < [2]"),
        ("null >= 1", ">= compares", "null >= 1"),
        ("1 / 0", "division by zero", "1 / 0"),
        ("1 / 0.0", "division by zero", "1 / 0.0"),
        ("1 + 2 + 'a' + 3", "a number and a text", "1 + 2 + 'a'"),
        ("true + 1", "a boolean and a number", "true + 1"),
        ("'a' * 2", "* needs two numbers", "'a' * 2"),
        ("1 - true", "- needs two numbers", "1 - true"),
        ("[1] + 2", "a list and a number", "[1] + 2"),
        ("{a: 1} + {b: 2}", "a map and a map", "{a: 1} + {b: 2}"),
        ("null + 1", "null and a number", "null + 1"),
        ("- 'a'", "- needs a number", "- 'a'"),
        ("-true", "- needs a number, not a boolean", "-true"),
        ("--ctx.s", "- needs a number", "--ctx.s"),
        ("2 * (1 + null)", "a number and null", "1 + null"),
        ("(2) * ('a')", "a number and a text", "(2) * ('a')"),
        ("count('abc')", "count needs a list, not a text", "'abc'"),
        ("map(null, x -> x)", "map needs a list, not null", "null"),
        ("filter({}, x -> x)", "filter needs a list, not a map", "{}"),
        ("sum([1, true])", "one element is a boolean", "[1, true]"),
        ("sum(['a'])", "one element is a text", "['a']"),
        ("join(['a', 1], ',')", "one element is a number", "['a', 1]"),
        ("join(['a'], 1)", "a text as separator, not a number", "1"),
        ("join('abc', ',')", "join needs a list", "'abc'"),
        ("get(ctx.obj, 'k', ctx.missing)", "ctx.missing", "missing"),
        ("get(ctx.missing, 'k')", "ctx.missing", "missing"),
        ("ctx.big / 3", "too large", "ctx.big / 3"),
        ("ctx.big * 1.0", "too large", "ctx.big * 1.0"),
        ("ctx.big + 0.5", "too large", "ctx.big + 0.5"),
        ("0.5 - ctx.big", "too large", "0.5 - ctx.big"),
        ("0.5 / ctx.big", "too large", "0.5 / ctx.big"),
        ("sum([ctx.big, 0.5])", "too large", "sum([ctx.big, 0.5])"),
    ],
)
def test_failures_point_at_their_place(text: str, words: str, at: str) -> None:
    with pytest.raises(EvalError) as caught:
        value_of(text)
    error = caught.value
    assert words in str(error)
    assert text[error.span.start : error.span.end] == at


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("ctx.revew", "did you mean ctx.review?"),
        ("ctx.other", "get(ctx, 'other') gives null"),
        ("ctx.items.length", "write count(ctx.items)"),
        ("revew.passed", "did you mean review?"),
        ("ctx.items + 1", "list + [element]"),
        ("1 + true", "a boolean is not a number"),
        ("acc", "in the do of a fold"),
    ],
)
def test_failures_say_what_to_do(text: str, help: str) -> None:
    with pytest.raises(EvalError) as caught:
        value_of(text)
    assert help in caught.value.help


def test_bindings_win_over_stores_and_reserved_names_are_never_stores() -> None:
    assert value_of("n", {"n": "bound"}) == "bound"
    assert value_of("item", {"item": 6}) == 6
    with pytest.raises(EvalError):
        value_of("item")


def test_nothing_given_is_changed() -> None:
    before = json.dumps([BINDINGS, STORES])
    for text in ("ctx.items + [4]", "map(ctx.rows, ctx -> ctx)", "{a: ctx.obj, b: [ctx.items]}"):
        value_of(text)
    assert json.dumps([BINDINGS, STORES]) == before


def test_literals_are_new_at_each_evaluation() -> None:
    compiled = compile(parse("[[], {}]"))
    assert compiled.evaluate({}) == compiled.evaluate({}) == [[], {}]
    assert compiled.evaluate({}) is not compiled.evaluate({})


def test_other_mappings_and_sequences_are_maps_and_lists() -> None:
    bindings: dict[str, Value] = {"ctx": MappingProxyType({"l": (1, 2), "m": MappingProxyType({"a": 1})})}
    evaluate = compile(parse("[ctx.l == [1, 2], ctx.l + [3], count(ctx.l), ctx.m.a, ctx.m == {a: 1}]")).evaluate
    assert evaluate(MappingProxyType(bindings)) == [True, [1, 2, 3], 2, 1, True]
    assert compile(parse("map(ctx.l, x -> x)")).evaluate(MappingProxyType(bindings)) == [1, 2]


def test_what_is_no_value_is_a_failure() -> None:
    odd: dict[str, Value] = {"ctx": object(), "pipe": {1: 2}}  # type: ignore[dict-item]
    for text in ("[ctx]", "[pipe]", "ctx.a", "-ctx", "sum([ctx])", "ctx + ctx"):
        with pytest.raises(EvalError):
            compile(parse(text)).evaluate(odd)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "True"),
        (None, "None"),
        (2.0, "2.0"),
        (3, "3"),
        ("a", "a"),
        (["a", 1], "['a', 1]"),
        (("a", (1,)), "['a', [1]]"),
        ({"k": [None, 2.0]}, "{'k': [None, 2.0]}"),
    ],
)
def test_python_text(value: Value, text: str) -> None:
    assert python_text(value) == text


def test_python_text_refuses_what_cannot_be_stored() -> None:
    with pytest.raises(InvalidValue):
        python_text(10**5000)
