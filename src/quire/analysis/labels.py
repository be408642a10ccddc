"""How far a value can be trusted, and how private it is, with the way on which it got there.

Integrity and privacy are orders: a value that is made from several has the worst of each. A `Trace` remembers the first
worst way, from the place where the value entered to the place where it is, so that a finding can show each step of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from quire.source import NOWHERE, Span


class Integrity(int):
    """The origin of a value, from the author of the document to anybody at all.

    Not an `IntEnum`: that takes ten times as long to define, and each of its members has a hash that is computed anew.
    """

    __slots__ = ()
    AUTHOR: ClassVar[Integrity]
    PERSON: ClassVar[Integrity]
    CALLER: ClassVar[Integrity]
    WORKSPACE: ClassVar[Integrity]
    MODEL: ClassVar[Integrity]
    OUTSIDE: ClassVar[Integrity]


class Privacy(int):
    """The audience that a value may be shown to."""

    __slots__ = ()
    PUBLIC: ClassVar[Privacy]
    WORKSPACE: ClassVar[Privacy]
    PRIVATE: ClassVar[Privacy]


for _levels in (Integrity, Privacy):
    for _number, _name in enumerate(_levels.__annotations__):
        setattr(_levels, _name, _levels(_number))
AUTHOR, CALLER, MODEL, OUTSIDE = Integrity.AUTHOR, Integrity.CALLER, Integrity.MODEL, Integrity.OUTSIDE
PUBLIC, PRIVATE = Privacy.PUBLIC, Privacy.PRIVATE

_ALL_INTEGRITY, _CHOSEN, _PRIVACY = 0b11111, 5, 10
"""Bits of `Label.levels`: those of integrity, and where those of `chosen` and of privacy begin."""
_MADE = tuple((1 << level) - 1 | (1 << level) - 1 << _CHOSEN for level in range(6))
"""The levels of a value that is not private, by its integrity."""
_PRIVATE = tuple((1 << level) - 1 << _PRIVACY for level in range(3))


class Trace(Struct, frozen=True, gc=False):
    """One place on the way of a value, and the way before it."""

    what: str
    """The place for people: `http__get`, `page`, `model`, `argv[2]`."""
    step: str = ""
    """The label of the step, with the way to it in a callee; empty for an input."""
    span: Span = NOWHERE
    document: str = ""
    """The name of the callee that contains the place; empty for the document itself."""
    before: Trace | None = None

    def __str__(self) -> str:
        return " → ".join(f"{one.step} {one.what}".strip() for one in self.way())

    def way(self) -> list[Trace]:
        """Return the places from the first one on."""
        found: list[Trace] = []
        at: Trace | None = self
        while at is not None:
            found.append(at)
            at = at.before
        return found[::-1]

    @property
    def source(self) -> Trace:
        """The place where the value entered."""
        return self.way()[0]


class Label(Struct, frozen=True, gc=False):
    """Integrity and privacy of a value, each with the way of its worst part.

    A verdict that must be `yes` or `no` contains only words of the author, also if a model gave it. The model has still
    chosen, which matters for decisions: that is `chosen`, never better than `integrity`.
    """

    integrity: Integrity = Integrity.AUTHOR
    chosen: Integrity = Integrity.AUTHOR
    privacy: Privacy = Privacy.PUBLIC
    trace: Trace | None = None
    chosen_trace: Trace | None = None
    private_trace: Trace | None = None
    levels: int = 0
    """The three levels as bits: the worst of two is `|`, and most joins find out by it that they change nothing. A
    level has as many bits as its number, and so all those of the levels before it."""

    def join(self, other: Label) -> Label:
        mine, theirs = self.levels, other.levels
        both = mine | theirs
        if both == mine:
            return self
        if both == theirs:
            return other
        content = self if self.integrity >= other.integrity else other
        choice = self if self.chosen >= other.chosen else other
        private = self if self.privacy >= other.privacy else other
        return Label(
            content.integrity,
            choice.chosen,
            private.privacy,
            content.trace,
            choice.chosen_trace,
            private.private_trace,
            both,
        )

    def at_least(self, integrity: Integrity, trace: Trace) -> Label:
        """Return the label of something made by, say, a model from values of this label."""
        levels = _MADE[integrity]
        if self.levels | levels == self.levels:
            return self
        return self.join(Label(integrity, integrity, PUBLIC, trace, trace, None, levels))

    def covers(self, other: Label) -> bool:
        """Tell whether a join with the other label adds nothing."""
        return self.levels | other.levels == self.levels

    def through(self, what: str, step: str, span: Span = NOWHERE, document: str = "") -> Label:
        """Return the label after one more place on the way."""
        content, choice, private = self.trace, self.chosen_trace, self.private_trace
        if content is choice and private is None:
            if choice is None:
                return self
            here = Trace(what, step, span, document, choice)
            return replace(self, trace=here, chosen_trace=here)
        passed = Trace(what, step, span, document, choice) if choice else None
        return replace(
            self,
            trace=passed if content is choice else Trace(what, step, span, document, content) if content else None,
            chosen_trace=passed,
            private_trace=Trace(what, step, span, document, private) if private else None,
        )

    def made_by(self, maker: Integrity, what: str, step: str, span: Span, document: str) -> Label:
        """Return the label of something that is made at a place from values of this label, say by a model."""
        levels = _MADE[maker]
        if self.levels | levels == self.levels:
            return self.through(what, step, span, document)
        trace = Trace(what, step, span, document)
        own = Label(maker, maker, PUBLIC, trace, trace, None, levels)
        return own if own.covers(self) else self.through(what, step, span, document).join(own)

    def given_to(
        self, integrity: Integrity, privacy: Privacy, what: str, step: str, span: Span, document: str
    ) -> Label:
        """Return the label of what a tool returns that is given values of this label: it has passed the place of the
        tool, which lets values of its own in."""
        own, mine = _MADE[integrity] | _PRIVATE[privacy], self.levels
        both = mine | own
        if both == own:
            return source_label(integrity, privacy, Trace(what, step, span, document))
        passed = self.through(what, step, span, document)
        if both == mine:
            return passed
        return source_label(integrity, privacy, Trace(what, step, span, document)).join(passed)

    def narrowed(self) -> Label:
        """Return the label of a value that can only be one of a few known ones."""
        if self.integrity is AUTHOR:
            return self
        return replace(self, integrity=AUTHOR, trace=None, levels=self.levels & ~_ALL_INTEGRITY)


def source_label(integrity: Integrity, privacy: Privacy, trace: Trace) -> Label:
    """Return the label of a value at the place where it enters."""
    private = trace if privacy else None
    return Label(integrity, integrity, privacy, trace, trace, private, _MADE[integrity] | _PRIVATE[privacy])


AUTHORED = Label()


def chosen_by(label: Label, decided: Label) -> Label:
    """Return the label of a value that was chosen among several."""
    levels = label.levels
    if decided.levels & ~_ALL_INTEGRITY | levels == levels:
        return label
    return label.join(decided.narrowed())


def joined(labels: Iterable[Label]) -> Label:
    result = AUTHORED
    for label in labels:
        if label is not AUTHORED and label is not result:
            result = result.join(label)
    return result


def ways(trace: Trace | None) -> Iterator[Trace]:
    yield from trace.way() if trace else ()
