"""The wildcards of a grant: `*` for any text, `?` for one character, `[abc]` and `[!abc]` for one of a set.

They are those of fnmatch, with two differences. Matching takes no longer than the two lengths multiplied, whatever the
pattern. And `?` and sets stand for characters of an id only, never for a wildcard: a grant is also compared with other
grants, and there `?` must not take the `*` of a wider one for a letter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_WILD = re.compile(r"[*?\[]")
_PIECE = re.compile(r"\[(!?+)(\]?+[^\]]*+)\]|(.)", re.DOTALL)
_NO_LETTER = frozenset("*?[]!")

_Spot = tuple[bool, frozenset[str]]
"""Whether a character has to be in the set, or must not be."""


def fixed_head(pattern: str) -> str:
    """What everything begins with that the pattern matches."""
    found = _WILD.search(pattern)
    return pattern[: found.start()] if found else pattern


def has_single(pattern: str) -> bool:
    """Whether there is a wildcard for one character in it."""
    return "?" in pattern or "[" in pattern


def glob(pattern: str, text: str) -> bool:
    """Leftmost search for each part between stars."""
    if has_single(pattern):
        return _glob_spots(pattern, text)
    if "*" not in pattern:
        return pattern == text
    first, *middle, last = pattern.split("*")
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _glob_spots(pattern: str, text: str) -> bool:
    first, *rest = _parts(pattern)
    if not rest:
        return len(text) == len(first) and _fits(first, text, 0)
    *middle, last = rest
    at, end = len(first), len(text) - len(last)
    if end < at or not _fits(first, text, 0) or not _fits(last, text, end):
        return False
    for part in middle:
        while not (at + len(part) <= end and _fits(part, text, at)):
            at += 1
            if at > end:
                return False
        at += len(part)
    return True


def _fits(part: Sequence[_Spot], text: str, at: int) -> bool:
    return all((text[at + number] in known) is wanted for number, (wanted, known) in enumerate(part))


@lru_cache(maxsize=256)
def _parts(pattern: str) -> tuple[tuple[_Spot, ...], ...]:
    """The pattern between its stars, character by character."""
    parts: list[list[_Spot]] = [[]]
    for negated, inside, plain in _PIECE.findall(pattern):
        if plain == "*":
            parts.append([])
        elif plain == "?":
            parts[-1].append((False, _NO_LETTER))
        elif plain:
            parts[-1].append((True, frozenset(plain)))
        elif negated:
            parts[-1].append((False, _members(inside) | _NO_LETTER))
        else:
            parts[-1].append((True, _members(inside) - _NO_LETTER))
    return tuple(tuple(part) for part in parts)


def _members(inside: str) -> frozenset[str]:
    """`a-c` is a range, as is everything between two characters that a hyphen joins; backwards it is empty."""
    members: set[str] = set()
    at = 0
    while at < len(inside):
        if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside):
            members.update(map(chr, range(ord(inside[at]), min(ord(inside[at + 2]), 0x7F) + 1)))
            at += 3
        else:
            members.add(inside[at])
            at += 1
    return frozenset(members)
