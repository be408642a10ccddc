"""How far a value can be trusted, and how private it is, with the way on which it got there.

Integrity and privacy are orders: a value that is made from several has the worst of each. A `Trace` remembers the first
worst way, from the place where the value entered to the place where it is, so that a finding can show each step of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum

from msgspec import Struct

from quire.source import NOWHERE, Span


class Integrity(IntEnum):
    """The origin of a value, from the author of the document to anybody at all."""

    AUTHOR = 0
    PERSON = 1
    CALLER = 2
    WORKSPACE = 3
    MODEL = 4
    OUTSIDE = 5


class Privacy(IntEnum):
    """The audience that a value may be shown to."""

    PUBLIC = 0
    WORKSPACE = 1
    PRIVATE = 2


AUTHOR, CALLER, MODEL, OUTSIDE = Integrity.AUTHOR, Integrity.CALLER, Integrity.MODEL, Integrity.OUTSIDE
PUBLIC, PRIVATE = Privacy.PUBLIC, Privacy.PRIVATE
"""Levels that every step is compared with. Until Python 3.12 it takes longer to look one up in its class than to
compare it."""


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

    def join(self, other: Label) -> Label:
        if other is self or other is AUTHORED:
            return self
        if self is AUTHORED:
            # `chosen` is never better than `integrity`.
            return other if other.chosen or other.privacy else self
        integrity, chosen, privacy = self.integrity, self.chosen, self.privacy
        if integrity >= other.integrity and chosen >= other.chosen and privacy >= other.privacy:
            return self
        if other.integrity >= integrity and other.chosen >= chosen and other.privacy >= privacy:
            return other
        content = self if integrity >= other.integrity else other
        choice = self if chosen >= other.chosen else other
        private = self if privacy >= other.privacy else other
        return Label(
            content.integrity,
            choice.chosen,
            private.privacy,
            content.trace,
            choice.chosen_trace,
            private.private_trace,
        )

    def at_least(self, integrity: Integrity, trace: Trace) -> Label:
        """Return the label of something made by, say, a model from values of this label."""
        if self.integrity >= integrity and self.chosen >= integrity:
            return self
        return self.join(Label(integrity, integrity, PUBLIC, trace, trace))

    def covers(self, other: Label) -> bool:
        """Tell whether a join with the other label adds nothing."""
        return self.integrity >= other.integrity and self.chosen >= other.chosen and self.privacy >= other.privacy

    def through(self, what: str, step: str, span: Span = NOWHERE, document: str = "") -> Label:
        """Return the label after one more place on the way."""
        content, choice, private = self.trace, self.chosen_trace, self.private_trace
        if choice is None and private is None:
            return self
        here = Trace(what, step, span, document, choice) if choice is not None else None
        if private is None and content is choice:
            return Label(self.integrity, self.chosen, self.privacy, here, here)
        return Label(
            self.integrity,
            self.chosen,
            self.privacy,
            here if content is choice else Trace(what, step, span, document, content) if content else None,
            here,
            Trace(what, step, span, document, private) if private else None,
        )

    def made_by(self, maker: Integrity, what: str, step: str, span: Span, document: str) -> Label:
        """Return the label of something that is made at a place from values of this label, say by a model."""
        if self.integrity >= maker and self.chosen >= maker:
            return self.through(what, step, span, document)
        trace = Trace(what, step, span, document)
        own = Label(maker, maker, PUBLIC, trace, trace)
        return own if own.covers(self) else self.through(what, step, span, document).join(own)

    def narrowed(self) -> Label:
        """Return the label of a value that can only be one of a few known ones."""
        if self.integrity is AUTHOR:
            return self
        return Label(AUTHOR, self.chosen, self.privacy, None, self.chosen_trace, self.private_trace)


def source_label(integrity: Integrity, privacy: Privacy, trace: Trace) -> Label:
    """Return the label of a value at the place where it enters."""
    return Label(integrity, integrity, privacy, trace, trace, trace if privacy else None)


AUTHORED = Label()


def joined(labels: Iterable[Label]) -> Label:
    result = AUTHORED
    for label in labels:
        if label is not AUTHORED and label is not result:
            result = result.join(label)
    return result


def ways(trace: Trace | None) -> Iterator[Trace]:
    yield from trace.way() if trace else ()
