"""Inputs in texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.plan.templates import fill, references
from quire.source import Span
from quire.values import Value


@pytest.mark.parametrize(
    ("text", "inputs", "filled"),
    [
        ("Hi {input:a}", {"a": "Bo"}, "Hi Bo"),
        ("{input:a:1} {input:a|2} {input:a?}.", {}, "1 2 ."),
        ("{input:a:1} {input:a|2} {input:a?}", {"a": 5}, "5 5 5"),
        ("{input:a:} {input:a|}", {}, " "),
        ("{input:a:b:c|d}", {}, "b:c|d"),
        ("{input:a}", {}, "{input:a}"),
        ("{input:a:d}", {"a": ""}, ""),
        ("{input:a:d} {input:b:d}", {"a": 0, "b": False}, "0 false"),
        ("{input:a} {input:a:d}", {"a": None}, "{input:a} d"),
        ("{input:a}", {"a": "{input:b} ${inputs.b}"}, "{input:b} ${inputs.b}"),
        ("${inputs.a} ${inputs.b} ${a}", {"a": "x"}, "x ${inputs.b} ${a}"),
        ("{input:a}", {"a": [1, "ä"]}, '[1, "ä"]'),
        ("{input:a}", {"a": {"k": None}}, '{"k": null}'),
        (
            "{input:a-b} {input: a} {input:} {INPUT:a} {env:HOME}",
            {"a": "x"},
            "{input:a-b} {input: a} {input:} {INPUT:a} {env:HOME}",
        ),
        ("{input:a:{x}}", {}, "{x}"),
        ("{input:a:\nb}", {}, "\nb"),
        ("{input:a:no end", {"a": 1}, "{input:a:no end"),
    ],
)
def test_fill(text: str, inputs: dict[str, Value], filled: str) -> None:
    assert fill(text, inputs) == filled


def test_references() -> None:
    text = "{input:a} ${inputs.b} {input:c?} {input:d:1}"
    found = list(references(text))
    assert [(one.name, one.optional) for one in found] == [("a", False), ("b", False), ("c", True), ("d", True)]
    assert found[1].span == Span(10, 21)


@given(st.text(), st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=3))
def test_any_text(text: str, inputs: dict[str, Value]) -> None:
    assert fill(text, {}) == text or "{input:" in text
    assert fill(text.replace("{", ""), inputs) == text.replace("{", "")
