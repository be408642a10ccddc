"""Differences by words: they give back both texts, and take bounded time."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import within

from quire.text_diff import common_prefix, common_suffix, word_pieces


def _marked(old: str, new: str) -> str:
    marks = {"same": "{}", "gone": "[-{}-]", "new": "{{+{}+}}"}
    return "".join(marks[piece.kind].format(piece.text) for piece in word_pieces(old, new))


@pytest.mark.parametrize(
    ("old", "new", "marked"),
    [
        ("", "", ""),
        ("the same", "the same", "the same"),
        ("", "all of it", "{+all of it+}"),
        ("all of it", "", "[-all of it-]"),
        ("Write one line.", "Write two lines.", "Write [-one line-]{+two lines+}."),
        ("a, b and d", "a, b, c and d", "a, b{+, c+} and d"),
        ("one\ntwo\nthree\n", "one\nthree\n", "one\n[-two\n-]three\n"),
        ("one\nthree\n", "one\ntwo and a half\nthree\n", "one\n{+two and a half\n+}three\n"),
        ('{"a":1,"b":2}', '{"a":1,"b":3}', '{"a":1,"b":[-2-]{+3+}}'),
        ("日本語の文章です。", "日本人の文章です。", "日本[-語-]{+人+}の文章です。"),
        ('read {"path":"a"}\nlist {}', 'read {"path":"b"}', 'read {"path":"[-a-]{+b+}"}[-\nlist {}-]'),
        ("wholly other words", "nothing like that", "[-wholly other words-]{+nothing like that+}"),
    ],
)
def test_changed_words(old: str, new: str, marked: str) -> None:
    assert _marked(old, new) == marked


_TEXTS = st.lists(st.sampled_from(["a", "b", "word", " ", "\n", ".", "\r\n", "\x1b", "é", "\u2028"]), max_size=60).map(
    "".join
)


@given(_TEXTS, _TEXTS)
def test_the_pieces_make_both_texts(old: str, new: str) -> None:
    pieces = word_pieces(old, new)
    assert "".join(piece.text for piece in pieces if piece.kind != "new") == old
    assert "".join(piece.text for piece in pieces if piece.kind != "gone") == new
    assert all(piece.text for piece in pieces)
    assert all(one.kind != other.kind for one, other in itertools.pairwise(pieces))
    if old == new:
        assert {piece.kind for piece in pieces} <= {"same"}


def _shuffled(joint: str) -> tuple[str, str]:
    words = [str(number * 7919) for number in range(40_000)]
    other = list(words)
    random.Random(7).shuffle(other)
    return joint.join(words), joint.join(other)


def _two_letters(seed: int) -> str:
    draw = random.Random(seed)
    return "\n".join(draw.choice("ab") for _ in range(30_000))


@pytest.mark.parametrize(
    ("old", "new"),
    [_shuffled("\n"), _shuffled(" "), (_two_letters(1), _two_letters(2)), ("a " * 100_000, "b " * 100_000)],
    ids=["lines", "words", "few kinds of lines", "nothing in common"],
)
def test_huge_texts_take_bounded_time(old: str, new: str) -> None:
    with within(10):  # 0.3 s; without bounds it takes minutes
        pieces = word_pieces(old, new)
    assert "".join(piece.text for piece in pieces if piece.kind != "new") == old
    assert "".join(piece.text for piece in pieces if piece.kind != "gone") == new


def test_a_small_change_of_a_huge_line_is_found() -> None:
    old = "word " * 50_000
    changed = [piece for piece in word_pieces(old, f"{old[:100_000]}new {old[100_000:]}") if piece.kind != "same"]
    assert [(piece.kind, piece.text.strip()) for piece in changed] == [("new", "new")]


def test_lines_that_both_have_once_are_kept_where_too_much_differs() -> None:
    parts = [f"{number}" for number in range(4000)]
    old = "\n".join(f"{part} old {hash(part) % 7}" if int(part) % 9 else f"anchor {part}" for part in parts)
    new = "\n".join(f"new {part} {hash(part) % 5}" if int(part) % 9 else f"anchor {part}" for part in parts)
    same = "".join(piece.text for piece in word_pieces(old, new) if piece.kind == "same")
    assert same.count("anchor") > 400


@given(st.text("ab", max_size=9), st.text("ab", max_size=9), st.integers(0, 9))
def test_common_beginnings_and_ends(old: str, new: str, most: int) -> None:
    most = min(most, len(old), len(new))
    start, end = common_prefix(old, new, most), common_suffix(old, new, most)
    assert start == max(n for n in range(most + 1) if old[:n] == new[:n])
    assert end == max(n for n in range(most + 1) if old[len(old) - n :] == new[len(new) - n :])
    assert common_prefix([*old], [*new], most) == start
