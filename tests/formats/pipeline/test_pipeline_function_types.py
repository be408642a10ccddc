"""What is known of calls of functions before a run: the types of their results, and arguments that must fail."""

from __future__ import annotations

import time

import pytest
from tests.formats.pipeline.reading import checked

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
     ("slice(", ", 1)"), ("number(", ", 1)"), ("number(1, ", ")")],
)  # fmt: skip
def test_nested_calls_are_looked_at_once(call: str, rest: str) -> None:
    began = time.process_time()
    checked(HEAD + call * 47 + "review.files" + rest * 47 + "\n")
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("text", "found"),
    [
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
