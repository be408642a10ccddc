"""Decide whether patterns of capabilities cover another pattern, and find a text that is new.

A pattern is read as `quire.trust.capabilities` reads grants: `*` is any text, `?` and sets are one character, and `X.*`
covers `X` too. Both sides become automata, of which the covering one is made deterministic while it is walked, so the
answer is exact. A walk that takes too many steps is given up: then the answer is that it is not decided, which callers
treat as not covered.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import Literal

from msgspec import Struct

from quire.trust.capabilities import Spot, fixed_head, glob, has_single, pattern_parts

MOST_STEPS = 50_000
"""Steps of all walks of a set before they are given up: from one pair of states to the next by one letter."""

MOST_LETTERS = 20_000
"""Letters of all patterns together; more are not compared."""

_FILLINGS = ("anything", "a", "")
"""Texts that are tried for the stars of a pattern before a walk: an example made of a word is easy to read."""

_READABLE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./ "


class Inclusion(Struct, frozen=True):
    """The answer for one pattern."""

    answer: Literal["covered", "new", "not decided"]
    example: str = ""
    """A text that only the pattern matches; empty unless it is new."""


COVERED = Inclusion("covered")
NOT_DECIDED = Inclusion("not decided")


class PatternSet:
    """Patterns that are asked what they cover. All questions to one set share its steps, so that a long list of odd
    patterns takes no longer than one."""

    def __init__(self, patterns: Iterable[str], known: Iterable[str] = (), steps: int = MOST_STEPS) -> None:
        """`known` are texts that are tried first as examples, such as the names of real tools."""
        self._covering = tuple(dict.fromkeys(_spelled_out(patterns)))
        self._written = frozenset(self._covering)
        self._known = tuple(known)
        self._steps = steps
        self._by_head: dict[str, list[str]] = {}
        for one in self._covering:
            self._by_head.setdefault(fixed_head(one), []).append(one)
        self._heads = sorted(self._by_head)
        self._lengths = sorted({len(head) for head in self._heads})

    def inclusion(self, pattern: str) -> Inclusion:
        """Tell whether everything that a pattern matches is matched by one of the set."""
        for one in _spelled_out([pattern]):
            found = COVERED if one in self._written else self._included(one)
            if found is not COVERED:
                return found
        return COVERED

    def matches(self, text: str) -> bool:
        return any(glob(one, text) for one in self._covering)

    def _included(self, pattern: str) -> Inclusion:
        head = fixed_head(pattern)
        near = self._near(head)
        if head == pattern:
            return COVERED if any(glob(one, pattern) for one in near) else Inclusion("new", pattern)
        if not has_single(pattern) and any(glob(one, pattern) for one in near):
            # Read as a text, each of its stars was matched by a star.
            return COVERED
        for text in (*(one for one in self._known if glob(pattern, one)), *_filled(pattern)):
            if not any(glob(one, text) for one in near):
                return Inclusion("new", text)
        if len(pattern) + sum(map(len, near)) > MOST_LETTERS:
            return NOT_DECIDED
        walk = _Walk(near, pattern, self._steps)
        found = walk.search()
        self._steps = max(walk.left, 0)
        return found

    def _near(self, head: str) -> list[str]:
        """Return the patterns that can match a text with this beginning."""
        first = bisect_left(self._heads, head)
        longer = takewhile(lambda one: one.startswith(head), islice(self._heads, first, None))
        shorter = (head[:length] for length in self._lengths if length < len(head))
        return [one for begin in (*longer, *shorter) for one in self._by_head.get(begin, ())]


def _spelled_out(patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        yield pattern
        if pattern.endswith(".*"):
            yield pattern[:-2]


def _filled(pattern: str) -> Iterator[str]:
    """Yield texts that the pattern matches, with one word for all its stars."""
    parts = pattern_parts(pattern)
    letters = ["".join(_letter(spot) for spot in part) for part in parts]
    if any(len(written) != len(part) for written, part in zip(letters, parts, strict=True)):
        return
    for filling in _FILLINGS:
        yield filling.join(letters)


def _letter(spot: Spot) -> str:
    wanted, known = spot
    if wanted:
        return min(known, default="")
    return next((letter for letter in _READABLE if letter not in known), "")


class _States(Struct, frozen=True):
    """Patterns as one automaton: bit i of a state set is a place in one of them."""

    spots: tuple[Spot | None, ...]
    """The letters that may follow a place; None at the end of a pattern."""
    loops: int
    """Places with a star, which any letter leaves where they are."""
    starts: int
    ends: int


def _states(patterns: Iterable[str]) -> _States:
    spots: list[Spot | None] = []
    loops = starts = ends = 0
    for pattern in patterns:
        starts |= 1 << len(spots)
        parts = pattern_parts(pattern)
        for number, part in enumerate(parts):
            spots.extend(part)
            if number + 1 < len(parts):
                loops |= 1 << len(spots)
        ends |= 1 << len(spots)
        spots.append(None)
    return _States(tuple(spots), loops, starts, ends)


def _fits(spot: Spot | None, letter: str) -> bool:
    return spot is not None and (letter in spot[1]) is spot[0]


class _Walk:
    """Looks for a text that a pattern matches and the others do not, shortest first."""

    def __init__(self, covering: Sequence[str], pattern: str, steps: int) -> None:
        self.left = steps
        self._wide = _states(covering)
        self._narrow = _states([pattern])
        self._steps = {letter: self._fitting(letter) for letter in self._letters()}
        self._seen: dict[int, list[int]] = {}

    def _letters(self) -> list[str]:
        """Return one letter for each kind that the patterns tell apart, readable ones first."""
        spots = {spot for spot in (*self._wide.spots, *self._narrow.spots) if spot is not None}
        named = set().union(*(known for _, known in spots)) if spots else set()
        other = next((one for one in _READABLE if one not in named), "")
        other = other or next(chr(code) for code in range(0x100, 0x110000) if chr(code) not in named)
        kinds: dict[tuple[bool, ...], str] = {}
        told = sorted(spots, key=lambda spot: (spot[0], sorted(spot[1])))
        for letter in sorted(named | {other}, key=lambda one: (one not in _READABLE, one)):
            kinds.setdefault(tuple((letter in known) is wanted for wanted, known in told), letter)
        return list(kinds.values())

    def _fitting(self, letter: str) -> int:
        return sum(1 << at for at, spot in enumerate(self._wide.spots) if _fits(spot, letter))

    def search(self) -> Inclusion:
        """Walk both automata side by side. A pair whose covering states include those of a pair seen before cannot
        find more, and is left out."""
        wide, narrow = self._wide, self._narrow
        end = len(narrow.spots) - 1
        waiting = deque([(0, wide.starts, "")])
        self._is_new(0, wide.starts)
        while waiting:
            place, covering, text = waiting.popleft()
            if place == end and not covering & wide.ends:
                return Inclusion("new", text)
            stays, spot = bool(narrow.loops >> place & 1), narrow.spots[place]
            for letter, fitting in self._steps.items():
                goes_on = _fits(spot, letter)
                if not stays and not goes_on:
                    continue
                self.left -= 1 + len(wide.spots) // 512
                if self.left < 0:
                    return NOT_DECIDED
                after = ((covering & fitting) << 1) | (covering & wide.loops)
                if stays and self._is_new(place, after):
                    waiting.append((place, after, text + letter))
                if goes_on and self._is_new(place + 1, after):
                    waiting.append((place + 1, after, text + letter))
        return COVERED

    def _is_new(self, place: int, covering: int) -> bool:
        known = self._seen.setdefault(place, [])
        self.left -= len(known) // 16
        if any(one & covering == one for one in known):
            return False
        known[:] = [one for one in known if one & covering != covering]
        known.append(covering)
        return True
