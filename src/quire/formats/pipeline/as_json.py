"""The syntax tree of a pipeline file as JSON, with the keys of the file and line numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from msgspec import UNSET

from quire.diagnostics import Diagnostic, Severity
from quire.formats.pipeline.syntax import (
    AgentBody,
    AgentSettings,
    Argument,
    Body,
    CallBody,
    ExpressionText,
    FailBody,
    FoldBody,
    ForEachBody,
    GuardKeys,
    MatchBody,
    Name,
    ParallelBody,
    Pipeline,
    RepeatBody,
    ShellBody,
    Step,
    StepsBody,
    StopBody,
    Target,
    ToolBody,
    TransformBody,
)
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
    tree: Tree = {"kind": step.kind, **_body(step.body, source)}
    if step.guard:
        tree |= _guard(step.guard)
    if step.output:
        tree["output"] = step.output.text
    return {**tree, "line": source.position(step.span.start).line}


def _guard(guard: GuardKeys) -> Tree:
    return {
        **_optional("when", _text(guard.when)),
        **_optional("on_error", str(guard.on_error) if guard.on_error else None),
        **_optional("default", _text(guard.default)),
        **_optional("timeout", guard.timeout),
    }


def _body(body: Body, source: Source) -> Tree:
    match body:
        case TransformBody(value=value):
            return {"value": value.text}
        case ToolBody(name=name, args=args, schema=schema):
            tree: Tree = {"name": name.text, "args": {key.text: _argument(value) for key, value in args}}
            return {**tree, **_optional("schema", _text(schema))}
        case ShellBody():
            return _command(body)
        case AgentBody():
            return _agent(body)
        case CallBody(target=target):
            return _target(target)
        case MatchBody():
            return _match(body, source)
        case StepsBody(steps=steps):
            return {"do": [_step(one, source) for one in steps]}
        case FoldBody(init=init, do=do, max_items=max_items):
            return {
                **_source(body.source),
                "init": init.text,
                "do": _step(do, source),
                **_optional("max_items", max_items),
            }
        case ForEachBody(do=do, collect=collect):
            return {
                **_source(body.source),
                "on_error": str(body.on_error),
                **_optional("max_parallel", body.max_parallel),
                **_optional("max_items", body.max_items),
                **_optional("default", _text(body.default)),
                "do": _step(do, source),
                "collect": _step(collect, source),
            }
        case RepeatBody(init=init, do=do, until=until, max=most, on_max=on_max):
            return {
                **_optional("init", _text(init)),
                "do": _step(do, source),
                "until": until.text,
                "max": most,
                **_optional("on_max", _text(on_max)),
            }
        case FailBody(message=message):
            return {"message": _argument(message)}
        case StopBody(value=value):
            return _optional("value", _text(value))
        case ParallelBody(branches=branches, collect=collect, on_error=on_error):
            return {
                **_optional("on_error", str(on_error) if on_error else None),
                **_optional("default", _text(body.default)),
                "branches": {name.text: _step(branch, source) for name, branch in branches},
                "collect": _step(collect, source),
            }
        case _:
            assert_never(body)


def _command(body: ShellBody) -> Tree:
    return {
        "command": _argument(body.command),
        **_optional("stdin", _argument(body.stdin) if body.stdin else None),
        **_optional("env", None if body.env is None else [name.text for name in body.env]),
        **_optional("cwd", _argument(body.cwd) if body.cwd else None),
        **_optional("check", None if body.check else False),
        **_optional("text", True if body.text else None),
        **_optional("schema", _text(body.schema)),
    }


def _agent(body: AgentBody) -> Tree:
    return {
        **({"prompt_file": body.prompt.text} if body.is_file else {"prompt": body.prompt.text}),
        **(_settings(body.settings) if body.settings else {}),
        **_optional("identity", _text(body.identity)),
        **_optional("tools", None if body.tools is None else [tool.text for tool in body.tools]),
        **_optional("schema", _text(body.schema)),
    }


def _match(body: MatchBody, source: Source) -> Tree:
    chosen: Tree = {label.text: _chosen(target, source) for label, target in body.cases}
    otherwise: Value = None
    if isinstance(body.default, ExpressionText):
        otherwise = body.default.text
    elif body.default is not None:
        otherwise = _chosen(body.default, source)
    return {"on": body.on.text, "cases": chosen, **_optional("default", otherwise)}


def _text(part: Name | ExpressionText | None) -> str | None:
    return None if part is None else part.text


def _optional(key: str, value: Value) -> Tree:
    return {} if value is None else {key: value}


def _argument(value: Argument) -> Value:
    """Distinguish an expression from a literal that looks like one."""
    return {"expr": value.text} if isinstance(value, ExpressionText) else {"literal": value.value}


def _source(source: Argument | None) -> Tree:
    if source is None:
        return {}
    return {"over": source.text} if isinstance(source, ExpressionText) else {"items": source.value}


def _settings(said: AgentSettings) -> Tree:
    return {
        **_optional("model", _text(said.model)),
        **_optional("turns", said.turns),
        **_optional("max_tokens", said.max_tokens),
        **_optional("temperature", said.temperature),
    }


def _chosen(target: Target | StepsBody, source: Source) -> Tree:
    if isinstance(target, Target):
        return _target(target)
    return {"steps": [_step(one, source) for one in target.steps]}


def _target(target: Target) -> Tree:
    if any(one.value for one in target.passes):
        passed: Value = {one.name.text: one.value.text if one.value else one.name.text for one in target.passes}
    else:
        passed = [one.name.text for one in target.passes]
    return {"pipeline": target.pipeline.text, "pass": passed}


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
