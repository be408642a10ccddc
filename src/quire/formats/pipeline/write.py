"""Write a syntax tree as YAML. Parsing the output gives an equal tree, apart from positions.

Texts are written in double quotes as in JSON, which is also YAML; names and plain words have no quotes. Steps are
blocks; everything below their keys that fits on a line is in braces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, assert_never

from msgspec import UNSET

from quire.formats.pipeline.syntax import (
    AgentBody,
    Argument,
    Body,
    CallBody,
    ExpressionText,
    FoldBody,
    ForEachBody,
    MatchBody,
    ParallelBody,
    Pipeline,
    PipelineFile,
    ShellBody,
    Step,
    Target,
    ToolBody,
    TransformBody,
    is_name,
)
from quire.formats.yaml.scalars import WORDS
from quire.schema import Enum, Field, FieldType, ListOf, Object, Ref, Schema
from quire.values import Value, encode

Block: TypeAlias = "str | list[tuple[str, Block]]"
"""A value on the line of its key, or entries on separate lines."""

_UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def write(file: PipelineFile) -> str:
    documents = [_schema(schema) for schema in file.schemas]
    documents += [_pipeline(pipeline) for pipeline in file.pipelines]
    return "---\n".join(documents)


def _schema(schema: Schema) -> str:
    lines = [f"schema: {_plain(schema.name)}", "fields:"]
    return "\n".join([*lines, *(f"  {_plain(one.name)}: {_field(one)}" for one in schema.fields)]) + "\n"


def _field(field: Field) -> str:
    entries = _type(field.type)
    if not field.required:
        entries.append(("required", "false"))
    if field.default is not UNSET:
        entries.append(("default", _value(field.default)))
    if field.description:
        entries.append(("description", _quoted(field.description)))
    return _flow(entries)


def _type(type: FieldType) -> list[tuple[str, str]]:
    if isinstance(type, Enum):
        return [("type", "enum"), ("values", _value(list(type.values)))]
    if isinstance(type, ListOf):
        most = [("max_items", str(type.max_items))] if type.max_items is not None else []
        return [("type", "list"), ("of", _flow(_type(type.of))), *most]
    if isinstance(type, Object):
        inside = _flow((_plain(one.name), _field(one)) for one in type.fields)
        return [("type", "object"), ("fields", inside)]
    if isinstance(type, Ref):
        return [("type", "ref"), ("schema", _plain(type.schema))]
    limits = [(key, getattr(type, key)) for key in ("minimum", "maximum", "max_length", "pattern")]
    return [("type", type.kind.value), *((key, _value(limit)) for key, limit in limits if limit is not None)]


def _pipeline(pipeline: Pipeline) -> str:
    lines = [f"pipeline: {_plain(pipeline.name.text)}"]
    if pipeline.description:
        lines.append(f"description: {_quoted(pipeline.description)}")
    if pipeline.dialect:
        lines.append("dialect: quire")
    if pipeline.input is not None:
        fields = [f"  {_plain(one.name)}: {_field(one)}" for one in pipeline.input]
        lines += ["input:", *fields] if fields else ["input: {}"]
    lines.append("steps:")
    for step in pipeline.steps:
        lines += _lines([(step.kind, _body(step))], "    ", "  - ")
    return "\n".join(lines) + "\n"


def _lines(entries: list[tuple[str, Block]], indent: str, first: str | None = None) -> list[str]:
    lines: list[str] = []
    for key, value in entries:
        begin = first if first is not None and not lines else indent
        if isinstance(value, list):
            lines += [f"{begin}{key}:", *_lines(value, f"{indent}  ")]
        elif "\n" in value:
            head, *rest = value.split("\n")
            lines += [f"{begin}{key}: {head}", *(f"{indent}  {line}".rstrip(" ") for line in rest)]
        else:
            lines.append(f"{begin}{key}: {value}")
    return lines


def _body(step: Step) -> list[tuple[str, Block]]:
    entries = list(_parts(step.body))
    if step.output:
        entries.append(("output", _plain(step.output.text)))
    return entries


def _parts(body: Body) -> Iterable[tuple[str, Block]]:
    match body:
        case TransformBody(value=value):
            yield "value", _quoted(value.text)
        case ToolBody(name=name, args=args):
            yield "name", _plain(name.text)
            if args:
                yield "args", [(_plain(key.text), _argument(value)) for key, value in args]
        case ShellBody(command=command):
            yield "command", _argument(command)
        case AgentBody(prompt=prompt, identity=identity, tools=tools):
            yield "prompt", _prompt(prompt.text)
            if identity:
                yield "identity", _plain(identity.text)
            if tools is not None:
                yield "capabilities", f"{{tools: [{', '.join(_plain(tool.text) for tool in tools)}]}}"
        case CallBody(target=target):
            yield from _target(target)
        case MatchBody(on=on, cases=cases, default=default):
            yield "on", _quoted(on.text)
            yield "cases", [(_quoted(label.text), _flow(_target(target))) for label, target in cases]
            if default:
                yield "default", _flow(_target(default))
        case FoldBody(init=init, do=do, max_items=max_items):
            yield from _source(body.source)
            yield "init", _quoted(init.text)
            yield "do", [(do.kind, _body(do))]
            yield from _limit("max_items", max_items)
        case ForEachBody(do=do, collect=collect):
            yield from _source(body.source)
            yield from _limit("max_parallel", body.max_parallel)
            yield from _limit("max_items", body.max_items)
            yield "on_error", str(body.on_error)
            yield "do", [(do.kind, _body(do))]
            yield "collect", [(collect.kind, _body(collect))]
        case ParallelBody(branches=branches, collect=collect):
            if body.on_error:
                yield "on_error", str(body.on_error)
            yield "branches", [(_plain(name.text), [(one.kind, _body(one))]) for name, one in branches]
            yield "collect", [(collect.kind, _body(collect))]
        case _:
            assert_never(body)
    if isinstance(body, ToolBody | ShellBody | AgentBody) and body.schema:
        yield "schema", _plain(body.schema.text)


def _source(source: Argument | None) -> Iterable[tuple[str, Block]]:
    if isinstance(source, ExpressionText):
        yield "over", _quoted(source.text)
    elif source is not None:
        yield "items", _value(source.value)


def _limit(key: str, value: int | None) -> Iterable[tuple[str, Block]]:
    if value is not None:
        yield key, str(value)


def _target(target: Target) -> list[tuple[str, str]]:
    entries = [("pipeline", _plain(target.pipeline.text))]
    if not target.passes:
        return entries
    named = [(_plain(one.name.text), one.value) for one in target.passes]
    if any(value for _, value in named):
        return [*entries, ("pass", _flow((name, _quoted(value.text)) for name, value in named if value))]
    return [*entries, ("pass", f"[{', '.join(name for name, _ in named)}]")]


def _argument(value: Argument) -> str:
    return f"!expr {_quoted(value.text)}" if isinstance(value, ExpressionText) else _value(value.value)


def _flow(entries: Iterable[tuple[str, str]]) -> str:
    return f"{{{', '.join(f'{key}: {value}' for key, value in entries)}}}"


def _value(value: Value) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Mapping):
        return _flow((_quoted(key), _value(part)) for key, part in value.items())
    if isinstance(value, Sequence):
        return f"[{', '.join(_value(part) for part in value)}]"
    return encode(value)


def _plain(name: str) -> str:
    """Return a name without quotes, unless YAML would read it as something else."""
    return name if is_name(name) and name not in WORDS else _quoted(name)


def _quoted(text: str) -> str:
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", encode(text))


def _prompt(text: str) -> str:
    """Write a prompt of several lines as a readable block, if parsing that gives the same text."""
    body = text.removesuffix("\n")
    lines = body.split("\n")
    as_block = len(lines) > 1 and lines[0] and lines[-1] and not lines[0][0].isspace() and not _UNSAFE.search(text)
    if not as_block or any(line != line.rstrip() for line in lines):
        return _quoted(text)
    return f"|{'' if text.endswith(chr(10)) else '-'}\n{body}"
