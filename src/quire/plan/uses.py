"""What plans will ask for from outside, known before they run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from quire.plan.nodes import (
    Agent,
    Arguments,
    Call,
    Fold,
    ForEach,
    Hole,
    Invoke,
    Parallel,
    Plan,
    Select,
    Template,
    Think,
    Transform,
    UseTool,
    Work,
)
from quire.plan.thread import Thread

OWN = "quire"
"""The connection of Quire's own tools, by which a playbook runs other documents as well."""

LAUNCHES = "quire/launch"
"""The connection of the launch tools, which look at the grant of each pipeline themselves: no server is called so."""

OWN_TOOLS = ("ask",)
"""Tools that the engine itself answers for."""


SHELLS = ("shell", "rye/bash")
"""The names of the tool that runs commands."""


def problem_of(work: UseTool) -> str:
    """Why a playbook's tool could never be called as the document has it; empty where it could.

    A text that a shell reads must stand in the document; values go to a command as parts of a list."""
    where = f"@tool({work.connection}, {work.tool})"
    if work.problem:
        return f"{where}: {work.problem}"
    if work.connection == OWN and work.tool in SHELLS and has_values(work.arguments):
        return f'{where}: a command with values in it is a list, such as ["ls", "{{{{name}}}}"], and no text'
    return ""


def has_values(arguments: Arguments) -> bool:
    """Whether the command among the arguments of a shell is a text, or may be one, that is not all in the document."""
    command = arguments.get("command") if isinstance(arguments, dict) else arguments
    return isinstance(command, Hole) or (isinstance(command, Template) and next(command.references(), None) is not None)


def tool_calls(plans: Iterable[Plan]) -> list[tuple[str, str]]:
    """Each (connection, tool) once, in document order; a tool that is only named has no connection."""
    calls: dict[tuple[str, str], None] = {}
    for plan in plans:
        for _, step in plan.steps():
            match step.work:
                case UseTool(connection=connection, tool=tool):
                    calls[(connection, tool)] = None
                case Invoke(tool=tool):
                    if tool not in OWN_TOOLS:
                        calls[("", tool)] = None
                case None | Think() | Transform() | Agent() | Thread():
                    pass
                case Call() | Select() | Fold() | ForEach() | Parallel():
                    pass
                case _:
                    assert_never(step.work)
    return list(calls)


def prompt_schemes(plan: Plan) -> set[str]:
    return {
        step.work.preamble.scheme
        for _, step in plan.steps()
        if isinstance(step.work, Think) and step.work.preamble is not None
    }


def asks_a_model(plans: Iterable[Plan]) -> bool:
    return any(_asks_a_model(step.work) for plan in plans for _, step in plan.steps())


def _asks_a_model(work: Work | None) -> bool:
    match work:
        case Think() | Agent() | Thread():
            return True
        case None | UseTool() | Transform() | Invoke() | Call() | Select() | Fold() | ForEach() | Parallel():
            return False
        case _:
            assert_never(work)


def has_threads(plans: Iterable[Plan]) -> bool:
    return any(isinstance(step.work, Thread) for plan in plans for _, step in plan.steps())


def has_agents(plans: Iterable[Plan]) -> bool:
    """Whether a step runs under an identity's profile."""
    return any(isinstance(step.work, Agent) for plan in plans for _, step in plan.steps())
