"""Where the one fence of a directive or a knowledge file is: the first of its kind that no other fence holds.

It opens with exactly three backticks and its word at the start of a line, and ends at the first line of three
backticks. Any other fence hides what is in it, by the rules of CommonMark: it has at least three backticks or tildes,
up to three spaces before them, and goes on to a line of at least as many, or to the end of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from quire.source import Span

_MARK = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)([^\n]*+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fence:
    """`content` is what the fence holds; `whole` has its first and last line with it."""

    content: Span
    whole: Span


@dataclass(frozen=True, slots=True)
class Missing:
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
