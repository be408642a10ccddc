"""Schemas of pipelines: the shapes that results and replies must have.

A schema is a set of named fields, each of one type. `Schema.violations` lists everything that is wrong with a value, by
path; `Schema.json_schema` gives the same rules as JSON Schema, for models and tools that understand only that. The two
agree on every value, which a test checks with an independent validator. Extra fields of a value are allowed in both.

Literals are compared as in JSON: `1` equals `1.0`, and neither equals `true`. `cycles` finds schemas that contain
themselves, and `type_words` describes a type for people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from msgspec import UNSET, Struct

from quire.safe_regex import LONGEST_MATCHED, BadPattern, matches, portable
from quire.schema_types import Enum, Field, FieldType, Kind, ListOf, Object, Ref, Simple
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
    "fields_words",
    "refs",
    "type_words",
]

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
            if type.max_items is not None and len(part) > type.max_items:
                yield Violation(path, f"must have at most {type.max_items:,} items, not {len(part):,}")
                continue
            walks.append(_items(path, type, part))
        elif isinstance(type, Enum):
            if part not in type:
                yield Violation(path, f"must be {_options(type)}, not {shown(part)}")
        elif not _is(type.kind, part):
            yield Violation(path, f"must be {_NAMES[type.kind]}, not {shown(part)}")
        elif problem := _beyond(type, part):
            yield Violation(path, problem)


def _fields(path: str, type: Object, value: Mapping[str, Value]) -> Iterator[tuple[str, FieldType | None, Value]]:
    """Yield the fields that the value has, and with None as type the required fields that it lacks."""
    for member in type.fields:
        below = f"{path}.{member.name}" if path else member.name
        if member.name in value:
            yield below, member.type, value[member.name]
        elif member.required:
            yield below, None, None


def _items(path: str, type: ListOf, value: Sequence[Value]) -> Iterator[tuple[str, FieldType | None, Value]]:
    return ((f"{path}[{index}]", type.of, item) for index, item in enumerate(value))


def _is(kind: Kind, value: Value) -> bool:
    if kind is Kind.BOOL:
        return isinstance(value, bool)
    if kind is Kind.STRING:
        return isinstance(value, str)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _beyond(type: Simple, value: Value) -> str:
    """Return which limit of its type a value exceeds; empty if none."""
    if isinstance(value, int | float):
        if type.minimum is not None and value < type.minimum:
            return f"must be at least {type.minimum}, not {shown(value)}"
        if type.maximum is not None and value > type.maximum:
            return f"must be at most {type.maximum}, not {shown(value)}"
    elif isinstance(value, str):
        longest = _longest(type)
        if longest is not None and len(value) > longest:
            return f"must have at most {longest:,} characters, not {len(value):,}"
        if type.pattern is not None:
            pattern = cut(type.pattern, _SHOWN_TEXT)
            try:
                return "" if matches(type.pattern, value) else f"must match {pattern}, not {shown(value)}"
            except BadPattern as error:
                return f"cannot be checked: {pattern} is not a usable pattern: {error}"
    return ""


def _longest(type: Simple) -> int | None:
    """Return the most characters of a text. With a pattern there is always a limit, because matching takes time."""
    if type.pattern is None:
        return type.max_length
    return LONGEST_MATCHED if type.max_length is None else min(type.max_length, LONGEST_MATCHED)


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
    listed = ", ".join(shown(value) for value in type.values[:_SHOWN_VALUES])
    more = len(type.values) - _SHOWN_VALUES
    if more > 0:
        listed += f" and {more} more"
    return f"one of {listed}" if len(type.values) > 1 else listed


_TYPES = {Kind.BOOL: "boolean", Kind.STRING: "string", Kind.NUMBER: "number"}


def object_schema(fields: Sequence[Field]) -> dict[str, Value]:
    """Return fields as a JSON Schema."""
    return {
        "type": "object",
        "properties": {member.name: field_schema(member) for member in fields},
        "required": [member.name for member in fields if member.is_needed],
    }


def field_schema(field: Field) -> dict[str, Value]:
    made = _type_schema(field.type)
    if field.description:
        made["description"] = field.description
    if field.default is not UNSET:
        made["default"] = field.default
    return made


def _type_schema(type: FieldType) -> dict[str, Value]:
    """Return a type as a JSON Schema. Recursion is bounded by the depth of the document that the type was read from."""
    if isinstance(type, Simple):
        return {"type": _TYPES[type.kind], **_limits(type)}
    if isinstance(type, Enum):
        # Some providers require a type in addition to the values.
        texts = all(isinstance(value, str) for value in type.values)
        return {"type": "string", "enum": type.distinct()} if texts else {"enum": type.distinct()}
    if isinstance(type, ListOf):
        most: dict[str, Value] = {} if type.max_items is None else {"maxItems": type.max_items}
        return {"type": "array", "items": _type_schema(type.of), **most}
    if isinstance(type, Ref):
        return {"$ref": f"#/$defs/{type.schema}"}
    return object_schema(type.fields)


def _limits(type: Simple) -> dict[str, Value]:
    limits: dict[str, Value] = {"minimum": type.minimum, "maximum": type.maximum, "maxLength": _longest(type)}
    made: dict[str, Value] = {key: limit for key, limit in limits.items() if limit is not None}
    if type.pattern is not None:
        try:
            made["pattern"] = portable(type.pattern)
        except BadPattern:
            made["not"] = {}
    return made


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
        listed: list[Violation] = []

        def fields_of(name: str) -> tuple[Field, ...] | None:
            schema = resolver(name)
            return schema.fields if schema else None

        for violation in violations(self.fields, value, fields_of):
            if len(listed) == MAX_VIOLATIONS:
                listed.append(Violation("", f"has more problems than the {MAX_VIOLATIONS:,} that are listed"))
                break
            listed.append(violation)
        return listed

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
    return (type for type in types_of(schema.fields) if isinstance(type, Ref))


def patterns(fields: Sequence[Field]) -> Iterator[str]:
    """Yield the patterns of fields, without those of schemas that they refer to."""
    return (type.pattern for type in types_of(fields) if isinstance(type, Simple) and type.pattern is not None)


def types_of(fields: Sequence[Field]) -> Iterator[FieldType]:
    """Yield every type in fields, at any depth, in the order of the text. References are not followed."""
    types: list[FieldType] = [member.type for member in reversed(fields)]
    while types:
        type = types.pop()
        yield type
        if isinstance(type, ListOf):
            types.append(type.of)
        elif isinstance(type, Object):
            types.extend(member.type for member in reversed(type.fields))


def cycles(schemas: Mapping[str, Schema]) -> list[tuple[tuple[str, ...], Ref]]:
    """Return the cycles in which schemas contain themselves: the names along each, and the reference that closes it."""
    circles: list[tuple[tuple[str, ...], Ref]] = []
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
                circles.append((tuple(names[names.index(ref.schema) :]), ref))
            elif ref.schema in schemas and ref.schema not in done:
                way[ref.schema] = refs(schemas[ref.schema])
    return circles


def _reachable(schema: Schema, resolver: Resolver) -> Iterator[tuple[str, Schema | None]]:
    names: set[str] = set()
    waiting = [schema]
    for referring in waiting:
        for ref in refs(referring):
            if ref.schema in names:
                continue
            names.add(ref.schema)
            target = resolver(ref.schema)
            yield ref.schema, target
            if target is not None:
                waiting.append(target)


_MOST_OPTIONS = 20


def fields_words(fields: Iterable[Field]) -> str:
    """Return fields with their types on one line, for people."""
    return ", ".join(
        f"{field.name} {type_words(field.type)}{'' if field.required else ' (optional)'}" for field in fields
    )


def type_words(type: FieldType) -> str:
    """Return a type with its limits on one line, for people."""
    match type:
        case Enum(values=values):
            more = len(values) - _MOST_OPTIONS
            listed = " | ".join(encode(value) for value in values[:_MOST_OPTIONS])
            return f"one of {listed}" + (f" and {more} more" if more > 0 else "")
        case ListOf(of=of, max_items=most):
            return f"list of {type_words(of)}" + ("" if most is None else f" (at most {most:,})")
        case Object(fields=fields):
            return f"{{{fields_words(fields)}}}"
        case Ref(schema=schema):
            return schema
        case Simple(kind=kind):
            limits = ", ".join(_limit_words(type))
            return f"{kind.value} ({limits})" if limits else kind.value
        case _:
            assert_never(type)


def _limit_words(type: Simple) -> Iterator[str]:
    if type.minimum is not None and type.maximum is not None:
        yield f"{type.minimum} to {type.maximum}"
    elif type.minimum is not None:
        yield f"at least {type.minimum}"
    elif type.maximum is not None:
        yield f"at most {type.maximum}"
    if type.max_length is not None:
        yield f"at most {type.max_length:,} characters"
    if type.pattern is not None:
        yield f"matches {type.pattern}"
