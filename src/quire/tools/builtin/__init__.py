"""The tools that come with Quire: files of the workspace, HTTP, a shell. Each kind is imported when it is first
called."""

from __future__ import annotations

from collections.abc import Mapping

from quire.plan.built_in_tools import BUILT_IN_TOOLS
from quire.tools.registry import ToolSpec

SPECS: Mapping[str, ToolSpec] = {
    tool.name: ToolSpec(tool.id, tool.name, tool.description, tool.schema, tool.effect) for tool in BUILT_IN_TOOLS
}
"""The built-in tools by name, as the gate and a model see them."""

NAMES: Mapping[str, str] = {tool.id: tool.name for tool in BUILT_IN_TOOLS}
"""The name of each tool by its canonical id."""
