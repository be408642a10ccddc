"""Find out, before plans run, which tools, documents, prompts and models they will use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from msgspec import Struct

from quire.plan.built_in_tools import ALIASES, BUILT_IN_TOOLS, SHELL
from quire.plan.nodes import Arguments, Plan, Step, Template, Think, UseTool, ValueSlot, remembered
from quire.plan.templates import key_references

OWN = "quire"
"""The connection of Quire's own tools. A playbook also runs other documents through it."""

LAUNCHES = "quire/launch"
"""The connection of the launch tools. They check the grant of each pipeline themselves. No server has this name."""

OWN_TOOLS = tuple(tool.name for tool in BUILT_IN_TOOLS if not tool.function)
"""Tools that the engine itself answers."""

SHELLS = ("shell", SHELL)
"""Names of the tool that runs commands."""


_BUILT_IN = frozenset({*ALIASES, *ALIASES.values(), *OWN_TOOLS})


def is_built_in(name: str) -> bool:
    """Tell whether `@tool(quire, NAME)` is a tool of Quire's own, with any documents."""
    return name in _BUILT_IN


def called_documents(step: Step) -> tuple[str, ...]:
    """Return the documents that a step may call.

    A name that a playbook uses may turn out to be a tool of Quire instead.
    """
    match step.work:
        case UseTool(connection=place, tool=tool) if place == OWN and not is_built_in(tool):
            return (tool,)
    return tuple(call.document for call in step.calls())


def called_names(plan: Plan) -> Iterator[str]:
    """Yield the names of the documents that the steps of a plan may call."""
    return (name for _, step in plan.steps() for name in called_documents(step))


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
    if isinstance(arguments, dict) and key_references(arguments):
        return True
    command = arguments.get("command") if isinstance(arguments, dict) else arguments
    return isinstance(command, ValueSlot) or (
        isinstance(command, Template) and next(command.references(), None) is not None
    )


class _Uses(Struct, frozen=True):
    """The tools, prompts and models that the steps of one plan use."""

    tool_calls: tuple[tuple[str, str], ...]
    prompt_schemes: frozenset[str]
    asks_a_model: bool
    has_threads: bool
    has_agents: bool
    has_step_tools: bool
    asks_for_models: bool
    models: tuple[str, ...]


@remembered
def _uses(plan: Plan) -> _Uses:
    steps = [step for _, step in plan.steps()]
    works = [step.work for step in steps if step.work is not None]
    calls = (call for work in works for call in work.tool_calls())
    thinking = [work for work in works if isinstance(work, Think)]
    others = [work for work in works if not isinstance(work, Think | UseTool)]
    with_tools = any(map(step_tools, steps))
    threads = agents = False
    if others:
        from quire.plan.pipeline_work import Agent
        from quire.plan.thread import Thread

        threads = any(isinstance(work, Thread) for work in others)
        agents = any(isinstance(work, Agent) for work in others)
    return _Uses(
        tool_calls=tuple(dict.fromkeys((place, tool) for place, tool in calls if place or tool not in OWN_TOOLS)),
        prompt_schemes=frozenset(work.preamble.scheme for work in thinking if work.preamble is not None),
        asks_a_model=any(work.asks_model for work in works),
        has_threads=threads,
        has_agents=with_tools or agents,
        has_step_tools=with_tools,
        asks_for_models=any(work.model for work in thinking),
        models=tuple(dict.fromkeys(work.cast.model for work in thinking if work.cast and work.cast.model)),
    )


def tool_calls(plans: Iterable[Plan]) -> list[tuple[str, str]]:
    """Return each (connection, tool) once, in document order. A tool without a connection has an empty one."""
    return list(dict.fromkeys(call for plan in plans for call in _uses(plan).tool_calls))


def prompt_schemes(plan: Plan) -> Set[str]:
    """Return the schemes from which a plan fetches prompts."""
    return _uses(plan).prompt_schemes


def asks_a_model(plans: Iterable[Plan]) -> bool:
    return any(_uses(plan).asks_a_model for plan in plans)


def has_threads(plans: Iterable[Plan]) -> bool:
    return any(_uses(plan).has_threads for plan in plans)


def has_agents(plans: Iterable[Plan]) -> bool:
    """Tell whether any step runs under the profile of an identity, or may use the tools of one."""
    return any(_uses(plan).has_agents for plan in plans)


def asks_for_models(plan: Plan) -> bool:
    """Tell whether a step of a playbook asks for a model of its own."""
    return _uses(plan).asks_for_models


def step_models_of(plans: Iterable[Plan]) -> list[str]:
    """Return the models that steps of playbooks have instead of the run's own, each once."""
    return list(dict.fromkeys(model for plan in plans for model in _uses(plan).models))


def has_step_tools(plan: Plan) -> bool:
    """Tell whether the model of a playbook step may use tools."""
    return _uses(plan).has_step_tools


def step_tools(step: Step) -> tuple[str, ...]:
    """Return the tools that the model of a playbook step may use."""
    return step.work.cast.tools if isinstance(step.work, Think) and step.work.cast else ()
