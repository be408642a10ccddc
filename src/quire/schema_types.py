"""The types that fields of a schema can have, and fields themselves: plain data, with how literals are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import force_setattr

from quire.source import NOWHERE, Span
from quire.values import Value  # noqa: TC001  the types of the fields are evaluated when they are asked for


class Kind(StrEnum):
    """Names of the types without parts."""

    BOOL = "bool"
    STRING = "string"
    NUMBER = "number"


class Simple(Struct, frozen=True):
    """A type without parts, and limits on its values."""

    kind: Kind
    minimum: int | float | None = None
    maximum: int | float | None = None
    max_length: int | None = None
    pattern: str | None = None
    """A portable pattern (`quire.safe_regex`) that occurs in the text."""


class Enum(Struct, frozen=True, eq=False):
    """One of several literals."""

    values: tuple[Value, ...]
    _simple: frozenset[tuple[bool, object]] = frozenset()
    _nested: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        nested = tuple(value for value in self.values if _is_nested(value))
        simple = frozenset(_distinct(value) for value in self.values if not _is_nested(value))
        force_setattr(self, "_nested", nested)
        force_setattr(self, "_simple", simple)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Enum) and self.values == other.values

    __ne__ = object.__ne__  # follows `==`; that of a Struct compares identities

    def __hash__(self) -> int:
        return hash(self.values)

    def distinct(self) -> list[Value]:
        """Return the values without repetitions. Repeated lists and objects are kept."""
        distinct = {
            (str(index) if _is_nested(value) else _distinct(value)): value for index, value in enumerate(self.values)
        }
        return list(distinct.values())

    def __contains__(self, value: Value) -> bool:
        if _is_nested(value):
            return any(_equal(value, literal) for literal in self._nested)
        return _distinct(value) in self._simple


class ListOf(Struct, frozen=True):
    of: Simple | Enum | Object | Ref
    max_items: int | None = None


class Object(Struct, frozen=True):
    fields: tuple[Field, ...]


class Ref(Struct, frozen=True, eq=False):
    """A reference to another schema."""

    schema: str
    span: Span = NOWHERE
    """Where the name of the other schema is in the document."""

    def __eq__(self, other: object) -> bool:
        """Compare the names at all places."""
        return isinstance(other, Ref) and self.schema == other.schema

    __ne__ = object.__ne__  # follows `==`; that of a Struct compares identities

    def __hash__(self) -> int:
        return hash(self.schema)


FieldType: TypeAlias = Simple | Enum | ListOf | Object | Ref


class Field(Struct, frozen=True):
    """A named part of an object, or an input that a document declares."""

    name: str
    type: FieldType
    required: bool = True
    description: str = ""
    default: Value | UnsetType = UNSET
    """The value of an input that is not given. Fields of schemas have none."""

    @property
    def is_needed(self) -> bool:
        """True if a value must be given."""
        return self.required and self.default is UNSET


def _is_nested(value: Value) -> bool:
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str)


def _distinct(value: Value) -> tuple[bool, object]:
    """Return a key for a value that is not a list or an object. In Python `True` equals `1`, in JSON it does not."""
    return isinstance(value, bool), value


def _equal(value: Value, other: Value) -> bool:
    """Compare as JSON does. `other` is a literal of a document, which bounds the recursion."""
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return value.keys() == other.keys() and all(_equal(value[key], other[key]) for key in other)
    if isinstance(value, str) or isinstance(other, str):
        return value == other
    if isinstance(value, Sequence) and isinstance(other, Sequence):
        return len(value) == len(other) and all(map(_equal, value, other))
    return value == other
