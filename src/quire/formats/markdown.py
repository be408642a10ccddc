"""Find signature lines and fences in Markdown.

The one fence of a directive or a knowledge file is the first of its kind that is not inside another fence. It opens
with exactly three backticks and its word at the start of a line, and ends at the first line of three backticks. Other
fences follow CommonMark: at least three backticks or tildes with up to three spaces before them, closed by a line of
the same character that is at least as long and has nothing after it. The rest of an opening line of backticks contains
no backtick, so the one-line markers of branches are not fences.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from msgspec import Struct

from quire.patterns import late_pattern
from quire.source import Span

_LINE = late_pattern(r"<!--[ \t]*+rye:signed:[^\n]*+")
_YAML_LINE = late_pattern(r"#[ \t]*+rye:signed:[^\n]*+")


def signature_line(text: str, *, yaml: bool = False) -> str:
    """Return the first line of a text, without its end, if it is a signature, else an empty text. `trust` reads it."""
    match = (_YAML_LINE if yaml else _LINE).match(text)
    return match[0].rstrip() if match and (yaml or match[0].rstrip().endswith("-->")) else ""


_MARK = late_pattern(r"^ {0,3}(`{3,}+|~{3,}+)([^\n]*+)$", re.MULTILINE)


class Fence(Struct, frozen=True):
    """Position of a fence."""

    content: Span
    """The lines inside the fence."""
    whole: Span
    """The content with the opening and the closing line."""


class Missing(Struct, frozen=True):
    """The reason why there is no fence."""

    reason: str
    near: Span | None = None
    """A line that may have been meant as the fence, or that hides the rest of the text."""


def find_fence(text: str, word: str) -> Fence | Missing:
    """Find the fence of a word, in one pass over the lines that begin like a fence. A fence before it that is never
    closed hides the rest of the text."""
    opener = f"```{word}"
    hiding: tuple[str, int, Span] | None = None
    opened: tuple[int, Span] | None = None
    meant: Span | None = None
    for mark in _MARK.finditer(text):
        run, rest = mark[1], mark[2]
        at = Span(mark.start(), mark.end())
        if opened is not None:
            if mark[0].rstrip(" \t") == "```":
                start = opened[0]
                return Fence(Span(start, max(start, at.start - 1)), Span(opened[1].start, at.end))
        elif hiding is not None:
            if run[0] == hiding[0] and len(run) >= hiding[1] and not rest.strip(" \t"):
                hiding = None
        elif mark[0].rstrip(" \t") == opener:
            opened = at.end + 1, at
        elif _opens(mark):
            hiding = run[0], len(run), at
            if meant is None and rest.strip().lower().startswith(word):
                meant = at
    if opened is not None:
        return Missing("unclosed", opened[1])
    if meant is not None:
        return Missing("other", meant)
    return Missing("hidden", hiding[2]) if hiding is not None else Missing("none")


def _opens(mark: re.Match[str]) -> bool:
    """Tell whether a line can open a fence: there are no more backticks after those that it begins with."""
    return mark[1][0] == "~" or "`" not in mark[2]


class Fences(Struct, frozen=True):
    """The fences of a text, as indexes of lines."""

    pairs: tuple[tuple[int, int], ...] = ()
    """(opening, closing) lines, in order."""
    unclosed: tuple[int, ...] = ()
    """Opening lines without a closing line; they count as text."""


def find_fences(lines: Sequence[str]) -> Fences:
    """Pair the fences among these lines, which must be all lines that begin with a backtick or a tilde.

    The nearest closing line of each opening line is found from the end backwards, with a stack of the closing lines
    that are still the nearest for some length. So no line is scanned again for every fence that is not closed.
    """
    marks: list[tuple[int, str, int, bool]] = []
    for at, line in enumerate(lines):
        mark = _MARK.fullmatch(line)
        if mark and _opens(mark):
            marks.append((at, mark[1][0], len(mark[1]), not mark[2].strip()))
    if not marks:
        return Fences()
    nearest: dict[int, int] = {}
    # Per character: closing lines and their lengths, negated so that the stack is in ascending order for `bisect`.
    stacks: dict[str, tuple[list[int], list[int]]] = {"`": ([], []), "~": ([], [])}
    for at, character, length, closes in reversed(marks):
        lengths, where = stacks[character]
        above = bisect_left(lengths, -length + 1)
        if above:
            nearest[at] = where[above - 1]
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
