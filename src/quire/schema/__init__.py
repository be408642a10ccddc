"""Schemas: the shapes that a pipeline holds results and replies to.

A schema is a set of named fields, each of one type. `Schema.violations` says everything that is wrong with a value, by
path; `Schema.json_schema` says the same as JSON Schema, for models and tools that understand only that. The two agree
on every value, which a test checks with a validator that knows nothing of ours.
"""

from __future__ import annotations

from quire.schema.schema import MAX_VIOLATIONS, Resolver, Schema, cycles, refs
from quire.schema.types import Enum, Field, FieldType, Kind, ListOf, Object, Ref, Simple
from quire.schema.violations import Violation

__all__ = [
    "MAX_VIOLATIONS",
    "Enum",
    "Field",
    "FieldType",
    "Kind",
    "ListOf",
    "Object",
    "Ref",
    "Resolver",
    "Schema",
    "Simple",
    "Violation",
    "cycles",
    "refs",
]
