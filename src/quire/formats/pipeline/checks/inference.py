"""The type of an expression, as far as schemas, literals and operators tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from quire.expr.syntax import (
    RESERVED,
    Arithmetic,
    Compare,
    Constant,
    Each,
    Join,
    Logic,
    Negate,
    Node,
    Not,
    Path,
    Total,
)
from quire.schema import Enum, Field, FieldType, Kind, ListOf, Object, Ref, Schema, Simple
from quire.values import Value

Types: TypeAlias = "Mapping[str, FieldType | None]"
"""By name; None is a type that nobody knows."""

_BOOL, _NUMBER, _TEXT = Simple(Kind.BOOL), Simple(Kind.NUMBER), Simple(Kind.STRING)


@dataclass(frozen=True, slots=True)
class Scope:
    """What is known of the stores, of the pipe, and of the other bindings of a place."""

    stores: Types
    pipe: FieldType | None
    names: Types

    def with_name(self, name: str, type: FieldType | None) -> Scope:
        return Scope(self.stores, self.pipe, {**self.names, name: type})

    def begin(self, segments: tuple[str, ...]) -> tuple[FieldType | None, tuple[str, ...]]:
        """The type of what a path begins at, and the segments that lead on from there."""
        root, rest = segments[0], segments[1:]
        if root in self.names:
            return self.names[root], rest
        if root == "pipe":
            return self.pipe, rest
        if root == "ctx":
            return (self.stores.get(rest[0]), rest[1:]) if rest else (None, ())
        return (None if root in RESERVED else self.stores.get(root)), rest


@dataclass(frozen=True, slots=True)
class Shapes:
    """The schemas of a file."""

    schemas: Mapping[str, Schema]

    def resolved(self, type: FieldType | None) -> FieldType | None:
        """The type with a reference followed."""
        if not isinstance(type, Ref):
            return type
        schema = self.schemas.get(type.schema)
        return Object(schema.fields) if schema else None

    def infer(self, node: Node, scope: Scope) -> FieldType | None:
        match node:
            case Constant(value=value):
                return _literal(value)
            case Path(segments=segments):
                known, rest = scope.begin(segments)
                for segment in rest:
                    inside = parts_of(self.resolved(known)) or ()
                    known = next((one.type for one in inside if one.name == segment), None)
                return known
            case Compare() | Not():
                return _BOOL
            case Negate() | Total():
                return _NUMBER
            case Join():
                return _TEXT
            case Each(name="all" | "any"):
                return _BOOL
            case Each(name="filter", source=source):
                return self.infer(source, scope)
            case Arithmetic(first=first, rest=operands):
                if any(operator != "+" for operator, _ in operands):
                    return _NUMBER
                known = self.infer(first, scope)
                return known if known in (_NUMBER, _TEXT) else None
            case Logic(operands=parts):
                found = [self.infer(part, scope) for part in parts]
                return found[0] if all(one == found[0] for one in found) else None
        return None


def element(type: FieldType | None) -> FieldType | None:
    """The type of the items of a list."""
    return type.of if isinstance(type, ListOf) else None


def parts_of(type: FieldType | None) -> tuple[Field, ...] | None:
    """The fields of an object; None for what has no fields."""
    return type.fields if isinstance(type, Object) else None


def order_of(type: FieldType | None) -> str | None:
    """What a value is to `<` and its kin: booleans count as numbers. None where that is not known."""
    match type:
        case Simple(kind=Kind.STRING):
            return "text"
        case Simple():
            return "number"
        case ListOf():
            return "list"
        case Object():
            return "map"
        case Enum(values=values):
            kinds = {order_of(_literal(value)) for value in values}
            return kinds.pop() if len(kinds) == 1 else None
    return None


def _literal(value: Value) -> FieldType | None:
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int | float):
        return _NUMBER
    return _TEXT if isinstance(value, str) else None
