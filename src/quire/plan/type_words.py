"""Words for types of schemas and inputs, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from quire.schema import Enum, Field, FieldType, ListOf, Object, Ref, Simple
from quire.values import encode

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
