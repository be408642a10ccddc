"""Results of earlier steps as the model reads them: written once, and shared by all requests that hold them.

Each step of a playbook sends all results that came before it. Building that text again for every step, and keeping it
in every request, would make a run quadratic in time and memory; so a request holds two offsets into a text that only
grows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from json.encoder import encode_basestring
from typing import Protocol

from msgspec import Struct

from quire.plan.nodes import SEMANTICS_VERSION

_BETWEEN = b"\n\n"
_BETWEEN_ESCAPED = rb"\n\n"
_OPENING = "Results of the earlier steps, oldest first:\n\n"


class Entry(Struct, frozen=True, gc=False):
    """One earlier result as the model reads it."""

    label: str
    title: str
    text: str
    answer: bool = False

    def told(self) -> str:
        name = f"Step {self.label}: {self.title}" if self.title else f"Step {self.label}"
        heading = f"[{name}, answer of the user]" if self.answer else f"[{name}]"
        return f"{heading}\n{self.text}"


class Earlier:
    """All entries joined, both as text and as the inside of a JSON string.

    Entries are added and removed at the end; an entry that a request was built with is never removed. They are written
    when the first request asks for them.
    """

    __slots__ = ("_escaped", "_escaped_starts", "_lengths", "_raw", "_raw_starts", "_unwritten")

    def __init__(self) -> None:
        self._unwritten: list[Entry] = []
        self._raw = bytearray()
        self._escaped = bytearray()
        self._raw_starts: list[int] = []
        self._escaped_starts: list[int] = []
        self._lengths = [0]
        """Total characters of the entries before each position."""

    def __len__(self) -> int:
        return len(self._raw_starts) + len(self._unwritten)

    def append(self, entry: Entry) -> None:
        self._unwritten.append(entry)

    def _write(self) -> None:
        for entry in self._unwritten:
            self._add(entry.told())
        self._unwritten.clear()

    def _add(self, text: str) -> None:
        if self._raw_starts:
            self._raw += _BETWEEN
            self._escaped += _BETWEEN_ESCAPED
        self._raw_starts.append(len(self._raw))
        self._escaped_starts.append(len(self._escaped))
        self._raw += text.encode("utf-8", "surrogatepass")
        self._escaped += escaped(text)
        self._lengths.append(self._lengths[-1] + len(text))

    def cut(self, length: int) -> None:
        """Remove all entries from this index on."""
        written = len(self._raw_starts)
        del self._unwritten[max(0, length - written) :]
        if length >= written:
            return
        between = len(_BETWEEN) if length else 0
        del self._raw[self._raw_starts[length] - between :]
        del self._escaped[self._escaped_starts[length] - (len(_BETWEEN_ESCAPED) if length else 0) :]
        del self._raw_starts[length:], self._escaped_starts[length:], self._lengths[length + 1 :]

    def first_within(self, budget: int | None) -> int:
        """Return the index of the oldest entry that fits, together with all later ones, into this many characters."""
        self._write()
        if budget is None:
            return 0
        return bisect_left(self._lengths, self._lengths[-1] - budget)

    def chosen_within(self, chosen: Sequence[int], budget: int | None) -> int:
        """Return how many of the first of these entries have to be left out so that the others fit."""
        self._write()
        left = budget
        for at in range(len(chosen) - 1, -1, -1):
            if left is not None:
                left -= self._lengths[chosen[at] + 1] - self._lengths[chosen[at]]
                if left < 0:
                    return at + 1
        return 0

    def entry_text(self, index: int) -> str:
        ends = self._raw_starts[index + 1] - len(_BETWEEN) if index + 1 < len(self._raw_starts) else len(self._raw)
        return self.text(index, ends)

    def entry_inside_json(self, index: int) -> memoryview:
        starts = self._escaped_starts
        ends = starts[index + 1] - len(_BETWEEN_ESCAPED) if index + 1 < len(starts) else len(self._escaped)
        return self.inside_json(index, ends)

    def text(self, first: int, raw_end: int) -> str:
        if first >= len(self._raw_starts):
            return ""
        # Released at once: a bytearray cannot grow while a memoryview of it exists.
        with memoryview(self._raw)[self._raw_starts[first] : raw_end] as piece:
            return str(piece, "utf-8", "surrogatepass")

    def inside_json(self, first: int, escaped_end: int) -> memoryview:
        start = self._escaped_starts[first] if first < len(self._escaped_starts) else escaped_end
        return memoryview(self._escaped)[start:escaped_end]

    @property
    def ends(self) -> tuple[int, int]:
        self._write()
        return len(self._raw), len(self._escaped)


class Hashed(Protocol):
    def update(self, data: bytes | memoryview, /) -> None: ...


class SystemText(Struct, frozen=True, gc=False):
    """A system message that holds earlier results: those from index `first` up to the offsets `ends`, or the `chosen`
    ones."""

    before: str
    after: str
    earlier: Earlier
    first: int
    ends: tuple[int, int]
    chosen: tuple[int, ...] | None = None
    """The indexes of the results, if not all are sent."""

    @classmethod
    def of(
        cls,
        system: str,
        earlier: Earlier,
        budget: int | None,
        closing: str,
        rules: int = SEMANTICS_VERSION,
        chosen: tuple[int, ...] | None = None,
    ) -> SystemText:
        first = earlier.first_within(budget) if chosen is None else earlier.chosen_within(chosen, budget)
        opening = f"{_OPENING}{_left_out(first, rules)}"
        return cls(
            f"{system}\n\n{opening}" if system else opening,
            f"\n\n{closing}" if closing else "",
            earlier,
            first,
            earlier.ends,
            None if chosen is None else chosen[first:],
        )

    def text(self) -> str:
        if self.chosen is None:
            results = self.earlier.text(self.first, self.ends[0])
        else:
            results = _BETWEEN.decode().join(self.earlier.entry_text(index) for index in self.chosen)
        return f"{self.before}{results}{self.after}"

    def update(self, hashed: Hashed) -> int:
        """Add the text, escaped as between the quotes of a JSON string, to a hash; return its length in bytes."""
        before, after = escaped(self.before), escaped(self.after)
        hashed.update(before)
        length = self._update_results(hashed)
        hashed.update(after)
        return len(before) + length + len(after)

    def _update_results(self, hashed: Hashed) -> int:
        # Released at once: a bytearray cannot grow while a memoryview of it exists.
        if self.chosen is None:
            with self.earlier.inside_json(self.first, self.ends[1]) as piece:
                hashed.update(piece)
                return len(piece)
        length = 0
        for number, index in enumerate(self.chosen):
            if number:
                hashed.update(_BETWEEN_ESCAPED)
                length += len(_BETWEEN_ESCAPED)
            with self.earlier.entry_inside_json(index) as piece:
                hashed.update(piece)
                length += len(piece)
        return length


def _left_out(count: int, rules: int) -> str:
    if not count:
        return ""
    if count == 1 and rules > 1:
        return "[The result of 1 earlier step is left out: it does not fit.]\n\n"
    return f"[The results of {count} earlier steps are left out: they do not fit.]\n\n"


def escaped(text: str) -> bytes:
    return encode_basestring(text)[1:-1].encode("utf-8", "replace")
