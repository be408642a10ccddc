"""Fields as JSON Schema. Extra properties are allowed, as in a schema of ours."""

from __future__ import annotations

from collections.abc import Sequence

from quire.schema.types import Enum, Field, FieldType, Kind, ListOf, Ref, Simple
from quire.values import Value

_TYPES = {Kind.BOOL: "boolean", Kind.STRING: "string", Kind.NUMBER: "number"}


def object_schema(fields: Sequence[Field]) -> dict[str, Value]:
    return {
        "type": "object",
        "properties": {one.name: _type_schema(one.type) for one in fields},
        "required": [one.name for one in fields if one.required],
    }


def _type_schema(type: FieldType) -> dict[str, Value]:
    """Recursion is bounded by the depth of the document that the type was read from."""
    if isinstance(type, Simple):
        return {"type": _TYPES[type.kind]}
    if isinstance(type, Enum):
        # Some providers want a type beside the values.
        texts = all(isinstance(value, str) for value in type.values)
        return {"type": "string", "enum": type.distinct()} if texts else {"enum": type.distinct()}
    if isinstance(type, ListOf):
        return {"type": "array", "items": _type_schema(type.of)}
    if isinstance(type, Ref):
        return {"$ref": f"#/$defs/{type.schema}"}
    return object_schema(type.fields)
