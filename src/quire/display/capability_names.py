"""Short names of capabilities for people: `file__write` for a built-in tool, `mcp.tickets.create` for others."""

from __future__ import annotations

from functools import cache

from quire.analysis.lock.wording import short_name
from quire.plan.built_in_tools import BUILT_IN_TOOLS
from quire.trust.capabilities import capability


def capability_name(needed: str) -> str:
    """Return the name of the built-in tool that a capability stands for, else the capability without its beginning."""
    return _built_in().get(needed) or short_name(needed)


@cache
def _built_in() -> dict[str, str]:
    return {capability("execute", "tool", tool.id): tool.name for tool in BUILT_IN_TOOLS}
