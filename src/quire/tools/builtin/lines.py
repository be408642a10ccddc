"""Ids for the lines of a text, so that an edit can say which lines it means without repeating them.

An id depends on what the line says, which of its equals it is, and how many of those there are: it stays the same
while other lines change, and is no longer there once its own line, or the number of its equals, has changed. So an
edit by an old id is refused instead of hitting the wrong line.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from quire.errors import ToolFailed
from quire.tools.builtin.differences import Replacement, shown_difference
from quire.values import Value

DIGITS = 6
MANY = 10_000
"""From so many lines on, an id holds the place of its line among its equals, instead of a hash of it: short hashes
would collide, and one for each line takes too long."""
MAX_DIFF = 4000


def split(text: str) -> list[str]:
    """The lines with their ends. Only a line feed ends one."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def line_ids(lines: Sequence[str]) -> list[str]:
    """One for each line, no two the same."""
    bare = [line.rstrip("\r\n") for line in lines]
    totals, seen = Counter(bare), Counter[str]()
    if len(bare) >= MANY:
        return _many_ids(bare, totals)
    taken: set[str] = set()
    ids = []
    for text in bare:
        seen[text] += 1
        attempt = 0
        while (found := _id(text, seen[text], totals[text], attempt)) in taken:
            attempt += 1
        taken.add(found)
        ids.append(found)
    return ids


def marked(lines: Sequence[str], ids: Sequence[str]) -> str:
    return "".join(f"[LID:{one}] {line}" for one, line in zip(ids, lines, strict=True))


def _many_ids(bare: Sequence[str], totals: Counter[str]) -> list[str]:
    marks, places = _marks(totals), dict.fromkeys(totals, 0)
    ids = []
    for text in bare:
        places[text] = place = places[text] + 1
        ids.append(f"{marks[text]}-{place}")
    return ids


def _marks(totals: Counter[str]) -> dict[str, str]:
    """The part of an id that all lines of a text share."""
    marks: dict[str, str] = {}
    taken: set[str] = set()
    for text, total in totals.items():
        attempt = 0
        while (found := _id(text, 0, 0, attempt, 2 * DIGITS)) in taken:
            attempt += 1
        taken.add(found)
        marks[text] = f"{found}-{total}"
    return marks


def _numbers(lines: Sequence[str], wanted: Sequence[str]) -> dict[str, int]:
    """The numbers of the lines that have these ids; of a small file those of all lines."""
    if len(lines) < MANY:
        return {one: number for number, one in enumerate(line_ids(lines))}
    bare = [line.rstrip("\r\n") for line in lines]
    texts = {mark: text for text, mark in _marks(Counter(bare)).items()}
    ids: dict[str, dict[str, str]] = {}
    for one in wanted:
        mark, _, place = one.rpartition("-")
        if mark in texts:
            ids.setdefault(texts[mark], {})[place] = one
    seen, found = dict.fromkeys(ids, 0), {}
    for number, text in enumerate(bare):
        if text in ids:
            seen[text] += 1
            if (given := ids[text].get(str(seen[text]))) is not None:
                found[given] = number
    return found


@dataclass(frozen=True, slots=True)
class Edit:
    """`replaced` is how many lines were, `difference` what changed as people read it, cut where it grows long."""

    text: str
    replaced: int
    difference: str


def edited(
    text: str,
    changes: Sequence[Mapping[str, Value]],
    path: str,
    redact: Callable[[str], str] = lambda text: text,
) -> Edit:
    """Make all changes. `redact` takes secrets out of the difference before it is cut. Raises `ToolFailed`."""
    lines = split(text)
    given = [[_given(change, name, path) for name in ("start_line_id", "end_line_id")] for change in changes]
    numbers = _numbers(lines, [one for pair in given for one in pair])
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    ranges: list[tuple[int, int, str]] = []
    for change, pair in zip(changes, given, strict=True):
        first, last = (_number(numbers, one, path) for one in pair)
        if last < first:
            raise ToolFailed(f"{path}: the lines of a change are given from the last to the first", kind="edit")
        ranges.append((first, last, str(change["new_content"])))
    ranges.sort(key=lambda one: one[0])
    for (_, before, _), (after, _, _) in pairwise(ranges):
        if after <= before:
            raise ToolFailed(f"{path}: two changes speak of the same line", kind="edit")
    replacements = [
        Replacement(first, last + 1, split(_content(content, end, last + 1 < len(lines) or lines[last].endswith("\n"))))
        for first, last, content in ranges
    ]
    pieces: list[str] = []
    done = 0
    for one in replacements:
        pieces += lines[done : one.start]
        pieces += one.lines
        done = one.stop
    replaced = sum(one.stop - one.start for one in replacements)
    return Edit(
        "".join([*pieces, *lines[done:]]), replaced, shown_difference(lines, replacements, path, MAX_DIFF, redact)
    )


def _id(text: str, place: int, total: int, attempt: int, digits: int = DIGITS) -> str:
    data = f"{place}/{total}/{attempt}/{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2s(data).hexdigest()[:digits]


def _given(change: Mapping[str, Value], name: str, path: str) -> str:
    given = change.get("line_id", change.get(name))
    if given is None:
        raise ToolFailed(
            f"{path}: a change needs line_id, or start_line_id and end_line_id, and new_content", kind="arguments"
        )
    return str(given).strip().removeprefix("[").removesuffix("]").removeprefix("LID:")


def _number(numbers: Mapping[str, int], one: str, path: str) -> int:
    if one not in numbers:
        raise ToolFailed(
            f"{path} has no line {one[:40]} (any more); read the file again with line_ids: true", kind="edit"
        )
    return numbers[one]


def _content(content: str, end: str, ended: bool) -> str:
    """New text with the file's own line ends; an empty one takes the lines away."""
    if not content:
        return ""
    text = content.replace("\r\n", "\n").removesuffix("\n").replace("\n", end)
    return text + end if ended else text
