"""Calls of functions: arity, lambdas and templates are checked before anything runs, and only in the Quire dialect."""

from __future__ import annotations

import pytest

from quire.expr import ExprSyntaxError, NeedsDialect, parse, reads
from quire.expr.functions import FUNCTIONS
from quire.expr.syntax import FunctionCall, walk

SEED = ("map", "filter", "all", "any", "find", "count", "sum", "join", "get")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_seed_has_none_of_them(name: str) -> None:
    with pytest.raises(NeedsDialect, match=f"the function {name} belongs to the Quire dialect") as caught:
        parse(f"1 + {name}(ctx.x)")
    assert (caught.value.span.start, caught.value.span.end) == (4, 4 + len(name))


def test_names_do_not_overlap_and_other_names_are_paths() -> None:
    assert not FUNCTIONS.keys() & set(SEED)
    for name in FUNCTIONS:
        for dialect in (True, False):
            (read,) = reads(parse(f"{name}.{name}", dialect=dialect))
            assert read.path == (name, name)


@pytest.mark.parametrize(
    ("text", "message", "start", "help"),
    [
        ("lower()", "lower needs a value", 6, "write lower(text)"),
        ("lower('a', 'b')", "lower takes at most 1 value", 9, "write lower(text)"),
        ("replace('a', 'b')", "expected ,, not )", 16, "write replace(text, old, new)"),
        ("lower('a'", "expected ), not the end", 9, "write lower(text)"),
        ("lower(ctx.x, x -> x)", "lower takes no lambda here", 13, "write lower(text)"),
        ("slice(ctx.x, 1, x -> x)", "slice takes no lambda here", 16, "write slice"),
        ("max(1, 2, x -> x)", "max takes no lambda here", 10, "max(list, item -> key)"),
        ("sort(x -> x, ctx.x)", "expected ), not ->", 7, "second argument of map"),
        ("sort(ctx.x, 1)", "sort takes at most 1 value", 10, "sort(list, item -> key)"),
        ("sort(ctx.x, x -> x, 1)", "expected ), not ,", 18, "sort(list, item -> key)"),
        ("group(ctx.x)", "expected ,, not )", 11, "write group(list, item -> key)"),
        ("group(ctx.x, 1)", "expected the parameter of a lambda, not 1", 13, "write group(list, item -> key)"),
        ("group(ctx.x, true -> 1)", "expected the parameter of a lambda, not true", 13, "write group"),
        ("lowr('a')", "unknown function lowr", 0, "did you mean lower?"),
        ("cuont([])", "unknown function cuont", 0, "did you mean count?"),
        ("len([])", "unknown function len", 0, "did you mean count?"),
        ("Unique([])", "unknown function Unique", 0, "did you mean distinct?"),
        ("xyzzy([])", "unknown function xyzzy", 0, "only these can be called: map, filter,"),
        ("[1][0]", "expected an operator or the end, not [", 3, "first(slice(list, 2))"),
        ("format('{}')", "expected ,, not )", 11, "write format("),
        ("format('{} {}', 1)", "the text has 2 places for 1 value", 7, "{} for each value"),
        ("format('none', 1)", "the text has 0 places for 1 value", 7, "{} for each value"),
        ("format('{a}', 1, 2)", "a text with {names} takes one map, not 2 values", 7, "{name} with a map"),
        ("format('{a} {}', {})", "places with and without a name cannot be mixed", 7, ""),
        ("format('{a!r}', {})", "{a!r} is not a place", 7, ""),
        ("format('a }', 1)", "a } stands alone", 7, ""),
    ],
)
def test_what_is_not_a_call(text: str, message: str, start: int, help: str) -> None:
    with pytest.raises(ExprSyntaxError) as caught:
        parse(text, dialect=True)
    assert message in caught.value.message and help in caught.value.help
    assert caught.value.span.start == start


def test_parts_and_reads_of_a_call() -> None:
    text = "sort(slice(ctx.rows, n), r -> r.a + rank)"
    expression = parse(text, dialect=True)
    assert [read.path for read in reads(expression)] == [("ctx", "rows"), ("n",), ("rank",)]
    shown = [text[node.span.start : node.span.end] for node, _ in walk(expression.root)]
    assert shown == [text, "slice(ctx.rows, n)", "ctx.rows", "n", "r.a + rank", "r.a", "rank"]
    root = expression.root
    assert isinstance(root, FunctionCall) and root.parameter == "r"


def test_every_form_of_the_table_is_within_its_arity() -> None:
    for function in FUNCTIONS.values():
        for text, _ in function.examples:
            calls = [node for node, _ in walk(parse(text, dialect=True).root) if isinstance(node, FunctionCall)]
            assert function.name in [call.name for call in calls]
        assert all(form.startswith(f"{function.name}(") for form in function.forms)
        assert bool(function.key) == any("->" in form for form in function.forms)
