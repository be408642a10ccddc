"""A schema, the others that it refers to, and the ways in which they contain each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from quire.schema.json_schema import object_schema
from quire.schema.types import Field, FieldType, ListOf, Object, Ref
from quire.schema.violations import Violation, violations
from quire.source import NOWHERE, Span
from quire.values import Value

MAX_VIOLATIONS = 1_000


@dataclass(frozen=True, slots=True)
class Schema:
    """A name and its fields. Extra fields of a value are nobody's concern: they are kept."""

    name: str
    fields: tuple[Field, ...]
    span: Span = field(default=NOWHERE, compare=False)

    def violations(self, value: Value, resolver: Resolver) -> list[Violation]:
        """All that is wrong with a value, in the order of the fields; none if it conforms.

        A schema that the resolver does not know is a violation where a value is held to it. Only the first
        `MAX_VIOLATIONS` are listed, and then that there are more.
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
        """The same as JSON Schema. What is referred to stands once, in `$defs`; nothing conforms to what is unknown."""
        defined: dict[str, Value] = {}
        for name, schema in _reachable(self, resolver):
            defined[name] = {"not": {}} if schema is None else object_schema(schema.fields)
        made: dict[str, Value] = {"title": self.name, **object_schema(self.fields)}
        return {**made, "$defs": defined} if defined else made

    def undefined(self, resolver: Resolver) -> tuple[str, ...]:
        """The names of schemas that are referred to, here or further on, and that the resolver does not know."""
        return tuple(name for name, schema in _reachable(self, resolver) if schema is None)


Resolver: TypeAlias = Callable[[str], Schema | None]
"""Finds the schema of a name: `.get` of the mapping of a file's schemas."""


def refs(schema: Schema) -> Iterator[Ref]:
    """Every reference of a schema, in the order of its text."""
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
    """The ways in which schemas contain themselves: the names along each, and the reference that closes it."""
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
