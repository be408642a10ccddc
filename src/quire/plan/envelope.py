"""Compute all permissions that a document can ever need, before it runs: one capability for each tool that it names.

The Plan does not know which capability belongs to a name; a `Vocabulary` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, assert_never

from msgspec import Struct

from quire.plan.nodes import (
    Plan,
    Step,
    Think,
    UseTool,
)
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
from quire.plan.uses import OWN, OWN_TOOLS, step_tools

if TYPE_CHECKING:
    from quire.plan.bounds import ToolsOf


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


class Need(Struct, frozen=True):
    """A capability and the steps that need it.

    The label of a callee's step has the name of the callee in front: `report 2`.
    """

    capability: str
    steps: tuple[str, ...]


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
    known = documents or {}
    found: dict[str, dict[str, None]] = {}
    unknown: dict[str, None] = {}
    seen: set[str] = set()
    waiting = [("", plan)]
    while waiting:
        name, here = waiting.pop(0)
        for _, step in here.steps():
            runs = called_documents(step)
            follows = isinstance(step.work, UseTool) and runs and runs[0] in known
            for capability in () if follows else _needed(step, vocabulary, tools_of):
                found.setdefault(capability, {})[f"{name} {step.label}".strip()] = None
            if isinstance(step.work, Thread) and step.work.extends:
                unknown[step.work.extends] = None
            for callee in runs:
                if callee not in known:
                    # A tool of Quire itself is not a missing document.
                    unknown.update({} if isinstance(step.work, UseTool) else {callee: None})
                elif callee not in seen:
                    seen.add(callee)
                    waiting.append((callee, known[callee]))
    needs = tuple(Need(capability, tuple(steps)) for capability, steps in sorted(found.items()))
    return CapabilityEnvelope(needs, tuple(unknown))


def called_documents(step: Step) -> tuple[str, ...]:
    """Return the documents that a step may call.

    A name that a playbook uses may turn out to be a tool of Quire instead.
    """
    match step.work:
        case UseTool(connection=place, tool=tool) if place == OWN and tool not in OWN_TOOLS:
            return (tool,)
    return tuple(call.document for call in step.calls())


def _needed(step: Step, vocabulary: Vocabulary, tools_of: ToolsOf) -> Iterator[str]:
    match step.work:
        case UseTool(connection=connection, tool=tool):
            yield from vocabulary.tool(connection, tool)
        case Invoke(tool=tool):
            yield from () if tool in OWN_TOOLS else vocabulary.tool("", tool)
        case Agent():
            for name in tools_of(step.work) or ():
                yield from vocabulary.tool("", name)
        case Think(preamble=preamble):
            for name in step_tools(step):
                yield from vocabulary.tool("", name)
            if preamble is not None and preamble.scheme == "mcp":
                yield vocabulary.prompt(preamble.where)
        case Thread(permissions=permissions):
            yield from (permission.capability for permission in permissions)
        case None | Transform() | Call() | Select() | Fold() | ForEach() | Parallel():
            pass
        case Block() | Repeat() | Fail() | Stop():
            pass
        case _:
            assert_never(step.work)
