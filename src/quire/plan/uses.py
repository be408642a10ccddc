"""What plans will ask for from outside, known before they run."""

from __future__ import annotations

from collections.abc import Iterable

from quire.plan.nodes import Agent, Invoke, Plan, Think, UseTool
from quire.plan.thread import Thread

OWN = "quire"
"""The connection of Quire's own tools, by which a playbook runs other documents as well."""

LAUNCHES = "quire/launch"
"""The connection of the launch tools, which look at the grant of each pipeline themselves: no server is called so."""

OWN_TOOLS = ("ask",)
"""Tools that the engine itself answers for."""


def tool_calls(plans: Iterable[Plan]) -> list[tuple[str, str]]:
    """Each (connection, tool) once, in document order; a tool that is only named has no connection."""
    calls: dict[tuple[str, str], None] = {}
    for plan in plans:
        for _, step in plan.steps():
            if isinstance(step.work, UseTool):
                calls[(step.work.connection, step.work.tool)] = None
            elif isinstance(step.work, Invoke) and step.work.tool not in OWN_TOOLS:
                calls[("", step.work.tool)] = None
    return list(calls)


def prompt_schemes(plan: Plan) -> set[str]:
    return {
        step.work.preamble.scheme
        for _, step in plan.steps()
        if isinstance(step.work, Think) and step.work.preamble is not None
    }


def asks_a_model(plans: Iterable[Plan]) -> bool:
    return any(isinstance(step.work, Think | Agent | Thread) for plan in plans for _, step in plan.steps())


def has_threads(plans: Iterable[Plan]) -> bool:
    return any(isinstance(step.work, Thread) for plan in plans for _, step in plan.steps())


def has_agents(plans: Iterable[Plan]) -> bool:
    """Whether a step runs under an identity's profile."""
    return any(isinstance(step.work, Agent) for plan in plans for _, step in plan.steps())
