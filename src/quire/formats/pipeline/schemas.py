"""Read `schema:` documents, and the inputs that a pipeline of the Quire dialect declares under `input:`.

Inputs are fields as in schemas, which may also have a default. A pipeline without `input:` declares none: they are
inferred from what its steps read (`quire.formats.pipeline.inputs`). Limits on values and descriptions belong to the
Quire dialect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct
from msgspec.structs import replace

from quire.diagnostics import Code, Diagnostic, Fix, Severity, replacing
from quire.formats.near_names import name_fix, word_fix
from quire.formats.pipeline.codes import errors as codes
from quire.formats.pipeline.fields import ADD_DIALECT, MEANT_KEYS, PipelineFindings
from quire.formats.pipeline.syntax import RULE, Name, is_name
from quire.formats.yaml import Entry, Mapping, Node, Scalar, Sequence, describe, literal, named, text_of
from quire.safe_regex import BadPattern, portable
from quire.schema import Enum, Field, FieldType, Kind, ListOf, Object, Ref, Schema, Simple, cycles, refs, violations
from quire.schema_limits import LARGEST_NUMBER
from quire.wording import LONGEST_QUOTED, did_you_mean, first_of, quoted

if TYPE_CHECKING:
    from quire.source import Span
    from quire.values import Value


TYPES = {"bool": "", "string": "", "number": "", "enum": "values", "list": "of", "object": "fields", "ref": "schema"}
"""Each type, and the one other key that it needs."""
_LIMITS = {"number": ("minimum", "maximum"), "string": ("max_length", "pattern"), "list": ("max_items",)}
"""Limits that a type may have in the Quire dialect."""
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
_OWNERS = {
    **{part: type for type, part in TYPES.items() if part},
    **{limit: type for type, limits in _LIMITS.items() for limit in limits},
}
OF_DIALECT = ("description", *(limit for limits in _LIMITS.values() for limit in limits))
_ONLY_FIELDS = ("required", "description")
LONGEST_LIMIT = 10**9


class FieldReader(PipelineFindings):
    """Reads fields. `dialect` tells whether the file is in the Quire dialect."""

    def __init__(self, *, dialect: bool = False) -> None:
        super().__init__()
        self.dialect = dialect

    def checked_name(self, node: Node, what: str) -> tuple[str, Span] | None:
        text = text_of(node)
        if text is None:
            help = self.quoting(node)
            self.report(codes.SCHEMA_NAME, f"{what} must be text, not {describe(node)}", node.span, help)
        elif not is_name(text):
            self.report(codes.SCHEMA_NAME, f"{quoted(text)} cannot be {what}", node.span, RULE)
        else:
            return text, node.span
        return None

    def fields(self, entry: Entry | None, whole: Span, owner: str, missing: Code) -> tuple[Field, ...] | None:
        """Read fields. Return None if there are none to read; a field with an error is left out."""
        if entry is None:
            self.report(missing, f"{owner} needs the key fields, a mapping of field names to types", whole)
            return None
        node = entry.value
        if not isinstance(node, Mapping):
            message = f"fields must be a mapping of field names to types, not {describe(node)}"
            self.report(missing, message, entry.visible)
            return None
        if not node.entries:
            self.report(missing, "fields is empty: at least one field is needed", node.span)
            return None
        fields = []
        for name, part in named(node, self.diagnostics):
            if not is_name(name):
                self.report(codes.SCHEMA_NAME, f"{quoted(name)} cannot be the name of a field", part.key.span, RULE)
            field = self.field(name, part, f"the field {quoted(name)}")
            if field is not None:
                fields.append(field)
        return tuple(fields)

    def field(self, name: str, entry: Entry, what: str, *more: str) -> Field | None:
        """Read one field; `more` are further keys that it may have. A default is read, but not checked."""
        type, entries = self._type(entry, what, ("required", *self._of_dialect("description"), *more))
        if type is None:
            return None
        field = Field(name, type, self._required(entries.get("required")), self._description(entries))
        if "default" in more and "default" in entries:
            before = len(self.diagnostics)
            value = literal(entries["default"].value, self.diagnostics)
            field = replace(field, default=value if len(self.diagnostics) == before else UNSET)
        return field

    def entries(self, node: Mapping, known: tuple[str, ...], what: str) -> dict[str, Entry]:
        """Return the entries by key; unknown keys are reported."""
        entries = dict(named(node, self.diagnostics))
        is_type, is_field = "type" in known, "required" in known
        for name, entry in entries.items():
            if name in known:
                continue
            owner = _OWNERS.get(name)
            message = f"{quoted(name)} is not a key of {what}"
            fix: Fix | None = None
            if is_type and not is_field and name in _ONLY_FIELDS:
                help = f"{name} is for fields, not for the items of a list"
            elif is_type and not self.dialect and name in OF_DIALECT:
                message, help = f"{name} of {what} belongs to the Quire dialect", ADD_DIALECT
            elif is_field and name == "default":
                help = "a default is for inputs of a pipeline; a field may be left out with required: false"
            elif owner and is_type:
                help = f"{name} belongs to the type {owner}"
            elif "schema" in known and name in ("pipeline", "steps"):
                help = "a schema is a document of its own: write a line --- between it and the pipeline"
            else:
                help = self.suggestion(name, known) or MEANT_KEYS.get(name, "")
                fix = word_fix(name, [key for key in known if key not in entries], entry.key.span) if help else None
            self.report(codes.SCHEMA_KEY, message, entry.key.span, help, fix)
        return entries

    def _of_dialect(self, *keys: str) -> tuple[str, ...]:
        return keys if self.dialect else ()

    def _type(
        self, entry: Entry, what: str, more: tuple[str, ...] = (), *, of: str = ""
    ) -> tuple[FieldType | None, dict[str, Entry]]:
        """Read a type and return it with all entries of its mapping. `of` is the name for the items of a list."""
        node = entry.value
        if not isinstance(node, Mapping):
            text = text_of(node)
            help = f"write {{type: {text}}}" if text in ("bool", "string", "number") else ""
            message = f"{what} needs a type, a mapping such as {{type: string}}, not {describe(node)}"
            self.report(codes.TYPE, message, entry.visible, help)
            return None, {}
        of_type = node.find("type")
        type = text_of(of_type.value) if of_type else None
        if of_type is None or type not in TYPES:
            self._unknown_type(of_type, node, what)
            return None, {}
        needed = TYPES[type]
        known = ("type", *([needed] if needed else []), *self._of_dialect(*_LIMITS.get(type, ())), *more)
        entries = self.entries(node, known, of or f"a {type}")
        read = self._of(type, entries.get(needed), node, what)
        return (read if read is None or not self.dialect else self._limited(read, entries)), entries

    def _of(self, type: str, part: Entry | None, node: Mapping, what: str) -> FieldType | None:
        if type == "object":
            fields = self.fields(part, node.span, what, codes.PART)
            return None if fields is None else Object(fields)
        if needed := TYPES[type]:
            if part is None:
                self.report(codes.PART, f"{what} is of type {type} and needs the key {needed}", node.span)
                return None
            if type == "enum":
                return self._enum(part)
            if type == "ref":
                name = self.checked_name(part.value, "the name of a schema")
                return Ref(*name) if name else None
            return self._list(part, what)
        return Simple(Kind(type))

    def _enum(self, part: Entry) -> Enum | None:
        node = part.value
        if not isinstance(node, Sequence) or not node.items:
            what = "empty" if isinstance(node, Sequence) else describe(node)
            self.report(codes.PART, f"values must be a list of at least one literal, not {what}", part.visible)
            return None
        values = []
        keys: set[tuple[type, object]] = set()
        for item in node.items:
            values.append(literal(item, self.diagnostics))
            if isinstance(item, Scalar) and not item.tag:
                key = (bool if isinstance(item.value, bool) else object, item.value)
                if key in keys:
                    self.report(codes.REPEATED, f"{quoted(item.text)} is listed twice", item.span)
                keys.add(key)
        return Enum(tuple(values))

    def _list(self, part: Entry, what: str) -> ListOf | None:
        of, _ = self._type(part, f"of, the type of the items of {what},", of="the items of a list")
        if isinstance(of, ListOf):
            self.report(codes.NESTED_LIST, f"the items of {what} cannot be lists (of: {{type: list}})", part.value.span)
            return None
        return None if of is None else ListOf(of)

    def _limited(self, type: FieldType, entries: dict[str, Entry]) -> FieldType:
        """Return the type with the limits that it has."""
        if isinstance(type, ListOf):
            return replace(type, max_items=self._count(entries.get("max_items"), "max_items"))
        if not isinstance(type, Simple):
            return type
        if type.kind is Kind.NUMBER:
            lowest, highest = (self._number(entries.get(key), key) for key in ("minimum", "maximum"))
            if lowest is not None and highest is not None and lowest > highest:
                message = f"the minimum {lowest} is above the maximum {highest}: no number fits"
                self.report(codes.FIELD_LIMIT, message, entries["minimum"].value.span)
            return replace(type, minimum=lowest, maximum=highest)
        if type.kind is Kind.STRING:
            longest = self._count(entries.get("max_length"), "max_length")
            return replace(type, max_length=longest, pattern=self._pattern(entries.get("pattern")))
        return type

    def _count(self, entry: Entry | None, what: str) -> int | None:
        if entry is None:
            return None
        node = entry.value
        value = node.value if isinstance(node, Scalar) and not node.tag else None
        if type(value) is int and 1 <= value <= LONGEST_LIMIT:
            return value
        message = f"{what} must be a whole number from 1 to {LONGEST_LIMIT:,}, not {self._written(node)}"
        self.report(codes.FIELD_LIMIT, message, entry.visible)
        return None

    def _number(self, entry: Entry | None, what: str) -> int | float | None:
        if entry is None:
            return None
        node = entry.value
        value = node.value if isinstance(node, Scalar) and not node.tag else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.report(codes.FIELD_LIMIT, f"{what} must be a number, not {self._written(node)}", entry.visible)
        elif abs(value) > LARGEST_NUMBER:
            message = f"{what} must be between -10^18 and 10^18: beyond that, readers of schemas count differently"
            self.report(codes.FIELD_LIMIT, message, entry.visible)
        else:
            return value
        return None

    def _pattern(self, entry: Entry | None) -> str | None:
        if entry is None:
            return None
        text = text_of(entry.value)
        if text is None:
            message = f"pattern must be text, not {describe(entry.value)}"
            self.report(codes.FIELD_LIMIT, message, entry.visible, self.quoting(entry.value))
            return None
        try:
            portable(text)
        except BadPattern as error:
            self.report(codes.FIELD_LIMIT, f"{quoted(text)} cannot be a pattern: {error}", entry.visible)
            return None
        return text

    def _written(self, node: Node) -> str:
        return quoted(node.text) if isinstance(node, Scalar) and node.value is not None else describe(node)

    def _description(self, entries: dict[str, Entry]) -> str:
        entry = entries.get("description") if self.dialect else None
        if entry is None:
            return ""
        text = text_of(entry.value)
        if text is None:
            message = f"description must be text, not {describe(entry.value)}"
            self.report(codes.PART, message, entry.visible, self.quoting(entry.value))
        return text or ""

    def _required(self, entry: Entry | None) -> bool:
        if entry is None:
            return True
        node = entry.value
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        self.report(codes.PART, f"required must be true or false, not {describe(node)}", entry.visible)
        return True

    def _unknown_type(self, entry: Entry | None, node: Mapping, what: str) -> None:
        if entry is None:
            self.report(codes.TYPE, f"{what} has no type", node.span, f"the key type is one of {', '.join(TYPES)}")
            return
        text = text_of(entry.value)
        meant = _MEANT.get(text.lower()) if text and len(text) <= LONGEST_QUOTED else None
        help = did_you_mean(meant) or self.suggestion(text or "", TYPES)
        message = f"{what} has the type {self.described(entry.value)}; the types are {', '.join(TYPES)}"
        place = entry.visible
        fix: Fix | None = None
        if help and text:
            fix = replacing(place, text, meant) if meant and text in _SAME else word_fix(text, TYPES, place)
        self.report(codes.TYPE, message, place, help, fix)


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
            reader.report(codes.DUPLICATE_SCHEMA, f"the schema {quoted(name)} is declared twice", at.span)
        elif schema is not None:
            good[name] = schema
        declared.add(name)
    closed = cycles(good)
    for names, ref in closed[:_MAX_CYCLES]:
        way = " → ".join([*first_of(names, 8), names[0]])
        reader.report(codes.SCHEMA_CYCLE, f"the schema {quoted(names[0])} contains itself: {way}", ref.span)
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
            message = f"the schema {quoted(ref.schema)} is not defined in this file"
            fix = name_fix(ref.schema, declared, ref.span) if help else None
            reader.report(codes.UNDEFINED, message, ref.span, help, fix)


class _Reader(FieldReader):
    def document(self, node: Node) -> Schema | None:
        """Read a document. Return None if there is an error in it."""
        before = len(self.diagnostics)
        schema = self._document(node)
        has_error = any(finding.severity is Severity.ERROR for finding in self.diagnostics[before:])
        return None if has_error else schema

    def _document(self, node: Node) -> Schema | None:
        if not isinstance(node, Mapping):
            self.report(codes.SHAPE, f"a schema document is a mapping, not {describe(node)}", node.span)
            return None
        entries = self.entries(node, ("schema", "fields"), "a schema document")
        if "schema" not in entries:
            self.report(codes.SHAPE, "a schema document needs the key schema, its name", node.span)
        name = self.checked_name(entries["schema"].value, "the name of a schema") if "schema" in entries else None
        fields = self.fields(entries.get("fields"), node.span, "the schema", codes.SHAPE)
        if name is None or fields is None:
            return None
        return Schema(name[0], fields, name[1])


_SHOWN = 5
_SHAPE = "write input: {NAME: {type: string}}"


class InputReading(Struct, frozen=True):
    """The declared inputs, without those that have errors."""

    fields: tuple[Field, ...]
    names: tuple[Name, ...]
    """Where the names stand."""
    diagnostics: tuple[Diagnostic, ...]


def read_inputs(entry: Entry, schemas: SchemaReading) -> InputReading:
    """Read `input:`. Report types that are wrong, and defaults that do not fit their type."""
    reader = FieldReader(dialect=True)
    node = entry.value
    if not isinstance(node, Mapping):
        message = f"input must be a mapping of names to types, not {describe(node)}"
        reader.report(codes.VALUE, message, entry.visible, _SHAPE)
        return InputReading((), (), tuple(reader.diagnostics))
    fields, names = [], []
    for name, part in named(node, reader.diagnostics):
        if not is_name(name):
            message = f"{quoted(name)} cannot be the name of an input"
            reader.report(codes.SCHEMA_NAME, message, part.key.span, RULE)
            continue
        names.append(Name(name, part.key.span))
        field = reader.field(name, part, f"the input {quoted(name)}", "default")
        if field is None:
            continue
        fields.append(field)
        report_undefined(Schema(name, (field,)), schemas.declared, reader)
        default = part.value.find("default") if isinstance(part.value, Mapping) else None
        if default is not None and field.default is not UNSET:
            problems = list(default_problems(field, schemas.schemas))
            if problems:
                more = f" and {len(problems) - _SHOWN} more problems" if len(problems) > _SHOWN else ""
                message = f"the default does not fit: {'; '.join(problems[:_SHOWN])}{more}"
                reader.report(codes.DEFAULT, message, default.visible)
    return InputReading(tuple(fields), tuple(names), tuple(reader.diagnostics))


def default_problems(field: Field, schemas: dict[str, Schema]) -> Iterator[str]:
    """Yield what is wrong with a default. A schema that could not be read is not held against it."""
    value: Value = {field.name: field.default} if field.default is not UNSET else {}

    def fields_of(name: str) -> tuple[Field, ...]:
        return schemas[name].fields if name in schemas else ()

    return (str(violation) for violation in violations((field,), value, fields_of))
