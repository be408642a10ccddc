"""Edits of the schemas of a pipeline's file: fields made optional, values of enums and limits dropped.

Only schemas that a step holds its result to, directly or through others, are changed: the rest changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace as replace_schema
from typing import TYPE_CHECKING, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.plan.pipeline_work import Agent, Invoke
from quire.schema import Schema, object_schema, refs
from quire.schema_types import Enum, Field, FieldType, ListOf, Object, Ref, Simple
from quire.testing.mutation.edits import shown
from quire.testing.mutation.kills import Kill
from quire.values import encode

if TYPE_CHECKING:
    from quire.plan.nodes import Plan
    from quire.values import Value

_LIMITS = ("minimum", "maximum", "max_length", "pattern")


class SchemaEdit(Struct, frozen=True):
    """One change of one schema."""

    operator: str
    schema: str
    field: str
    """The dotted name of the field."""
    detail: str
    change: str
    plan: Plan
    kill: Kill


def schema_edits(plan: Plan) -> Iterator[SchemaEdit]:
    """Yield every edit of the schemas that steps use, in the order of the file."""
    used = used_schemas(plan)
    for name, schema in plan.schemas.items():
        if name not in used:
            continue
        asking = _asking(plan, name)
        for operator, field, detail, change, fields in _fields(schema.fields, ""):
            schemas = {**plan.schemas, name: replace_schema(schema, fields=fields)}
            sentence = f"{change} of the schema {name}"
            fails = operator != "drop_enum_value"
            kill = Kill("status", value="failed" if fails else "completed")
            if asking:
                # An agent reads its schema, so a prompt shows the change.
                kill = Kill("prompts", asking, value=_written(schema, fields))
            yield SchemaEdit(operator, name, field, detail, sentence, replace(plan, schemas=schemas), kill)


def _asking(plan: Plan, name: str) -> str:
    """Return the label of the first agent whose reply has to fit a schema, or one that refers to it; else nothing."""
    for _, step in plan.steps():
        if isinstance(step.work, Agent) and step.work.schema and name in _reached(plan, [step.work.schema]):
            return step.label
    return ""


def _written(schema: Schema, fields: tuple[Field, ...]) -> str:
    """Return a part of the schema as the model reads it that the changed one does not have."""
    old, new = object_schema(schema.fields), object_schema(fields)
    if old["required"] != new["required"]:
        return f'"required":{encode(old["required"])}'
    properties = cast("dict[str, Value]", old["properties"])
    changed = cast("dict[str, Value]", new["properties"])
    name = next((name for name in properties if properties[name] != changed[name]), "")
    return f"{encode(name)}:{encode(properties[name])}" if name else encode(schema.name)


def used_schemas(plan: Plan) -> set[str]:
    """Return the names of the schemas that a step names, and of those that they refer to."""
    named = [step.work.schema for _, step in plan.steps() if isinstance(step.work, Agent | Invoke)]
    return _reached(plan, [name for name in named if name])


def _reached(plan: Plan, waiting: list[str]) -> set[str]:
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        schema: Schema | None = plan.schemas.get(name)
        if name not in found and schema is not None:
            found.add(name)
            waiting += [ref.schema for ref in refs(schema)]
    return found


_Edited = Iterator[tuple[str, str, str, str, tuple[Field, ...]]]
"""The operator, the field, the detail, the sentence, and all fields."""


def _fields(fields: tuple[Field, ...], above: str) -> _Edited:
    for number, field in enumerate(fields):
        name = f"{above}.{field.name}" if above else field.name

        def put(one: Field, number: int = number) -> tuple[Field, ...]:
            return (*fields[:number], one, *fields[number + 1 :])

        if field.required:
            yield "make_optional", name, "", f"does not require the field {name}", put(replace(field, required=False))
        for operator, inner, detail, change, type in _types(field.type, name):
            yield operator, inner, detail, change, put(replace(field, type=type))


def _types(type: FieldType, name: str) -> Iterator[tuple[str, str, str, str, FieldType]]:
    match type:
        case Enum(values=values):
            for number, value in enumerate(values if len(values) > 1 else ()):
                fewer = Enum(values[:number] + values[number + 1 :])
                yield "drop_enum_value", name, str(number), f"drops the value {shown(value)} of the field {name}", fewer
        case Simple():
            for limit in _LIMITS:
                if getattr(type, limit) is not None:
                    sentence = f"drops the {limit} of the field {name}"
                    yield "drop_schema_limit", name, limit, sentence, replace(type, **{limit: None})
        case ListOf(of=of, max_items=most):
            if most is not None:
                sentence = f"drops the max_items of the field {name}"
                yield "drop_schema_limit", name, "max_items", sentence, replace(type, max_items=None)
            for operator, inner, detail, change, found in _types(of, f"{name}[]"):
                if not isinstance(found, ListOf):
                    yield operator, inner, detail, change, replace(type, of=found)
        case Object(fields=fields):
            for operator, inner, detail, change, edited in _fields(fields, name):
                yield operator, inner, detail, change, Object(edited)
        case Ref():
            return
