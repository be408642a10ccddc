"""What is suggested for texts that are expressions of another language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import within

from quire.expr import ExprSyntaxError, parse
from quire.expr.suggestions import LONGEST, meant

WRITTEN = {
    "Hello, {ctx.name}!": "'Hello, ' + ctx.name + '!'",
    "f'Hello, {ctx.name}!'": "'Hello, ' + ctx.name + '!'",
    "It's {ctx.n} o'clock": r"'It\'s ' + ctx.n + ' o\'clock'",
    "`Hi ${ctx.name}`": "'Hi ' + ctx.name",
    "Hi {{ ctx.name }}": "'Hi ' + ctx.name",
    "ctx.numbers | sum": "sum(ctx.numbers)",
    "ctx.orders | filter {item.amount > 100}": "filter(ctx.orders, item -> item.amount > 100)",
    "ctx.orders | length": "count(ctx.orders)",
    "ctx.words | join(', ')": "join(ctx.words, ', ')",
    "ctx.words | upper": "",
    "ctx.orders.filter(o => o.amount > 100)": "filter(ctx.orders, o -> o.amount > 100)",
    "ctx.numbers.sum()": "sum(ctx.numbers)",
    "ctx.words.join('-')": "join(ctx.words, '-')",
    "len(ctx.rows)": "count(ctx.rows)",
    "concat(ctx.a, ctx.b)": "ctx.a + ctx.b",
    "[o.name for o in ctx.orders if o.amount > 9]": "map(filter(ctx.orders, o -> o.amount > 9), o -> o.name)",
    "[o for o in ctx.orders if o.amount > 100]": "filter(ctx.orders, o -> o.amount > 100)",
    "sum(o.amount for o in ctx.orders)": "sum(map(ctx.orders, o -> o.amount))",
    "'yes' if ctx.ok else 'no'": "ctx.ok and 'yes' or 'no'",
    "if ctx.ok then 'yes' else 'no'": "ctx.ok and 'yes' or 'no'",
    "if (ctx.ok) 'yes' else 'no'": "ctx.ok and 'yes' or 'no'",
    "ctx.ok ? 'yes' : 'no'": "ctx.ok and 'yes' or 'no'",
    "map(ctx.rows, lambda r: r.n)": "map(ctx.rows, r -> r.n)",
    "map(ctx.rows, r => r.n)": "map(ctx.rows, r -> r.n)",
    "ctx['name'] + '!'": "ctx.name + '!'",
    "publish it now": "'publish it now'",
    "1 +": "",
    "{ctx.a}{ctx.b}": "",
    "{acc} + item": "acc + item",
    "sum({ctx.numbers})": "sum( ctx.numbers )",
}


@pytest.mark.parametrize(("text", "written"), WRITTEN.items())
def test_what_is_written_instead(text: str, written: str) -> None:
    with pytest.raises(ExprSyntaxError):
        parse(text)
    assert meant(text) == (f"write {written}" if written else "")
    assert not written or parse(written)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("ctx.name | upper", "upper(ctx.name)"),
        ("ctx.line.split(',')", "split(ctx.line, ',')"),
        ("ctx.rows | length", "count(ctx.rows)"),
        ("ctx.name | capitalize", ""),
    ],
)
def test_the_dialect_has_more_functions(text: str, written: str) -> None:
    assert meant(text, dialect=True) == (f"write {written}" if written else "")
    assert meant(text) == (f"write {written}" if "count" in written else "")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("summary = ctx.text", "write ctx.text, and output: summary"),
        ("if(ctx.a, 1, 2)", "a choice"),
        ("reduce(ctx.words, 'x')", "a fold step"),
        ("(x, y) => x", "y -> …"),
    ],
)
def test_what_is_told_in_words(text: str, told: str) -> None:
    assert told in meant(text)


def test_an_empty_text() -> None:
    assert meant("") == meant("  ") == "an empty text is written ''"


def test_long_texts_get_none() -> None:
    assert meant("word " * (LONGEST // 5)) != "" and meant("word " * (LONGEST // 5) + "x") == ""


@given(st.text(alphabet="ab .|()[]{}'\"=>?:,$ifforelse\\n", max_size=LONGEST + 10))
def test_any_text_is_answered_with_an_expression_or_words(text: str) -> None:
    help = meant(text)
    if help.startswith("write "):
        parse(help.removeprefix("write "))


@pytest.mark.parametrize(
    "part", ["a if ", " for a in b", "x for a in b if ", "f'{a", "a|", "a.b(", "a['", "?:", "(x)=>"]
)
def test_hostile_texts_cost_little(part: str) -> None:
    text = (part * LONGEST)[:LONGEST]
    meant(text)
    with within(1):
        for _ in range(20):
            meant(text)
