"""Expressions that have a value and probably not the one that was meant."""

from __future__ import annotations

import pytest

from quire.expr import parse
from quire.expr.suggestions import slips


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"'a\d'", [("EX003", r"\d")]),
        (r"""join(ctx.xs, "\r\n\t\\\"\'")""", [("EX003", r"\r")]),
        (r"get(ctx, 'a\.b')", [("EX003", r"\.")]),
        (r"'a\\d'", []),
        ("{a: 1, a: 2}", [("EX004", "1")]),
        ("{a: 1, 'a': 2, b: [{c: 3, c: x}]}", [("EX004", "1"), ("EX004", "3")]),
        ("{a: {a: 1}, b: 'a'}", []),
    ],
)
def test_slips_are_found_at_their_places(text: str, found: list[tuple[str, str]]) -> None:
    assert [(one.code.id, text[one.span.start : one.span.end]) for one in slips(parse(text))] == found
