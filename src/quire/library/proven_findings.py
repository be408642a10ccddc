"""Apply the rules of the analysis to documents, in the workspace around each of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quire import formats
from quire.analysis.rules import RuleContext, findings
from quire.errors import BadConfiguration, QuireError
from quire.library.document import read
from quire.library.foresight import Foresight

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.library.snapshot import Snapshot
    from quire.plan.nodes import Plan
    from quire.source import Source
    from quire.workspace.settings import Settings


class ProvenFindings:
    """The findings of all rules about documents of one workspace."""

    def __init__(self, library: Snapshot) -> None:
        """Settings that cannot be read count as none: documents that need them are refused for that already, and the
        others are judged without them."""
        try:
            self._settings: Settings | None = library.settings
        except BadConfiguration:
            self._settings = None
        self._foresight = Foresight(self._settings, library=library)

    def of(self, source: Source, outside: Iterable[str] = ()) -> tuple[Diagnostic, ...]:
        """Return the findings about a document, some inputs of which get text from outside; none about one that cannot
        be read."""
        several: dict[Diagnostic, None] = {}
        for plan in self._plans(source):
            proof = self._foresight.proof(plan, source.name, outside=outside)
            several |= dict.fromkeys(findings(proof, self._context(source)))
        return tuple(several)

    def _context(self, source: Source) -> RuleContext:
        settings = self._settings
        premises = self._foresight.world().premises
        granted = settings.granted if settings else ()
        agents = frozenset({"default", *settings.agents}) if settings else None
        excess = {request.key: request.value for request in settings.excess} if settings else {}
        calls = excess.get("safety.spawn.max_pipeline_spawns", "")
        return RuleContext(source, self._foresight.source_of, premises, granted, agents, calls)

    def _plans(self, source: Source) -> list[Plan]:
        """Return the plans of a document: several for a file with several pipelines, none for one that cannot be
        read."""
        format = formats.format_of(source)
        if format not in formats.RUNNABLE:
            return []
        if format == "pipeline" and (registered := self._foresight.registered(source)):
            return registered
        try:
            plan = read(source).plan
        except QuireError:
            return []
        return [plan] if plan is not None else []
