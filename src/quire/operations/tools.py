"""The tools that documents of a workspace may name: built-in ones, Python functions, and those of MCP servers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from quire.errors import QuireError
from quire.library.capability_words import Words
from quire.operations.field_types import Input, Object, operation, shape
from quire.plan.built_in_tools import BUILT_IN_TOOLS
from quire.tools.builtin import SPECS
from quire.tools.python import installed_tools, workspace_tools
from quire.trust.capabilities import capability
from quire.trust.risk import project_risk
from quire.values import copy
from quire.workspace.mcp_config import BUILT_IN, PYTHON

if TYPE_CHECKING:
    from quire.operations.host import Host
    from quire.runs.connections import ServerListing
    from quire.values import Value
    from quire.workspace.settings import Settings

_ALIASES = {tool.name: [name for name in (tool.name, *tool.aliases) if name != tool.id] for tool in BUILT_IN_TOOLS}


@operation(
    "The tools that documents may name, with their arguments.", Input, shape(tools=list[Object], not_asked=Object)
)
async def list_tools(host: Host, given: Input) -> Value:
    return await asyncio.to_thread(tools_data, host.runtime.settings)


def tools_data(settings: Settings, listing: ServerListing | None = None) -> dict[str, Any]:
    """Return the tools, and the places that were not asked with the reasons. Starts no server: `listing` has the tools
    of those that were asked."""
    not_asked = dict(listing.not_asked if listing else dict.fromkeys(settings.servers, "quire tools --connect asks it"))
    tools = [(BUILT_IN, spec) for spec in SPECS.values()]
    try:
        tools += [(PYTHON, spec) for spec in installed_tools().values()]
        tools += [(PYTHON, spec) for spec in workspace_tools(settings).values()] if settings.tools.modules else []
    except QuireError as error:
        not_asked[PYTHON] = str(error)
    tools += [(name.partition("/")[0], spec) for name, spec in (listing.specs if listing else {}).items()]
    words = Words(settings.servers, project_risk(settings.workspace.folder))
    rows = [
        {
            "id": spec.id,
            "aliases": _ALIASES[spec.name] if source == BUILT_IN else [f"{source}__{spec.name}"],
            "class": spec.effect,
            "tier": words.tier(capability("execute", "tool", spec.id)),
            "source": source,
            "description": spec.description,
            "schema": copy(spec.schema),
        }
        for source, spec in tools
    ]
    return {"tools": rows, "not_asked": not_asked}
