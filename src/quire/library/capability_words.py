"""Translate the names of tools, prompts and hook actions into capabilities, with their effects and risks.

Nothing is started: a tool of a server is known by the server's name alone, and the class of its effect only if it was
kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING

from quire.patterns import late_pattern
from quire.plan.built_in_tools import BUILT_IN_TOOLS
from quire.plan.vocabulary import adds_context
from quire.trust.capabilities import (
    ACTIONS,
    canonical,
    capability,
    glob,
    grant_for,
    mcp_tool,
    pattern_for,
    python_tool,
)
from quire.trust.risk import NO_RULES, ProjectRisk, tier_of
from quire.workspace.mcp_config import BUILT_IN, PYTHON

if TYPE_CHECKING:
    from quire.plan.thread import Hook, HookAction

_INSERTED = late_pattern(r"\$\{[^{}]*\}|\{input:[^{}]*\}")
_CONTROL = "rye/agent/threads/internal/"
_IDS = frozenset(tool.id for tool in BUILT_IN_TOOLS)
_ORDER = ("read", "idempotent", "write")
_OWN = "rye.execute.tool.rye."


class Words:
    """The capability behind each name: the `Vocabulary` of a workspace with these servers."""

    def __init__(
        self,
        servers: Mapping[str, object],
        risk: ProjectRisk = NO_RULES,
        classes: Mapping[str, str] | None = None,
    ) -> None:
        """`classes` are classes of effects, by capability, of tools that are not built in."""
        self._servers = servers
        self._risk = risk
        self._classes = classes or {}

    def tool(self, connection: str, name: str) -> tuple[str, ...]:
        if connection not in ("", BUILT_IN):
            identity = python_tool(name) if connection == PYTHON else mcp_tool(connection, name)
            return (capability("execute", "tool", identity),)
        if "*" in name and not connection:
            fitting = [tool for tool in BUILT_IN_TOOLS if fnmatchcase(tool.name, name)]
            return tuple(capability("execute", "tool", tool.id) for tool in fitting) or (grant_for(self._id(name)),)
        return (capability("execute", "tool", self._id(name)),)

    def prompt(self, where: str) -> str:
        server, _, name = where.partition("/")
        return capability("fetch", "prompt", mcp_tool(server, name))

    def hook(self, hook: Hook) -> tuple[str, ...]:
        """Return the capabilities that the actions of a hook need; none for those that only decide, and for those that
        bring a text into the first message."""
        needed = []
        for action in hook.actions:
            composed = action.item_type == "knowledge" and adds_context(hook.event) and action.primary != "sign"
            if not composed and (name := self.action(action)):
                needed.append(name)
        return tuple(needed)

    def action(self, action: HookAction) -> str:
        """Return the capability that an action of a hook needs; empty for one that only decides."""
        if action.primary not in ACTIONS or canonical(action.item_id).startswith(_CONTROL):
            return ""
        item_id = _INSERTED.sub("*", action.item_id)
        of = pattern_for if item_id != action.item_id else capability
        return of(action.primary, action.item_type, item_id)

    def effect(self, capability: str) -> str:
        """Return the class of an effect: of a pattern for built-in tools, the worst that it may mean."""
        if capability.startswith("rye.fetch."):
            return "read"
        if capability.startswith("rye.sign."):
            return "write"
        if effect := _classes().get(capability) or self._classes.get(capability):
            return effect
        fitting = [effect for name, effect in _classes().items() if glob(capability, name)]
        return max(fitting, key=_ORDER.index) if fitting and capability.startswith(_OWN) else "unknown"

    def tier(self, capability: str) -> str:
        tier = tier_of(capability, self._risk)
        return tier.value if tier else ""

    def _id(self, name: str) -> str:
        if canonical(name) in _IDS:
            return canonical(name)
        for mark in ("__", "/"):
            server, _, tool = name.partition(mark)
            if tool and server == PYTHON:
                return python_tool(tool)
            if tool and server in self._servers:
                return f"{mcp_tool(server, '')}{tool}" if tool == "*" else mcp_tool(server, tool)
        return name


@cache
def _classes() -> dict[str, str]:
    """Return the classes of effects of the built-in tools, by capability."""
    return {capability("execute", "tool", tool.id): tool.effect for tool in BUILT_IN_TOOLS}
