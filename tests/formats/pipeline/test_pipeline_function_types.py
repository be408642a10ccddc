"""What is known of calls of functions before a run: the types of their results, and arguments that must fail."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.formats.pipeline.reading import checked, file_of
from tests.growth import within

from quire.expr import EvalError, ExprSyntaxError, compile, parse
from quire.expr.functions import FUNCTIONS
from quire.formats.pipeline.known_types import KnownTypes, Shapes
from quire.schema import Field, Ref, violations
from quire.values import Value

HEAD = """\
schema: Review
fields:
  passed: {type: bool}
  level: {type: enum, values: [low, high]}
  score: {type: number}
  notes: {type: string}
  tags: {type: list, of: {type: string}}
  files: {type: list, of: {type: object, fields: {path: {type: string}, size: {type: number}}}}
---
pipeline: p
dialect: quire
steps:
  - agent: {prompt: hi, schema: Review, output: review}
  - transform:
      value: >-
        """


@pytest.mark.parametrize(
    ("call", "rest"),
    [("reverse(", ")"), ("group(", ", x -> x)"), ("group(", ", x -> x.items)"), ("max(", ", 1)"), ("max(1, ", ")"),
     ("sort(", ", x -> 1)"), ("filter(", ", x -> true)"), ("merge(review, ", ")"), ("merge(", ", review)"),
     ("map(", ", x -> x)"), ("map(review.files, x -> ", ")"), ("slice(", ", 1)"),
     ("number(", ", 1)"), ("number(1, ", ")")],
)  # fmt: skip
def test_nested_calls_are_looked_at_once(call: str, rest: str) -> None:
    with within(2):
        checked(HEAD + call * 47 + "review.files" + rest * 47 + "\n")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nested_calls_of_every_function_are_looked_at_once(name: str) -> None:
    with within(2):
        checked(HEAD + f"{name}(" * 47 + "review.files" + ")" * 47 + "\n")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # real-work, small things: inside of lambdas, and with a value that is not written out beside a wrong one.
        ("map(['a'], w -> split(w, ''))", ["''"]),
        ("map([1, 2], n -> upper(n))", ["n"]),
        ("map(['a', 1], n -> upper(n))", []),
        ("split(ctx.anything, '')", ["''"]),
        ("round(ctx.anything, 99)", ["99"]),
        ("split(ctx.anything, ',')", []),
        ("slice(ctx.anything, 3, 9)", []),
        # kinds of arguments
        ("lower(3)", ["3"]),
        ("lower(review.score)", ["review.score"]),
        ("lower(review.notes + 'x')", []),
        ("lower(review.level)", []),
        ("lower(ctx.anything)", []),
        ("lower(review)", ["review"]),
        ("sort(review.notes)", ["review.notes"]),
        ("sort(review.tags)", []),
        ("sort(review.passed, x -> x)", ["review.passed"]),
        ("sort(ctx.x, x -> lower(1))", ["1"]),
        ("round('2.5')", ["'2.5'"]),
        ("keys(review.tags)", ["review.tags"]),
        ("keys(review)", []),
        ("keys([1])", ["[1]"]),
        ("first({a: 1})", ["{a: 1}"]),
        ("first(map(ctx.x, x -> x))", []),
        ("upper(map(ctx.x, x -> x))", ["map(ctx.x, x -> x)"]),
        ("upper(split(ctx.x))", ["split(ctx.x)"]),
        ("upper(null)", ["null"]),
        ("min(review.score)", ["review.score"]),
        ("min(review.score, 3)", []),
        ("min(review.score, review.tags)", ["review.tags"]),
        ("zip(review.tags, review.files)", []),
        ("zip(review.tags, review.score)", ["review.score"]),
        ("zip(review.tags)", ["review.tags"]),
        ("merge(review, review.score)", ["review.score"]),
        ("merge([])", []),
        ("slice(review.tags, 'a')", ["'a'"]),
        ("slice(review.score, 1)", ["review.score"]),
        ("contains(review.score, 1)", ["review.score"]),
        ("text(review) + json(review.files, 'x')", ["'x'"]),
        ("format(review.tags, 1)", ["review.tags"]),
        # constants alone
        ("split('a', '')", ["''"]),
        ("number('a')", ["'a'"]),
        ("number('a', 1)", []),
        ("parse('[')", ["'['"]),
        ("json(1, 9)", ["9"]),
        ("range(99999999)", []),
        ("contains(review.tags, null)", []),
        ("max(1, 'a')", ["1"]),
        # types of results
        ("text(1) < 2", ["text(1) < 2"]),
        ("number(review.notes) < 2", []),
        ("number(review.notes) < 'a'", ["number(review.notes) < 'a'"]),
        ("number(review.notes, null) < 'a'", []),
        ("contains(review.tags, 'a') < 'b'", ["contains(review.tags, 'a') < 'b'"]),
        ("first(review.files).path", None),
        ("map(sort(review.files, f -> f.size), f -> f.pth)", ["pth"]),
        ("map(reverse(distinct(slice(review.files, 1))), f -> f.pth)", ["pth"]),
        ("sort(review.files, f -> f.siz)", ["siz"]),
        ("max(review.files, f -> f.size) < 1", ["max(review.files, f -> f.size) < 1"]),
        ("last(review.tags) < 1", ["last(review.tags) < 1"]),
        ("map(split(ctx.x), w -> w < 1)", ["w < 1"]),
        ("map(keys(ctx.x), w -> w < 1)", ["w < 1"]),
        ("map(range(3), n -> n < 'a')", ["n < 'a'"]),
        ("map(map(review.files, f -> f.size), n -> n < 'a')", ["n < 'a'"]),
        ("map(map(review.files, f -> f), f -> f.pth)", ["pth"]),
        ("map(map(review.files, f -> ctx.x), n -> n < 'a')", []),
        ("map(group(review.files, f -> f.path), g -> g.itms)", ["itms"]),
        ("map(group(review.files, f -> f.path), g -> map(g.items, f -> f.pth))", ["pth"]),
        ("map(group(review.files, f -> f.path), g -> g.key < 1)", ["g.key < 1"]),
        ("slice(review.notes, 1) < 1", ["slice(review.notes, 1) < 1"]),
        ("min(review.score, 2) < 'a'", ["min(review.score, 2) < 'a'"]),
        ("parse(review.notes).x", None),
        ("parse(review.notes) < 1", []),
    ],
)  # fmt: skip
def test_what_check_knows(text: str, found: list[str] | None) -> None:
    reported = checked(HEAD + text + "\n")
    if found is None:
        assert [code for code, _ in reported] == ["EX001"]
    else:
        assert [place for _, place in reported] == found
        assert {code for code, _ in reported} <= {"PL109", "PL110", "PL120"}


REVIEW: dict[str, Value] = {
    "passed": True,
    "level": "high",
    "score": 2.5,
    "notes": "To be",
    "tags": ["b", "a", "b"],
    "files": [{"path": "x", "size": 3}, {"path": "y", "size": 1}],
}
LEAVES = st.sampled_from(
    [
        *(f"review.{name}" for name in REVIEW),
        "review",
        "ctx.other",
        "1",
        "'a'",
        "'12'",
        "[1, 2]",
        "['a']",
        "{a: 1}",
        "null",
    ]
)


BODIES = (
    "x.path",
    "x.size + 1",
    "lower(x)",
    "x == 'a'",
    "[x]",
    "x.path or x",
    "first(x)",
    "split(x)",
    "map(x, y -> y)",
    "map(review.files, y -> y.path)",
    "filter(x, y -> true)",
)


def calls(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = st.sampled_from(sorted(FUNCTIONS))
    plain = st.tuples(names, st.lists(inner, min_size=1, max_size=3)).map(
        lambda pair: f"{pair[0]}({', '.join(pair[1])})"
    )
    keyed = st.sampled_from([name for name, function in FUNCTIONS.items() if function.key])
    lambdas = st.sampled_from(["map(%s, x -> x)", *(f"map(%s, x -> {body})" for body in BODIES)])
    made = st.tuples(lambdas, inner).map(lambda pair: pair[0] % pair[1])
    return plain | made | st.tuples(keyed, inner).map(lambda pair: f"{pair[0]}({pair[1]}, x -> x)")


@settings(max_examples=depth(200, 2_000), deadline=None)
@given(st.recursive(LEAVES, calls, max_leaves=5), st.sampled_from([None, 3, "x", ["p"], {"q": 1}]))
def test_what_is_inferred_is_true(text: str, other: Value) -> None:
    """A value has the inferred type, but for the null of an empty list; a reported argument really fails."""
    try:
        expression = parse(text, dialect=True)
    except ExprSyntaxError:
        return
    stores: dict[str, Value] = {"review": REVIEW, "other": other}
    reported = [code for code, _ in checked(HEAD + text + "\n") if code == "PL120"]
    try:
        value = compile(expression).evaluate({"ctx": stores}, stores)
    except EvalError:
        return
    assert reported == []
    schemas = {schema.name: schema for schema in file_of(HEAD + text + "\n").schemas}
    type = Shapes(schemas).infer(expression.root, KnownTypes({"review": Ref("Review")}, None, {}))
    if type is not None and value is not None:
        assert list(violations((Field("v", type),), {"v": value}, lambda name: schemas[name].fields)) == []
