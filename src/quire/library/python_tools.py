"""Python tools of a workspace, as `check` looks at them: imported only where the user has agreed to the workspace."""

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
    """Imports the modules when the first tool is looked for, and never those of a workspace that is not trusted: then,
    and of names that nobody declares, nothing is known. Installed packages may bring those."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def problem(self, tool: str) -> str:
        """Why a tool cannot be used at all; empty where nothing is known against it."""
        loaded = self._loaded
        if isinstance(loaded, str):
            return loaded
        spec = loaded.get(tool)
        return spec.problem if spec else ""

    def problems(self, call: PlannedCall) -> list[str]:
        """Why a call cannot be made."""
        if problem := self.problem(call.tool):
            return [problem]
        loaded = self._loaded
        spec = None if isinstance(loaded, str) else loaded.get(call.tool)
        return call.wrong_names(spec) if spec else []

    @cached_property
    def _loaded(self) -> Mapping[str, ToolSpec] | str:
        """The tools by name, or why none of them can be had."""
        if not self._settings.tools.modules:
            return {}
        from quire.tools.python import workspace_tools

        try:
            return workspace_tools(self._settings)
        except Untrusted:
            return {}
        except QuireError as error:
            return str(error)
