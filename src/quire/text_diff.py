"""Differences of two texts by words, found in bounded time.

Lines are compared first, then the words of the lines that differ. Texts with too many differences are not compared to
the end: they share the lines that both have once, and all between those lines counts as replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from quire.patterns import late_pattern

_TOKENS = late_pattern(r"[^\W\u2e80-\u9fff\uac00-\ud7af]+|\n|[^\S\n]+|[\s\S]")
"""Words, line ends, other space, and single characters: marks, and those of scripts without space between words."""
_MOST_STEPS = 400_000
"""Comparisons spent on the lines of one pair of texts, and again on their words."""
_MOST_EDITS = 1500
"""The most edits that are looked for in one stretch; the memory needed grows with its square."""
_LONGEST_STRETCH = 1_000_000
"""The most characters of a replaced stretch whose words are compared."""
_LONGEST_SLIDE = 200
"""Characters by which a change is moved at most, to where it reads better."""
_LEAST_SHARED = 0.25
"""Texts that share less than this part of their letters read better as one text replaced by another."""

_Run = tuple[int, int, int]
"""Where an equal run begins in the old and in the new sequence, and its length."""


class Piece(Struct, frozen=True):
    """A part of two texts: in both, only in the old one, or only in the new one."""

    kind: Literal["same", "gone", "new"]
    text: str


def word_pieces(old: str, new: str) -> list[Piece]:
    """Return the pieces in order. Those that are not new make the old text, those that are not gone the new one."""
    old_lines, new_lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    words = _Budget()
    pieces: list[Piece] = []
    for kind, gone, added in _stretches(old_lines, new_lines, _Budget()):
        if kind == "same":
            pieces.append(Piece("same", "".join(gone)))
        else:
            pieces += _replaced("".join(gone), "".join(added), words)
    return list(_joined(_slid(list(_joined(pieces)))))


class _Budget:
    """Counts the comparisons that are left."""

    def __init__(self) -> None:
        self.left = _MOST_STEPS


def _replaced(old: str, new: str, budget: _Budget) -> Iterator[Piece]:
    """Yield the words that changed in a stretch of lines."""
    whole = [Piece("gone", old), Piece("new", new)]
    if budget.left < 0 or not old or not new or len(old) + len(new) > _LONGEST_STRETCH:
        yield from whole
        return
    pieces = [
        piece
        for kind, gone, added in _stretches(_TOKENS.findall(old), _TOKENS.findall(new), budget)
        for piece in (
            [Piece("same", "".join(gone))]
            if kind == "same"
            else [Piece("gone", "".join(gone)), Piece("new", "".join(added))]
        )
    ]
    shared = sum(_letters(piece.text) for piece in pieces if piece.kind == "same")
    yield from whole if shared < _LEAST_SHARED * min(_letters(old), _letters(new)) else _gathered(pieces)


def _letters(text: str) -> int:
    return sum(map(len, text.split()))


def _gathered(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Put changes together that only spaces stand between, so that `a b` → `c d` is one change."""
    gone = new = space = ""
    for piece in pieces:
        if piece.kind == "gone":
            gone += space + piece.text
            new, space = new + space, ""
        elif piece.kind == "new":
            new += space + piece.text
            gone, space = gone + space, ""
        elif gone and new and not space and not piece.text.strip(" \t"):
            space = piece.text
        else:
            yield from (Piece("gone", gone), Piece("new", new), Piece("same", space + piece.text))
            gone = new = space = ""
    yield from (Piece("gone", gone), Piece("new", new), Piece("same", space))


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Leave out empty pieces, and join neighbours of one kind."""
    last: Piece | None = None
    for piece in pieces:
        if not piece.text:
            continue
        if last is not None and last.kind == piece.kind:
            last = Piece(last.kind, last.text + piece.text)
            continue
        if last is not None:
            yield last
        last = piece
    if last is not None:
        yield last


def _slid(pieces: list[Piece]) -> list[Piece]:
    """Move a piece that stands between unchanged ones, and begins like the one after it, to the end of a line: a whole
    line that is gone is shown as one, and not as the ends of two."""
    for at in range(1, len(pieces) - 1):
        before, piece, after = pieces[at - 1 : at + 2]
        if before.kind == after.kind == "same" and "\n" in piece.text and not piece.text.endswith("\n"):
            most = min(len(piece.text), len(after.text), _LONGEST_SLIDE)
            alike = next((n for n in range(most) if piece.text[n] != after.text[n]), most)
            cut = piece.text.find("\n", 0, alike + 1)
            if 0 < cut <= alike:
                head = piece.text[:cut]
                pieces[at - 1] = Piece("same", before.text + head)
                pieces[at] = Piece(piece.kind, piece.text[cut:] + head)
                pieces[at + 1] = Piece("same", after.text[cut:])
    return pieces


def _stretches(
    old: Sequence[str], new: Sequence[str], budget: _Budget
) -> Iterator[tuple[Literal["same", "changed"], Sequence[str], Sequence[str]]]:
    """Yield equal and changed stretches of two sequences in turn."""
    at_old = at_new = 0
    for start, begin, length in (*_equal_runs(old, new, budget), (len(old), len(new), 0)):
        if start > at_old or begin > at_new:
            yield "changed", old[at_old:start], new[at_new:begin]
        if length:
            yield "same", old[start : start + length], new[begin : begin + length]
        at_old, at_new = start + length, begin + length


def _equal_runs(old: Sequence[str], new: Sequence[str], budget: _Budget) -> Iterator[_Run]:
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    most -= head
    tail = next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)
    if head:
        yield 0, 0, head
    inner_old, inner_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if inner_old and inner_new:
        runs = _shortest_edit(inner_old, inner_new, budget)
        for start, begin, length in _parts_of_both_once(inner_old, inner_new) if runs is None else runs:
            yield head + start, head + begin, length
    if tail:
        yield len(old) - tail, len(new) - tail, tail


def _shortest_edit(old: Sequence[str], new: Sequence[str], budget: _Budget) -> list[_Run] | None:
    """Return the equal runs of a shortest edit, by Myers' greedy search; None if the budget does not suffice.

    `reach[k]` is the furthest place in the old sequence on the diagonal `k`, where `k` is the place in the old sequence
    less the place in the new one.
    """
    reach = {1: 0}
    trace: list[dict[int, int]] = []
    for edits in range(min(len(old) + len(new), _MOST_EDITS) + 1):
        trace.append(dict(reach))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
            at = reach[k + 1] if down else reach[k - 1] + 1
            start = at
            while at < len(old) and at - k < len(new) and old[at] == new[at - k]:
                at += 1
            reach[k] = at
            budget.left -= 1 + at - start
            if at >= len(old) and at - k >= len(new):
                return _walked_back(trace, len(old), len(new))
        if budget.left < 0:
            return None
    return None


def _walked_back(trace: Sequence[dict[int, int]], at: int, other: int) -> list[_Run]:
    runs: list[_Run] = []
    for edits in range(len(trace) - 1, -1, -1):
        reach, k = trace[edits], at - other
        down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
        before = k + 1 if down else k - 1
        came = reach[before] if edits else 0
        start = (came if down else came + 1) if edits else 0
        if at > start:
            runs.append((start, start - k, at - start))
        at, other = came, came - before
    return runs[::-1]


def _parts_of_both_once(old: Sequence[str], new: Sequence[str]) -> list[_Run]:
    """Return the longest row of parts that each sequence has exactly once, in the order of both."""
    once = [part for part, count in Counter(old).items() if count == 1]
    count_new = Counter(new)
    where = {part: at for at, part in enumerate(new)}
    place = {part: at for at, part in enumerate(old)}
    pairs = sorted((place[part], where[part]) for part in once if count_new.get(part) == 1)
    tops: list[int] = []
    top_pairs: list[int] = []
    before: list[int | None] = []
    for number, (_, begin) in enumerate(pairs):
        slot = bisect_left(tops, begin)
        before.append(top_pairs[slot - 1] if slot else None)
        if slot == len(tops):
            tops.append(begin)
            top_pairs.append(number)
        else:
            tops[slot], top_pairs[slot] = begin, number
    row: list[_Run] = []
    link = top_pairs[-1] if top_pairs else None
    while link is not None:
        row.append((*pairs[link], 1))
        link = before[link]
    return row[::-1]


def common_prefix(old: Sequence[object], new: Sequence[object], most: int) -> int:
    """Return how many characters two texts, or items two lists, have in common at their beginnings, up to `most`."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(old: Sequence[object], new: Sequence[object], most: int) -> int:
    """Return how many characters two texts, or items two lists, have in common at their ends, up to `most`."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if old[len(old) - middle : len(old) - low] == new[len(new) - middle : len(new) - low]:
            low = middle
        else:
            high = middle - 1
    return low
