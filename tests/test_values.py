from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.values import MAX_DEPTH, InvalidValue, Value, copy, decode, decode_object, encode, fingerprint, value_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_written_can_be_read(value: Value) -> None:
    again = decode(encode(value))
    assert json.dumps(again) == json.dumps(value)


def test_numbers_keep_their_kind_and_size() -> None:
    assert encode([2, 2.0, True, 2**200]) == f"[2,2.0,true,{2**200}]"
    assert decode(encode(2**200)) == 2**200


@pytest.mark.parametrize("value", [math.nan, math.inf, {1: "x"}, {"a": object()}, b"x", [{"a": {1, 2}}]])
def test_what_is_no_json_is_refused(value: Value) -> None:
    with pytest.raises(InvalidValue):
        encode(value)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "1e999", "[-1e999]", "{", "", "[" * 100_000])
def test_text_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        decode(text)


def nested(depth: int) -> Value:
    value: Value = 1
    for _ in range(depth):
        value = [value]
    return value


def test_depth_is_a_limit_and_not_a_crash() -> None:
    assert decode(encode(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    for deep in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(InvalidValue, match="nested deeper"):
            encode(nested(deep))
    cycle: list[Value] = []
    cycle.append(cycle)
    with pytest.raises(InvalidValue):
        encode(cycle)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d"', "\ufffd"),
        (r'{"a\uDC00": ["\udfff!"]}', {"a\ufffd": ["\ufffd!"]}),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"\\ud83d"', r"\ud83d"),
        ('"\udcff"', "\ufffd"),
        ('"é"', "é"),
    ],
)
def test_half_a_pair_that_is_read_is_replaced(text: str, value: Value) -> None:
    assert decode(text) == value
    assert decode_object(f'see {{"k": {text}}} {{', 4) == {"k": value}


def test_lone_surrogates_are_replaced() -> None:
    assert encode({"a\ud800": "\udfff"}) == '{"a\ufffd":"\ufffd"}'
    encode("\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")).encode()


def test_a_copy_shares_nothing() -> None:
    value = {"a": [1]}
    other = copy(value)
    assert other == value
    assert isinstance(other, dict)
    other["a"].append(2)
    assert value == {"a": [1]}


def test_a_fingerprint_does_not_depend_on_the_order_of_keys() -> None:
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 1.0})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-2.5", -2.5),
        ("1.0", 1.0),
        (" 7\n", 7),
        ("12345678901234567890123", 12345678901234567890123),
        ("1.10", "1.10"),
        ("12e4", "12e4"),
        ("1E5", "1E5"),
        ("0012", "0012"),
        ("0.1000000000000000055", "0.1000000000000000055"),
        ("true", True),
        ("null", None),
        ('"5"', "5"),
        ("[1.10]", [1.1]),
        ("plain", "plain"),
    ],
)
def test_a_bare_number_whose_spelling_would_be_lost_stays_text(text: str, value: Value) -> None:
    """G17."""
    found = value_of(text)
    assert found == value and type(found) is type(value)
