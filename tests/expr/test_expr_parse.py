"""What is no expression, where that is seen, and what the tree of one looks like."""

from __future__ import annotations

import pytest

from quire.expr import Expression, ExprSyntaxError, parse
from quire.expr.syntax import Arithmetic, Compare, Each, Logic, Not, Path, walk
from quire.source import Span


@pytest.mark.parametrize(
    ("text", "words", "start"),
    [
        ("", "expected a value, not the end", 0),
        ("  ", "expected a value, not the end", 0),
        ("1 +", "expected a value, not the end", 3),
        ("1 2", "expected an operator or the end, not 2", 2),
        ("'a' 'b'", "expected an operator", 4),
        ("1)", "not )", 1),
        ("(1", "expected ), not the end", 2),
        ("1.", "not .", 1),
        (".5", "expected a value, not .", 0),
        ("1e5", "not e5", 1),
        ("1_000", "not _000", 1),
        ("ctx.", "expected a name after the dot", 4),
        ("ctx.items.0", "expected a name after the dot, not 0", 10),
        ("ctx.items[0]", "not [", 9),
        ("ctx.café", "unknown character 'é'", 7),
        ("'abc", "has no end", 0),
        ("1 + 'abc\\'", "has no end", 4),
        ("`x`", "unknown character '`'", 0),
        ("# c", "unknown character '#'", 0),
        ("1 = 1", "unknown operator '='", 2),
        ("true && false", "unknown operator '&'", 5),
        ("7 % 2", "unknown operator '%'", 2),
        ("2 ** 3", "expected a value, not *", 3),
        ("+1", "expected a value, not +", 0),
        ("not", "expected a value, not the end", 3),
        ("and", "expected a value, not `and`", 0),
        ("or.x", "expected a value, not `or`", 0),
        ("true.x", "expected an operator", 4),
        ("true AND false", "not AND", 5),
        ("1 + not 1", "expected a value, not `not`", 4),
        ("1 == not 1", "expected a value, not `not`", 5),
        ("-not 1", "expected a value, not `not`", 1),
        ("1 < 2 < 3", "cannot be chained", 6),
        ("1 < 2 == true", "cannot be chained", 6),
        ("not 1 == 2 == 3", "cannot be chained", 11),
        ("[1,]", "expected a value, not ]", 3),
        ("[1 2]", "expected ] or a comma, not 2", 3),
        ("[,]", "expected a value, not ,", 1),
        ("{1: 2}", "expected a key", 1),
        ("{'a': 1,}", "expected a key", 8),
        ("{a 1}", "expected :, not 1", 3),
        ("{a: 1", "expected } or a comma", 5),
        ("(1).a", "expected an operator", 3),
        ("'a'.b", "expected an operator", 3),
        ("count(x).a", "expected an operator", 8),
        ("len(ctx.items)", "unknown function len", 0),
        ("parse_json('[1]')", "unknown function parse_json", 0),
        ("ctx.map(x)", "not (", 7),
        ("x -> x", "not ->", 2),
        ("map(x -> x, y)", "expected ,, not ->", 6),
        ("map(ctx.items)", "expected ,, not )", 13),
        ("map(ctx.items, 1)", "expected the parameter of a lambda, not 1", 15),
        ("map(ctx.items, (x) -> x)", "expected the parameter of a lambda, not (", 15),
        ("map(ctx.items, x)", "expected ->, not )", 16),
        ("map(ctx.items, true -> 1)", "expected the parameter of a lambda", 15),
        ("map(ctx.items, x -> x, 1)", "expected ), not ,", 21),
        ("map(ctx.items, x, y -> x)", "expected ->, not ,", 16),
        ("join(ctx.items, x -> x)", "expected ), not ->", 18),
        ("count()", "expected a value, not )", 6),
        ("count(ctx.items, 1)", "expected ), not ,", 15),
        ("join(ctx.items)", "expected ,, not )", 14),
        ("get(ctx)", "expected ,, not )", 7),
        ("get(ctx, ctx.s)", "expected a quoted path, not ctx", 9),
        ("get(ctx, 'a', 1, 2)", "expected ), not ,", 15),
        ("9" * 4301, "more than 4,300 digits", 0),
        ("9" * 400 + ".0", "too large", 0),
    ],
)
def test_what_is_no_expression(text: str, words: str, start: int) -> None:
    with pytest.raises(ExprSyntaxError) as caught:
        parse(text)
    assert words in str(caught.value)
    assert caught.value.span.start == start < caught.value.span.end <= len(text) + 1


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("1 = 1", "=="),
        ("a && b", "`and`"),
        ("ctx.items[0]", "indexing does not exist"),
        ("mapp(ctx.items, x -> x)", "did you mean map?"),
        ("len(ctx.items)", "only these can be called: map,"),
        ("1 < 2 < 3", "a < b and b < c"),
        ("x -> x", "second argument of map"),
        ("join(ctx.items, x -> x)", "second argument of map"),
        ("map(ctx.items)", "write map(list, item -> expression)"),
        ("get(ctx, ctx.s)", "cannot be computed"),
        ("ctx.café", "get(map, 'key')"),
        ("1 + not 1", "parentheses"),
    ],
)
def test_what_to_do_about_it(text: str, help: str) -> None:
    with pytest.raises(ExprSyntaxError) as caught:
        parse(text)
    assert help in caught.value.help


def test_every_node_knows_its_text() -> None:
    text = "not a.b == 1 and map([x, {k: -2}], y -> (y + 1) * 2) or get(ctx, 'a', null)"
    shown = [text[node.span.start : node.span.end] for node, _ in walk(parse(text).root)]
    assert shown == [
        text,
        "not a.b == 1 and map([x, {k: -2}], y -> (y + 1) * 2)",
        "not a.b == 1",
        "a.b == 1",
        "a.b",
        "1",
        "map([x, {k: -2}], y -> (y + 1) * 2)",
        "[x, {k: -2}]",
        "x",
        "{k: -2}",
        "-2",
        "2",
        "(y + 1) * 2",
        "(y + 1)",
        "y",
        "1",
        "2",
        "get(ctx, 'a', null)",
        "ctx",
        "null",
    ]


def test_segments_have_places_of_their_own() -> None:
    root = parse("ctx . a.bc").root
    assert isinstance(root, Path)
    assert root.segments == ("ctx", "a", "bc")
    assert root.places == (Span(0, 3), Span(6, 7), Span(8, 10))


def test_chains_are_one_node() -> None:
    def heights(text: str) -> int:
        return max(depth for _, depth in walk(parse(text).root))

    assert isinstance(parse("1 + 2 - 3").root, Arithmetic)
    assert heights(" + ".join("1" * 1000)) == 2
    assert heights(" or ".join("1" * 1000)) == 2
    assert heights("not " * 1000 + "1") == 2
    assert heights("-" * 1000 + "1") == 2


def test_how_tightly_things_bind() -> None:
    root = parse("not a < b + 1 or c and d").root
    assert isinstance(root, Logic) and root.operator == "or"
    negated, both = root.operands
    assert isinstance(negated, Not) and isinstance(negated.operand, Compare)
    assert isinstance(both, Logic) and both.operator == "and"
    applied = parse("map(l, x -> x or y)").root
    assert isinstance(applied, Each) and isinstance(applied.body, Logic)


def test_an_expression_keeps_its_text() -> None:
    assert parse(" 1 ") == Expression(" 1 ", parse(" 1 ").root)
