"""Read `schema:` documents: YAML nodes in, schemas and findings out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.diagnostics import Diagnostic, Severity
from quire.formats.near_names import name_fix
from quire.formats.pipeline.codes import schemas as codes
from quire.formats.pipeline.field_types import FieldReader
from quire.formats.yaml import Entry, Mapping, Node, describe, text_of
from quire.schema import Schema, cycles, refs
from quire.wording import first_of

if TYPE_CHECKING:
    from quire.source import Span

_MAX_CYCLES = 20


class SchemaReading(Struct, frozen=True):
    """The schemas of a file by name, without those that have errors."""

    schemas: dict[str, Schema]
    diagnostics: tuple[Diagnostic, ...]
    declared: frozenset[str] = frozenset()
    """The names of all schema documents, also of those that have errors."""


def read_schemas(documents: Iterable[Node], *, dialect: bool = False) -> SchemaReading:
    """Read all schema documents of a file, and report duplicate names, cycles and undefined references.

    `dialect` tells whether a pipeline of the file is in the Quire dialect: its keys are then allowed in all schemas.
    """
    reader = _Reader(dialect=dialect)
    declared: set[str] = set()
    good: dict[str, Schema] = {}
    for document in documents:
        schema = reader.document(document)
        at = document.get("schema") if isinstance(document, Mapping) else None
        name = text_of(at)
        if at is None or name is None:
            continue
        if name in declared:
            reader.report(codes.DUPLICATE, f"the schema {reader.shown(name)} is declared twice", at.span)
        elif schema is not None:
            good[name] = schema
        declared.add(name)
    closed = cycles(good)
    for names, ref in closed[:_MAX_CYCLES]:
        way = " → ".join([*first_of(names, 8), names[0]])
        reader.report(codes.CYCLE, f"the schema {reader.shown(names[0])} contains itself: {way}", ref.span)
    for schema in good.values():
        report_undefined(schema, declared, reader)
    in_cycles = {name for names, _ in closed for name in names}
    left = {name: schema for name, schema in good.items() if name not in in_cycles}
    return SchemaReading(left, tuple(reader.diagnostics), frozenset(declared))


def report_undefined(schema: Schema, declared: set[str] | frozenset[str], reader: FieldReader) -> None:
    """Report references to schemas that the file does not declare."""
    for ref in refs(schema):
        if ref.schema not in declared:
            help = reader.suggestion(ref.schema, declared)
            message = f"the schema {reader.shown(ref.schema)} is not defined in this file"
            fix = name_fix(ref.schema, declared, ref.span) if help else None
            reader.report(codes.UNDEFINED, message, ref.span, help, fix)


class _Reader(FieldReader):
    def document(self, node: Node) -> Schema | None:
        """Read a document. Return None if there is an error in it."""
        before = len(self.diagnostics)
        schema = self._document(node)
        return None if any(one.severity is Severity.ERROR for one in self.diagnostics[before:]) else schema

    def _document(self, node: Node) -> Schema | None:
        if not isinstance(node, Mapping):
            self.report(codes.SHAPE, f"a schema document is a mapping, not {describe(node)}", node.span)
            return None
        entries = self.entries(node, ("schema", "fields"), "a schema document")
        name = self._name(entries.get("schema"), node)
        fields = self.fields(entries.get("fields"), node.span, "the schema", codes.SHAPE)
        if name is None or fields is None:
            return None
        return Schema(name[0], fields, name[1])

    def _name(self, entry: Entry | None, document: Mapping) -> tuple[str, Span] | None:
        if entry is None:
            self.report(codes.SHAPE, "a schema document needs the key schema, its name", document.span)
            return None
        return self.checked_name(entry.value, "the name of a schema")
