"""Compare the type of an argument of a tool with the JSON Schema of the argument."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.expr import python_text
from quire.formats.pipeline.function_types import kind_of_value, with_article
from quire.schema import Enum

if TYPE_CHECKING:
    from quire.schema import FieldType
    from quire.values import Value

_SHOWN = 8


def argument_problem(schema: Mapping[str, Value], type: FieldType | None, kind: str | None) -> str:
    """Return why no value of a type fits the schema of an argument; empty if one may."""
    if isinstance(type, Enum):
        allowed = schema.get("enum")
        if isinstance(allowed, list) and not any(value in allowed for value in type.values):
            return f"it takes {', '.join(map(python_text, allowed[:_SHOWN]))}"
    wanted = _kinds(schema)
    if wanted is None or kind is None or kind in wanted:
        return ""
    return f"it takes {' or '.join(with_article(one) for one in sorted(wanted))}, not {with_article(kind)}"


_JSON_KINDS = {
    "string": "text",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "array": "list",
    "object": "map",
    "null": "null",
}


def _kinds(schema: Mapping[str, Value]) -> frozenset[str] | None:
    """Return the kinds that a schema of one argument allows; None if it may allow any."""
    if "enum" in schema:
        allowed = schema["enum"]
        return frozenset(kind_of_value(one) for one in allowed) if isinstance(allowed, list) else None
    if isinstance(several := schema.get("anyOf"), list):
        parts = [_kinds(one) if isinstance(one, Mapping) else None for one in several]
        return None if None in parts else frozenset(kind for part in parts if part for kind in part)
    named = schema.get("type")
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    found = frozenset(_JSON_KINDS[one] for one in names if isinstance(one, str) and one in _JSON_KINDS)
    return found or None
