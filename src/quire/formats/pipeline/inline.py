"""The static gate: refuse definitions that an agent wrote at run time if they contain something forbidden.

Steps are checked at any depth. The gate comes before anything is spawned, so a refused definition has no effect.
Targets of `call` are not checked: they are registered independently of the agent, and a target that does not exist
fails its step.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Never

from msgspec import Struct

from quire.formats.pipeline.syntax import (
    AgentBody,
    CallBody,
    FoldBody,
    ForEachBody,
    MatchBody,
    ParallelBody,
    PipelineFile,
    ShellBody,
    Step,
    ToolBody,
    TransformBody,
    schema_of,
    walk,
)

if TYPE_CHECKING:
    from quire.schema import Schema

LAUNCHING = frozenset({"run_pipeline", "run_pipeline_async", "run_pipeline_inline", "run_pipeline_inline_async"})
DELEGATING = frozenset({"delegate_to_agent", "multi_agent__delegate"})
LAUNCH_PREFIX = "pipeline__"
ALWAYS_THERE = frozenset({"ask"})
"""Tools of the engine itself."""
MOST_TOLD = 20


class Problem(Struct, frozen=True):
    """One reason to refuse a definition."""

    path: str
    """The path of the step, such as `1.for_each.do`. Steps count from 1."""
    message: str

    def __str__(self) -> str:
        return f"step {self.path}: {self.message}"


class Refusal(Struct, frozen=True):
    """All reasons to refuse a definition, in the order of the text; there is at least one."""

    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        told = "; ".join(str(problem) for problem in self.problems[:MOST_TOLD])
        more = len(self.problems) - MOST_TOLD
        return f"{told}; and {more} more" if more > 0 else told


def gate(
    file: PipelineFile, identity: str, known_tools: Collection[str], shell: bool, denied: Collection[str] = ()
) -> Refusal | None:
    """Check a definition. Return None if it is allowed.

    `known_tools` are all tool names that resolve, `shell` is true if commands may run, and `denied` are more names of
    tools that launch or delegate.
    """
    schemas = {schema.name: schema for schema in file.schemas}
    problems: list[Problem] = []
    for path, step in (found for pipeline in file.pipelines for found in walk(pipeline)):
        if message := _kind(step):
            # The steps inside of it, if it has any, are unknown too.
            return Refusal((*problems, Problem(path, message)))
        messages = (
            _schema(step, schemas),
            _tool(step, known_tools, shell, denied),
            _identity(step.body, identity) if isinstance(step.body, AgentBody) else "",
        )
        problems += [Problem(path, message) for message in messages if message]
    return Refusal(tuple(problems)) if problems else None


def _kind(step: Step) -> str:
    """Refuse a kind of step that this gate does not look at. Before a kind is added here, the functions below must say
    what a step of that kind reaches."""
    match step.body:
        case TransformBody() | ToolBody() | ShellBody() | AgentBody() | CallBody() | MatchBody():
            return ""
        case FoldBody() | ForEachBody() | ParallelBody():
            return ""
        case _:
            _unknown: Never = step.body  # not `assert_never`: mypy complains here too, and a run gets a refusal
            return f'an inline pipeline has no steps of the kind "{step.kind}"'


def _schema(step: Step, schemas: dict[str, Schema]) -> str:
    name = schema_of(step)
    if name is None:
        return ""
    schema = schemas.get(name.text)
    if schema is None:
        return f'the schema "{name.text}" is not defined in this definition'
    missing = schema.undefined(schemas.get)
    return (
        f'the schema "{name.text}" refers to "{missing[0]}", which this definition does not define' if missing else ""
    )


def _tool(step: Step, known_tools: Collection[str], shell: bool, denied: Collection[str]) -> str:
    if isinstance(step.body, ShellBody):
        name = "shell"
    elif isinstance(step.body, ToolBody):
        name = step.body.name.text
    else:
        return ""
    if name in LAUNCHING or name in DELEGATING or name in denied or name.startswith(LAUNCH_PREFIX):
        return f'the tool "{name}" launches or delegates: an inline pipeline reaches others by call only'
    if name in known_tools or name in ALWAYS_THERE or (name == "shell" and shell):
        return ""
    if name == "shell":
        return 'the tool "shell" is switched off'
    return f'the tool "{name}" does not resolve to a registered tool'


def _identity(body: AgentBody, identity: str) -> str:
    if body.identity is None or body.identity.text == identity:
        return ""
    return f'the identity "{body.identity.text}" is not the invoker\'s own, which is "{identity}"'
