"""The inputs of documents as JSON Schema: what a form asks for, and what a client of MCP is told."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from quire.engine.inputs import converted, kind_of
from quire.schema import Schema

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import Pipeline
    from quire.library.document import Document
    from quire.plan.nodes import Input, Plan
    from quire.plan.thread import Parameter
    from quire.schema import Field
    from quire.values import Value


def input_schema(document: Document) -> dict[str, Value]:
    """Return the schema of the inputs of a document. Raises `BadDocument` for one that cannot run."""
    plan = document.runnable()
    if plan.format != "pipeline":
        return declared_schema(plan)
    from quire.library.lookup import tree_of

    return pipeline_schema(plan, tree_of(document))


def pipeline_schema(plan: Plan, tree: Pipeline) -> dict[str, Value]:
    """Return the schema of a pipeline. Without a declaration inputs are inferred from what it reads before it writes,
    take any JSON, and additional ones are accepted."""
    if plan.declared is not None:
        return _fields_schema(plan, plan.declared)
    from quire.formats.pipeline.inputs import inferred_inputs, optional_inputs

    required, optional = inferred_inputs(tree), optional_inputs(tree)
    properties: dict[str, Value] = {name: {"description": f"Read as ctx.{name}; any JSON."} for name in required}
    properties |= {name: {"description": f"Read as ctx.{name} if it is given; any JSON."} for name in optional}
    return _object(properties, required, more=True)


def _fields_schema(plan: Plan, fields: tuple[Field, ...]) -> dict[str, Value]:
    """Return the schema of declared inputs, with the schemas that they refer to."""
    made = Schema("", fields).json_schema(plan.schemas.get)
    properties, required = made["properties"], made["required"]
    assert isinstance(properties, dict)  # noqa: S101  # as `json_schema` writes it
    assert isinstance(required, list)  # noqa: S101
    found = _object(properties, [str(name) for name in required], more=False)
    return {**found, "$defs": made["$defs"]} if "$defs" in made else found


def declared_schema(plan: Plan) -> dict[str, Value]:
    """Return the schema of a playbook or a directive."""
    if thread := plan.thread:
        needed = [one.name for one in thread.inputs if one.required and one.default is None]
        # A directive that declares no inputs takes any.
        return _object({one.name: _parameter(one) for one in thread.inputs}, needed, more=not thread.inputs)
    needed = [wanted.name for wanted in plan.inputs if wanted.required and wanted.default is None]
    return _object({wanted.name: _property(wanted) for wanted in plan.inputs}, needed, more=False)


def _object(properties: Mapping[str, Value], required: Collection[str], *, more: bool) -> dict[str, Value]:
    schema: dict[str, Value] = {"type": "object", "properties": dict(properties), "additionalProperties": more}
    return {**schema, "required": list(required)} if required else schema


def _parameter(one: Parameter) -> dict[str, Value]:
    kind = kind_of(one.type)
    found: dict[str, Value] = {"type": kind} if kind else {}
    if one.description:
        found["description"] = one.description
    if one.default is not None:
        try:
            found["default"] = converted(one.type, one.default)
        except ValueError:
            found["default"] = one.default
    return found


def _property(wanted: Input) -> dict[str, Value]:
    kind = wanted.type if wanted.type in ("number", "boolean") else "string"
    found: dict[str, Value] = {"type": kind}
    if wanted.type == "enum" and wanted.options:
        found["enum"] = list(wanted.options)
    if wanted.description:
        found["description"] = wanted.description
    if wanted.default is not None:
        found["default"] = _default(kind, wanted.default)
    return found


def _default(kind: str, text: str) -> Value:
    """Convert the default to its type; a default that does not fit its type stays a text."""
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "number":
        try:
            return float(text) if "." in text or "e" in text.lower() else int(text)
        except ValueError:
            return text
    return text
