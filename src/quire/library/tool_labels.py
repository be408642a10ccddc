"""Label the tools of a workspace: how far their results can be trusted, how private these are, and what they send out.

A capability may be a pattern; then the labels are the worst of all tools that it covers. Results of child threads and
of launched documents need no label of their own: these run under the grants of the thread that starts them, so they
read nothing that the thread itself may not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from urllib.parse import unquote

from msgspec import Struct

from quire.analysis.labels import Integrity, Privacy
from quire.plan.built_in_tools import BUILT_IN_TOOLS, FETCH, SEND, SHELL
from quire.trust.capabilities import Grants, canonical, capability, fixed_head, grant_for, matches, may_begin_with

if TYPE_CHECKING:
    from quire.workspace.mcp_config import McpServer
    from quire.workspace.settings import Settings

_FROM_OUTSIDE = tuple(capability("execute", "tool", tool.id) for tool in BUILT_IN_TOOLS if tool.from_outside)
_SENDS = tuple(capability("execute", "tool", one) for one in (FETCH, SEND))
_SHELL = capability("execute", "tool", SHELL)
_WEB = capability("execute", "tool", "rye/web")
_MCP, _PROMPTS = "rye.execute.tool.mcp.", "rye.fetch.prompt.mcp."
_TOOL = "rye.execute.tool."
_OURS = (f"{_TOOL}rye.", f"{_TOOL}python.", f"{_TOOL}ask", f"{_TOOL}directive_return")
_KNOWLEDGE = ("rye.fetch.knowledge.item", "rye.execute.knowledge.item")
_READS = tuple(
    capability("execute", "tool", tool.id)
    for tool in BUILT_IN_TOOLS
    if tool.id.startswith("rye/file-system/") and tool.effect == "read"
)
_PUBLIC = frozenset(
    capability("execute", "tool", tool.id)
    for tool in BUILT_IN_TOOLS
    if tool.id in (FETCH, SEND, "rye/time/now") or (tool.effect != "read" and tool.id != SHELL)
)
"""Tools whose results have nothing of the workspace: what they write, they were given."""


class ToolLabel(Struct, frozen=True):
    """The labels of the results of a tool, and whether its arguments leave the machine."""

    integrity: Integrity
    privacy: Privacy
    sends_out: bool


class ToolLabels:
    """The labels of all tools of one workspace. Without settings, no server is trusted and commands stay offline."""

    def __init__(self, settings: Settings | None) -> None:
        self._servers: Mapping[str, McpServer] = settings.servers if settings else {}
        self._settings = settings
        self.network = settings is not None and _network(settings)

    def of(self, capability: str) -> ToolLabel:
        """Return the labels of a tool, or the worst labels of all tools that a pattern covers."""
        wide = _covers(capability)
        server = server_of(capability)
        outside = wide(_FROM_OUTSIDE) or (self.network and wide((_SHELL,)))
        sends_out = wide(_SENDS) or (self.network and wide((_SHELL,)))
        private = wide(_KNOWLEDGE) or _is_knowledge(capability)
        if server is not None:
            outside = outside or not self.trusts(server)
            private = private or self.is_private(server)
            sends_out = True
        elif may_begin_with(capability, _MCP) and (self._servers or self._settings is None):
            outside = outside or not all(self.trusts(name) for name in self._servers) or not self._servers
            sends_out = True
            private = private or any(self.is_private(name) for name in self._servers)
        elif _is_unknown(capability):
            outside = sends_out = True
        if self._settings is not None and self._settings.private_files:
            # A model reads any file, and a command too; a step that names its file is looked at in `reads_private`.
            private = private or wide((*_READS, _SHELL))
        privacy = Privacy.PRIVATE if private else Privacy.PUBLIC if capability in _PUBLIC else Privacy.WORKSPACE
        return ToolLabel(Integrity.OUTSIDE if outside else Integrity.WORKSPACE, privacy, sends_out)

    def trusts(self, server: str) -> bool:
        """Tell whether the user has marked a server as trusted, and it is still the one that was marked."""
        mark = self._settings.marks.get(server) if self._settings else None
        known = self._servers.get(server)
        return mark is not None and mark.trusted and known is not None and mark.at == known.line

    def reads_private(self, patterns: tuple[str, ...]) -> bool:
        """Tell whether a path of a call may be one of the private files. In both, `*` stands for any text."""
        private = self._settings.private_files if self._settings else ()
        return any(_may_meet(one, other) for one in patterns for other in private)

    def is_private(self, server: str) -> bool:
        mark = self._settings.marks.get(server) if self._settings else None
        return mark is not None and mark.private


def _covers(capability: str) -> Callable[[tuple[str, ...]], bool]:
    def covers(several: tuple[str, ...]) -> bool:
        return any(capability == one or matches(capability, one) for one in several)

    return covers


def server_of(capability: str) -> str | None:
    """Return the server of a tool or a prompt; None for other tools, and for a pattern that may mean several."""
    for prefix in (_MCP, _PROMPTS):
        if capability.startswith(prefix):
            name, dot, _ = capability.removeprefix(prefix).partition(".")
            return unquote(name) if dot and not set(name) & set("*?[") else None
    return None


def _may_meet(path: str, private: str) -> bool:
    """Tell whether a path, which may contain `*`, can be matched by a pattern: by the texts before the first `*`. A
    path from the root of the disk may be any file of the workspace."""
    if path.startswith("/"):
        return True
    if "*" not in path:
        return fnmatchcase(path, private) or fnmatchcase(path, f"{private.rstrip('/')}/*")
    head, other = path.partition("*")[0], fixed_head(private)
    return head.startswith(other) or other.startswith(head)


def _is_unknown(capability: str) -> bool:
    """Tell whether tools are neither built in nor Python functions: then they may be those of a server."""
    is_wide = capability.removeprefix(_TOOL)[:1] in ("*", "?", "[", "")
    return capability.startswith(_TOOL) and not capability.startswith(_OURS) and not is_wide


def _is_knowledge(capability: str) -> bool:
    return capability.startswith(("rye.fetch.knowledge", "rye.execute.knowledge"))


def _network(settings: Settings) -> bool:
    """Tell whether commands may use the network: by a grant of the user, or one that the workspace asks for."""
    allowed = (*settings.granted, *settings.tools.allow)
    for name in allowed:
        tool, _, detail = name.partition("=")
        if canonical(tool) == SHELL and detail in ("network", "unsandboxed"):
            return True
    # All of `rye/web/*` opens the network to commands too.
    return Grants.of(grant_for(name) for name in allowed if "=" not in name).covers(_WEB)
