"""Read the parts that scripts of models and of tools share: errors, crashes, delays, and how often an entry answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, cast

from quire.formats.test.fields import visible
from quire.formats.test.syntax import ScriptedError, When
from quire.formats.yaml import Entry, Mapping, Scalar

if TYPE_CHECKING:
    from quire.formats.test.fields import TestFields

Entries: TypeAlias = dict[str, Entry]

MOMENTS = ("before", "after")


class ScriptParts:
    """Reads scripts. With `shared` they belong to the defaults, and a case does not have to use them."""

    def __init__(self, fields: TestFields, *, shared: bool = False) -> None:
        self.fields = fields
        self.shared = shared

    def error(self, entry: Entry, what: str, kind: str) -> ScriptedError | None:
        node = entry.value
        if not isinstance(node, Mapping):
            text = self.fields.text_of(node, what, visible(entry))
            return ScriptedError(kind, text) if text is not None else None
        entries = self.fields.keys(node, "cases.-.model.-.error", what)
        kind = (self.fields.text(entries["kind"], "kind") if "kind" in entries else None) or kind
        message = self.fields.text(entries["message"], "message") if "message" in entries else None
        transient = self.fields.flag(entries["transient"], "transient") if "transient" in entries else False
        return ScriptedError(kind, message or f"a scripted failure of kind {kind}", transient is True)

    def crash(self, entry: Entry | None) -> When | None:
        return cast("When | None", self.fields.choice(entry, MOMENTS, "crash")) if entry else None

    def delay(self, entry: Entry | None) -> float:
        return (self.fields.number(entry, "delay_ms", 1e12) or 0.0) / 1000 if entry else 0.0

    def times(self, entry: Entry | None, otherwise: int | None) -> int | None:
        if entry is None:
            return otherwise
        if isinstance(entry.value, Scalar) and entry.value.value == "any":
            return None
        node = entry.value
        if isinstance(node, Scalar) and type(node.value) is int and 1 <= node.value <= 10**9:
            return node.value
        self.fields.wrong("times", "a whole number of at least 1, or any", node, visible(entry))
        return otherwise
