"""Closures around those of the nodes of an expression see every value, and change none."""

from __future__ import annotations

from typing import Any

import pytest

from quire.expr import compile, parse
from quire.expr.syntax import Node
from quire.expr.values import Closure, Run


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a > 1", [("a", 2), ("1", 1), ("a > 1", True)]),
        ("false and a", [("false", False), ("false and a", False)]),
        ("filter([1, 2], x -> x == a)", [("x == a", False), ("x == a", True)]),
        ("upper('b')", [("'b'", "b"), ("upper('b')", "B")]),
    ],
)
def test_values_of_nodes_are_seen_in_the_order_of_evaluation(text: str, seen: list[tuple[str, object]]) -> None:
    noted: list[tuple[str, object]] = []

    def around(node: Node, code: Closure) -> Closure:
        def note(run: Run) -> Any:
            value = code(run)
            noted.append((text[node.span.start : node.span.end], value))
            return value

        return note

    expression = parse(text, dialect=True)
    value = compile(expression, around).evaluate({}, {"a": 2})
    assert value == compile(expression).evaluate({}, {"a": 2})
    assert [one for one in noted if one in seen] == seen
