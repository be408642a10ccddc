"""Types of the values of a pipeline, inferred from schemas, literals and operators. None is an unknown type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from quire.expr import syntax as nodes
from quire.expr.syntax import RESERVED, Each, FunctionCall, Node, walk
from quire.schema import Enum, Field, FieldType, Kind, ListOf, Object, Ref, Schema, Simple

if TYPE_CHECKING:
    from quire.values import Value

Types: TypeAlias = "Mapping[str, FieldType | None]"
"""Types by name; None is an unknown type."""

LOOP_NAMES = frozenset({"acc", "round"})
"""Names of a loop that the fans in it see, in the Quire dialect."""
BOOL, NUMBER, TEXT = Simple(Kind.BOOL), Simple(Kind.NUMBER), Simple(Kind.STRING)


class KnownTypes(Struct, frozen=True):
    """Known types of the stores, of the pipe, and of the other bindings at one place."""

    stores: dict[str, FieldType | None]
    """Changed as steps write, so a scope with stores of its own has a copy."""
    pipe: FieldType | None
    names: Types

    def inside(self, names: Types) -> KnownTypes:
        """Return the types in a scope of its own, with these bindings."""
        return KnownTypes(dict(self.stores), self.pipe, names)

    def of_loops(self) -> Types:
        """Return the types of the names of the loops around a place."""
        return {name: type for name, type in self.names.items() if name in LOOP_NAMES}

    def with_name(self, name: str, type: FieldType | None) -> KnownTypes:
        return KnownTypes(self.stores, self.pipe, {**self.names, name: type})

    def begin(self, segments: tuple[str, ...]) -> tuple[FieldType | None, tuple[str, ...]]:
        """Return the type of the value at which a path begins, and the segments after it."""
        root, rest = segments[0], segments[1:]
        if root in self.names:
            return self.names[root], rest
        if root == "pipe":
            return self.pipe, rest
        if root == "ctx":
            return (self.stores.get(rest[0]), rest[1:]) if rest else (None, ())
        return (None if root in RESERVED else self.stores.get(root)), rest


class Shapes(Struct, frozen=True):
    """The schemas of a file."""

    schemas: Mapping[str, Schema]

    def resolved(self, type: FieldType | None) -> FieldType | None:
        """Return the type with a reference followed."""
        if not isinstance(type, Ref):
            return type
        schema = self.schemas.get(type.schema)
        return Object(schema.fields) if schema else None

    def infer(self, node: Node, scope: KnownTypes) -> FieldType | None:
        """Return the type of an expression; None if it is not known."""
        match node:
            case nodes.Constant(value=value):
                return _literal(value)
            case nodes.Path(segments=segments):
                type, rest = scope.begin(segments)
                for segment in rest:
                    inside = parts_of(self.resolved(type)) or ()
                    type = next((field.type for field in inside if field.name == segment), None)
                return type
            case nodes.ListOf(items=[first, *others]):
                type = self.infer(first, scope)
                alike = all(self.infer(item, scope) == type for item in others)
                return ListOf(type) if type is not None and alike and not isinstance(type, ListOf) else None
            case nodes.Compare() | nodes.Not():
                return BOOL
            case nodes.Negate() | nodes.Total():
                return NUMBER
            case nodes.Join():
                return TEXT
            case Each(name="all" | "any"):
                return BOOL
            case Each(name="filter", source=source):
                return self.infer(source, scope)
            case Each(name="map", source=source, parameter=parameter, body=body):
                item = element(self.resolved(self.infer(source, scope)))
                made = self.infer(body, scope.with_name(parameter, item))
                return None if made is None or isinstance(made, ListOf) or _may_be_null(body) else ListOf(made)
            case nodes.Arithmetic(first=first, rest=operands):
                if any(operator != "+" for operator, _ in operands):
                    return NUMBER
                type = self.infer(first, scope)
                kind = Simple(type.kind) if isinstance(type, Simple) else None
                return kind if kind in (NUMBER, TEXT) else None
            case nodes.Logic(operands=parts):
                types = [self.infer(part, scope) for part in parts]
                return types[0] if all(type == types[0] for type in types) else None
            case FunctionCall():
                from quire.formats.pipeline.operand_types import type_of_call

                def of_key(part: Node, item: FieldType | None) -> FieldType | None:
                    return self.known(part, scope.with_name(node.parameter, item))

                return type_of_call(node, lambda part: self.known(part, scope), of_key)
        return None

    def known(self, node: Node, scope: KnownTypes) -> FieldType | None:
        """Return the type of an expression with a reference followed."""
        return self.resolved(self.infer(node, scope))

    def inside(self, node: Each | FunctionCall, scope: KnownTypes) -> KnownTypes:
        """Return the types that are known in the lambda of a call."""
        source = node.source if isinstance(node, Each) else node.arguments[0]
        return scope.with_name(node.parameter, element(self.infer(source, scope)))


_NULL_OF_NOTHING = frozenset({"first", "last", "min", "max"})
"""Functions that give null for an empty list."""


def _may_be_null(node: Node) -> bool:
    """Tell whether the value of an expression may be null although its type is known."""
    return any(isinstance(part, FunctionCall) and part.name in _NULL_OF_NOTHING for part, _ in walk(node))


def element(type: FieldType | None) -> FieldType | None:
    """Return the type of the items of a list."""
    return type.of if isinstance(type, ListOf) else None


def parts_of(type: FieldType | None) -> tuple[Field, ...] | None:
    """Return the fields of an object; None for any other type."""
    return type.fields if isinstance(type, Object) else None


def order_of(type: FieldType | None) -> str | None:
    """Return the kind of a value for `<` and its relatives: booleans count as numbers. None if it is not known."""
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
        return BOOL
    if isinstance(value, int | float):
        return NUMBER
    return TEXT if isinstance(value, str) else None
