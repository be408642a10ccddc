from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.growth import within

from quire.engine.capture import json_objects


def reference(text: str) -> list[object]:
    """The same by the slow and obvious way: a decoder tried at every brace that no object has swallowed."""
    found, at = [], text.find("{")
    while at >= 0:
        try:
            value, end = json.JSONDecoder(strict=False).raw_decode(text, at)
            found.append(value)
            at = text.find("{", end)
        except ValueError:
            at = text.find("{", at + 1)
    return found


PIECES = st.sampled_from(
    [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        '"',
        '"a"',
        '"a":',
        "1",
        "-0.5e3",
        "01",
        "true",
        "null",
        " ",
        "\n",
        "\\",
        "x",
        '{"a":1}',
        "{}",
    ]
)


@settings(max_examples=depth(200, 1000))
@given(st.lists(PIECES, max_size=40).map("".join))
def test_the_same_objects_as_the_obvious_way(text: str) -> None:
    assert [found.value for found in json_objects(text)] == reference(text)


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert all(text[found.start : found.end].startswith("{") for found in json_objects(text))


PART = depth(2, 1)
"""Half of the text has a quarter of the time, which is what quadratic reading would take of it."""


@pytest.mark.parametrize(
    "unit", ['{"a":', '{"a":[', "{", '{"a":"{', '{"level":1}', '{"{', '{"a":"\\', "{ ", '"{', '{"a":{}},']
)
def test_hostile_text_takes_time_in_proportion(unit: str) -> None:
    """Twice the text may take twice the time; quadratic reading of all of it would take minutes, not seconds."""
    with within(10 / PART**2):
        json_objects(unit * (400_000 // PART // len(unit)))
