"""The tools that are offered besides the documents: launch a pipeline by name or by definition, and look at or resume a
run later. Answering its questions is for people; a tool for it is offered only if the user says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import mcp_types as types

from quire.mcp_server.results import ENVELOPE
from quire.runs.launch import ASYNC, INLINE, definition_help, unknown_argument

if TYPE_CHECKING:
    from quire.values import Value

RESULT = "pipeline_result"
RESUME = "pipeline_resume"
ANSWER = "pipeline_answer"
INBOX = "pipeline_inbox"
MOST_LETTERS = 100

_INPUT: dict[str, Value] = {
    "type": "object",
    "description": "The inputs that the pipeline declares, or reads as ctx.NAME.",
}
_LATER = "Returns at once with the id of the run; the result comes later (pipeline_result, pipeline_inbox)."
_NOW = "Waits for the result."
_RUN: dict[str, Value] = {"type": "string", "description": "The run_id of a run that was launched from here."}


def _schema(properties: Mapping[str, Value], required: Iterable[str] = ()) -> dict[str, Value]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


_LETTERS = _schema(
    {
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_LETTERS, "description": "How many letters at most."},
        "before": {
            "type": "integer",
            "minimum": 0,
            "description": "The number that `earlier` had in the page before: gives the page before that one.",
        },
    }
)
OTHERS = (
    types.Tool(
        name=RESULT,
        description="How a run stands that was launched from here: its output, what went wrong, or what it waits for.",
        input_schema=_schema({"run_id": _RUN}, ["run_id"]),
        output_schema=dict(ENVELOPE),
        annotations=types.ToolAnnotations(read_only_hint=True),
    ),
    types.Tool(
        name=RESUME,
        description="Goes on with a run that was launched from here and was stopped or has failed, and waits for its "
        "result. What it has done already is not done again.",
        input_schema=_schema({"run_id": _RUN}, ["run_id"]),
        output_schema=dict(ENVELOPE),
    ),
    types.Tool(
        name=ANSWER,
        description="Answers a question for a text or a choice that a run waits with, goes on with the run and waits "
        "for its result. The question is for a person: ask the person. Yes or no is not answered here.",
        input_schema=_schema(
            {
                "run_id": _RUN,
                "answer": {"type": "string", "description": "One of the options, or a text."},
                "step": {"type": "string", "description": "The step or the path of the question, where several wait."},
            },
            ["run_id", "answer"],
        ),
        output_schema=dict(ENVELOPE),
    ),
    types.Tool(
        name=INBOX,
        description="The letters to this client: one for each run that has ended without it, the oldest first. Without "
        "arguments the newest of them; `earlier` says how many come before.",
        input_schema=_LETTERS,
        output_schema={
            "type": "object",
            "properties": {
                "letters": {"type": "array", "items": {"type": "object"}},
                "earlier": {"type": "integer"},
            },
            "required": ["letters", "earlier"],
        },
        annotations=types.ToolAnnotations(read_only_hint=True),
    ),
)
NAMES = frozenset(tool.name for tool in OTHERS)
_TAKEN = {tool.name: list(tool.input_schema["properties"]) for tool in OTHERS}


def wrong_arguments(tool: str, arguments: Mapping[str, Value]) -> str:
    """Return what is wrong with the arguments of one of these tools; empty if nothing is."""
    if unknown := unknown_argument(tool, arguments, _TAKEN[tool]):
        return unknown
    for name in ("run_id", "answer", "step"):
        needed = name in _TAKEN[tool] and name != "step"
        if needed and not arguments.get(name):
            return f"{tool} needs {name}"
        if name in arguments and not isinstance(arguments[name], str):
            return f"{name} must be a text"
    for name, least in (("limit", 1), ("before", 0)):
        given = arguments.get(name, least)
        if not isinstance(given, int) or isinstance(given, bool) or given < least:
            return f"{name} must be a whole number, {least} or more"
    return ""


def launch_tool(name: str) -> types.Tool:
    inline, later = INLINE in name, name.endswith(ASYNC)
    subject = "definition" if inline else "name"
    explained = "A pipeline as YAML text." if inline else "The name under which the pipeline is registered."
    what = "Launches a pipeline that is given as text." if inline else "Launches a registered pipeline."
    how = f" {definition_help(name)}" if inline else ""
    return types.Tool(
        name=name,
        description=f"{what} {_LATER if later else _NOW}{how}",
        input_schema=_schema({subject: {"type": "string", "description": explained}, "input": _INPUT}, [subject]),
        output_schema=dict(ENVELOPE),
    )
