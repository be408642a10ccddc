"""The syntax tree of a pipeline file as JSON, with the keys of the file and line numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, assert_never, cast

from msgspec import UNSET

from quire.diagnostics import Diagnostic, Severity
from quire.formats.pipeline.language import BODY_KEYS, GUARD_KEYS, Key, Role
from quire.formats.pipeline.syntax import AgentBody, Body, ExpressionText, GuardKeys, Pipeline, Step, StepsBody, Target
from quire.schema import Enum, Field, FieldType, ListOf, Object, Ref, Schema
from quire.values import Value

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import ParseResult
    from quire.source import Source

Tree = dict[str, Value]


def pipeline_tree(reading: ParseResult) -> Tree:
    source, file = reading.source, reading.file
    return {
        "valid": file is not None,
        "pipelines": [_pipeline(one, source) for one in file.pipelines] if file else [],
        "schemas": [_schema(one, source) for one in file.schemas] if file else [],
        "warnings": [_finding(found, source) for found in reading.of(Severity.WARNING)],
        "errors": [_finding(found, source) for found in reading.of(Severity.ERROR)],
    }


def _finding(found: Diagnostic, source: Source) -> Tree:
    line = source.position(found.span.start).line
    return {"line": line, "code": found.code.id, "message": found.message}


def _pipeline(pipeline: Pipeline, source: Source) -> Tree:
    return {
        "pipeline": pipeline.name.text,
        "description": pipeline.description,
        **_optional("dialect", "quire" if pipeline.dialect else None),
        **_optional("input", None if pipeline.input is None else _fields(pipeline.input)),
        "steps": [_step(step, source) for step in pipeline.steps],
        "line": source.position(pipeline.span.start).line,
    }


def _step(step: Step, source: Source) -> Tree:
    tree: Tree = {"kind": step.kind, **_entries(step.body, BODY_KEYS[type(step.body)], source)}
    if isinstance(step.body, AgentBody) and step.body.is_file:
        tree = {("prompt_file" if name == "prompt" else name): value for name, value in tree.items()}
    if step.guard:
        tree |= _entries(step.guard, GUARD_KEYS, source)
    if step.output:
        tree["output"] = step.output.text
    return {**tree, "line": source.position(step.span.start).line}


def _entries(node: Body | GuardKeys, keys: Iterable[Key], source: Source) -> Tree:
    """Return the keys that are written in a body or a guard. The tools of `capabilities` stand for themselves."""
    values = ((key, key.of(node)) for key in keys)
    return {
        "tools" if key.role == "tools" else key.name: _value(key.role, value, source)
        for key, value in values
        if value is not None
    }


def _value(role: Role, value: Any, source: Source) -> Value:
    match role:
        case "argument" | "command":
            # An expression differs from a literal that looks like one.
            return {"expr": value.text} if isinstance(value, ExpressionText) else {"literal": value.value}
        case "arguments":
            return {name.text: _value("argument", argument, source) for name, argument in value}
        case "items":
            return cast("Value", value.value)
        case "tools" | "variables":
            return [name.text for name in value]
        case "target":
            return cast("Value", value.pipeline.text)
        case "passes":
            names = [(one.name.text, one.value) for one in value]
            is_list = not any(given for _, given in names)
            return (
                [name for name, _ in names]
                if is_list
                else {name: given.text if given else name for name, given in names}
            )
        case "step":
            return _step(value, source)
        case "steps":
            return [_step(step, source) for step in value]
        case "branches":
            return {name.text: _step(branch, source) for name, branch in value}
        case "cases":
            return {label.text: _value("choice", target, source) for label, target in value}
        case "choice" if isinstance(value, StepsBody):
            return {"steps": _value("steps", value.steps, source)}
        case "choice" if isinstance(value, Target):
            return {"pipeline": value.pipeline.text, "pass": _value("passes", value.passes, source)}
        case "number" | "flag" | "duration":
            return cast("Value", value)
        case "policy":
            return str(value)
        case "expression" | "prompt" | "tool" | "identity" | "model" | "schema" | "store" | "choice" | "word":
            return cast("Value", value.text)
        case _:
            assert_never(role)


def _optional(key: str, value: Value) -> Tree:
    return {} if value is None else {key: value}


def _schema(schema: Schema, source: Source) -> Tree:
    line = source.position(schema.span.start).line
    return {"schema": schema.name, "fields": _fields(schema.fields), "line": line}


def _fields(fields: tuple[Field, ...]) -> Tree:
    return {one.name: _field(one) for one in fields}


def _field(field: Field) -> Tree:
    tree: Tree = {
        **_type(field.type),
        "required": field.required,
        **_optional("description", field.description or None),
    }
    return tree if field.default is UNSET else {**tree, "default": field.default}


def _type(type: FieldType) -> Tree:
    match type:
        case Enum(values=values):
            return {"type": "enum", "values": list(values)}
        case ListOf(of=of):
            return {"type": "list", "of": _type(of), **_optional("max_items", type.max_items)}
        case Object(fields=fields):
            return {"type": "object", "fields": _fields(fields)}
        case Ref(schema=name):
            return {"type": "ref", "schema": name}
    limits = (_optional(key, getattr(type, key)) for key in ("minimum", "maximum", "max_length", "pattern"))
    return {"type": type.kind.value} | {key: limit for one in limits for key, limit in one.items()}
