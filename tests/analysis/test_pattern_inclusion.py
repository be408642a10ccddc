"""Patterns that cover patterns: against real grants, and against all short texts."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.depth import depth

from quire.analysis.pattern_inclusion import COVERED, NOT_DECIDED, PatternSet, is_word_pattern
from quire.safe_regex import matches
from quire.trust.capabilities import Grants

TICKETS = "rye.execute.tool.mcp.tickets"


@pytest.mark.parametrize(
    ("wide", "pattern", "answer", "text"),
    [
        ([], "a", "new", "a"),
        (["a"], "a", "covered", ""),
        (["rye.*"], f"{TICKETS}.create", "covered", ""),
        (["rye.*"], "rye", "covered", ""),
        (["rye.?*"], "rye.*", "new", "rye."),
        ([f"{TICKETS}.create"], f"{TICKETS}.*", "new", f"{TICKETS}.anything"),
        ([f"{TICKETS}.*"], f"{TICKETS}.c*", "covered", ""),
        ([f"{TICKETS}.c*"], f"{TICKETS}.*", "new", f"{TICKETS}.anything"),
        ([f"{TICKETS}*"], f"{TICKETS}.*", "covered", ""),
        ([f"{TICKETS}.?*"], f"{TICKETS}.*", "new", f"{TICKETS}."),
        (["*a*"], "*a", "covered", ""),
        (["*a*", "b*"], "*ab*", "covered", ""),
        (["a*", "*b"], "a*b", "covered", ""),
        (["a*b"], "a*", "new", "aanything"),
        (["[ab]*", "[!ab]*"], "?*", "covered", ""),
        (["[ab]*", "[!abc]*"], "?*", "new", "c"),
        (["[a-c]"], "[abc]", "covered", ""),
        (["[a-c]"], "[abcd]", "new", "d"),
        (["[!a]"], "[b-z]", "covered", ""),
        (["[!a]"], "?", "new", "a"),
        (["?*"], "*?", "new", "!a"),
        (["*?"], "?*?", "covered", ""),
        (["[", "*"], "[", "covered", ""),
        (["[]]"], "?", "new", "anything"[0]),
    ],
)
def test_known_answers(wide: list[str], pattern: str, answer: str, text: str) -> None:
    found = PatternSet(wide).inclusion(pattern)
    assert (found.answer, found.example) == (answer, text)


def test_a_real_name_is_the_example_if_one_is_known() -> None:
    known = [f"{TICKETS}.create", "rye.execute.tool.mcp.mail.send", f"{TICKETS}.delete"]
    found = PatternSet([f"{TICKETS}.create"], known).inclusion(f"{TICKETS}.*")
    assert found.example == f"{TICKETS}.delete"


_patterns = st.lists(st.sampled_from(["a", "b", ".", "*", "?", "[ab]", "[!a]", "[", "!", ".*"]), max_size=6).map(
    "".join
)
TEXTS = ["".join(one) for length in range(7) for one in itertools.product("ab.!", repeat=length)]


@given(wide=st.lists(_patterns, max_size=4), pattern=_patterns)
@settings(max_examples=depth(150, 5000), deadline=None)
@example(wide=["a*", "*b"], pattern="a*b")
@example(wide=["*a*b*"], pattern="*ab*.*")
def test_the_answer_is_that_of_matching_all_short_texts(wide: list[str], pattern: str) -> None:
    covering, alone = PatternSet(wide), PatternSet([pattern])
    found = covering.inclusion(pattern)
    if found.answer == "new":
        assert alone.matches(found.example) and not covering.matches(found.example)
    else:
        assert found == COVERED
        assert [text for text in TEXTS if alone.matches(text) and not covering.matches(text)] == []


@given(wide=st.lists(_patterns, max_size=4), text=st.text("ab.!", max_size=6))
@settings(max_examples=depth(150, 2000), deadline=None)
def test_a_set_matches_what_grants_cover(wide: list[str], text: str) -> None:
    assert PatternSet(wide).matches(text) == Grants(frozenset(wide)).covers(text)


def test_a_walk_that_explodes_is_given_up() -> None:
    hard = PatternSet([f"*{letter}{'?' * 18}" for letter in "ab"] + ["*[ab]*"], steps=200)
    assert hard.inclusion("*[ab]" + "?" * 18 + "*[ab]" + "?" * 18) == NOT_DECIDED


def test_questions_share_their_steps() -> None:
    patterns = PatternSet(["*a*"], steps=60)
    answers = [patterns.inclusion(f"*a?{'b' * number}*").answer for number in range(1, 9)]
    assert answers[0] == "covered" and answers[-1] == "not decided"


def test_too_many_letters_are_not_compared() -> None:
    assert PatternSet(["*a*"]).inclusion(f"*{'a' * 30_000}?*") == NOT_DECIDED


@pytest.mark.parametrize(
    ("pattern", "is_word"),
    [
        ("^v[0-9]{1,3}$", True),
        (r"^v\d+\.\d+(\.\d+)?$", True),
        ("^(alpha|beta)[0-9]*$", True),
        ("^[A-Z]{2,5}-[0-9]+$", True),
        (r"^\w+$", True),
        ("[a-z]+", False),
        ("^a|b$", False),
        ("^(a|-b)$", False),
        ("^a?-b$", False),
        ("^[a-z]*$", False),
        ("^[a-z.]+$", False),
        (r"^a\.$", False),
        ("^[^/]+$", False),
        ("^.+$", False),
        ("^[a-z/]+$", False),
        (r"^a\x2fb$", False),
        ("^ä$", False),
        ("^a$b$", False),
        ("^(a$", False),
        ("", False),
    ],
)
def test_patterns_of_plain_words(pattern: str, is_word: bool) -> None:
    """real-work M6: an anchored pattern of words counts like an enum for an argument."""
    assert is_word_pattern(pattern) is is_word


_PIECES = st.sampled_from(
    ["a", "-", r"\.", "[a-]", "[a.]", "/", "^", "$", "|", "(", ")", "(?:", "*", "+", "?", "{0,2}", "."]
)
_TEXTS = ["".join(text) for length in range(4) for text in itertools.product("a-./\n", repeat=length)]


@given(st.lists(_PIECES, max_size=7))
@settings(max_examples=depth(200, 5000), deadline=None)
def test_a_pattern_of_plain_words_matches_nothing_else(pieces: list[str]) -> None:
    pattern = f"^{''.join(pieces)}$"
    if is_word_pattern(pattern):
        fitting = [text for text in _TEXTS if matches(pattern, text)]
        assert [text for text in fitting if not re.fullmatch(r"[a_][a-]*(\.[a-]+)*", text)] == []
