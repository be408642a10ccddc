"""Words that all messages share: suggestions, cuts, plurals."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from quire.wording import Suggestions, cut, cut_line, cut_off, did_you_mean, first_of, pluralize


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (did_you_mean("turns"), "did you mean turns?"),
        (did_you_mean(None), ""),
        (did_you_mean(None, "known: turns", lead="; "), "known: turns"),
        (did_you_mean("turns", "known: turns", lead="; ", form='"{}"'), '; did you mean "turns"?'),
        (did_you_mean("a{b}", lead=" (", form="<{}>"), " (did you mean <a{b}>?)"),
    ],
)
def test_a_question_about_a_name(text: str, asked: str) -> None:
    assert text == asked


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (cut("abcdef", 6), "abcdef"),
        (cut("abcdefg", 6), "abcde…"),
        (cut("abcdefg", 6, 3), "abc…"),
        (cut("abcdefg", 6, 6), "abcdef…"),
        (cut_off("abcdef", 6), "abcdef"),
        (cut_off("abcdefg", 6), "abcdef\n[cut: 7 characters in all]"),
        (" ".join(first_of(["a", "b"], 2)), "a b"),
        (" ".join(first_of(["a", "b", "c"], 2)), "a b …"),
        (" ".join(pluralize("file", count) for count in (0, 1, 2)), "files file files"),
    ],
)
def test_long_and_counted_texts(text: str, short: str) -> None:
    assert text == short


def test_suggestions_come_out_of_a_budget() -> None:
    few = Suggestions(names=1)
    assert few.nearest("trns", ["turns"]) == "turns"
    assert not few.are_left
    assert few.nearest("trns", ["turns"]) is None
    assert Suggestions(choices=1).nearest("trns", ["turns", "spend"]) is None
    assert Suggestions(comparisons=1).nearest("trns", ["turns", "spend"]) is None
    assert Suggestions.wide().nearest("n" * 61, ["n" * 60]) is None


def test_the_question_is_written_in_one_place() -> None:
    """U5: 57 messages spelled it out."""
    folder = Path(quire.__file__).parent
    spelled = [file.name for file in folder.rglob("*.py") if "did you mean {" in file.read_text(encoding="utf-8")]
    assert spelled == ["wording.py"]


def test_a_line_is_cut_behind_a_word() -> None:
    assert [cut_line("one two three", most) for most in (13, 12, 9, 8)] == [
        "one two three",
        "one two thr…",
        "one two…",
        "one two…",
    ]
