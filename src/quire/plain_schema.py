"""Recognize values that clearly match a simple JSON Schema, without a library. Most arguments of most tools do.

Loading a validator takes longer than all other work before the first step of most runs. It is still used for every
value that does not clearly match: it decides, and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from quire.values import Value

_SAYS_NOTHING = frozenset({"description", "title", "default", "examples"})
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "object": dict,
    "array": (list, tuple),
    "null": type(None),
}
_KNOWN = frozenset(
    {
        *_SAYS_NOTHING,
        *("type", "enum", "anyOf", "minimum", "maximum", "minLength", "maxLength", "items", "minItems", "maxItems"),
        *("properties", "required", "additionalProperties", "if", "else"),
    }
)


def plainly_fits(schema: Value, value: Value) -> bool:
    """Return True if a value certainly matches.

    False means nothing: the schema may use a keyword that is not known here.
    """
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping) or not schema.keys() <= _KNOWN:
        return False
    return (
        _is_of_type(schema, value)
        and ("enum" not in schema or _is_among(schema["enum"], value))
        and (
            "anyOf" not in schema or any(plainly_fits(option, value) for option in cast("list[Value]", schema["anyOf"]))
        )
        and _has_size(schema, value)
        and _has_parts(schema, value)
    )


def _is_of_type(schema: Mapping[str, Value], value: Value) -> bool:
    if "type" not in schema:
        return True
    kind = schema["type"]
    if kind in ("integer", "number"):
        # 3.0 is an integer too; the validator decides about it.
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(kind, str) and isinstance(value, _KINDS.get(kind, ()))


def _is_among(options: Value, value: Value) -> bool:
    """Compare texts only: Python takes 1, 1.0 and true for equal, a schema does not."""
    return isinstance(value, str) and isinstance(options, list | tuple) and value in options


def _has_size(schema: Mapping[str, Value], value: Value) -> bool:
    size: object = value
    least, most = "minimum", "maximum"
    if isinstance(value, str):
        size, least, most = len(value), "minLength", "maxLength"
    elif isinstance(value, list | tuple):
        size, least, most = len(value), "minItems", "maxItems"
    elif isinstance(value, bool) or not isinstance(value, int):
        return True
    lower, upper = schema.get(least), schema.get(most)
    fits_lower = lower is None or (isinstance(lower, int) and cast("int", size) >= lower)
    return fits_lower and (upper is None or (isinstance(upper, int) and cast("int", size) <= upper))


def _has_parts(schema: Mapping[str, Value], value: Value) -> bool:
    if isinstance(value, list | tuple):
        return "items" not in schema or all(plainly_fits(schema["items"], item) for item in value)
    if not isinstance(value, Mapping):
        return not schema.keys() & {"if", "else"}
    if not _has_all(schema, value) or not _follows(schema, value):
        return False
    properties = cast("Mapping[str, Value]", schema.get("properties", {}))
    rest = schema.get("additionalProperties", True)
    return all(plainly_fits(properties.get(name, rest), part) for name, part in value.items())


def _has_all(schema: Mapping[str, Value], value: Mapping[str, Value]) -> bool:
    return all(name in value for name in cast("list[str]", schema.get("required", [])))


def _follows(schema: Mapping[str, Value], value: Mapping[str, Value]) -> bool:
    """Check the one form of `if` that built-in tools use: some names are required unless others are present."""
    if not schema.keys() & {"if", "else"}:
        return True
    condition, otherwise = schema.get("if"), schema.get("else", True)
    if not isinstance(condition, Mapping) or condition.keys() != {"required"}:
        return False
    return _has_all(condition, value) or plainly_fits(otherwise, value)
