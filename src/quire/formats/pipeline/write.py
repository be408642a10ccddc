"""Write a syntax tree as YAML. Parsing the output gives an equal tree, apart from positions.

Texts are written in double quotes as in JSON, which is also YAML; names and plain words have no quotes. Steps are
blocks; everything below their keys that fits on a line is in braces. `pipeline_tree` gives the tree as JSON instead,
with the keys of the file and line numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never, cast

from msgspec import UNSET, Struct

from quire.diagnostics import Diagnostic, Severity
from quire.formats.pipeline import syntax
from quire.formats.pipeline.language import BODY_KEYS, GUARD_KEYS, Key, Role
from quire.formats.pipeline.syntax import ExpressionText, Step, StepsBody, Target
from quire.formats.yaml.nodes import WORDS
from quire.schema import Enum, Field, FieldType, ListOf, Object, Ref
from quire.values import Value, encode, without_nulls

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import ParseResult
    from quire.source import Source


class Steps(Struct):
    """The steps of a block, each with its entries."""

    items: list[list[tuple[str, Block]]]


Block: TypeAlias = "str | list[tuple[str, Block]] | Steps"
"""A value on the line of its key, or entries or steps on separate lines."""

_UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def write(file: syntax.PipelineFile) -> str:
    documents: list[list[str]] = []
    for schema in file.schemas:
        documents.append([f"schema: {_plain(schema.name)}", "fields:", *_field_lines(schema.fields)])
    documents += [_pipeline(pipeline) for pipeline in file.pipelines]
    return "---\n".join("\n".join(lines) + "\n" for lines in documents)


def _field_lines(fields: Iterable[Field]) -> list[str]:
    return [f"  {_plain(field.name)}: {_field(field)}" for field in fields]


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
        inside = _flow((_plain(field.name), _field(field)) for field in type.fields)
        return [("type", "object"), ("fields", inside)]
    if isinstance(type, Ref):
        return [("type", "ref"), ("schema", _plain(type.schema))]
    limits = [(key, getattr(type, key)) for key in ("minimum", "maximum", "max_length", "pattern")]
    return [("type", type.kind.value), *((key, _value(limit)) for key, limit in limits if limit is not None)]


def _pipeline(pipeline: syntax.Pipeline) -> list[str]:
    lines = [f"pipeline: {_plain(pipeline.name.text)}"]
    if pipeline.description:
        lines.append(f"description: {_quoted(pipeline.description)}")
    if pipeline.dialect:
        lines.append("dialect: quire")
    if pipeline.input is not None:
        lines += ["input:", *_field_lines(pipeline.input)] if pipeline.input else ["input: {}"]
    lines.append("steps:")
    for step in pipeline.steps:
        lines += _lines([(step.kind, _body(step))], "    ", "  - ")
    return lines


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
    entries: list[tuple[str, Block]] = [("title", _quoted(step.title))] if step.title else []
    entries += _entries(step.body, BODY_KEYS[type(step.body)])
    if step.guard:
        entries += _entries(step.guard, GUARD_KEYS)
    if step.output:
        entries.append(("output", _plain(step.output.text)))
    return entries


def _entries(node: syntax.Body | syntax.GuardKeys, keys: Iterable[Key]) -> Iterable[tuple[str, Block]]:
    """Yield the keys that are written in a body or a guard. Arguments and passed values may be empty."""
    for key in keys:
        value = key.of(node)
        if isinstance(node, syntax.AgentBody) and node.is_file and key.role == "prompt":
            yield key.name, f"!file {_quoted(node.prompt.text)}"
        elif value is not None and (value or key.role not in ("arguments", "passes")):
            yield key.name, _written(key.role, value)


def _written(role: Role, value: Any) -> Block:
    """Return a value as it is written after its key."""
    match role:
        case "expression" | "model":
            return _quoted(value.text)
        case "argument" | "command":
            return f"!expr {_quoted(value.text)}" if isinstance(value, ExpressionText) else _value(value.value)
        case "arguments":
            return [(_plain(name.text), _written("argument", argument)) for name, argument in value]
        case "items":
            return _value(value.value)
        case "prompt":
            return _prompt(value.text)
        case "tools":
            return f"{{tools: {_names(value)}}}"
        case "variables":
            return _names(value)
        case "target":
            return _plain(value.pipeline.text)
        case "passes":
            named = [(_plain(passed.name.text), passed.value) for passed in value]
            if any(part for _, part in named):
                return _flow((name, _quoted(part.text)) for name, part in named if part)
            return f"[{', '.join(name for name, _ in named)}]"
        case "step":
            return [(value.kind, _body(value))]
        case "steps":
            return _steps(value)
        case "branches":
            return [(_plain(name.text), _written("step", branch)) for name, branch in value]
        case "cases":
            return [(_quoted(label.text), _written("choice", target)) for label, target in value]
        case "choice":
            return _chosen(value)
        case "number" | "flag":
            return repr(value).lower()
        case "policy":
            return _quoted(str(value)) if value.survives else str(value)
        case "duration":
            return f"{value!r}s"
        case "tool" | "identity" | "schema" | "store" | "word":
            return _plain(value.text)
        case _:
            assert_never(role)


def _chosen(target: Target | StepsBody | ExpressionText) -> Block:
    match target:
        case ExpressionText(text=text):
            return _quoted(text)
        case StepsBody(steps=steps):
            return [("steps", _steps(steps))]
    entries = [("pipeline", _plain(target.pipeline.text))]
    if target.passes:
        entries.append(("pass", str(_written("passes", target.passes))))
    return _flow(entries)


def _names(names: Iterable[syntax.Name]) -> str:
    return f"[{', '.join(_plain(name.text) for name in names)}]"


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
    return name if syntax.is_name(name) and name not in WORDS else _quoted(name)


def _quoted(text: str) -> str:
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", encode(text))


def _prompt(text: str) -> str:
    """Write a prompt of several lines as a readable block, if parsing that gives the same text."""
    body = text.removesuffix("\n")
    lines = body.split("\n")
    as_block = len(lines) > 1 and lines[0] and lines[-1] and not lines[0][0].isspace() and not _UNSAFE.search(text)
    if not as_block or any(line != line.rstrip() for line in lines):
        return _quoted(text)
    return f"|{'' if text.endswith(chr(10)) else '-'}\n{body}"


Tree = dict[str, Value]


def pipeline_tree(reading: ParseResult) -> Tree:
    source, file = reading.source, reading.file
    return {
        "valid": file is not None,
        "pipelines": [_pipeline_json(pipeline, source) for pipeline in file.pipelines] if file else [],
        "schemas": [
            {"schema": schema.name, "fields": _fields(schema.fields), "line": source.position(schema.span.start).line}
            for schema in (file.schemas if file else ())
        ],
        "warnings": [_finding(finding, source) for finding in reading.of(Severity.WARNING)],
        "errors": [_finding(finding, source) for finding in reading.of(Severity.ERROR)],
    }


def _finding(finding: Diagnostic, source: Source) -> Tree:
    line = source.position(finding.span.start).line
    return {"line": line, "code": finding.code.id, "message": finding.message}


def _pipeline_json(pipeline: syntax.Pipeline, source: Source) -> Tree:
    return without_nulls(
        {
            "pipeline": pipeline.name.text,
            "description": pipeline.description,
            "dialect": "quire" if pipeline.dialect else None,
            "input": None if pipeline.input is None else _fields(pipeline.input),
            "steps": [_step(step, source) for step in pipeline.steps],
            "line": source.position(pipeline.span.start).line,
        }
    )


def _step(step: Step, source: Source) -> Tree:
    tree: Tree = {"kind": step.kind, "title": step.title} if step.title else {"kind": step.kind}
    tree |= _entries_json(step.body, BODY_KEYS[type(step.body)], source)
    if isinstance(step.body, syntax.AgentBody) and step.body.is_file:
        tree = {("prompt_file" if name == "prompt" else name): value for name, value in tree.items()}
    if step.guard:
        tree |= _entries_json(step.guard, GUARD_KEYS, source)
    if step.output:
        tree["output"] = step.output.text
    return {**tree, "line": source.position(step.span.start).line}


def _entries_json(node: syntax.Body | syntax.GuardKeys, keys: Iterable[Key], source: Source) -> Tree:
    """Return the keys that are written in a body or a guard. The tools of `capabilities` stand for themselves."""
    values = ((key, key.of(node)) for key in keys)
    return {
        "tools" if key.role == "tools" else key.name: _value_json(key.role, value, source)
        for key, value in values
        if value is not None
    }


def _value_json(role: Role, value: Any, source: Source) -> Value:
    match role:
        case "argument" | "command":
            # An expression differs from a literal that looks like one.
            return {"expr": value.text} if isinstance(value, ExpressionText) else {"literal": value.value}
        case "arguments":
            return {name.text: _value_json("argument", argument, source) for name, argument in value}
        case "items":
            return cast("Value", value.value)
        case "tools" | "variables":
            return [name.text for name in value]
        case "target":
            return cast("Value", value.pipeline.text)
        case "passes":
            named = [(passed.name.text, passed.value) for passed in value]
            if any(part for _, part in named):
                return {name: part.text if part else name for name, part in named}
            return [name for name, _ in named]
        case "step":
            return _step(value, source)
        case "steps":
            return [_step(step, source) for step in value]
        case "branches":
            return {name.text: _step(branch, source) for name, branch in value}
        case "cases":
            return {label.text: _value_json("choice", target, source) for label, target in value}
        case "choice" if isinstance(value, StepsBody):
            return {"steps": _value_json("steps", value.steps, source)}
        case "choice" if isinstance(value, Target):
            return {"pipeline": value.pipeline.text, "pass": _value_json("passes", value.passes, source)}
        case "number" | "flag" | "duration":
            return cast("Value", value)
        case "policy":
            return str(value)
        case "expression" | "prompt" | "tool" | "identity" | "model" | "schema" | "store" | "choice" | "word":
            return cast("Value", value.text)
        case _:
            assert_never(role)


def _fields(fields: tuple[Field, ...]) -> Tree:
    return {field.name: _field_json(field) for field in fields}


def _field_json(field: Field) -> Tree:
    description = {"description": field.description} if field.description else {}
    tree: Tree = {**_type_json(field.type), "required": field.required, **description}
    return tree if field.default is UNSET else {**tree, "default": field.default}


def _type_json(type: FieldType) -> Tree:
    match type:
        case Enum(values=values):
            return {"type": "enum", "values": list(values)}
        case ListOf(of=of):
            return without_nulls({"type": "list", "of": _type_json(of), "max_items": type.max_items})
        case Object(fields=fields):
            return {"type": "object", "fields": _fields(fields)}
        case Ref(schema=name):
            return {"type": "ref", "schema": name}
    limits = {key: getattr(type, key) for key in ("minimum", "maximum", "max_length", "pattern")}
    return {"type": type.kind.value} | without_nulls(limits)
