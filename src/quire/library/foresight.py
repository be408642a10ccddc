"""The estimates that `show` prints for a run before it begins: how many requests it can make, and which permissions it
needs.

Only the workspace is read; no server is asked, so a tool of a server is known by the server's name alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from quire.engine.interpreter.environment import MAX_TURNS
from quire.errors import BadConfiguration, BadInputs, CannotStart
from quire.library.document import load
from quire.library.library import Library
from quire.plan.bounds import Allowance, PlanBounds, bounds
from quire.plan.envelope import CapabilityEnvelope, called_documents, envelope
from quire.tools.builtin import NAMES, SPECS
from quire.trust.capabilities import canonical, capability, grant_for, mcp_tool, python_tool
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace
from quire.workspace.mcp_config import BUILT_IN, PYTHON
from quire.workspace.settings import AgentSettings, Settings

if TYPE_CHECKING:
    from quire.plan.nodes import Plan
    from quire.plan.pipeline_work import Agent


class Foresight:
    """Bounds and permissions of plans in one workspace, whose documents are read once. Without settings, because they
    are broken, nothing of the workspace counts."""

    def __init__(self, settings: Settings | None) -> None:
        self._settings = settings
        self._profiles = {"default": AgentSettings(), **(settings.agents if settings else {})}

    @classmethod
    def here(cls, file: str) -> Foresight:
        """Return the foresight of the workspace around the current folder, for a document of this file."""
        try:
            return cls(Library(load_settings(find_workspace(Path.cwd()))).of(file).settings)
        except BadConfiguration:
            return cls(None)

    def of(self, plan: Plan, name: str = "") -> tuple[PlanBounds, CapabilityEnvelope]:
        """Return the bounds and the envelope of a plan. `name` is its file, by which the settings know a playbook."""
        return self.bounds(plan, name), self.envelope(plan, name)

    def bounds(self, plan: Plan, name: str = "") -> PlanBounds:
        plan = self._with_tools(plan, name)
        allowance = Allowance(turns=max(one.turns or MAX_TURNS for one in self._profiles.values()))
        return bounds(plan, self._called(plan), self._tools_of, allowance)

    def envelope(self, plan: Plan, name: str = "") -> CapabilityEnvelope:
        plan = self._with_tools(plan, name)
        words = Words(self._settings.servers if self._settings else {})
        return envelope(plan, words, self._called(plan), self._tools_of)

    def _with_tools(self, plan: Plan, name: str) -> Plan:
        """Return a playbook with the tools that its steps may use. A run that has started has them already."""
        if not self._settings or not self._settings.playbooks or not name or plan.format != "playbook":
            return plan
        from quire.library.step_models import choose_step_models, with_step_models

        try:
            return with_step_models(plan, choose_step_models(plan, name, self._settings).steps)
        except BadInputs:
            return plan

    def _called(self, plan: Plan) -> Mapping[str, Plan]:
        """Return the documents that a plan may call; none for a plan that calls none, which is quick."""
        return self._documents if any(called_documents(step) for _, step in plan.steps()) else {}

    @cached_property
    def _documents(self) -> Mapping[str, Plan]:
        if self._settings is None:
            return {}
        return {
            name: self._with_tools(plan, path) for name, (plan, path) in _documents(Library(self._settings)).items()
        }

    def _tools_of(self, agent: Agent) -> tuple[str, ...]:
        from quire.engine.interpreter.pipeline.agent import narrowed_tools

        profile = self._profiles.get(agent.identity or "default", AgentSettings())
        return profile.tools if agent.tools is None else narrowed_tools(agent.tools, profile.tools)


def _documents(library: Library) -> dict[str, tuple[Plan, str]]:
    """Return registered pipelines, and readable playbooks with their files. Directives are left out, because they are
    composed when they run."""
    found: dict[str, tuple[Plan, str]] = {}
    playbooks = library.playbooks().paths
    for name, path in playbooks.items():
        try:
            plan = load(path).plan
        except CannotStart:
            continue
        if plan is not None:
            found[name] = found[name.rpartition("/")[2]] = plan, str(path)
    return found | {name: (plan, "") for name, plan in library.plans().items()}


class Words:
    """The capability behind each name: the `Vocabulary` of a workspace with these servers."""

    def __init__(self, servers: Mapping[str, object]) -> None:
        self._servers = servers

    def tool(self, connection: str, name: str) -> tuple[str, ...]:
        if connection not in ("", BUILT_IN):
            identity = python_tool(name) if connection == PYTHON else mcp_tool(connection, name)
            return (capability("execute", "tool", identity),)
        if "*" in name and not connection:
            fitting = [spec.id for one, spec in SPECS.items() if fnmatchcase(one, name)]
            return tuple(capability("execute", "tool", one) for one in fitting) or (grant_for(self._id(name)),)
        return (capability("execute", "tool", self._id(name)),)

    def prompt(self, where: str) -> str:
        server, _, name = where.partition("/")
        return capability("fetch", "prompt", mcp_tool(server, name))

    def _id(self, name: str) -> str:
        if canonical(name) in NAMES:
            return canonical(name)
        for mark in ("__", "/"):
            server, found, tool = name.partition(mark)
            if found and tool and server == PYTHON:
                return python_tool(tool)
            if found and tool and server in self._servers:
                return f"{mcp_tool(server, '')}{tool}" if tool == "*" else mcp_tool(server, tool)
        return name
