"""Which lines of a document are inside fenced code blocks, by the rules of CommonMark.

An opening fence has up to three spaces before it and at least three backticks or tildes; the rest of a line of
backticks holds no backtick, so the one-line markers of branches are no fences. It is closed by a line of the same
character that is at least as long and has nothing after it. One that is never closed opens nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

_FENCE = re.compile(r" {0,3}(?:(`{3,}+)([^`]*+)|(~{3,}+)(.*+))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fences:
    """`pairs` are the indexes of (opening, closing) lines in order; `unclosed` those that count as text."""

    pairs: tuple[tuple[int, int], ...] = ()
    unclosed: tuple[int, ...] = ()


def find(lines: Sequence[str]) -> Fences:
    """Pairs the fences among these lines, which are all that begin with a backtick or a tilde.

    The nearest closing line of each opening one is found from the end backwards, with a stack of the closing lines
    that are still the nearest for some length: no line is looked at again for every fence that fails to close.
    """
    marks: list[tuple[int, str, int, bool]] = []
    for at, line in enumerate(lines):
        match = _FENCE.fullmatch(line)
        if match:
            run, rest = (match[1], match[2]) if match[1] else (match[3], match[4])
            marks.append((at, run[0], len(run), not rest.strip()))
    if not marks:
        return Fences()
    nearest: dict[int, int] = {}
    # Per character: closing lines with their lengths, negated so that the stack is in rising order for `bisect`.
    stacks: dict[str, tuple[list[int], list[int]]] = {"`": ([], []), "~": ([], [])}
    for at, character, length, closes in reversed(marks):
        lengths, where = stacks[character]
        found = bisect_left(lengths, -length + 1)
        if found:
            nearest[at] = where[found - 1]
        if closes:
            while lengths and -lengths[-1] <= length:
                lengths.pop()
                where.pop()
            lengths.append(-length)
            where.append(at)
    pairs: list[tuple[int, int]] = []
    unclosed: list[int] = []
    end = -1
    for at, *_ in marks:
        if at <= end:
            continue
        if at in nearest:
            end = nearest[at]
            pairs.append((at, end))
        else:
            unclosed.append(at)
    return Fences(tuple(pairs), tuple(unclosed))
