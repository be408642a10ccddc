"""Read the targets of `call` and of `match` cases: a pipeline by its static name, and the values passed to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.formats.pipeline.codes import errors as codes
from quire.formats.pipeline.syntax import RULE, Name, Pass, Target, is_name
from quire.formats.yaml import Entry, Mapping, Scalar, Sequence, describe, named, text_of

if TYPE_CHECKING:
    from quire.formats.pipeline.fields import Fields


class TargetReader:
    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def of(self, entries: dict[str, Entry]) -> Target | None:
        """Read a target from the entries of a call or a case. A missing `pipeline` has already been reported."""
        name = self._pipeline(entries["pipeline"]) if "pipeline" in entries else None
        passes = self._passes(entries.get("pass"))
        return Target(name, passes) if name else None

    def nested(self, entry: Entry, what: str) -> Target | None:
        """Read a target that is the value of an entry."""
        node = entry.value
        report = self._fields.report
        if not isinstance(node, Mapping):
            text = text_of(node)
            help = f"write {{pipeline: {text}}}" if text else "write {pipeline: NAME}"
            message = f"{what} needs a target, a mapping with the key pipeline, not {describe(node)}"
            report(codes.VALUE, message, self._fields.visible(entry), help)
            return None
        entries = self._fields.entries(node, ("pipeline", "pass"), what, codes.KEY)
        if "pipeline" not in entries:
            report(codes.MISSING, f"{what} needs the key pipeline", entry.key.span)
        return self.of(entries)

    def _pipeline(self, entry: Entry) -> Name | None:
        node = entry.value
        if isinstance(node, Scalar) and node.tag:
            message = f"the name of the pipeline to call is static, never {describe(node)}"
            self._fields.report(codes.TARGET, message, node.span, "match chooses among static targets by a value")
            return None
        text = text_of(node)
        if text is not None and text.count(".") == 1 and all(map(is_name, text.split("."))):
            return Name(text, node.span)
        if text is not None and "." in text:
            help = f"it is the name of a pipeline or KEY.NAME; {RULE}"
            self._fields.report(codes.NAME, f"{self._fields.shown(text)} cannot be a target", node.span, help)
            return None
        return self._fields.name(entry, "the name of a pipeline")

    def _passes(self, entry: Entry | None) -> tuple[Pass, ...]:
        if entry is None or (isinstance(entry.value, Scalar) and entry.value.value is None and not entry.value.tag):
            return ()
        node = entry.value
        found: list[Pass] = []
        if isinstance(node, Sequence):
            for item in node.items:
                name = self._fields.name_of(item, "a name to pass")
                if name:
                    found.append(Pass(name))
        elif isinstance(node, Mapping):
            for key, one in named(node, self._fields.found):
                name = self._fields.name_of(one.key, "a name to pass")
                value = self._fields.expression(one, f"{key} of pass")
                if name and value:
                    found.append(Pass(name, value))
        else:
            message = f"pass must be a list of names or a mapping of names to expressions, not {describe(node)}"
            text = text_of(node)
            help = f"write [{text}]" if text and is_name(text) else ""
            self._fields.report(codes.VALUE, message, node.span, help)
        return tuple(found)
