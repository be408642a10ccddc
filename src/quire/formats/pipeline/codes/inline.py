"""PL030 to PL039: errors that only a definition written at run time can have.

The gate finds them, not `check`: a pipeline in a file may do what they forbid.
"""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_error = partial(make, Severity.ERROR)

LAUNCHES = _error(
    "PL030",
    "inline-launch",
    "A `tool` step of an inline definition launches a pipeline, or delegates to another agent.",
    "A definition that an agent writes at run time reaches other pipelines by `call` only. So the number of runs that\n"
    "one launch can start is known.",
    "- tool: {name: run_pipeline, args: {name: report}}",
    "- call: {pipeline: report}",
)
IDENTITY = _error(
    "PL031",
    "inline-identity",
    "An `agent` step of an inline definition runs under another identity than the one that launches it.",
    "Another identity may have a model and tools that the launching agent does not have. Without `identity` the step\n"
    "runs as the agent that launched it. A registered pipeline may name any identity.",
    '- agent: {prompt: "Review it.", identity: boss}',
    '- agent: {prompt: "Review it."}',
)
NO_COMMANDS = _error(
    "PL032",
    "inline-shell",
    "An inline definition runs a command, and commands are not allowed here.",
    "The user allows commands with `--allow shell`. Files are read and written without it, by tools.",
    "- shell: {command: cat notes.txt}",
    "- tool: {name: file__read, args: {path: notes.txt}}",
)
BEYOND = _error(
    "PL033",
    "inline-beyond",
    "A step of an inline definition names a model, a prompt file or a variable.",
    "A definition that an agent writes at run time has what the agent itself has: its model, the text that it writes,\n"
    "and no variables of the user. A registered pipeline may name them.",
    "pipeline: p\ndialect: quire\nsteps:\n- agent: {prompt: hi, model: large}",
    "pipeline: p\ndialect: quire\nsteps:\n- agent: {prompt: hi}",
)
