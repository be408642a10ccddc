"""Patterns from outside: those that all readers understand alike, and none that takes long."""

from __future__ import annotations

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.growth import within

from quire.safe_regex import LONGEST_MATCHED, MAX_PATTERN, BadPattern, matches, portable

INVALID = "it is not a valid pattern, or its repetitions are too large"


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        (r"^[A-Z]{2}-\d{4}$", "^[A-Z]{2}-[0-9]{4}$"),
        (r"[\w.-]+@[\w-]+\.[a-z]{2,}", r"[0-9A-Za-z_.\-]+@[0-9A-Za-z_\-]+\.[a-z]{2,}"),
        (r"^\D\W\S.$", r"^[^0-9][^0-9A-Za-z_][^\t\n\f\r ][^\n]$"),
        (r"x\/y|\x41\t", r"x/y|\x41\t"),
        (r"(?:a|b)+?\p{Lu}", r"(?:a|b)+?\p{Lu}"),
        ("((a|)|^)*", "((a|)|^)*"),
        ("", ""),
    ],
)
def test_portable(pattern: str, written: str) -> None:
    assert portable(pattern) == written


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?i)a", "the only group with ? is (?:…) (character 1)"),
        ("a(?=b)", "the only group with ? is (?:…) (character 2)"),
        (r"(a)\1", r"\1 is not an escape that all readers of patterns know (character 4)"),
        (r"\bx", r"\b is not an escape that all readers of patterns know (character 1)"),
        ("\\", "\\ is not an escape that all readers of patterns know (character 1)"),
        ("a**", "* has nothing to repeat (character 3)"),
        ("^*", "* has nothing to repeat (character 2)"),
        ("(?:)*", "* has nothing to repeat (character 5)"),
        ("(^|(?:))+", "+ has nothing to repeat (character 9)"),
        ("a{,3}", r"a plain { is written \{ (character 2)"),
        ("a}", r"a plain } is written \} (character 2)"),
        ("[]a]", r"in brackets a plain ] is written \] (character 2)"),
        ("[[:alpha:]]", r"in brackets a plain [ is written \[ (character 2)"),
        ("[a&&b]", "&& in brackets is an operator for some readers (character 3)"),
        ("[a-z-9]", r"a range goes from one character to another; a plain - is written \- (character 5)"),
        (r"[\d-x]", r"a range goes from one character to another; a plain - is written \- (character 4)"),
        ("[a", "the [ is not closed (character 1)"),
        ("[a-", "the [ is not closed (character 1)"),
        ("[z-a]", INVALID),
        ("(", INVALID),
        ("a" * (MAX_PATTERN + 1), "it is longer than 1,000 characters"),
        (r"\w" * 400, "it is too long"),
        ("((a|b){30}){30}", "its repetitions are too large"),
        ("((a{100}){100}){100}", INVALID),
        (r"\p{L}{500}", INVALID),
    ],
)
def test_not_portable(pattern: str, why: str) -> None:
    with pytest.raises(BadPattern) as caught:
        portable(pattern)
    assert str(caught.value) == why


def test_the_slowest_pattern_takes_no_long_time() -> None:
    pattern = "(a*)*(a|b){600}c"
    text = "ab" * (LONGEST_MATCHED // 2)
    with within(5):
        assert not matches(pattern, text)


SETS = [r"\d", r"\w", r"\s", r"\S", ".", "[ab]", "[^a]", r"[\d\-]", r"[\w é]", "[a-c]", "[--c]", r"\p{Ll}"]
SIGNS = ["^", "$", "|", "(", ")", "(?:", "{2}", "{1,2}", "{", "]", "*", "+", "?", "\\"]
PIECES = st.sampled_from([*SETS, *SIGNS, "a", "b", "é", "💥", "-", "&", r"\."])
TEXTS = st.text(st.sampled_from("abcé1_- \n\r\t\v\u2028\u00a0٣💥."), max_size=6)


@settings(max_examples=depth(300, 5000), deadline=None)
@given(st.lists(PIECES, max_size=6).map("".join), TEXTS)
def test_others_read_a_portable_pattern_alike(pattern: str, text: str) -> None:
    try:
        written = portable(pattern)
    except BadPattern:
        return
    assert matches(pattern, text) == jsonschema_rs.is_valid({"pattern": written}, text)
