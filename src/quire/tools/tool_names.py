"""Resolve the name of a tool: `file__read`, `SERVER__TOOL`, a Python function, or a bare name that one server has.

The order is as listed; built-in names come first, so that no server can replace them. Only connections that the run may
use are asked, so that no server is started and no module imported without need.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TypeAlias
from urllib.parse import unquote

from quire.errors import ToolFailed
from quire.plan.built_in_tools import FETCH
from quire.plan.uses import LAUNCHES
from quire.tools.builtin import NAMES, SPECS
from quire.tools.registry import Connections, ToolSpec, is_disabled, unknown
from quire.trust.capabilities import Grants, canonical, capability, grant_for
from quire.workspace.grants import reach_of
from quire.workspace.mcp_config import BUILT_IN, ITEMS, PYTHON

SELF_CHECKING = (ITEMS, LAUNCHES)
"""Connections whose tools (`rye/fetch`, `rye/execute`, `rye/sign`, launching) check the grants for each item."""

ToolTarget: TypeAlias = tuple[str, str]
"""A connection and a tool at it."""


def may_use(grants: Grants, tool_id: str) -> bool:
    """Tell whether a tool may be called. A grant of a host allows `http__get`, which checks each host itself."""
    return grants.allows("execute", "tool", tool_id) or (tool_id == FETCH and bool(reach_of(grants).hosts))


class Names:
    """Resolves names. A resolved name keeps its meaning for the rest of the run."""

    def __init__(self, registry: Connections, grants: Grants) -> None:
        self._registry = registry
        self._grants = grants
        self._found: dict[str, ToolTarget] = {}

    def known(self, name: str) -> ToolTarget | None:
        """Resolve a name if that is possible without starting anything."""
        if name in self._found:
            return self._found[name]
        targets = self._spelled(name)
        if len(targets) == 1:
            return targets[0]
        if not targets:
            targets = [(place, name) for place in (PYTHON, *self._servers()) if self._may(place, name)]
        fitting = [target for target in targets if self._registry.known(*target)]
        return fitting[0] if fitting and (fitting[0][0] == PYTHON or len(fitting) == 1) else None

    async def resolve(self, name: str) -> ToolTarget:
        """Resolve a name. Raises `ToolFailed` if it means no tool, or more than one."""
        if name not in self._found:
            self._found[name] = await self._resolve(name)
        return self._found[name]

    async def matching(self, pattern: str) -> list[tuple[str, ToolSpec]]:
        """Return all tools that match a pattern with `*`, by call name or by id, and that the run may use."""
        grants = Grants.of([grant_for(pattern)])
        tools: list[tuple[str, ToolSpec]] = []
        for place in self._registry.names():
            if place in SELF_CHECKING or not self._reaches(place):
                continue
            for tool, spec in sorted((await self._registry.connection(place).tools()).items()):
                name = tool if place in (BUILT_IN, PYTHON) else f"{place}__{tool}"
                fits = fnmatchcase(name, pattern) or grants.covers(capability("execute", "tool", spec.id))
                if fits and may_use(self._grants, spec.id):
                    tools.append((name, spec))
        return tools

    async def usable(self, place: str) -> list[ToolSpec]:
        """Return all tools of a connection that the run may use."""
        if place in SELF_CHECKING:
            specs = (await self._registry.connection(place).tools()).values()
            launches = place == LAUNCHES and self._grants.has_any("execute.pipeline")
            return [spec for spec in specs if launches or (place == ITEMS and self._grants.has_any(spec.name))]
        if not self._reaches(place):
            return []
        named = sorted((await self._registry.connection(place).tools()).items())
        return [spec for _, spec in named if may_use(self._grants, spec.id)]

    async def _resolve(self, name: str) -> ToolTarget:
        targets = self._spelled(name)
        if len(targets) == 1:
            return targets[0]
        if targets:
            usable = [target for target in targets if self._may(*target)]
            return await self._one(name, usable) or (usable or targets)[0]
        if self._may(PYTHON, name) and name in await self._registry.connection(PYTHON).tools():
            return PYTHON, name
        only = await self._one(name, [(server, name) for server in self._servers() if self._may(server, name)])
        if only is None:
            raise ToolFailed(await self._unknown(name), kind="unknown_tool")
        return only

    async def _one(self, name: str, targets: list[ToolTarget]) -> ToolTarget | None:
        """Return the only one of these that exists. Asks all of them: a second one would make the name ambiguous."""
        import asyncio

        tools = await asyncio.gather(*(self._registry.connection(server).tools() for server, _ in targets))
        there = [target for target, specs in zip(targets, tools, strict=True) if target[1] in specs]
        if len(there) > 1:
            candidates = ", ".join(f"{server}/{tool}" for server, tool in there)
            raise ToolFailed(f'"{name}" means several tools: {candidates}; say which', kind="ambiguous_tool")
        return there[0] if there else None

    def _spelled(self, name: str) -> list[ToolTarget]:
        """Return the meanings of a name by its spelling alone, whether or not there is such a tool."""
        if self._registry.has(BUILT_IN) and canonical(name) in NAMES:
            return [(BUILT_IN, NAMES[canonical(name)])]
        kind, _, rest = name.partition("/")
        if kind == "mcp" and rest.count("/") == 1:
            server, tool = (unquote(part) for part in rest.split("/"))
            return [(server, tool)] if server in self._servers() else []
        for mark in ("/", "__"):
            head, _, tool = name.partition(mark)
            if head == PYTHON and tool and self._registry.has(PYTHON):
                return [(PYTHON, unquote(tool) if mark == "/" else tool)]
        # The name of a server may contain the mark itself, so there may be more than one way to read it.
        return [
            (server, name[len(server) + len(mark) :])
            for server in self._servers()
            for mark in ("__", "/")
            if name.startswith(server + mark) and len(name) > len(server + mark)
        ]

    def _servers(self) -> list[str]:
        return [name for name in self._registry.names() if name not in (BUILT_IN, PYTHON, *SELF_CHECKING)]

    def _may(self, place: str, tool: str) -> bool:
        return self._registry.has(place) and may_use(self._grants, self._registry.connection(place).tool_id(tool))

    def _reaches(self, place: str) -> bool:
        """Tell whether any grant could be for a tool there."""
        if place == BUILT_IN:
            return True
        head = capability("execute", "tool", self._registry.connection(place).tool_id("x"))[:-1]
        fixed = (pattern.partition("*")[0] for pattern in self._grants.patterns)
        return any(part.startswith(head) or head.startswith(part) for part in fixed)

    async def _unknown(self, name: str) -> str:
        for server in self._registry.disabled:
            if name.startswith((f"{server}__", f"{server}/", f"mcp/{server}/")):
                return is_disabled(server)
        if self._grants.declared:
            # Suggest only tools that the thread was offered: others would be refused.
            offered = [spec.id for place in self._registry.names() for spec in await self.usable(place)]
            return unknown("tool", name, dict.fromkeys(offered))
        names: dict[str, object] = dict(SPECS) if self._registry.has(BUILT_IN) else {}
        left_out: list[str] = []
        for place in self._registry.names():
            if place in (BUILT_IN, *SELF_CHECKING):
                continue
            if not self._may(place, name):
                left_out.append(place)
                continue
            tools = await self._registry.connection(place).tools()
            names.update(dict.fromkeys(tools))
            if place != PYTHON:
                names.update((f"{place}__{tool}", None) for tool in tools)
        message = unknown("tool", name, names)
        return message + (f" (not asked, because it is not granted there: {', '.join(left_out)})" if left_out else "")
