"""Differences and ids of lines: as before for small texts, and in linear time for large ones."""

from __future__ import annotations

import difflib
import hashlib
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.tools.builtin.files import MANY, Replacement, edited, line_ids, shown_difference, split

TEXTS: dict[str, Callable[[int], str]] = {
    "empty lines": lambda size: "\n" * size,
    "few different": lambda size: "a\nb\n" * (size // 4),
    "all different": lambda size: "".join(f"{number:06}\n" for number in range(size // 7)),
}


@given(st.lists(st.sampled_from("abc"), max_size=12), st.data())
def test_a_difference_turns_the_old_text_into_the_new_one(old: list[str], data: st.DataObject) -> None:
    before = [f"{line}\n" for line in old]
    start = data.draw(st.integers(0, len(before)))
    stop = data.draw(st.integers(start, len(before)))
    lines = [f"{line}\n" for line in data.draw(st.lists(st.sampled_from("abcd"), max_size=5))]
    after = [*before[:start], *lines, *before[stop:]]
    shown = shown_difference(before, [Replacement(start, stop, lines)], "p", 10_000)
    body = [line for line in shown.splitlines(keepends=True) if not line.startswith(("---", "+++", "@@"))]
    assert [line[1:] for line in body if line[0] in " -"] in _parts(before)
    assert [line[1:] for line in body if line[0] in " +"] in _parts(after)
    if len(set(old)) == len(old) and not set(lines) & set(before):
        assert shown == "".join(difflib.unified_diff(before, after, "p", "p", n=2))


def _parts(lines: list[str]) -> list[list[str]]:
    return [lines[first:last] for first in range(len(lines) + 1) for last in range(first, len(lines) + 1)]


def test_several_changes_look_as_difflib_shows_them() -> None:
    before = [f"line {number}\n" for number in range(60)]
    replacements = [Replacement(2, 3, ["x\n"]), Replacement(6, 8, []), Replacement(40, 41, ["y\n", "z\n"])]
    after = [*before[:2], "x\n", *before[3:6], *before[8:40], "y\n", "z\n", *before[41:]]
    shown = shown_difference(before, replacements, "p", 10_000)
    assert shown == "".join(difflib.unified_diff(before, after, "p", "p", n=2))


def test_ids_of_small_files_stay() -> None:
    """The ids of 0.1.0: a stored journal may name them."""
    assert line_ids(["a\n", "b\n", "a\n"]) == [
        hashlib.blake2s(data).hexdigest()[:6] for data in (b"1/2/0/a", b"1/1/0/b", b"2/2/0/a")
    ]


def test_ids_of_large_files_are_unique_and_follow_their_lines() -> None:
    lines = split("a\nb\n\n" * MANY)
    ids = line_ids(lines)
    assert len(set(ids)) == len(ids) == 3 * MANY
    # Another text elsewhere changes no id; one more of its equals changes those of all.
    assert line_ids([*lines, "new\n"])[:-1] == ids
    assert not set(line_ids([*lines, "a\n"])[::3]) & set(ids)


@pytest.mark.parametrize("kind", TEXTS)
def test_editing_takes_time_in_proportion_to_the_text(kind: str) -> None:
    """Four times the text takes about four times as long; where it was quadratic it took sixteen times."""

    def seconds(size: int) -> float:
        text = TEXTS[kind](size)
        ids = line_ids(split(text))
        changes = [{"line_id": one, "new_content": "new"} for one in ids[:: max(1, len(ids) // 900)]]
        begun = time.process_time()
        edited(text, changes, "p")
        return time.process_time() - begun

    small, large = seconds(60_000), seconds(240_000)
    assert large < max(10 * small, 0.5)
