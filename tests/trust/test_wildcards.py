"""Grants are matched as fnmatch matches, but in time that no pattern can blow up."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import within

from quire.trust.capabilities import fixed_head, glob

# Sets that fnmatch itself reads oddly are left out: an empty range before a `!` becomes a negation there.
pieces = st.sampled_from(["a", "b", ".", "-", "*", "?", "[ab]", "[!ab]", "[a-c]", "[!.]", "[-a]", "[a-]", "]", "["])


@given(st.lists(pieces, max_size=6).map("".join), st.text(st.sampled_from("abcd.-"), max_size=8))
def test_ids_are_matched_as_fnmatch_does(pattern: str, text: str) -> None:
    assert glob(pattern, text) == fnmatchcase(text, pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("a?", "a*"), ("a?", "a?"), ("a[!b]", "a*"), ("a[*]", "a*"), ("a[!b]", "a["), ("a[?]", "a?")],
)
def test_one_character_is_never_a_wildcard_of_another_grant(pattern: str, text: str) -> None:
    assert not glob(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "head"), [("a.b", "a.b"), ("a.*", "a."), ("a.?*", "a."), ("a[bc].*", "a"), ("*", "")]
)
def test_fixed_head(pattern: str, head: str) -> None:
    assert fixed_head(pattern) == head


def test_no_pattern_takes_long() -> None:
    with within(2):
        assert not glob("*?" * 300 + "b", "a" * 3000)
        assert not glob("*" + "[a]" * 300 + "b*", "a" * 1000)
