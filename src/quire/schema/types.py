"""The types of fields, and when two literals are the same.

Equality is JSON's: `1` is `1.0`, and neither is `true`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from quire.source import NOWHERE, Span
from quire.values import Value


class Kind(StrEnum):
    """The types that need nothing else."""

    BOOL = "bool"
    STRING = "string"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Simple:
    kind: Kind


@dataclass(frozen=True, slots=True)
class Enum:
    values: tuple[Value, ...]
    _simple: frozenset[tuple[bool, object]] = field(init=False, repr=False, compare=False)
    _nested: tuple[Value, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        nested = tuple(one for one in self.values if _is_nested(one))
        simple = frozenset(_distinct(one) for one in self.values if not _is_nested(one))
        object.__setattr__(self, "_nested", nested)
        object.__setattr__(self, "_simple", simple)

    def distinct(self) -> list[Value]:
        """The values without repetitions, as far as those without parts are concerned."""
        found = {(str(index) if _is_nested(one) else _distinct(one)): one for index, one in enumerate(self.values)}
        return list(found.values())

    def __contains__(self, value: Value) -> bool:
        if _is_nested(value):
            return any(_equal(value, one) for one in self._nested)
        return _distinct(value) in self._simple


@dataclass(frozen=True, slots=True)
class ListOf:
    of: Simple | Enum | Object | Ref


@dataclass(frozen=True, slots=True)
class Object:
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Ref:
    """`span` is where the name of the other schema stands."""

    schema: str
    span: Span = field(default=NOWHERE, compare=False)


FieldType: TypeAlias = Simple | Enum | ListOf | Object | Ref


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: FieldType
    required: bool = True


def _is_nested(value: Value) -> bool:
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str)


def _distinct(value: Value) -> tuple[bool, object]:
    """A key for a value without parts: Python takes `True` for `1`, JSON does not."""
    return isinstance(value, bool), value


def _equal(one: Value, other: Value) -> bool:
    """As JSON has it. `other` is a literal of a document, which bounds the recursion."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in other)
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        return len(one) == len(other) and all(map(_equal, one, other))
    return one == other
