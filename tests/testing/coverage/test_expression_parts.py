"""The boolean parts of expressions: all that decide, and none that cannot be both."""

from __future__ import annotations

import pytest

from quire.expr import parse
from quire.testing.coverage.pipeline_decisions import boolean_parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", []),
        ("a + 1", []),
        ("a == 1", ["a == 1"]),
        ("{x: a > 1, y: [not b]}", ["a > 1", "b"]),
        ("get(a, 'b') or 'none'", ["get(a, 'b')"]),
        ("a and 'yes' or 'no'", ["a"]),
        ("a and ' – ' + a or ''", ["a"]),
        ("a and b + 1 or ''", ["a and b + 1", "a", "b + 1"]),
        ("a and format('pay {x}', b) or ''", ["a"]),
        ("a and format('{x}', b) or ''", ["a and format('{x}', b)", "a", "format('{x}', b)"]),
        ("not not a", ["a"]),
        ("filter(a, x -> x)", ["x"]),
        ("filter(a, x -> x > 1 and x < 3)", ["x > 1 and x < 3", "x > 1", "x < 3"]),
        ("map(a, x -> x)", []),
        ("map(a, x -> x == 1)", ["x == 1"]),
        ("all(a, x -> x == 1)", ["all(a, x -> x == 1)", "x == 1"]),
        ("find(a, x -> not x)", ["x"]),
        ("contains(a, 'b')", ["contains(a, 'b')"]),
        ("sort(a, x -> x > 1)", ["x > 1"]),
        ("true", []),
        ("[] or a", []),
    ],
)
def test_parts_of_a_value(text: str, parts: list[str]) -> None:
    assert _parts(text, "value") == parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ["a"]),
        ("true", []),
        ("a and b", ["a and b", "a", "b"]),
        ("a or 'x'", ["a"]),
        ("(a or b) and not c", ["(a or b) and not c", "(a or b)", "a", "b", "c"]),
        ("count(a)", ["count(a)"]),
        ("any(a, x -> x)", ["any(a, x -> x)", "x"]),
        ("filter(a, x -> x)", ["filter(a, x -> x)", "x"]),
    ],
)
def test_parts_of_a_condition(text: str, parts: list[str]) -> None:
    assert _parts(text, "when") == parts


def _parts(text: str, role: str) -> list[str]:
    found = boolean_parts(parse(text, dialect=True), role)
    return [text[node.span.start : node.span.end] for node in found]
