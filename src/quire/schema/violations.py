"""Everything that is wrong with a value, by path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from quire.schema.types import Enum, Field, FieldType, Kind, ListOf, Object, Ref
from quire.values import Value, encode

_SHOWN_TEXT = 60
_SHOWN_VALUES = 12
_SHOWN_NUMBER = 10**18
_NAMES = {Kind.BOOL: "true or false", Kind.STRING: "text", Kind.NUMBER: "a number"}


@dataclass(frozen=True, slots=True)
class Violation:
    """`path` is `""` for the value itself, else like `o.f` or `tags[1]`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path} {self.message}" if self.path else f"the value {self.message}"


def violations(
    fields: tuple[Field, ...], value: Value, fields_of: Callable[[str], tuple[Field, ...] | None]
) -> Iterator[Violation]:
    """Holds a value to fields; `fields_of` knows those of other schemas.

    Walks with a stack of its own; lists are walked lazily, so a long one costs no memory. It comes to an end
    even where schemas contain themselves, because every step goes down into the value.
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
    """The fields that the value has, and with None for a type those that it lacks."""
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
    """A value in a message: its kind, and what it is where that is short."""
    if isinstance(value, str):
        return encode(value if len(value) <= _SHOWN_TEXT else f"{value[: _SHOWN_TEXT - 1]}…")
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
