"""The Python tools of a workspace for `check`: imported only if the user has agreed to the workspace."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from quire.errors import QuireError, Untrusted

if TYPE_CHECKING:
    from quire.tools.planned_calls import PlannedCall
    from quire.tools.registry import ToolSpec
    from quire.workspace.settings import Settings


class PythonTools:
    """Imports the modules when the first tool is looked up. Modules of an untrusted workspace are never imported: then
    nothing is known about its tools. Nothing is known about undeclared names either, because installed packages may
    provide them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

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
        if not self._settings.tools.modules:
            return {}
        from quire.tools.python import workspace_tools

        try:
            return workspace_tools(self._settings)
        except Untrusted:
            return {}
        except QuireError as error:
            return str(error)
