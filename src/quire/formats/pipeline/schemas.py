"""Read `schema:` documents: YAML nodes in, schemas and findings out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.diagnostics import Code, Diagnostic, Edit, Fix, Severity
from quire.formats.near_names import name_fix, word_fix
from quire.formats.pipeline.codes import schemas as codes
from quire.formats.pipeline.fields import PipelineFindings
from quire.formats.pipeline.syntax import RULE, is_name
from quire.formats.yaml import Entry, Mapping, Node, Scalar, Sequence, describe, literal, named, text_of
from quire.schema import Enum, Field, FieldType, Kind, ListOf, Object, Ref, Schema, Simple, cycles, refs
from quire.wording import LONGEST_QUOTED, did_you_mean, first_of

if TYPE_CHECKING:
    from quire.source import Span

_PARTS = {"bool": "", "string": "", "number": "", "enum": "values", "list": "of", "object": "fields", "ref": "schema"}
"""Each type, and the one other key that it needs."""
_MEANT = {
    **dict.fromkeys(("boolean", "flag"), "bool"),
    **dict.fromkeys(("str", "text", "date", "datetime"), "string"),
    **dict.fromkeys(("int", "integer", "float", "double", "decimal"), "number"),
    **dict.fromkeys(("array", "sequence", "tuple", "set"), "list"),
    **dict.fromkeys(("map", "mapping", "dict", "record", "struct"), "object"),
    **dict.fromkeys(("choice", "select", "literal"), "enum"),
}
_SAME = ("boolean", "str", "text", "int", "integer", "float", "double", "decimal")
"""Words that mean the same as the type that replaces them.

Others mean more: a date is more than a text, an array has items.
"""
_OWNERS = {part: type for type, part in _PARTS.items() if part}
_MAX_CYCLES = 20


class SchemaReading(Struct, frozen=True):
    """The schemas of a file by name, without those that have errors."""

    schemas: dict[str, Schema]
    diagnostics: tuple[Diagnostic, ...]


def read_schema(document: Node) -> tuple[Schema | None, tuple[Diagnostic, ...]]:
    """Read a single schema document. Return None and the findings if there is an error in it."""
    reader = _Reader()
    schema = reader.document(document)
    return schema, tuple(reader.diagnostics)


def read_schemas(documents: Iterable[Node]) -> SchemaReading:
    """Read all schema documents of a file, and report duplicate names, cycles and undefined references."""
    reader = _Reader()
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
        for ref in refs(schema):
            if ref.schema not in declared:
                help = reader.suggestion(ref.schema, declared)
                message = f"the schema {reader.shown(ref.schema)} is not defined in this file"
                fix = name_fix(ref.schema, declared, ref.span) if help else ()
                reader.report(codes.UNDEFINED, message, ref.span, help, fix)
    in_cycles = {name for names, _ in closed for name in names}
    left = {name: schema for name, schema in good.items() if name not in in_cycles}
    return SchemaReading(left, tuple(reader.diagnostics))


class _Reader(PipelineFindings):
    def document(self, node: Node) -> Schema | None:
        """Read a document. Return None if there is an error in it."""
        before = len(self.diagnostics)
        schema = self._document(node)
        return None if any(one.severity is Severity.ERROR for one in self.diagnostics[before:]) else schema

    def _document(self, node: Node) -> Schema | None:
        if not isinstance(node, Mapping):
            self.report(codes.SHAPE, f"a schema document is a mapping, not {describe(node)}", node.span)
            return None
        entries = self._entries(node, ("schema", "fields"), "a schema document")
        name = self._name(entries.get("schema"), node)
        fields = self._fields(entries.get("fields"), node.span, "the schema", codes.SHAPE)
        if name is None or fields is None:
            return None
        return Schema(name[0], fields, name[1])

    def _name(self, entry: Entry | None, document: Mapping) -> tuple[str, Span] | None:
        if entry is None:
            self.report(codes.SHAPE, "a schema document needs the key schema, its name", document.span)
            return None
        return self._checked_name(entry.value, "the name of a schema")

    def _checked_name(self, node: Node, what: str) -> tuple[str, Span] | None:
        text = text_of(node)
        if text is None:
            self.report(codes.NAME, f"{what} must be text, not {describe(node)}", node.span, _quoting(node))
        elif not is_name(text):
            self.report(codes.NAME, f"{self.shown(text)} cannot be {what}", node.span, RULE)
        else:
            return text, node.span
        return None

    def _fields(self, entry: Entry | None, whole: Span, owner: str, missing: Code) -> tuple[Field, ...] | None:
        """Read fields. Return None if there are none to read; a field with an error is left out."""
        if entry is None:
            self.report(missing, f"{owner} needs the key fields, a mapping of field names to types", whole)
            return None
        node = entry.value
        if not isinstance(node, Mapping):
            message = f"fields must be a mapping of field names to types, not {describe(node)}"
            self.report(missing, message, self.visible(entry))
            return None
        if not node.entries:
            self.report(missing, "fields is empty: at least one field is needed", node.span)
            return None
        fields = []
        for name, one in named(node, self.diagnostics):
            if not is_name(name):
                self.report(codes.NAME, f"{self.shown(name)} cannot be the name of a field", one.key.span, RULE)
            type, required = self._type(one, f"the field {self.shown(name)}", is_field=True)
            if type is not None:
                fields.append(Field(name, type, required))
        return tuple(fields)

    def _type(self, entry: Entry, what: str, *, is_field: bool) -> tuple[FieldType | None, bool]:
        node = entry.value
        if not isinstance(node, Mapping):
            text = text_of(node)
            help = f"write {{type: {text}}}" if text in ("bool", "string", "number") else ""
            message = f"{what} needs a type, a mapping such as {{type: string}}, not {describe(node)}"
            self.report(codes.TYPE, message, self.visible(entry), help)
            return None, True
        of_type = node.find("type")
        type = text_of(of_type.value) if of_type else None
        if of_type is None or type not in _PARTS:
            self._unknown_type(of_type, node, what)
            return None, True
        needed = _PARTS[type]
        known = ("type", *([needed] if needed else []), *(["required"] if is_field else []))
        entries = self._entries(node, known, f"a {type}" if is_field else "the items of a list")
        required = self._required(entries.get("required"))
        return self._of(type, entries.get(needed), node, what), required

    def _of(self, type: str, part: Entry | None, node: Mapping, what: str) -> FieldType | None:
        if type == "object":
            fields = self._fields(part, node.span, what, codes.PART)
            return None if fields is None else Object(fields)
        if needed := _PARTS[type]:
            if part is None:
                self.report(codes.PART, f"{what} is of type {type} and needs the key {needed}", node.span)
                return None
            if type == "enum":
                return self._enum(part)
            if type == "ref":
                name = self._checked_name(part.value, "the name of a schema")
                return Ref(*name) if name else None
            return self._list(part, what)
        return Simple(Kind(type))

    def _enum(self, part: Entry) -> Enum | None:
        node = part.value
        if not isinstance(node, Sequence) or not node.items:
            what = "empty" if isinstance(node, Sequence) else describe(node)
            self.report(codes.PART, f"values must be a list of at least one literal, not {what}", self.visible(part))
            return None
        values = []
        seen: set[tuple[type, object]] = set()
        for item in node.items:
            values.append(literal(item, self.diagnostics))
            if isinstance(item, Scalar) and not item.tag:
                key = (bool if isinstance(item.value, bool) else object, item.value)
                if key in seen:
                    self.report(codes.REPEATED, f"{self.shown(item.text)} is listed twice", item.span)
                seen.add(key)
        return Enum(tuple(values))

    def _list(self, part: Entry, what: str) -> ListOf | None:
        of, _ = self._type(part, f"of, the type of the items of {what},", is_field=False)
        if isinstance(of, ListOf):
            self.report(codes.NESTED_LIST, f"the items of {what} cannot be lists (of: {{type: list}})", part.value.span)
            return None
        return None if of is None else ListOf(of)

    def _required(self, entry: Entry | None) -> bool:
        if entry is None:
            return True
        node = entry.value
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        self.report(codes.PART, f"required must be true or false, not {describe(node)}", self.visible(entry))
        return True

    def _unknown_type(self, entry: Entry | None, node: Mapping, what: str) -> None:
        if entry is None:
            self.report(codes.TYPE, f"{what} has no type", node.span, f"the key type is one of {', '.join(_PARTS)}")
            return
        text = text_of(entry.value)
        shown = self.shown(text) if text is not None else describe(entry.value)
        meant = _MEANT.get(text.lower()) if text and len(text) <= LONGEST_QUOTED else None
        help = did_you_mean(meant) or self.suggestion(text or "", _PARTS)
        message = f"{what} has the type {shown}; the types are {', '.join(_PARTS)}"
        place = self.visible(entry)
        fix: Fix = ()
        if help and text:
            fix = (Edit(place, text, meant),) if meant and text in _SAME else word_fix(text, _PARTS, place)
        self.report(codes.TYPE, message, place, help, fix)

    def _entries(self, node: Mapping, known: tuple[str, ...], what: str) -> dict[str, Entry]:
        entries = dict(named(node, self.diagnostics))
        for name, entry in entries.items():
            if name in known:
                continue
            owner = _OWNERS.get(name)
            fix: Fix = ()
            if name == "required":
                help = "required is for fields, not for the items of a list"
            elif owner and "type" in known:
                help = f"{name} belongs to the type {owner}"
            else:
                help = self.suggestion(name, known)
                fix = word_fix(name, [one for one in known if one not in entries], entry.key.span) if help else ()
            self.report(codes.KEY, f"{self.shown(name)} is not a key of {what}", entry.key.span, help, fix)
        return entries


def _quoting(node: Node) -> str:
    return (
        f'write "{node.text}" if it is meant as text' if isinstance(node, Scalar) and node.text and not node.tag else ""
    )
