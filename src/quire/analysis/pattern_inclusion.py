"""Decide whether patterns of capabilities cover another pattern, and find a text that is new; and whether a pattern of
a schema lets only plain words through.

A pattern is read as `quire.trust.capabilities` reads grants: `*` is any text, `?` and sets are one character, and `X.*`
covers `X` too. Both sides become automata, of which the covering one is made deterministic while it is walked, so the
answer is exact. A walk that takes too many steps is given up: then the answer is that it is not decided, which callers
treat as not covered.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, takewhile
from typing import Literal

from msgspec import Struct

from quire.patterns import late_pattern
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
        for pattern in self._covering:
            self._by_head.setdefault(fixed_head(pattern), []).append(pattern)
        self._heads = sorted(self._by_head)
        self._lengths = sorted({len(head) for head in self._heads})

    def inclusion(self, pattern: str) -> Inclusion:
        """Tell whether everything that a pattern matches is matched by one of the set."""
        for spelling in _spelled_out([pattern]):
            inclusion = COVERED if spelling in self._written else self._included(spelling)
            if inclusion is not COVERED:
                return inclusion
        return COVERED

    def matches(self, text: str) -> bool:
        return any(glob(pattern, text) for pattern in self._covering)

    def _included(self, pattern: str) -> Inclusion:
        head = fixed_head(pattern)
        near = self._near(head)
        if head == pattern:
            return COVERED if any(glob(other, pattern) for other in near) else Inclusion("new", pattern)
        if not has_single(pattern) and any(glob(other, pattern) for other in near):
            # Read as a text, each of its stars was matched by a star.
            return COVERED
        for text in (*(name for name in self._known if glob(pattern, name)), *_filled(pattern)):
            if not any(glob(other, text) for other in near):
                return Inclusion("new", text)
        if len(pattern) + sum(map(len, near)) > MOST_LETTERS:
            return NOT_DECIDED
        walk = _Walk(near, pattern, self._steps)
        inclusion = walk.search()
        self._steps = max(walk.left, 0)
        return inclusion

    def _near(self, head: str) -> list[str]:
        """Return the patterns that can match a text with this beginning."""
        first = bisect_left(self._heads, head)
        longer = takewhile(lambda other: other.startswith(head), islice(self._heads, first, None))
        shorter = (head[:length] for length in self._lengths if length < len(head))
        return [pattern for begin in (*longer, *shorter) for pattern in self._by_head.get(begin, ())]


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
    is_among, letters = spot
    if is_among:
        return min(letters, default="")
    return next((letter for letter in _READABLE if letter not in letters), "")


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
        self._steps = {
            letter: sum(1 << at for at, spot in enumerate(self._wide.spots) if _fits(spot, letter))
            for letter in self._letters()
        }
        self._seen: dict[int, list[int]] = {}

    def _letters(self) -> list[str]:
        """Return one letter for each kind that the patterns tell apart, readable ones first."""
        spots = {spot for spot in (*self._wide.spots, *self._narrow.spots) if spot is not None}
        named = set().union(*(letters for _, letters in spots)) if spots else set()
        other = next((letter for letter in _READABLE if letter not in named), "")
        other = other or next(chr(code) for code in range(0x100, 0x110000) if chr(code) not in named)
        kinds: dict[tuple[bool, ...], str] = {}
        in_order = sorted(spots, key=lambda spot: (spot[0], sorted(spot[1])))
        for letter in sorted(named | {other}, key=lambda letter: (letter not in _READABLE, letter)):
            kinds.setdefault(tuple(_fits(spot, letter) for spot in in_order), letter)
        return list(kinds.values())

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
        before = self._seen.setdefault(place, [])
        self.left -= len(before) // 16
        if any(states & covering == states for states in before):
            return False
        before[:] = [states for states in before if states & covering != covering]
        before.append(covering)
        return True


_PIECES = late_pattern(r"\\.|\[(?:\\.|[^\]])*\]|\(\?:|[*+?]\??|\{[0-9,]*\}\??|.", 16)
"""The pieces of a portable pattern (16: `re.DOTALL`)."""
_ASCII = [chr(code) for code in range(128)]


class _Shape(Struct, frozen=True):
    """The texts of a part of a pattern that lets only letters, digits, `_`, `-` and single dots through."""

    first: frozenset[str] = frozenset()
    """Characters that a text may begin with."""
    last: frozenset[str] = frozenset()
    may_be_empty: bool = True

    def then(self, other: _Shape) -> _Shape | None:
        if "." in self.last and "." in other.first:
            return None
        return _Shape(
            self.first | other.first if self.may_be_empty else self.first,
            self.last | other.last if other.may_be_empty else other.last,
            self.may_be_empty and other.may_be_empty,
        )


@lru_cache(maxsize=256)
def is_word_pattern(pattern: str) -> bool:
    """Tell whether a pattern of a schema is anchored, and every text that it lets through one of
    `[A-Za-z0-9_][A-Za-z0-9_-]*(\\.[A-Za-z0-9_-]+)*`: neither an option, nor a path, nor a way upwards."""
    from quire.safe_regex import BadPattern, portable

    try:
        pieces = _PIECES.findall(portable(pattern))
    except BadPattern:
        return False
    if pieces[:1] != ["^"] or pieces[-1:] != ["$"]:
        return False
    pieces = pieces[:0:-1]
    shape = _arms(pieces, "$")
    if shape is None or pieces or shape.may_be_empty or "." in shape.last:
        return False
    return not shape.first & {"-", "."}


def _arms(pieces: list[str], end: str) -> _Shape | None:
    """Read the arms of a group, or the whole pattern, which has none: its anchors would be those of the first and of
    the last arm. The pieces are reversed, and taken away. Return None for a text that is not a word."""
    arms, shape = [], _Shape()
    while (piece := pieces.pop() if pieces else "") != end:
        if piece == "|" and end == ")":
            arms.append(shape)
            shape = _Shape()
            continue
        part = _arms(pieces, ")") if piece in ("(", "(?:") else _letters(piece)
        if part is not None and pieces and pieces[-1][0] in "*+?{":
            part = _repeated(part, pieces.pop())
        joint = shape.then(part) if part is not None else None
        if joint is None:
            return None
        shape = joint
    arms.append(shape)
    return _Shape(
        frozenset().union(*(arm.first for arm in arms)),
        frozenset().union(*(arm.last for arm in arms)),
        any(arm.may_be_empty for arm in arms),
    )


def _repeated(part: _Shape, often: str) -> _Shape | None:
    is_optional = often[0] in "*?" or often.startswith(("{0,", "{0}"))
    if often[0] != "?" and part.then(part) is None:
        return None
    return _Shape(part.first, part.last, part.may_be_empty or is_optional)


def _letters(piece: str) -> _Shape | None:
    """Return the shape of one character, or of a set; None if it may be another than those of words."""
    from quire.safe_regex import compiled

    matcher = (
        compiled(piece) if piece and piece.isascii() and not piece.startswith(("[^", "^", "$", "|", ")")) else None
    )
    if matcher is None or "\\p" in piece.lower() or "\\x" in piece:
        return None
    letters = frozenset(letter for letter in _ASCII if matcher.search(letter))
    fits = all(letter.isalnum() or letter in "_-." for letter in letters)
    return _Shape(letters, letters, may_be_empty=False) if fits and letters else None
