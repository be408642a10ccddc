"""Find the parts of a pipeline file that go beyond the format that all implementations share.

The table of the language says which keys only Quire has, and a test holds the keys of the shared format, which does not
change. Functions, tags, and the forms of `pass` and `on_error` are not keys; they are checked apart.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic
from quire.expr.syntax import FunctionCall
from quire.expr.syntax import walk as nodes_of
from quire.formats.pipeline.codes.warnings import NOT_PORTABLE
from quire.formats.pipeline.fields import Fields
from quire.formats.pipeline.language import KINDS
from quire.formats.pipeline.walks import expressions, inner_expressions, walk
from quire.formats.yaml import EXPR, Entry, Mapping, Node, Scalar, Sequence, read_yaml, text_of

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import ParseResult
    from quire.source import Span

_DOCUMENT = {"pipeline": ("pipeline", "description", "steps"), "schema": ("schema", "fields")}
_STEPS = {
    kind.name: tuple(key.name for key in kind.keys if not (key.dialect or key.own))
    for kind in KINDS
    if not kind.dialect
}
_TARGET = ("pipeline", "pass")
_FIELD = {"enum": ("type", "values"), "list": ("type", "of"), "object": ("type", "fields"), "ref": ("type", "schema")}
_ON_ERROR = re.compile(r"continue|abort|retry\([0-9]++\)")
_NESTED = ("do", "collect")


def beyond_format(reading: ParseResult) -> tuple[Diagnostic, ...]:
    """Return a note for each place of a readable file that only Quire understands, in the order of the text."""
    if reading.file is None:
        return ()
    places = _Places()
    for node in read_yaml(reading.source).documents:
        if isinstance(node, Mapping):
            places.document(node)
    fields = Fields(reading.source)
    for pipeline in reading.file.pipelines:
        for _, step in walk(pipeline):
            for text in (*expressions(step), *inner_expressions(step)):
                for part, _ in nodes_of(text.expression.root):
                    if isinstance(part, FunctionCall):
                        places.add(f"the function {part.name}", fields.at(text, part.span))
    return tuple(sorted(places.notes, key=attrgetter("span.start", "span.end")))


class _Places:
    def __init__(self) -> None:
        self.notes: list[Diagnostic] = []

    def add(self, what: str, span: Span) -> None:
        self.notes.append(Diagnostic(NOT_PORTABLE, f"{what} is not in the format: only Quire has it", span))

    def document(self, node: Mapping) -> None:
        is_schema = node.find("schema") is not None
        self._own(node, _DOCUMENT["schema" if is_schema else "pipeline"], "a document")
        if is_schema:
            self._fields(node.get("fields"))
        else:
            self._steps(node.get("steps"))

    def _steps(self, node: Node | None) -> None:
        for item in node.items if isinstance(node, Sequence) else ():
            self._step(item)

    def _step(self, node: Node | None) -> None:
        for entry in node.entries if isinstance(node, Mapping) else ():
            kind, body = entry.key.text, entry.value
            if kind not in _STEPS:
                self.add(f"the step {kind}", entry.key.span)
                self._steps(body)
            if isinstance(body, Mapping):
                self._body(kind, body)

    def _body(self, kind: str, body: Mapping) -> None:
        # A step that only Quire has is noted once, without its keys.
        for entry in self._own(body, _STEPS.get(kind, tuple(part.key.text for part in body.entries)), kind):
            self._tagged(entry.value)
        for entry in body.entries:
            key, value = entry.key.text, entry.value
            if key in _NESTED:
                self._step(value)
                self._steps(value)
            elif key == "branches" and isinstance(value, Mapping):
                for branch in value.entries:
                    self._step(branch.value)
            elif key == "cases" and isinstance(value, Mapping):
                for case in value.entries:
                    self._target(case.value)
            elif key == "default" and kind == "match":
                self._target(value)
            elif key == "pass":
                self._pass(entry)
            elif key == "capabilities" and isinstance(value, Mapping):
                self._own(value, ("tools",), "capabilities")
            elif key == "on_error" and kind in ("for_each", "parallel"):
                if not _ON_ERROR.fullmatch(text_of(value) or ""):
                    self.add("this form of on_error", value.span)
            elif key in ("prompt", "command"):
                self._tagged(value)

    def _target(self, node: Node) -> None:
        if isinstance(node, Mapping):
            for entry in self._own(node, _TARGET, "a case"):
                self._steps(entry.value)
            for entry in node.entries:
                if entry.key.text == "pass":
                    self._pass(entry)

    def _pass(self, entry: Entry) -> None:
        if isinstance(entry.value, Mapping):
            self.add("pass with values", entry.key.span)

    def _tagged(self, node: Node) -> None:
        if isinstance(node, Scalar) and node.tag not in ("", EXPR):
            self.add(f"the tag {node.tag}", node.span)

    def _fields(self, node: Node | None) -> None:
        for entry in node.entries if isinstance(node, Mapping) else ():
            self._type(entry.value)

    def _type(self, node: Node | None) -> None:
        if not isinstance(node, Mapping):
            return
        self._own(node, _FIELD.get(text_of(node.get("type")) or "", ("type",)), "a field")
        self._type(node.get("of"))
        self._fields(node.get("fields"))

    def _own(self, node: Mapping, known: tuple[str, ...], what: str) -> list[Entry]:
        """Note the keys of a mapping that the format does not have, and return their entries."""
        own = [entry for entry in node.entries if entry.key.text not in known]
        for entry in own:
            self.add(f"the key {entry.key.text} of {what}", entry.key.span)
        return own
