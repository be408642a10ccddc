"""The tools that are always there: launching by name or by definition, and asking for what came of it."""

from __future__ import annotations

import mcp_types as types

from quire.formats.pipeline.definition import GRAMMAR
from quire.mcp_server.results import ENVELOPE
from quire.runtime.launch import ASYNC, INLINE
from quire.values import Value

RESULT = "pipeline_result"
INBOX = "pipeline_inbox"

_INPUT: dict[str, Value] = {"type": "object", "description": "What the pipeline reads as ctx.NAME."}
_LATER = "Returns at once with the id of the run; the result comes later (pipeline_result, pipeline_inbox)."
_NOW = "Waits for the result."

OTHERS = (
    types.Tool(
        name=RESULT,
        description="How a run stands that was launched from here: its output, what went wrong, or what it waits for.",
        input_schema={"type": "object", "properties": {"run_id": {"type": "string"}}, "required": ["run_id"]},
        output_schema=dict(ENVELOPE),
        annotations=types.ToolAnnotations(read_only_hint=True),
    ),
    types.Tool(
        name=INBOX,
        description="The letters to this client: one for each run that has ended without it, the oldest first.",
        input_schema={"type": "object", "properties": {}},
        output_schema={
            "type": "object",
            "properties": {"letters": {"type": "array", "items": {"type": "object"}}},
            "required": ["letters"],
        },
        annotations=types.ToolAnnotations(read_only_hint=True),
    ),
)


def launch_tool(name: str) -> types.Tool:
    inline = INLINE in name
    subject = "definition" if inline else "name"
    explained = "A pipeline as YAML text." if inline else "The name under which the pipeline is registered."
    what = "Launches a pipeline that is given as text." if inline else "Launches a registered pipeline."
    return types.Tool(
        name=name,
        description=f"{what} {_LATER if name.endswith(ASYNC) else _NOW}" + (f"\n\n{GRAMMAR}" if inline else ""),
        input_schema={
            "type": "object",
            "properties": {subject: {"type": "string", "description": explained}, "input": _INPUT},
            "required": [subject],
        },
        output_schema=dict(ENVELOPE),
    )
