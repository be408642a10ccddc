"""The line that a signature stands on: recognised here, so that it belongs to no text; what it says is for `trust`.

Where the one fence of a directive or a knowledge file is: the first of its kind that no other fence holds.

It opens with exactly three backticks and its word at the start of a line, and ends at the first line of three
backticks. Any other fence hides what is in it, by the rules of CommonMark: it has at least three backticks or tildes,
up to three spaces before them, and goes on to a line of at least as many, or to the end of the text.

Which lines of a document are inside fenced code blocks, by the rules of CommonMark.

An opening fence has up to three spaces before it and at least three backticks or tildes; the rest of a line of
backticks holds no backtick, so the one-line markers of branches are no fences. It is closed by a line of the same
character that is at least as long and has nothing after it. One that is never closed opens nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from msgspec import Struct

from quire.source import Span

_LINE = re.compile(r"<!--[ \t]*+rye:signed:[^\n]*+")
_YAML_LINE = re.compile(r"#[ \t]*+rye:signed:[^\n]*+")


def signature_line(text: str, *, yaml: bool = False) -> str:
    """The first line of a text, without its end, where that is a signature; else nothing."""
    match = (_YAML_LINE if yaml else _LINE).match(text)
    return match[0].rstrip() if match and (yaml or match[0].rstrip().endswith("-->")) else ""


_MARK = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)([^\n]*+)$", re.MULTILINE)


class Fence(Struct, frozen=True):
    """`content` is what the fence holds; `whole` has its first and last line with it."""

    content: Span
    whole: Span


class Missing(Struct, frozen=True):
    """Why there is no fence. `near` is a line that may have been meant as one, or that hides the rest of the text."""

    reason: str
    near: Span | None = None


def find_fence(text: str, word: str) -> Fence | Missing:
    """One pass over the lines that begin like a fence."""
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
        elif run[0] == "~" or "`" not in rest:
            hiding = run[0], len(run), at
            if meant is None and rest.strip().lower().startswith(word):
                meant = at
    if opened is not None:
        return Missing("unclosed", opened[1])
    if meant is not None:
        return Missing("other", meant)
    return Missing("hidden", hiding[2]) if hiding is not None else Missing("none")


_FENCE = re.compile(r" {0,3}(?:(`{3,}+)([^`]*+)|(~{3,}+)(.*+))", re.DOTALL)


class Fences(Struct, frozen=True):
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
