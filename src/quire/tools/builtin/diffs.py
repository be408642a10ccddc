"""Unified differences of texts whose replaced lines are known.

`difflib` compares whole texts, which takes quadratic time. Here it only compares inside small replacements; a large one
is shown as all its old and all its new lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

LINES_AROUND = 2
_MAX_WINDOW = 2500
_MAX_COMPARED = 50_000
"""The numbers of pairs of lines that are compared in one replacement and in all of them."""


class Replacement(Struct, frozen=True):
    """`lines` replace those from `start` up to `stop`."""

    start: int
    stop: int
    lines: Sequence[str]


class _Change(Struct, frozen=True):
    """Old lines from `start` up to `stop`, and the new lines, the first of which has the number `at` in the new
    text."""

    start: int
    stop: int
    at: int
    lines: Sequence[str]


def shown_difference(
    before: Sequence[str],
    replacements: Sequence[Replacement],
    path: str,
    most: int,
    redact: Callable[[str], str] = lambda text: text,
) -> str:
    """Return a unified difference, cut after `most` characters once secrets are removed. Replacements are in order and
    do not overlap."""
    parts: list[str] = []
    size = 0
    for line in _lines(before, list(_changes(before, replacements)), path):
        parts.append(line if line.endswith("\n") else f"{line}\n")
        size += len(parts[-1])
        if size > most:
            return f"{redact(''.join(parts))[:most]}…\n"
    return redact("".join(parts))


def _changes(before: Sequence[str], replacements: Sequence[Replacement]) -> Iterator[_Change]:
    from difflib import SequenceMatcher

    shift, compared = 0, 0
    for one in replacements:
        old = before[one.start : one.stop]
        pairs = len(old) * len(one.lines)
        compared += pairs
        if pairs <= _MAX_WINDOW and compared <= _MAX_COMPARED:
            for tag, start, stop, first, last in SequenceMatcher(None, old, one.lines).get_opcodes():
                if tag != "equal":
                    begin = one.start + start
                    yield _Change(begin, one.start + stop, one.start + shift + first, one.lines[first:last])
        else:
            yield _Change(one.start, one.stop, one.start + shift, one.lines)
        shift += len(one.lines) - len(old)


def _lines(before: Sequence[str], changes: Sequence[_Change], path: str) -> Iterator[str]:
    if changes:
        yield f"--- {path}\n"
        yield f"+++ {path}\n"
    group: list[_Change] = []
    for change in changes:
        if group and change.start - group[-1].stop > 2 * LINES_AROUND:
            yield from _hunk(before, group)
            group = []
        group.append(change)
    if group:
        yield from _hunk(before, group)


def _hunk(before: Sequence[str], group: Sequence[_Change]) -> Iterator[str]:
    start, stop = max(0, group[0].start - LINES_AROUND), min(len(before), group[-1].stop + LINES_AROUND)
    first = group[0].at - (group[0].start - start)
    length = stop - start + sum(len(one.lines) - (one.stop - one.start) for one in group)
    yield f"@@ -{_range(start, stop - start)} +{_range(first, length)} @@\n"
    done = start
    for one in group:
        yield from (f" {line}" for line in before[done : one.start])
        yield from (f"-{line}" for line in before[one.start : one.stop])
        yield from (f"+{line}" for line in one.lines)
        done = one.stop
    yield from (f" {line}" for line in before[done:stop])


def _range(start: int, length: int) -> str:
    """Return a range as `diff` writes it: numbered from 1, an empty range by the line before it."""
    return f"{start + 1}" if length == 1 else f"{start + (1 if length else 0)},{length}"
