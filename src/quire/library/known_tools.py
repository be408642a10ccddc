"""The tools and identities of a workspace, for checks: no server is started, and Python tools are imported only if the
user has agreed to the workspace."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from quire.errors import QuireError, Untrusted
from quire.formats.resolver import DocumentResolver
from quire.library.library import Library

if TYPE_CHECKING:
    from quire.plan.nodes import Arguments
    from quire.tools.planned_calls import PlannedCall
    from quire.tools.registry import ToolSpec
    from quire.values import Value
    from quire.workspace.settings import Settings


class PythonTools:
    """Imports the modules when the first tool is looked up. Modules of an untrusted workspace are never imported: then
    nothing is known about its tools. Nothing is known about undeclared names either, because installed packages may
    provide them."""

    def __init__(self, settings: Settings, *, imports: bool = True) -> None:
        self._settings = settings
        self._imports = imports

    def problem(self, tool: str) -> str:
        """Return the reason why a tool cannot be used at all; empty if none is known."""
        loaded = self._loaded
        if isinstance(loaded, str):
            return loaded
        spec = loaded.get(tool)
        return spec.problem if spec else ""

    def problems(self, call: PlannedCall) -> list[str]:
        """Return the reasons why a call cannot be made."""
        if problem := self.problem(call.tool):
            return [problem]
        loaded = self._loaded
        spec = None if isinstance(loaded, str) else loaded.get(call.tool)
        return call.wrong_names(spec) if spec else []

    @cached_property
    def _loaded(self) -> Mapping[str, ToolSpec] | str:
        """The tools by name, or the reason why they cannot be loaded."""
        if not self._settings.tools.modules or not self._imports:
            return {}
        from quire.tools.python import workspace_tools

        try:
            return workspace_tools(self._settings)
        except Untrusted:
            return {}
        except QuireError as error:
            return str(error)


class KnownTools(Library, DocumentResolver):
    """A library that answers the questions of a `DocumentResolver` about tools and identities."""

    _imports = True
    """If false, Python tools are not imported, and nothing is known about them."""

    def is_built_in(self, name: str) -> bool:
        from quire.library.callees import is_built_in

        return is_built_in(name)

    def tools(self) -> Collection[str] | None:
        """Return the known tools, or None if there are servers or modules: they are not started to list their tools."""
        if self.settings.servers or self.settings.tools.modules:
            return None
        from quire.tools.builtin import NAMES, SPECS

        return {*SPECS, *NAMES}

    def connections(self) -> Collection[str]:
        from quire.workspace.mcp_config import BUILT_IN, ITEMS, PYTHON

        return {BUILT_IN, ITEMS, PYTHON, *self.settings.servers, *self.settings.disabled_servers}

    def parameters(self, tool: str) -> Mapping[str, Value] | None:
        """Return the parameters of a built-in tool. Built-in names take precedence over all others, so the name cannot
        mean another tool."""
        spec = _built_in(tool)
        return spec.schema if spec else None

    def tool_problems(self, connection: str, tool: str, given: Arguments) -> list[str]:
        from quire.plan.nodes import UseTool
        from quire.tools.planned_calls import PlannedCall
        from quire.workspace.mcp_config import BUILT_IN

        call = PlannedCall.of_tool(UseTool(connection, tool, given))
        if connection != BUILT_IN:
            return self._python.problems(call)
        spec = _built_in(tool)
        return [*call.wrong_names(spec), *call.wrong_values(spec)] if spec else []

    def python_problem(self, tool: str) -> str:
        if not self.settings.tools.modules or self.parameters(tool) is not None:
            return ""
        head = next((mark for mark in ("python__", "python/") if tool.startswith(mark)), "")
        return self._python.problem(tool.removeprefix(head))

    @cached_property
    def _python(self) -> PythonTools:
        return PythonTools(self.settings, imports=self._imports)

    def identities(self) -> Collection[str]:
        return {"default", *self.settings.agents}

    def models(self) -> Collection[str]:
        from quire.models.tiers import step_models

        return {*step_models(self.settings.models), *self.settings.agents}

    def caps(self) -> tuple[int, int]:
        spawn = self.settings.spawn
        return spawn.max_pipeline_spawns, spawn.max_pipeline_fan_out_depth


def _built_in(tool: str) -> ToolSpec | None:
    from quire.tools.builtin import NAMES, SPECS
    from quire.trust.capabilities import canonical

    return SPECS.get(NAMES.get(canonical(tool), ""))
