"""Write a syntax tree as YAML. Parsing the output gives an equal tree, apart from positions.

Texts are written in double quotes as in JSON, which is also YAML; names and plain words have no quotes. Steps are
blocks; everything below their keys that fits on a line is in braces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, assert_never

from msgspec import UNSET, Struct

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
    ParallelBody,
    Pipeline,
    PipelineFile,
    RepeatBody,
    ShellBody,
    Step,
    StepsBody,
    StopBody,
    Target,
    ToolBody,
    TransformBody,
    is_name,
)
from quire.formats.yaml.scalars import WORDS
from quire.schema import Enum, Field, FieldType, ListOf, Object, Ref, Schema
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.plan.pipeline_work import OnError


class Steps(Struct):
    """The steps of a block, each with its entries."""

    items: list[list[tuple[str, Block]]]


Block: TypeAlias = "str | list[tuple[str, Block]] | Steps"
"""A value on the line of its key, or entries or steps on separate lines."""

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
        if isinstance(value, Steps):
            lines.append(f"{begin}{key}:")
            for item in value.items:
                lines += _lines(item, f"{indent}    ", f"{indent}  - ")
        elif isinstance(value, list) and not value:
            lines.append(f"{begin}{key}: {{}}")
        elif isinstance(value, list):
            lines += [f"{begin}{key}:", *_lines(value, f"{indent}  ")]
        elif "\n" in value:
            head, *rest = value.split("\n")
            lines += [f"{begin}{key}: {head}", *(f"{indent}  {line}".rstrip(" ") for line in rest)]
        else:
            lines.append(f"{begin}{key}: {value}")
    return lines


def _steps(steps: Iterable[Step]) -> Steps:
    return Steps([[(step.kind, _body(step))] for step in steps])


def _body(step: Step) -> Block:
    if isinstance(step.body, StepsBody) and step.body.flat:
        return _steps(step.body.steps)
    entries = [*_parts(step.body), *(_guard(step.guard) if step.guard else ())]
    if step.output:
        entries.append(("output", _plain(step.output.text)))
    return entries


def _guard(guard: GuardKeys) -> Iterable[tuple[str, Block]]:
    if guard.when:
        yield "when", _quoted(guard.when.text)
    if guard.on_error:
        yield "on_error", _policy(guard.on_error)
    if guard.default:
        yield "default", _quoted(guard.default.text)
    if guard.timeout is not None:
        yield "timeout", f"{guard.timeout!r}s"


def _policy(on_error: OnError) -> str:
    return _quoted(str(on_error)) if on_error.survives else str(on_error)


def _command(body: ShellBody) -> Iterable[tuple[str, Block]]:
    yield "command", _argument(body.command)
    if body.stdin is not None:
        yield "stdin", _argument(body.stdin)
    if body.env is not None:
        yield "env", f"[{', '.join(_plain(name.text) for name in body.env)}]"
    if body.cwd is not None:
        yield "cwd", _argument(body.cwd)
    if not body.check:
        yield "check", "false"
    if body.text:
        yield "text", "true"


def _settings(said: AgentSettings) -> Iterable[tuple[str, Block]]:
    if said.model:
        yield "model", _quoted(said.model.text)
    yield from _limit("turns", said.turns)
    yield from _limit("max_tokens", said.max_tokens)
    if said.temperature is not None:
        yield "temperature", repr(said.temperature)


def _parts(body: Body) -> Iterable[tuple[str, Block]]:
    match body:
        case TransformBody(value=value):
            yield "value", _quoted(value.text)
        case ToolBody(name=name, args=args):
            yield "name", _plain(name.text)
            if args:
                yield "args", [(_plain(key.text), _argument(value)) for key, value in args]
        case ShellBody():
            yield from _command(body)
        case AgentBody(prompt=prompt, identity=identity, tools=tools):
            yield "prompt", f"!file {_quoted(prompt.text)}" if body.is_file else _prompt(prompt.text)
            if body.settings:
                yield from _settings(body.settings)
            if identity:
                yield "identity", _plain(identity.text)
            if tools is not None:
                yield "capabilities", f"{{tools: [{', '.join(_plain(tool.text) for tool in tools)}]}}"
        case CallBody(target=target):
            yield from _target(target)
        case MatchBody(on=on, cases=cases, default=default):
            yield "on", _quoted(on.text)
            yield "cases", [(_quoted(label.text), _chosen(target)) for label, target in cases]
            if isinstance(default, ExpressionText):
                yield "default", _quoted(default.text)
            elif default:
                yield "default", _chosen(default)
        case StepsBody(steps=steps):
            yield "do", _steps(steps)
        case FoldBody(init=init, do=do, max_items=max_items):
            yield from _source(body.source)
            yield "init", _quoted(init.text)
            yield "do", [(do.kind, _body(do))]
            yield from _limit("max_items", max_items)
        case ForEachBody(do=do, collect=collect):
            yield from _source(body.source)
            yield from _limit("max_parallel", body.max_parallel)
            yield from _limit("max_items", body.max_items)
            yield "on_error", _policy(body.on_error)
            if body.default:
                yield "default", _quoted(body.default.text)
            yield "do", [(do.kind, _body(do))]
            yield "collect", [(collect.kind, _body(collect))]
        case RepeatBody(init=init, do=do, until=until):
            if init:
                yield "init", _quoted(init.text)
            yield "do", [(do.kind, _body(do))]
            yield "until", _quoted(until.text)
            yield "max", str(body.max)
            if body.on_max:
                yield "on_max", body.on_max.text
        case FailBody(message=message):
            yield "message", _argument(message)
        case StopBody(value=value):
            if value:
                yield "value", _quoted(value.text)
        case ParallelBody(branches=branches, collect=collect):
            if body.on_error:
                yield "on_error", _policy(body.on_error)
            if body.default:
                yield "default", _quoted(body.default.text)
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


def _chosen(target: Target | StepsBody) -> Block:
    return _flow(_target(target)) if isinstance(target, Target) else [("steps", _steps(target.steps))]


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
