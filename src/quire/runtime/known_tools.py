"""Which tools the definitions name that somebody wrote at run time: asked before anything of them is launched."""

from __future__ import annotations

from collections.abc import Mapping

from quire.errors import ToolFailed
from quire.formats.pipeline.definition import definition_source
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.syntax import ToolBody
from quire.formats.pipeline.walk import walk
from quire.runtime.gate import open_gate
from quire.trust.capabilities import Grants
from quire.workspace.settings import Settings


class KnownTools:
    """The names that resolve, as far as they were asked for: what `Launching` wants to know."""

    def __init__(self, settings: Settings, grants: Grants, environ: Mapping[str, str] | None = None) -> None:
        self._settings = settings
        self._grants = grants
        self._environ = environ
        self._known: set[str] = set()

    def __call__(self) -> frozenset[str]:
        return frozenset(self._known)

    @property
    def shell(self) -> bool:
        return self._grants.allows("execute", "tool", "shell")

    async def learn(self, definition: object) -> None:
        """Asks for the tools of a definition; a text that is none names none. Raises `Untrusted`."""
        wanted = _tools(definition) - self._known if isinstance(definition, str) else set()
        if not wanted:
            return
        async with open_gate(self._settings, self._grants, self._environ) as gate:
            for name in sorted(wanted):
                try:
                    await gate.offers([name])
                except ToolFailed:
                    continue
                self._known.add(name)


def _tools(definition: str) -> set[str]:
    file = parse(definition_source(definition)).file
    if file is None:
        return set()
    bodies = (step.body for pipeline in file.pipelines for _, step in walk(pipeline))
    names = {body.name.text for body in bodies if isinstance(body, ToolBody)}
    # A `*` would ask for all that fit; as the name of one tool it resolves to none.
    return {name for name in names if "*" not in name}
