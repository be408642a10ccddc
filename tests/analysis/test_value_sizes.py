"""The sizes of values that expressions make are never larger than was known before: compared by computing both."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth

from quire.analysis.abstract_values import AbstractValue, labelled_deeply, literal
from quire.analysis.expressions import computed
from quire.analysis.labels import CALLER, PUBLIC, Trace, source_label
from quire.analysis.scope import Names
from quire.analysis.written_sizes import type_length, written_length
from quire.expr import ExpressionError, compile, parse
from quire.schema_types import Enum, Kind, ListOf, Simple
from quire.values import Value

CONTEXT: dict[str, Value] = {
    "m": {name: [1, 'a "b"'] for name in "abcdefg"},
    "rows": [{"a": 1, "b": "x\ny"}, {"c": [2, {"d": None}]}],
    "l": [list(range(9)), [], [[3], "4,5"]],
    "t": '[1,2,[3,4],{"a":1e15}]',
    "s": 'say "a"\nand "b"\x01',
    "n": 7,
}
_ONE = (
    "json text parse split trim lower upper first last sort reverse distinct flatten keys values entries merge zip "
    "count range ceil floor round"
)
_TWO = "number parse split zip merge min max join range"


def larger(expression: str, context: Mapping[str, Value] = CONTEXT) -> str:
    """Return where the value of an expression is larger than was known of it; empty if it is not, or if it fails."""
    try:
        compiled = compile(parse(expression, dialect=True))
        value: Any = compiled.evaluate({"ctx": context, "pipe": None})
    except ExpressionError:
        return ""
    label = source_label(CALLER, PUBLIC, Trace("x"))
    names = Names({name: labelled_deeply(literal(part), label) for name, part in context.items()})
    return _larger(value, computed(compiled, names), names, "value")


def _larger(value: Any, known: AbstractValue, names: Names, where: str) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    length, items = known.length.as_number, known.items.as_number
    if length is not None and len(text.encode()) > length:
        return f"{where} has {len(text.encode())} bytes, of at most {length}"
    if isinstance(value, list | tuple | dict) and items is not None and len(value) > items:
        return f"{where} has {len(value)} items, of at most {items}"
    largest = known.largest.as_number if known.largest is not None else None
    if largest is not None and isinstance(value, int | float) and value > largest:
        return f"{where} is {value}, of at most {largest}"
    parts: list[tuple[Any, AbstractValue, str]] = []
    if isinstance(value, list | tuple):
        parts = [(part, names.item(known), f"{where}[]") for part in value]
    elif isinstance(value, dict):
        parts = [(part, known.field(name), f"{where}.{name}") for name, part in value.items()]
    return next((found for part, of, place in parts if (found := _larger(part, of, names, place))), "")


@pytest.mark.parametrize(
    "expression",
    [
        "zip({a: first(ctx.l), b: range(5)})",
        "zip({a: ctx.m.a, b: ctx.m.b})",
        "values(merge([ctx.m, ctx.m]))",
        "merge(ctx.rows)",
        "parse('no', ctx.m)",
        "number('no', first(ctx.l))",
        "parse(ctx.t)",
        "json(ctx.l, 8)",
        "split(json([[[[[[[[ctx.m]]]]]]]], 8), ' ')",
        "group(ctx.l, one -> ctx.m)",
        "[ctx.s, ctx.s]",
        "{a: ctx.s}",
        "map(ctx.l, one -> ctx.s)",
        "ctx.m",
        "range(1000000000000000, 1000000000000003)",
        "map(range(2000000, 2000003), one -> range(one - 1999990))",
    ],
)
def test_no_value_is_larger_than_was_known(expression: str) -> None:
    assert larger(expression) == ""


def test_the_comparison_finds_a_size_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    from quire.analysis import expressions

    monkeypatch.setattr(expressions, "PARSED", 1)
    assert "bytes, of at most" in larger("parse(ctx.t)")


@pytest.mark.parametrize("value", ["", "a", 'a "b"', "a\nb", "\x01", "é€", [1, 2], {"a": [1, "x\n"]}, 7, None, True])
def test_a_value_is_as_long_as_in_a_prompt_or_in_another_value(value: Value) -> None:
    alone = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    among = len(json.dumps([value], ensure_ascii=False).encode()) - 2
    assert written_length(value) >= len(alone.encode())
    assert written_length(value) >= among - (2 if isinstance(value, str) else 0)


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (ListOf(Enum(("a", "b")), max_items=50), ["a"] * 50),
        (ListOf(Enum((True, None)), max_items=50), [None] * 50),
        (ListOf(Simple(Kind.STRING, max_length=1), max_items=50), ["\x01"] * 50),
        (ListOf(Simple(Kind.BOOL), max_items=50), [False] * 50),
    ],
)
def test_a_list_of_a_type_is_not_longer_than_its_type_says(type: ListOf, value: Value) -> None:
    longest = type_length(type)
    assert longest is not None
    assert (longest.as_number or 0) >= len(json.dumps(value, ensure_ascii=False).encode())


@given(st.text(st.characters(max_codepoint=0x7F) | st.characters()))
def test_a_text_is_measured_as_the_library_writes_it(text: str) -> None:
    written = json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert written_length(text) == len(written) - 2


@settings(max_examples=depth(300, 20_000), deadline=None)
@given(st.randoms(use_true_random=False))
def test_random_expressions_are_never_larger_than_was_known(draw: random.Random) -> None:
    expression = _drawn(draw, 0, ())
    assert larger(expression) == "", expression


def _drawn(draw: random.Random, level: int, bound: tuple[str, ...]) -> str:
    if level > 3 or draw.random() < 0.15:
        names = [f"ctx.{name}" for name in CONTEXT] + ["ctx.m.a", "'a,b'", "3", "[]", "{}", "null", *bound, *bound]
        return draw.choice(names)

    def part(*more: str) -> str:
        return _drawn(draw, level + 1, (*bound, *more))

    name = draw.choice("pqr")
    forms = {
        "list": lambda: f"[{part()}, {part()}]",
        "map": lambda: f"{{a: {part()}, b: {part()}}}",
        "each": lambda: f"{draw.choice(['map', 'filter', 'find'])}({part()}, {name} -> {part(name)})",
        "key": lambda: f"{draw.choice(['group', 'sort', 'distinct', 'max'])}({part()}, {name} -> {part(name)})",
        "one": lambda: f"{draw.choice(_ONE.split())}({part()})",
        "two": lambda: f"{draw.choice(_TWO.split())}({part()}, {part()})",
        "wide": lambda: f"json({part()}, {draw.randint(1, 8)})",
        "sum": lambda: f"({part()} + {part()})",
        "count": lambda: f"(count({part()}) {draw.choice(['- 2', '/ 2', '/ 3 + 1', '+ 0.5', '* 2'])})",
        "slice": lambda: f"slice({part()}, {draw.randint(0, 2)}, {draw.randint(0, 5)})",
        "logic": lambda: f"({part()} {draw.choice(['and', 'or'])} {part()})",
        "get": lambda: f"get({part()}, '{draw.choice('abc')}', {part()})",
        "far": lambda: f"range({(at := draw.choice([1, 10**6, 10**15]))}, {at + draw.randint(0, 3)})",
        "zip": lambda: f"zip({{a: {part()}, b: {part()}}})",
        "merge": lambda: f"merge([{part()}, {part()}])",
    }
    return forms[draw.choice(list(forms))]()
