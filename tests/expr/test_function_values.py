"""What the functions of the Quire dialect give, and what they say when they are given something else."""

from __future__ import annotations

import hashlib
import json
from types import MappingProxyType
from typing import Any

import pytest
from tests.docs.pages import blocks

from quire.expr import EvalError, compile, parse
from quire.expr.function_calls import _WORK
from quire.expr.functions import FUNCTIONS
from quire.expr.text_functions import _LATER
from quire.values import Value, decode

EXAMPLES = [pair for function in FUNCTIONS.values() for pair in function.examples]


def value_of(text: str, ctx: Any = None) -> Any:
    bindings: dict[str, Value] = {"ctx": ctx, "pipe": [3, 4]}
    return compile(parse(text, dialect=True)).evaluate(bindings, ctx if isinstance(ctx, dict) else {})


def test_every_function_has_its_work_and_an_example() -> None:
    assert _WORK.keys() == FUNCTIONS.keys() and len(FUNCTIONS) == 33
    assert [name for name, function in FUNCTIONS.items() if not function.examples] == []


@pytest.mark.parametrize(("text", "value"), EXAMPLES, ids=[text for text, _ in EXAMPLES])
def test_the_examples_of_the_table_are_true(text: str, value: str) -> None:
    (context,) = blocks("docs/reference/expressions.md", "json")
    bindings = decode(context.text)
    assert isinstance(bindings, dict)
    found = value_of(text, bindings["ctx"])
    assert json.dumps(found) == json.dumps(decode(value))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # a function is a name before a bracket: everything else with that name is a path
        ("first", 1),
        ("ctx.values", 2),
        ("map([1], text -> text + first)", [2]),
        ("sort([{key: 2}, {key: 1}], sort -> sort.key)", [{"key": 1}, {"key": 2}]),
        ("{format: 1, 'range': 2}", {"format": 1, "range": 2}),
        ("lower ('A')", "a"),
        # text and json
        ("text('a')", "a"),
        ("text(null)", "null"),
        ("text(false)", "false"),
        ("text(1.0)", "1.0"),
        ("text(0.1 + 0.2)", "0.30000000000000004"),
        ("text({a: ['é', null]})", '{"a": ["é", null]}'),
        ("json({a: [1]}, 2)", '{\n  "a": [\n    1\n  ]\n}'),
        ("json([], 4)", "[]"),
        ("parse(json(ctx)) == ctx", True),
        # number
        ("number(-1.5)", -1.5),
        ("number('+007')", 7),
        ("number('-1.50')", -1.5),
        ("number('1e3')", 1000.0),
        ("number('12345678901234567890123')", 12345678901234567890123),
        ("number(null, 1)", 1),
        ("number('', null)", None),
        ("number(true, 'no')", "no"),
        ("number('1e999', 0)", 0),
        ("map(['.5', '5.', '1_0', '0x1', '١', 'inf', '1 2'], t -> number(t, null))", [None] * 7),
        # parse
        ("parse(' {\"a\": 1e2} ')", {"a": 100.0}),
        ("parse('NaN', 1)", 1),
        ("parse(3, 'other')", "other"),
        # texts
        ("split('', ',')", [""]),
        ("split('')", []),
        (r"split('a\n\tb c')", ["a", "b", "c"]),
        ("split('a--b', '--')", ["a", "b"]),
        ("trim('\u00a0 a \u2003')", "a"),
        ("upper('ǆ ß ŉ')", "Ǆ SS ʼN"),
        ("lower('ΟΔΥΣΣΕΥΣ')", "οδυσσευς"),
        ("lower('İ')", "i̇"),
        ("replace('aaa', 'aa', 'b')", "ba"),
        ("replace('abc', 'x', 'y')", "abc"),
        ("contains('', '')", True),
        ("contains([1, [2]], [2.0])", True),
        ("contains([1], true)", True),
        ("contains({a: null}, 'a')", True),
        ("contains([null], null)", True),
        ("starts_with('a', '')", True),
        ("ends_with('a', 'ba')", False),
        # lists
        ("slice('😀é', 1)", "é"),
        ("slice([1, 2], 5)", []),
        ("slice([1, 2, 3], -2, -1)", [2]),
        ("slice([1, 2], 2.0 - 1.0)", [2]),
        ("slice([1], 0, 99999999999999999999999999)", [1]),
        ("last([])", None),
        ("sort([])", []),
        ("sort([2, 1.5, 1])", [1, 1.5, 2]),
        ("map(sort([[2, 'a'], [1, 'b'], [2, 'c']], p -> first(p)), p -> last(p))", ["b", "a", "c"]),
        ("distinct([1, true, 1.0, '1', null, null, [1], [true], {a: 1, b: 2}, {b: 2.0, a: 1}])",
         [1, "1", None, [1], {"a": 1, "b": 2}]),
        ("distinct([ctx.huge, ctx.huge, ctx.huge + 1])", [2**70, 2**70 + 1]),
        ("distinct([ctx.huge, 1180591620717411303424.0])", [2**70]),
        ("distinct(['0', 0, -0.0])", ["0", 0]),
        ("group([], x -> x)", []),
        ("map(group([1, 2.0, true, 2], x -> x), g -> g.items)", [[1, True], [2.0, 2]]),
        ("flatten([])", []),
        ("zip([1, 2], ['a'], [null, null])", [[1, "a", None]]),
        ("zip({})", []),
        ("range(3, 1)", []),
        ("range(-1)", []),
        ("range(-1, 2)", [-1, 0, 1]),
        # maps
        ("entries({})", []),
        ("keys(merge({b: 1}, {a: 2}, {b: 3}))", ["b", "a"]),
        ("merge([])", {}),
        ("merge({a: {b: 1}}, {a: {c: 2}})", {"a": {"c": 2}}),
        # numbers
        ("min([])", None),
        ("max('b', 'a')", "b"),
        ("max([1, 1.0])", 1),
        ("min([{n: 1, k: 'a'}, {n: 1, k: 'b'}], x -> x.n)", {"n": 1, "k": "a"}),
        ("abs(-1.5)", 1.5),
        ("round(0.49999999999999994)", 0),
        ("round(-0.4)", 0),
        ("round(1.005, 2)", 1.01),
        ("round(-1.005, 2)", -1.01),
        ("round(-0.001, 2)", 0.0),
        ("round(7, 2)", 7),
        ("round(1250.5, -2)", 1300),
        ("round(-1250, -2)", -1300),
        ("round(49, -2)", 0),
        ("round(1.5, 0)", 2),
        ("floor(7)", 7),
        ("ceil(-1.5)", -1),
        # format
        ("format('{}{}', 'a', [1])", "a[1]"),
        ("format('{{}} {}', null)", "{} null"),
        ("format('{a.b}-{a.b}', {a: {b: 1}})", "1-1"),
        ("format(2, 2)", "2.00"),
        ("format(-0.004, 2)", "0.00"),
        ("format(1.5, 0)", "2"),
        ("format(0.1, 15)", "0.100000000000000"),
        ("format(ctx.template, 1, 2)", "1 and 2"),
    ],
)  # fmt: skip
def test_values(text: str, expected: Value) -> None:
    ctx: Value = {"first": 1, "values": 2, "huge": 2**70, "template": "{} and {}"}
    assert json.dumps(value_of(text, ctx)) == json.dumps(expected)


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("lower(3)", "lower needs a text, not a number", "3"),
        ("'#' + upper(null)", "upper needs a text, not null", "null"),
        ("split('a', null)", "split needs a text, not null", "null"),
        ("split('a', '')", "split needs a separator that is not empty", "''"),
        ("replace('a', '', 'b')", "replace needs a text to replace that is not empty", "''"),
        ("contains('a', 1)", "contains needs a text, not a number", "1"),
        ("contains(true, 1)", "contains needs a text, a list or a map, not a boolean", "true"),
        ("number('1,5')", 'number needs a number in decimal digits: "1,5" is not one', "'1,5'"),
        ("number('  ')", "number needs a number in decimal digits: the text is empty", "'  '"),
        ("number('1e999')", "number needs a number in decimal digits: 1e999 is too large", "'1e999'"),
        ("number(true)", "number needs a text, not a boolean", "true"),
        ("parse('{a')", "parse needs JSON, and what begins with {a is not JSON", "'{a'"),
        ("parse('')", "parse needs JSON, and an empty text is not JSON", "''"),
        ("parse('NaN')", "parse needs JSON, and what begins with NaN is not JSON", "'NaN'"),
        ("json(1, 0)", "json needs a whole number from 1 to 8", "0"),
        ("json(1, '2')", "json needs a whole number from 1 to 8, not a text", "'2'"),
        ("first('abc')", "first needs a list, not a text", "'abc'"),
        ("slice(1, 0)", "slice needs a list or a text, not a number", "1"),
        ("slice('a', 1.5)", "slice needs a whole number, not one with decimals", "1.5"),
        ("slice('a', 0, null)", "slice needs a whole number, not null", "null"),
        ("sort([1, 'a'])", "sort needs values of one kind, not a number and a text", "[1, 'a']"),
        ("sort([true])", "sort needs values that are numbers or texts, but one is a boolean", "[true]"),
        ("sort([{n: 1}], x -> null)", "sort needs keys that are numbers or texts, but one is null", "[{n: 1}]"),
        ("max(1, null)", "max needs values that are numbers or texts, but one is null", "1"),
        ("min(3)", "min needs a list, not a number", "3"),
        ("group(1, x -> x)", "group needs a list, not a number", "1"),
        ("group([1], x -> x.a)", "x.a is absent: x is a number, and only a map has members", "a"),
        ("zip([1])", "zip needs several lists, or a map of lists, not a list", "[1]"),
        ("zip({a: [1], b: 2})", "zip needs a map of lists, but b is a number", "{a: [1], b: 2}"),
        ("zip([1], 2)", "zip needs a list, not a number", "2"),
        ("merge({}, [])", "merge needs maps, not a list", "[]"),
        ("merge([{}, 1])", "merge needs a list of maps, but one element is a number", "[{}, 1]"),
        ("range('3')", "range needs a whole number from -9007199254740992 to 9007199254740992, not a text", "'3'"),
        ("round(1, 16)", "round needs a whole number from -15 to 15", "16"),
        ("abs('1')", "abs needs a number, not a text", "'1'"),
        ("floor(true)", "floor needs a number, not a boolean", "true"),
        ("format(1, 2, 3)", "format takes a number and how many decimals it is to have", "format(1, 2, 3)"),
        ("format(null, 2)", "format needs a text or a number, not null", "null"),
        ("format('{a}', 1)", "format needs a map, not a number", "1"),
        ("format('{a.b}', {a: 1})", "there is no a.b for the place {a.b}", "{a: 1}"),
        ("format('{} ' + '{}', 1)", "the text has 2 places for 1 value", "'{} ' + '{}'"),
        ("format('{' + '}}', 1)", "a } stands alone: to write one, double it", "'{' + '}}'"),
    ],
)
def test_what_fails(text: str, message: str, at: str) -> None:
    with pytest.raises(EvalError) as caught:
        value_of(text)
    assert caught.value.message == message
    assert text[caught.value.span.start : caught.value.span.end] == at


def test_a_place_of_format_reads_keys_of_maps_and_nothing_else() -> None:
    for place in ("{a.__class__}", "{__class__}", "{a.keys}"):
        with pytest.raises(EvalError, match="there is no"):
            value_of("format(ctx.t, {a: {}})", {"t": place})
    for place in ("{0}", "{a[0]}", "{a!r}", "{a:>9}", "{:2}", "{a.}", "{a..b}"):
        with pytest.raises(EvalError, match="is not a place"):
            value_of("format(ctx.t, {a: {}})", {"t": place})


def test_maps_that_are_not_dicts_are_written_too() -> None:
    ctx = MappingProxyType({"a": MappingProxyType({"b": 1})})
    assert value_of("json(ctx)", ctx) == '{"a": {"b": 1}}'
    assert value_of("distinct([ctx, {a: {b: true}}])", ctx) == [ctx]


def test_letters_are_those_of_unicode_14_on_every_python() -> None:
    letters = [chr(code) for code in range(0x20000) if not 0xD800 <= code <= 0xDFFF]
    lists = {name: value_of(f"map(ctx, c -> {name}(c))", letters) for name in ("lower", "upper")}
    sums = {name: hashlib.sha256("\n".join(found).encode()).hexdigest()[:16] for name, found in lists.items()}
    assert sums == {"lower": "cac95f0b77220ec2", "upper": "610cbe5bc43eaacd"}
    later = [letter for letter in letters if _LATER.match(letter)]
    assert value_of("lower(ctx)", "A" + "B".join(later) + "C") == "a" + "b".join(later) + "c"
