"""Remember which files, kept values and servers can contain text from outside, or private text, because a step has put
it there.

A step that reads such a file later brings the text back, and so does a server, also one that the user trusts. Places
whose names only a run knows may be any place. The order of steps does not count: a place keeps its content after a run,
so a step also reads what later steps have written in an earlier run. Steps that run at the same time, and rounds of a
loop, read what others write too. So a proof is made again with the places of the one before until there are no new
ones.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.analysis.labels import AUTHORED, OUTSIDE, PRIVATE, PUBLIC, Label, Trace, joined, source_label

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.facts import EffectFact
    from quire.analysis.world import ToolFact

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

    def __init__(self, known: Mapping[str, Label] | None = None) -> None:
        self._labels = dict(known or {})
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
        ways = (way for one in self._labels.values() for way in (one.trace, one.chosen_trace, one.private_trace))
        return {id(way): way for way in ways if way is not None}

    def write(self, effect: EffectFact, given: Label | None = None, *, again: bool = False) -> None:
        """Remember that an effect may have put its arguments into a place. `given` is the label of them all, if it is
        known. With `again` it is an effect of a callee that was put in the place of a call: its way replaces the one
        that it has in the callee."""
        tool = effect.tool
        if tool.effect == "read":
            return
        label = given or joined([effect.chooser, *[value.label for value in effect.arguments.values()]])
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
            known = labels.get(name, AUTHORED)
            labels[name] = label.join(known) if first else known.join(label)

    def read(self, tool: ToolFact, arguments: Mapping[str, AbstractValue]) -> Label:
        """Return the label of what a tool may find in the places that it reads."""
        if not self._labels:
            self._read_early.append((tool, arguments))
            return AUTHORED
        places = _places(tool, arguments)
        return self._read_in(places) if places else AUTHORED

    def read_file(self) -> Label:
        """Return the label of what the file of a prompt may contain. Its name is not that of a tool: it may be any."""
        return self._read_in((ANY_FILE,))

    def _read_in(self, places: tuple[str, ...]) -> Label:
        found = self._found(places)
        self._read.setdefault(places, set()).add(_level(found))
        return found

    def _found(self, places: tuple[str, ...]) -> Label:
        found = AUTHORED
        for place in places if self._labels else ():
            kind = place.partition(" ")[0]
            if place.endswith(" *"):
                found = found.join(self._together.get(kind, AUTHORED))
            else:
                named = self._labels.get(place, AUTHORED)
                found = found.join(named).join(self._labels.get(f"{kind} *", AUTHORED))
        return found

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
        return (_server(tool.capability),)
    if tool.capability.startswith(_STATE):
        return (_named("value", arguments.get("name")),)
    if tool.capability.startswith(_FILES):
        if tool.capability.endswith((".glob", ".ls", ".grep")) or "files" in arguments:
            return (ANY_FILE,)
        return (_named("file", arguments.get("path")),)
    return ()


def _server(capability: str) -> str:
    name = capability.removeprefix(_MCP).partition(".")[0]
    return ANY_SERVER if not capability.startswith(_MCP) or set(name) & set("*?[") else f"server {name}"


def _named(kind: str, value: AbstractValue | None) -> str:
    known = value is not None and value.is_constant and isinstance(value.constant, str)
    return f"{kind} {_plain(value.constant)}" if value is not None and known else f"{kind} *"


def _plain(path: object) -> str:
    """Return a path in one spelling. One that leads through folders in an odd way, or from the root of the disk, may be
    any file."""
    text = posixpath.normpath(str(path))
    return "*" if ".." in text or "*" in text or text.startswith("/") else text


def _level(label: Label) -> tuple[bool, bool]:
    return label.integrity >= OUTSIDE, label.privacy >= PRIVATE
