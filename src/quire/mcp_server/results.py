"""Envelopes as results of tools: the envelope itself for programs, and its output or error as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import mcp_types as types

from quire.formats.pipeline.definition import as_list
from quire.runs.launch import LaunchResult
from quire.values import Value, copy, pretty

if TYPE_CHECKING:
    from quire.engine.records import Question

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
