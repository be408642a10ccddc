"""Schemas of pipelines: the shapes that results and replies must have.

A schema is a set of named fields, each of one type. `Schema.violations` lists everything that is wrong with a value, by
path; `Schema.json_schema` gives the same rules as JSON Schema, for models and tools that understand only that. The two
agree on every value, which a test checks with an independent validator. Extra fields of a value are allowed in both.

Literals are compared as in JSON: `1` equals `1.0`, and neither equals `true`. `cycles` finds schemas that contain
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from quire.source import NOWHERE, Span
from quire.values import Value, encode
from quire.wording import cut

__all__ = [
    "MAX_VIOLATIONS",
    "Enum",
    "Field",
    "FieldType",
    "Kind",
    "ListOf",
    "Object",
    "Ref",
    "Resolver",
    "Schema",
    "Simple",
    "Violation",
    "cycles",
    "refs",
]


class Kind(StrEnum):
    """Types without parameters."""

    BOOL = "bool"
    STRING = "string"
    NUMBER = "number"


class Simple(Struct, frozen=True):
    kind: Kind


@dataclass(frozen=True, slots=True)
class Enum:
    """One of several literals."""

    values: tuple[Value, ...]
    _simple: frozenset[tuple[bool, object]] = field(init=False, repr=False, compare=False)
    _nested: tuple[Value, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        nested = tuple(one for one in self.values if _is_nested(one))
        simple = frozenset(_distinct(one) for one in self.values if not _is_nested(one))
        object.__setattr__(self, "_nested", nested)
        object.__setattr__(self, "_simple", simple)

    def distinct(self) -> list[Value]:
        """Return the values without repetitions. Repeated lists and objects are kept."""
        found = {(str(index) if _is_nested(one) else _distinct(one)): one for index, one in enumerate(self.values)}
        return list(found.values())

    def __contains__(self, value: Value) -> bool:
        if _is_nested(value):
            return any(_equal(value, one) for one in self._nested)
        return _distinct(value) in self._simple


class ListOf(Struct, frozen=True):
    of: Simple | Enum | Object | Ref


class Object(Struct, frozen=True):
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to another schema."""

    schema: str
    span: Span = field(default=NOWHERE, compare=False)
    """Where the name of the other schema is in the document."""


FieldType: TypeAlias = Simple | Enum | ListOf | Object | Ref


class Field(Struct, frozen=True):
    name: str
    type: FieldType
    required: bool = True


def _is_nested(value: Value) -> bool:
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str)


def _distinct(value: Value) -> tuple[bool, object]:
    """Return a key for a value that is not a list or an object. In Python `True` equals `1`, in JSON it does not."""
    return isinstance(value, bool), value


def _equal(one: Value, other: Value) -> bool:
    """Compare as JSON does. `other` is a literal of a document, which bounds the recursion."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in other)
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        return len(one) == len(other) and all(map(_equal, one, other))
    return one == other


_SHOWN_TEXT = 60
_SHOWN_VALUES = 12
_SHOWN_NUMBER = 10**18
_NAMES = {Kind.BOOL: "true or false", Kind.STRING: "text", Kind.NUMBER: "a number"}


class Violation(Struct, frozen=True):
    """One thing that is wrong with a value."""

    path: str
    """Empty for the value itself, otherwise like `o.f` or `tags[1]`."""
    message: str

    def __str__(self) -> str:
        return f"{self.path} {self.message}" if self.path else f"the value {self.message}"


def violations(
    fields: tuple[Field, ...], value: Value, fields_of: Callable[[str], tuple[Field, ...] | None]
) -> Iterator[Violation]:
    """Yield everything that is wrong with a value; `fields_of` returns the fields of other schemas.

    Does not recurse, and walks lists lazily, so a long list costs no memory. It terminates even if schemas contain
    themselves, because every step goes down into the value.
    """
    walks: list[Iterator[tuple[str, FieldType | None, Value]]] = [iter([("", Object(fields), value)])]
    while walks:
        step = next(walks[-1], None)
        if step is None:
            walks.pop()
            continue
        path, type, part = step
        if type is None:
            yield Violation(path, "is missing")
            continue
        if isinstance(type, Ref):
            target = fields_of(type.schema)
            if target is None:
                yield Violation(path, f"cannot be checked: the schema {type.schema} is not defined")
                continue
            type = Object(target)
        if isinstance(type, Object):
            if not isinstance(part, Mapping):
                yield Violation(path, f"must be an object, not {shown(part)}")
                continue
            walks.append(_fields(path, type, part))
        elif isinstance(type, ListOf):
            if isinstance(part, str) or not isinstance(part, Sequence):
                yield Violation(path, f"must be a list, not {shown(part)}")
                continue
            walks.append(_items(path, type, part))
        elif isinstance(type, Enum):
            if part not in type:
                yield Violation(path, f"must be {_options(type)}, not {shown(part)}")
        elif not _is(type.kind, part):
            yield Violation(path, f"must be {_NAMES[type.kind]}, not {shown(part)}")


def _fields(path: str, type: Object, value: Mapping[str, Value]) -> Iterator[tuple[str, FieldType | None, Value]]:
    """Yield the fields that the value has, and with None as type the required fields that it lacks."""
    for one in type.fields:
        below = f"{path}.{one.name}" if path else one.name
        if one.name in value:
            yield below, one.type, value[one.name]
        elif one.required:
            yield below, None, None


def _items(path: str, type: ListOf, value: Sequence[Value]) -> Iterator[tuple[str, FieldType | None, Value]]:
    return ((f"{path}[{index}]", type.of, item) for index, item in enumerate(value))


def _is(kind: Kind, value: Value) -> bool:
    if kind is Kind.BOOL:
        return isinstance(value, bool)
    if kind is Kind.STRING:
        return isinstance(value, str)
    return isinstance(value, int | float) and not isinstance(value, bool)


def shown(value: Value) -> str:
    """Return a value for a message: short values as they are, others only by their kind."""
    if isinstance(value, str):
        return encode(cut(value, _SHOWN_TEXT))
    if value is None or isinstance(value, bool):
        return encode(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int):
        return str(value) if abs(value) < _SHOWN_NUMBER else "a large number"
    return "an object" if isinstance(value, Mapping) else "a list"


def _options(type: Enum) -> str:
    listed = ", ".join(shown(one) for one in type.values[:_SHOWN_VALUES])
    more = len(type.values) - _SHOWN_VALUES
    if more > 0:
        listed += f" and {more} more"
    return f"one of {listed}" if len(type.values) > 1 else listed


_TYPES = {Kind.BOOL: "boolean", Kind.STRING: "string", Kind.NUMBER: "number"}


def object_schema(fields: Sequence[Field]) -> dict[str, Value]:
    """Return fields as a JSON Schema."""
    return {
        "type": "object",
        "properties": {one.name: _type_schema(one.type) for one in fields},
        "required": [one.name for one in fields if one.required],
    }


def _type_schema(type: FieldType) -> dict[str, Value]:
    """Return a type as a JSON Schema. Recursion is bounded by the depth of the document that the type was read from."""
    if isinstance(type, Simple):
        return {"type": _TYPES[type.kind]}
    if isinstance(type, Enum):
        # Some providers require a type in addition to the values.
        texts = all(isinstance(value, str) for value in type.values)
        return {"type": "string", "enum": type.distinct()} if texts else {"enum": type.distinct()}
    if isinstance(type, ListOf):
        return {"type": "array", "items": _type_schema(type.of)}
    if isinstance(type, Ref):
        return {"$ref": f"#/$defs/{type.schema}"}
    return object_schema(type.fields)


MAX_VIOLATIONS = 1_000


@dataclass(frozen=True, slots=True)
class Schema:
    """A name and its fields. Extra fields of a value are not checked; they are kept."""

    name: str
    fields: tuple[Field, ...]
    span: Span = field(default=NOWHERE, compare=False)

    def violations(self, value: Value, resolver: Resolver) -> list[Violation]:
        """Return everything that is wrong with a value, in the order of the fields; empty if it conforms.

        A reference to a schema that the resolver does not know is a violation if a value is checked against it. Only
        the first `MAX_VIOLATIONS` are listed, followed by a note that there are more.
        """
        found: list[Violation] = []

        def fields_of(name: str) -> tuple[Field, ...] | None:
            schema = resolver(name)
            return schema.fields if schema else None

        for violation in violations(self.fields, value, fields_of):
            if len(found) == MAX_VIOLATIONS:
                found.append(Violation("", f"has more problems than the {MAX_VIOLATIONS:,} that are listed"))
                break
            found.append(violation)
        return found

    def json_schema(self, resolver: Resolver) -> dict[str, Value]:
        """Return the schema as JSON Schema.

        Referenced schemas appear once, in `$defs`; no value conforms to an unknown one.
        """
        defined: dict[str, Value] = {}
        for name, schema in _reachable(self, resolver):
            defined[name] = {"not": {}} if schema is None else object_schema(schema.fields)
        made: dict[str, Value] = {"title": self.name, **object_schema(self.fields)}
        return {**made, "$defs": defined} if defined else made

    def undefined(self, resolver: Resolver) -> tuple[str, ...]:
        """Return the names of schemas that are referenced, directly or not, and that the resolver does not know."""
        return tuple(name for name, schema in _reachable(self, resolver) if schema is None)


Resolver: TypeAlias = Callable[[str], Schema | None]
"""Finds a schema by its name: `.get` of the mapping of a file's schemas."""


def refs(schema: Schema) -> Iterator[Ref]:
    """Yield every reference of a schema, in the order of its text."""
    types: list[FieldType] = [one.type for one in reversed(schema.fields)]
    while types:
        found = types.pop()
        if isinstance(found, Ref):
            yield found
        elif isinstance(found, ListOf):
            types.append(found.of)
        elif isinstance(found, Object):
            types.extend(one.type for one in reversed(found.fields))


def cycles(schemas: Mapping[str, Schema]) -> list[tuple[tuple[str, ...], Ref]]:
    """Return the cycles in which schemas contain themselves: the names along each, and the reference that closes it."""
    found: list[tuple[tuple[str, ...], Ref]] = []
    done: set[str] = set()
    for name in schemas:
        if name in done:
            continue
        way = {name: refs(schemas[name])}
        while way:
            at = next(reversed(way))
            ref = next(way[at], None)
            if ref is None:
                done.add(at)
                del way[at]
            elif ref.schema in way:
                names = list(way)
                found.append((tuple(names[names.index(ref.schema) :]), ref))
            elif ref.schema in schemas and ref.schema not in done:
                way[ref.schema] = refs(schemas[ref.schema])
    return found


def _reachable(schema: Schema, resolver: Resolver) -> Iterator[tuple[str, Schema | None]]:
    seen: set[str] = set()
    waiting = [schema]
    for one in waiting:
        for ref in refs(one):
            if ref.schema in seen:
                continue
            seen.add(ref.schema)
            target = resolver(ref.schema)
            yield ref.schema, target
            if target is not None:
                waiting.append(target)
