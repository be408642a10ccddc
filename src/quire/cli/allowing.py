"""What `--allow` grants, looked at before a run: a name that no tool has grants nothing, and is mostly misspelt."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from quire.diagnostics import nearest
from quire.formats.pipeline.gate import LAUNCH_PREFIX, LAUNCHING
from quire.render.text import one_line
from quire.tools.builtin.specs import NAMES, SPECS
from quire.trust.capabilities import ALIASES, canonical
from quire.workspace.mcp_config import RESERVED
from quire.workspace.settings import Settings

_ACTIONS = ("rye/fetch", "rye/execute", "rye/sign")


def warn_of_unknown(allow: Sequence[str], settings: Settings) -> list[str]:
    """A line for each. Servers and modules are not started to ask what they have: their names are enough."""
    known = {*SPECS, *NAMES, *ALIASES, *LAUNCHING, *_ACTIONS}
    warnings = []
    for name in allow:
        tool = name.partition("=")[0]
        if not _is_known(tool, known, settings):
            hint = nearest(tool, [*known, *settings.servers])
            said = f"warning: --allow {one_line(name)} grants nothing: no known tool has that name"
            warnings.append(said + (f"; did you mean {hint}?" if hint else ""))
    return warnings


def _is_known(tool: str, known: set[str], settings: Settings) -> bool:
    if tool in known or canonical(tool) in NAMES or tool.startswith(LAUNCH_PREFIX):
        return True
    if tool == "*" or tool.startswith("rye."):
        return True  # a capability, which may stand for more than tools
    if "*" in tool and any(fnmatchcase(one, tool) for one in known):
        return True
    places = [tool, *(tool.partition(mark)[0] for mark in ("/", "__"))]
    if tool.startswith("mcp/"):
        places.append(tool.split("/")[1])
    return any(place in settings.servers or place == RESERVED for place in places)
