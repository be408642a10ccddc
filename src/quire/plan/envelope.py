"""Compute all permissions that a document can ever need, before it runs: one capability for each tool that it names,
with the hosts, paths and commands that the document writes out.

The Plan does not know which capability belongs to a name, or how dangerous it is; a `Vocabulary` does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias, assert_never

from msgspec import Struct

from quire.plan.nodes import Plan, Step, Think, UseTool
from quire.plan.uses import OWN, OWN_TOOLS, called_documents, step_tools

if TYPE_CHECKING:
    from quire.plan.pipeline_work import Agent, PipelineWork
    from quire.plan.thread import Hook, Thread

ToolsOf: TypeAlias = "Callable[[Agent], Collection[str] | None]"
"""Returns the tools that an agent may use, by name or pattern; None if that is not known."""

_Needed: TypeAlias = "tuple[str, str, tuple[str, ...]]"
"""A capability, the label of the step or hook that needs it, and the details that the document writes out."""


class Vocabulary(Protocol):
    """Translates the names of tools and prompts into capabilities."""

    def tool(self, connection: str, name: str) -> tuple[str, ...]:
        """Return the capabilities needed to call a tool; several if the name contains a `*`.

        The connection may be empty.
        """
        ...

    def prompt(self, where: str) -> str:
        """Return the capability needed to fetch a prompt from a server."""
        ...

    def hook(self, hook: Hook) -> tuple[str, ...]:
        """Return the capabilities that the actions of a hook need."""
        ...

    def effect(self, capability: str) -> str:
        """Return the class of a capability's effect: read, idempotent, write or unknown."""
        ...

    def tier(self, capability: str) -> str:
        """Return the tier of risk of a capability; empty if it is in none."""
        ...


class Need(Struct, frozen=True):
    """A capability and the steps that need it.

    The label of a callee's step has the name of the callee in front: `report 2`.
    """

    capability: str
    steps: tuple[str, ...]
    effect: str = "unknown"
    """The class of its effect: read, idempotent, write, or unknown."""
    tier: str = ""
    """The tier of its risk; empty if it is in none."""
    details: tuple[str, ...] = ()
    """How far the tool goes, such as `host=example.org` or `path=reports/*`, sorted. A `*` stands for any text, and is
    all of a value that a model or an input decides. Empty for a tool whose calls have no such detail."""
    calls: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    """The details of calls that do not belong together, with their steps: a variable that only one of two commands
    gets. One entry for most tools."""


class CapabilityEnvelope(Struct, frozen=True):
    """All capabilities that a document and its callees need."""

    needs: tuple[Need, ...] = ()
    unknown: tuple[str, ...] = ()
    """Documents that were not found: callees, and the parents of directives. Their needs are not included."""

    @property
    def capabilities(self) -> tuple[str, ...]:
        return tuple(need.capability for need in self.needs)


def envelope(
    plan: Plan,
    vocabulary: Vocabulary,
    documents: Mapping[str, Plan] | None = None,
    tools_of: ToolsOf = lambda agent: agent.tools,
) -> CapabilityEnvelope:
    """Compute the envelope of a plan. `documents` maps names to callees; each callee is followed once."""
    plans = {} if documents is None else documents
    steps: dict[str, dict[str, None]] = {}
    details: dict[str, dict[tuple[str, ...], dict[str, None]]] = {}
    unknown: dict[str, None] = {}
    followed: set[str] = set()
    waiting = [("", plan)]
    while waiting:
        name, here = waiting.pop(0)
        if (thread := here.thread) is not None and thread.extends:
            unknown[thread.extends] = None  # a parent that it was not composed with
        for _, step in here.steps():
            runs = called_documents(step)
            follows = isinstance(step.work, UseTool) and runs and runs[0] in plans
            for capability, label, written in () if follows else _needed(step, vocabulary, tools_of):
                where = f"{name} {label}".strip()
                steps.setdefault(capability, {})[where] = None
                details.setdefault(capability, {}).setdefault(written, {})[where] = None
            for callee in runs:
                if callee not in plans:
                    # A tool of Quire itself is not a missing document.
                    unknown.update({} if isinstance(step.work, UseTool) else {callee: None})
                elif callee not in followed:
                    followed.add(callee)
                    waiting.append((callee, plans[callee]))
    needs = tuple(
        Need(name, tuple(labels), vocabulary.effect(name), vocabulary.tier(name), *_together(details[name], labels))
        for name, labels in sorted(steps.items())
    )
    return CapabilityEnvelope(needs, tuple(unknown))


def _together(
    calls: Mapping[tuple[str, ...], Mapping[str, None]], labels: Iterable[str]
) -> tuple[tuple[str, ...], tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]:
    """Return the details of all calls of a tool, and those that belong together with their steps."""
    if not any(calls):
        return (), (((), tuple(labels)),)
    from quire.plan.tool_details import apart, together

    groups = apart(calls)
    if len(groups) == 1:
        groups = [(groups[0][0], tuple(labels))]
    return together(detail for details in calls for detail in details), tuple(groups)


def _needed(step: Step, vocabulary: Vocabulary, tools_of: ToolsOf) -> Iterator[_Needed]:
    label = step.label
    match step.work:
        case None:
            pass
        case UseTool(connection=connection, tool=tool, arguments=arguments):
            from quire.plan.tool_details import details_of

            written = details_of(tool, arguments) if connection == OWN else ()
            yield from ((name, label, written) for name in vocabulary.tool(connection, tool))
        case Think(preamble=preamble):
            yield from _of_model(step_tools(step), label, vocabulary)
            if preamble is not None and preamble.scheme == "mcp":
                yield vocabulary.prompt(preamble.where), label, ()
        case _:
            yield from _needed_elsewhere(step.work, label, vocabulary, tools_of)


def _needed_elsewhere(
    work: PipelineWork | Thread, label: str, vocabulary: Vocabulary, tools_of: ToolsOf
) -> Iterator[_Needed]:
    """Yield the capabilities that a step of a pipeline or a directive needs. A playbook has none, and does not load
    these kinds."""
    from quire.plan.pipeline_work import (
        Agent,
        Block,
        Call,
        Fail,
        Fold,
        ForEach,
        Invoke,
        Parallel,
        Repeat,
        Select,
        Stop,
        Transform,
    )
    from quire.plan.thread import Thread
    from quire.plan.tool_details import any_details, details_of

    match work:
        case Invoke(tool=tool, arguments=arguments, piped=piped):
            if tool not in OWN_TOOLS:
                details = details_of(tool, dict(arguments), piped=piped)
                yield from ((name, label, details) for name in vocabulary.tool("", tool))
        case Agent():
            yield from _of_model(tools_of(work) or (), label, vocabulary)
        case Thread(permissions=permissions, hooks=hooks):
            for permission in permissions:
                yield permission.capability, label, any_details(permission.capability)
            for hook in hooks:
                named = f"hook {hook.id or hook.event}"
                yield from ((name, named, any_details(name)) for name in vocabulary.hook(hook))
        case Transform() | Call() | Select() | Block() | Fold() | ForEach() | Parallel() | Repeat() | Fail() | Stop():
            pass
        case _:
            assert_never(work)


def _of_model(tools: Iterable[str], label: str, vocabulary: Vocabulary) -> Iterator[_Needed]:
    """Yield the capabilities of a model that may call these tools with any arguments."""
    for tool in tools:
        from quire.plan.tool_details import any_details

        yield from ((name, label, any_details(name)) for name in vocabulary.tool("", tool))
