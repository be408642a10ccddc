"""Label what tools return: by the tool, by what it is given, and by the file that it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.analysis.labels import PRIVATE, Privacy
from quire.plan.tool_details import details_of

if TYPE_CHECKING:
    from quire.analysis.world import ToolFact, World


def reading(tool: ToolFact, name: str, arguments: object, world: World) -> ToolFact:
    """Return a tool as one call of a step uses it: the results are private only if the file may be a private one.
    `arguments` are those of the plan."""
    if tool.kind != "built-in" or tool.gives_privacy < PRIVATE:
        return tool
    paths = tuple(one.removeprefix("path=") for one in details_of(name, arguments) if one.startswith("path="))
    if not paths or world.reads_private(paths):
        return tool
    return replace(tool, gives_privacy=Privacy.WORKSPACE)
