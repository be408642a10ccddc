"""What a run may use when nobody says more: the tools of a trusted workspace and what the user granted."""

from __future__ import annotations

from collections.abc import Sequence

from quire.trust.capabilities import Grants, escape, grant_for, mcp_tool
from quire.workspace.requests import is_trusted
from quire.workspace.settings import Settings


def default_grants(settings: Settings, allow: Sequence[str] = ()) -> Grants:
    """`allow` are the values of `--allow`. Files of a workspace count only once they are confirmed."""
    names = [*settings.granted, *allow]
    patterns: list[str] = []
    if is_trusted(settings):
        for server in settings.servers:
            patterns.append(f"rye.execute.tool.mcp.{escape(server)}.*")
            patterns.append(f"rye.fetch.prompt.mcp.{escape(server)}.*")
        if settings.tools.modules:
            patterns.append("rye.execute.tool.python.*")
        names += settings.tools.allow
    return Grants.of([*patterns, *(_grant(settings, name) for name in names)])


def _grant(settings: Settings, name: str) -> str:
    """`SERVER/TOOL` and `SERVER__TOOL` are how people know the tool of a server."""
    for separator in ("/", "__"):
        server, found, tool = name.partition(separator)
        if found and tool and server in settings.servers:
            return grant_for(f"mcp/{escape(server)}/*" if tool == "*" else mcp_tool(server, tool))
    if name in settings.servers:
        return grant_for(f"mcp/{escape(name)}/*")
    return grant_for(name)
