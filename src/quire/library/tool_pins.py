"""Pin tools by their own description: name, description, schemas, and the class of their effect.

A server may give a tool another meaning under the same name. The description counts too, because it is what a model
reads, and the place where a changed server would hide instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from quire.analysis.lock.file import NOT_ASKED, UNUSABLE, LockedDocument, LockedTool, pinned_capability
from quire.errors import QuireError
from quire.trust.capabilities import capability, matches
from quire.values import InvalidValue, fingerprint
from quire.workspace.configuration import load_settings
from quire.workspace.mcp_config import BUILT_IN, PYTHON

if TYPE_CHECKING:
    from quire.tools.registry import ToolSpec
    from quire.values import Value
    from quire.workspace.locate import Workspace
    from quire.workspace.settings import Settings

_MCP = "rye.execute.tool.mcp."
_PYTHON = "rye.execute.tool.python."


def pin_of(spec: ToolSpec) -> LockedTool:
    """Return the pin of a tool."""
    described: dict[str, Value] = {
        "name": spec.name,
        "description": spec.description,
        "schema": spec.schema,
        "output": cast("Value", spec.output),
        "effect": spec.effect,
    }
    try:
        return LockedTool(f"sha256:{fingerprint(described)}", spec.effect)
    except InvalidValue:
        return LockedTool(UNUSABLE, spec.effect)


def known_pins(locked: Mapping[str, LockedTool], workspace: Workspace) -> dict[str, LockedTool]:
    """Return the pins of those locked tools that are known without starting a server: built-in ones, and Python tools
    if the user has agreed to the workspace."""
    tools = {name: pin for name in locked if (pin := _built_in(name))}
    if any(name.startswith(f"{PYTHON}/") for name in locked):
        now = python_pins(load_settings(workspace))
        tools |= {name: pin for name, pin in now.items() if name in locked}
    return tools


def python_pins(settings: Settings) -> dict[str, LockedTool]:
    """Return the pins of the Python tools of a workspace; none if the user has not agreed to it, or a module cannot be
    loaded."""
    if not settings.tools.modules:
        return {}
    from quire.tools.python import workspace_tools

    try:
        return {f"{PYTHON}/{name}": pin_of(spec) for name, spec in workspace_tools(settings).items()}
    except QuireError:
        return {}


def server_pins(server: str, specs: Iterable[ToolSpec]) -> dict[str, LockedTool]:
    """Return the pins of the tools that a server lists."""
    return {f"{server}/{spec.name}": pin_of(spec) for spec in specs}


def needed_pins(
    documents: Iterable[LockedDocument], listed: Mapping[str, LockedTool], before: Mapping[str, LockedTool]
) -> dict[str, LockedTool]:
    """Return the pins of all tools that documents may call. `listed` are those of the servers and modules that were
    asked; a tool of another one keeps its pin of `before`, or has none."""
    needs = {need.capability for document in documents for need in document.may}
    from quire.tools.builtin import SPECS

    tools = {
        f"{BUILT_IN}/{name}": pin_of(spec)
        for name, spec in SPECS.items()
        if _is_needed(capability("execute", "tool", spec.id), needs)
    }
    for key, pin in {**before, **listed}.items():
        if (name := pinned_capability(key)) and _is_needed(name, needs):
            tools[key] = pin
    for need in needs:
        if (named := _named(need)) and named not in tools:
            tools[named] = LockedTool(NOT_ASKED)
    return tools


def _built_in(name: str) -> LockedTool | None:
    place, _, tool = name.partition("/")
    if place != BUILT_IN:
        return None
    from quire.tools.builtin import SPECS

    return pin_of(SPECS[tool]) if tool in SPECS else None


def _is_needed(name: str, needs: Iterable[str]) -> bool:
    return any(matches(need, name) for need in needs)


def _named(need: str) -> str:
    """Return the key of the one tool that a capability names; empty for a pattern, and for names that were escaped."""
    if "*" in need or "%" in need or "?" in need or "[" in need:
        return ""
    if need.startswith(_PYTHON):
        return f"{PYTHON}/{need.removeprefix(_PYTHON)}"
    server, dot, tool = need.removeprefix(_MCP).partition(".")
    return f"{server}/{tool}" if need.startswith(_MCP) and dot else ""
