"""Find out, before plans run, which tools, prompts and models they will use."""

from __future__ import annotations

from collections.abc import Iterable

from quire.plan.built_in_tools import BUILT_IN_TOOLS, SHELL
from quire.plan.nodes import Arguments, Plan, Step, Template, Think, UseTool, ValueSlot
from quire.plan.pipeline_work import Agent
from quire.plan.thread import Thread

OWN = "quire"
"""The connection of Quire's own tools. A playbook also runs other documents through it."""

LAUNCHES = "quire/launch"
"""The connection of the launch tools. They check the grant of each pipeline themselves. No server has this name."""

OWN_TOOLS = tuple(tool.name for tool in BUILT_IN_TOOLS if not tool.function)
"""Tools that the engine itself answers."""

SHELLS = ("shell", SHELL)
"""Names of the tool that runs commands."""


def tool_call_problem(work: UseTool) -> str:
    """Return why a tool call of a playbook could never succeed as written, else an empty text.

    A text for a shell must be complete in the document; values can only be passed to a command as items of a list.
    """
    where = f"@tool({work.connection}, {work.tool})"
    if work.problem:
        return f"{where}: {work.problem}"
    if work.connection == OWN and work.tool in SHELLS and has_values(work.arguments):
        return f'{where}: a command with values in it is a list, such as ["ls", "{{{{name}}}}"], and no text'
    return ""


def has_values(arguments: Arguments) -> bool:
    """Tell whether the command in the arguments of a shell tool is, or may become, a text with values inserted."""
    command = arguments.get("command") if isinstance(arguments, dict) else arguments
    return isinstance(command, ValueSlot) or (
        isinstance(command, Template) and next(command.references(), None) is not None
    )


def tool_calls(plans: Iterable[Plan]) -> list[tuple[str, str]]:
    """Return each (connection, tool) once, in document order. A tool without a connection has an empty one."""
    calls: dict[tuple[str, str], None] = {}
    for plan in plans:
        for _, step in plan.steps():
            for connection, tool in step.work.tool_calls() if step.work else ():
                if connection or tool not in OWN_TOOLS:
                    calls[connection, tool] = None
    return list(calls)


def prompt_schemes(plan: Plan) -> set[str]:
    """Return the schemes from which a plan fetches prompts."""
    return {
        step.work.preamble.scheme
        for _, step in plan.steps()
        if isinstance(step.work, Think) and step.work.preamble is not None
    }


def asks_a_model(plans: Iterable[Plan]) -> bool:
    return any(step.work is not None and step.work.asks_model for plan in plans for _, step in plan.steps())


def has_threads(plans: Iterable[Plan]) -> bool:
    return any(isinstance(step.work, Thread) for plan in plans for _, step in plan.steps())


def has_agents(plans: Iterable[Plan]) -> bool:
    """Tell whether any step runs under the profile of an identity, or may use the tools of one."""
    return any(isinstance(step.work, Agent) or step_tools(step) for plan in plans for _, step in plan.steps())


def asks_for_models(plan: Plan) -> bool:
    """Tell whether a step of a playbook asks for a model of its own."""
    return plan.format == "playbook" and any(
        isinstance(step.work, Think) and step.work.model for _, step in plan.steps()
    )


def step_models_of(plans: Iterable[Plan]) -> list[str]:
    """Return the models that steps of playbooks have instead of the run's own, each once."""
    steps = (step.work for plan in plans if plan.format == "playbook" for _, step in plan.steps())
    return list(
        dict.fromkeys(one.cast.model for one in steps if isinstance(one, Think) and one.cast and one.cast.model)
    )


def has_step_tools(plan: Plan) -> bool:
    """Tell whether the model of a playbook step may use tools."""
    return plan.format == "playbook" and any(step_tools(step) for _, step in plan.steps())


def step_tools(step: Step) -> tuple[str, ...]:
    """Return the tools that the model of a playbook step may use."""
    return step.work.cast.tools if isinstance(step.work, Think) and step.work.cast else ()
