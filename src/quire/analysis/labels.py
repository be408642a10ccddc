"""How far a value can be trusted, and how private it is, with the way on which it got there.

Integrity and privacy are orders: a value that is made from several has the worst of each. A `Trace` remembers the first
worst way, from the place where the value entered to the place where it is, so that a finding can show each step of it.

`KeptContents` remembers the files, kept values and servers into which a step may have put text from outside, or private
text: a step that reads such a place brings the text back. Places whose names only a run knows may be any place. The
order of steps does not count: a place keeps its content after a run, so a step also reads values that later steps have
written in an earlier one. So a proof is made again with the places of the one before until there are no new ones.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from quire.source import NOWHERE, Span

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.facts import EffectFact
    from quire.analysis.world import ToolFact


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
    """The label of the step, with the way to it in a called document; empty for an input."""
    span: Span = NOWHERE
    document: str = ""
    """The name of the called document that contains the place; empty for the document itself."""
    before: Trace | None = None

    def __str__(self) -> str:
        return " → ".join(f"{place.step} {place.what}".strip() for place in self.way())

    def way(self) -> list[Trace]:
        """Return the places from the first one on."""
        traces: list[Trace] = []
        at: Trace | None = self
        while at is not None:
            traces.append(at)
            at = at.before
        return traces[::-1]

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

    @property
    def traces(self) -> dict[int, Trace]:
        """The ways of the value, by their identities."""
        ways = (self.trace, self.chosen_trace, self.private_trace)
        return {id(way): way for way in ways if way is not None}

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
        """Return the label of the result of a tool that is given values of this label: it has passed the place of the
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


ANY_FILE, ANY_VALUE, ANY_SERVER = "file *", "value *", "server *"
_FILES, _STATE = "rye.execute.tool.rye.file-system.", "rye.execute.tool.rye.state."
_MCP = "rye.execute.tool.mcp."
_WHOLE = (
    "rye.execute.tool.rye.file-system.*",
    "rye.execute.tool.rye.*",
    "rye.execute.tool.*",
    "rye.execute.*",
    "rye.*",
)
MOST_PROOFS = 4
"""How often a proof is made again; then every place may contain all."""


class KeptContents:
    """The labels of places that steps write to. Only text from outside and private text is remembered."""

    def __init__(self, labels: Mapping[str, Label] | None = None) -> None:
        self._labels = dict(labels or {})
        self._together: dict[str, Label] = {}
        """All places of a kind."""
        for place, label in self._labels.items():
            self._add(place, label)
        self._read: dict[tuple[str, ...], set[tuple[bool, bool]]] = {}
        """The levels that were found in the places that were read."""
        self._read_early: list[tuple[ToolFact, Mapping[str, AbstractValue]]] = []
        """The reads before the first write. Most documents put nothing from outside anywhere: then it does not matter
        which places these are."""

    @property
    def traces(self) -> dict[int, Trace]:
        """The ways on which text came into the places, by their identities."""
        return {identity: trace for label in self._labels.values() for identity, trace in label.traces.items()}

    def write(self, effect: EffectFact, given: Label | None = None, *, again: bool = False) -> None:
        """Remember that an effect may have put its arguments into a place. `given` is the label of them all, if it is
        known. With `again` it is an effect of a called document that was put in the place of a call: its way replaces
        the one that it has in the called document."""
        tool = effect.tool
        if tool.effect == "read":
            return
        label = given or effect.given
        if tool.gives >= OUTSIDE:
            trace = Trace(tool.name, effect.place.way, effect.place.span, effect.place.document)
            label = label.join(source_label(tool.gives, PUBLIC, trace))
        if label.integrity < OUTSIDE and label.privacy < PRIVATE:
            return
        for place in _places(tool, effect.arguments):
            label = label.through(place, effect.place.way, effect.place.span, effect.place.document)
            self._add(place, label, first=again)

    def _add(self, place: str, label: Label, *, first: bool = False) -> None:
        kind = place.partition(" ")[0]
        for labels, name in ((self._labels, place), (self._together, kind)):
            before = labels.get(name, AUTHORED)
            labels[name] = label.join(before) if first else before.join(label)

    def read(self, tool: ToolFact, arguments: Mapping[str, AbstractValue]) -> Label:
        """Return the label of the contents of the places that a tool reads."""
        if not self._labels:
            self._read_early.append((tool, arguments))
            return AUTHORED
        places = _places(tool, arguments)
        return self._read_in(places) if places else AUTHORED

    def read_file(self) -> Label:
        """Return the label of the contents of a prompt's file. Its name is not that of a tool: it may be any."""
        return self._read_in((ANY_FILE,))

    def _read_in(self, places: tuple[str, ...]) -> Label:
        label = self._found(places)
        self._read.setdefault(places, set()).add(_level(label))
        return label

    def _found(self, places: tuple[str, ...]) -> Label:
        label = AUTHORED
        for place in places if self._labels else ():
            kind = place.partition(" ")[0]
            if place.endswith(" *"):
                label = label.join(self._together.get(kind, AUTHORED))
            else:
                named = self._labels.get(place, AUTHORED)
                label = label.join(named).join(self._labels.get(f"{kind} *", AUTHORED))
        return label

    @property
    def has_more(self) -> bool:
        """Tell whether a place was read before all that it may contain was known."""
        if not self._labels:
            return False
        for tool, arguments in self._read_early:
            if places := _places(tool, arguments):
                self._read.setdefault(places, set()).add(_level(AUTHORED))
        self._read_early = []
        return any(levels != {_level(self._found(places))} for places, levels in self._read.items())

    def again(self, *, everywhere: bool) -> KeptContents:
        """Return the contents with which to make the proof again. With `everywhere`, each place may contain all."""
        if not everywhere:
            return KeptContents(self._labels)
        label = joined(self._labels.values())
        return KeptContents({ANY_FILE: label, ANY_VALUE: label, ANY_SERVER: label})


def _places(tool: ToolFact, arguments: Mapping[str, AbstractValue]) -> tuple[str, ...]:
    """Return the places that a tool reads or writes; several for a tool of many files."""
    if tool.kind in ("shell", "python"):
        return (ANY_FILE,)
    if tool.capability in _WHOLE:
        return ANY_FILE, ANY_VALUE, ANY_SERVER
    if tool.kind == "mcp":
        name = tool.capability.removeprefix(_MCP).partition(".")[0]
        is_known = tool.capability.startswith(_MCP) and not set(name) & set("*?[")
        return (f"server {name}" if is_known else ANY_SERVER,)
    if tool.capability.startswith(_STATE):
        return (_named("value", arguments.get("name")),)
    if tool.capability.startswith(_FILES):
        if tool.capability.endswith((".glob", ".ls", ".grep")) or "files" in arguments:
            return (ANY_FILE,)
        return (_named("file", arguments.get("path")),)
    return ()


def _named(kind: str, value: AbstractValue | None) -> str:
    """Return a place by the path or the name that a value is, in one spelling. A path that leads through folders in an
    odd way, or from the root of the disk, may be any file."""
    if value is None or not value.is_constant or not isinstance(value.constant, str):
        return f"{kind} *"
    text = posixpath.normpath(value.constant)
    return f"{kind} *" if ".." in text or "*" in text or text.startswith("/") else f"{kind} {text}"


def _level(label: Label) -> tuple[bool, bool]:
    return label.integrity >= OUTSIDE, label.privacy >= PRIVATE
