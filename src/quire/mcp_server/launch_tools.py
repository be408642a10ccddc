"""Tools besides those of documents: launch a pipeline by name or by definition, and the operations that have a tool.
Results of tools are envelopes: the envelope itself for programs, and its output or error as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mcp_types as types

from quire.errors import QuireError
from quire.formats.pipeline.definition import as_list
from quire.operations import OPERATIONS, Operation
from quire.operations.fields import errors_of, schema_of
from quire.operations.problems import Problem
from quire.runs.launch import ASYNC, INLINE, LaunchResult, definition_help, unknown_argument
from quire.values import Value, copy, pretty

if TYPE_CHECKING:
    from quire.engine.records import Question
    from quire.operations.host import Host

TOOLS: Mapping[str, Operation] = {operation.mcp: operation for operation in OPERATIONS if operation.mcp}
_INPUT: dict[str, Value] = {
    "type": "object",
    "description": "The inputs that the pipeline declares, or reads as ctx.NAME.",
}
_LATER = "Returns at once with the id of the run; the result comes later (pipeline_result, pipeline_inbox)."
_NOW = "Waits for the result."
_TYPES = {"string": (str, "a text"), "integer": (int, "a whole number")}


def operation_tool(name: str) -> types.Tool:
    """Return the tool of an operation."""
    work = TOOLS[name].work
    return types.Tool(
        name=name,
        description=work.summary,
        input_schema=schema_of(work.input),
        output_schema=schema_of(work.result),
        annotations=types.ToolAnnotations(read_only_hint=True) if TOOLS[name].cost == "FREE" else None,
    )


async def call_operation(
    name: str, arguments: Mapping[str, Value], host: Host
) -> types.CallToolResult | types.InputRequiredResult:
    """Call the tool of an operation. What is wrong is returned, because a client shows no error of the protocol. A
    number above the most that a tool takes counts as the most."""
    work = TOOLS[name].work
    schema = schema_of(work.input)
    given = {one: _at_most(schema["properties"].get(one, {}), value) for one, value in arguments.items()}
    if problem := _wrong_argument(name, schema, given):
        return result_of(LaunchResult("error", {"error": problem}))
    try:
        answer = await work.run(host, work.read(given))
    except (Problem, QuireError) as error:
        return result_of(LaunchResult("error", {"error": str(error)}))
    if isinstance(answer, types.CallToolResult | types.InputRequiredResult):
        return answer
    return types.CallToolResult(content=[types.TextContent(text=pretty(answer))], structured_content=answer)


def _wrong_argument(tool: str, schema: Mapping[str, Any], arguments: Mapping[str, Value]) -> str:
    """Return the first thing that is wrong with the arguments of a tool, in words for a model; empty if nothing is."""
    if unknown := unknown_argument(tool, arguments, list(schema["properties"])):
        return unknown
    for name, member in schema["properties"].items():
        if name in schema["required"] and not arguments.get(name):
            return f"{tool} needs {name}"
        if name not in arguments or str(member.get("type")) not in _TYPES:
            continue
        kind, words = _TYPES[member["type"]]
        least, value = member.get("minimum"), arguments[name]
        if not isinstance(value, kind) or isinstance(value, bool) or (least is not None and value < least):
            return f"{name} must be {words}" + (f", {least} or more" if least is not None else "")
    return "; ".join(f"{place.lstrip('/')}: {message}" for place, message in errors_of(schema, dict(arguments)))


def _at_most(member: Mapping[str, Any], value: Value) -> Value:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return min(value, member["maximum"]) if is_number and "maximum" in member else value


def launch_tool(name: str) -> types.Tool:
    inline, later = INLINE in name, name.endswith(ASYNC)
    subject = "definition" if inline else "name"
    explained = "A pipeline as YAML text." if inline else "The name under which the pipeline is registered."
    what = "Launches a pipeline that is given as text." if inline else "Launches a registered pipeline."
    how = f" {definition_help(name)}" if inline else ""
    schema = {
        "type": "object",
        "properties": {subject: {"type": "string", "description": explained}, "input": _INPUT},
        "required": [subject],
        "additionalProperties": False,
    }
    return types.Tool(
        name=name,
        description=f"{what} {_LATER if later else _NOW}{how}",
        input_schema=schema,
        output_schema=dict(ENVELOPE),
    )


ENVELOPE: dict[str, Value] = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": ["ok", "error", "cancelled", "started"]},
        "data": {
            "type": "object",
            "description": "run_id; output and named_stores when it is ok; error; questions while people are asked; "
            "warnings, what was found before the start that may not work.",
        },
    },
    "required": ["status", "data"],
}


def result_of(envelope: LaunchResult) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=text) for text in (_text(envelope), *_warnings(envelope))],
        structured_content={"status": envelope.status, "data": copy(dict(envelope.data))},
        is_error=envelope.status == "error",
    )


def waiting(run: str, questions: Sequence[Question]) -> LaunchResult:
    """Return the envelope of a run that continues later: after an answer, or by itself."""
    data: dict[str, Value] = {"run_id": run}
    if questions:
        several = len(questions) > 1
        data["questions"] = [
            {
                "step": question.label,
                "way": question.way,
                "path": question.path,
                "kind": question.kind,
                "prompt": question.prompt,
                "options": list(question.options),
            }
            for question in questions
        ]
        data["answer"] = f"quire answer {run} {'STEP ' if several else ''}VALUE"
    return LaunchResult("started", data)


def _warnings(envelope: LaunchResult) -> list[str]:
    """Return the warnings as a separate block, because the first block contains only the output."""
    warnings = envelope.data.get("warnings")
    return ["\n".join(f"warning: {one}" for one in warnings)] if isinstance(warnings, list) and warnings else []


def _text(envelope: LaunchResult) -> str:
    data = envelope.data
    if envelope.status == "ok":
        return pretty(data.get("output"))
    if envelope.status == "started":
        text = f"Run {data.get('run_id')} has started; its result comes later: pipeline_result, pipeline_inbox."
        if "answer" in data:
            text = f"Run {data.get('run_id')} waits for a person, who answers in the page or with: {data['answer']}"
        return text
    errors = data.get("errors")
    if isinstance(errors, list) and errors:
        return as_list(str(data.get("error", "")), errors)
    run = f" (run {data['run_id']})" if "run_id" in data else ""
    return f"{data.get('error', '')}{run}"
