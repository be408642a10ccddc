"""Check the names of grants (`--allow`, or `allow` of a test) before a run starts. An unknown name would grant nothing
and is usually misspelt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quire.errors import BadInputs
from quire.formats.pipeline.inline import LAUNCH_PREFIX, LAUNCHING
from quire.plan.built_in_tools import ALIASES
from quire.tools.builtin import NAMES, SPECS
from quire.trust.capabilities import ACTIONS, ITEM_TYPES, canonical, glob
from quire.wording import did_you_mean, nearest
from quire.workspace.mcp_config import PYTHON

if TYPE_CHECKING:
    from quire.workspace.settings import Settings

_OTHERS = ("rye/fetch", "rye/execute", "rye/sign", "rye/agent/threads/orchestrator")
KNOWN = frozenset({*SPECS, *NAMES, *ALIASES, *LAUNCHING, *_OTHERS})


def require_known(allow: Sequence[str], settings: Settings, option: str = "--allow") -> None:
    """Raise `BadInputs` with a line for each name that is neither a tool nor a capability. `option` stands before it.

    Servers and modules are not started to list their tools: it is enough that the server or module is known.
    """
    problems = []
    for name in allow:
        tool = name.partition("=")[0]
        if not _is_capability(tool) and not _is_known(tool, settings):
            problem = f"{option} {' '.join(name.split())}: no tool or capability of that name exists"
            problems.append(problem + _hint(tool, settings))
    if problems:
        raise BadInputs(problems)


def _is_capability(name: str) -> bool:
    """Return True for a full capability. Only its action and type are checked: a directive may name an item that does
    not exist yet."""
    if name == "*":
        return True
    root, action, item_type = (*name.split(".", 3), "", "")[:3]
    if root != "rye" or "*" in action:
        return root == "rye"
    return action in ACTIONS and ("*" in item_type or item_type in ITEM_TYPES)


def _is_known(tool: str, settings: Settings) -> bool:
    if tool.startswith("rye."):
        tool = tool.replace(".", "/")
    if tool in KNOWN or canonical(tool) in NAMES or tool.startswith(LAUNCH_PREFIX):
        return True
    # `X/*` covers `X` too.
    if "*" in tool and any(glob(tool, name) or glob(tool, f"{name}/") for name in KNOWN):
        return True
    places = [tool, *(tool.partition(mark)[0] for mark in ("/", "__"))]
    if tool.startswith("mcp/"):
        places.append(tool.split("/")[1])
    servers = {*settings.servers, *settings.disabled_servers, PYTHON}
    return any(place in servers for place in places)


def _hint(tool: str, settings: Settings) -> str:
    close = _corrected(tool) or nearest(tool, [*KNOWN, *settings.servers])
    if close:
        return did_you_mean(close, lead="; ")
    if settings.servers or settings.tools.modules:
        return f"; the tool of a server is SERVER/TOOL, a Python function {PYTHON}/NAME"
    return ""


def _corrected(name: str) -> str:
    """Return the capability with a misspelt action or type corrected; empty if it cannot be corrected."""
    root, *rest = name.split(".", 3)
    if root != "rye" or len(rest) < 2:
        return ""
    action, item_type = nearest(rest[0], ACTIONS), nearest(rest[1], ITEM_TYPES)
    return ".".join([root, action, item_type, *rest[2:]]) if action and item_type else ""
