"""Everything that rules read beside a proof: the texts of documents, settings, and limits of runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.diagnostics import Related
from quire.engine.premises import Premises

if TYPE_CHECKING:
    from quire.analysis.facts import Place
    from quire.analysis.labels import Trace
    from quire.source import Source, Span


class RuleContext(Struct, frozen=True):
    """The text of the document, and the settings around it."""

    source: Source
    callee: Callable[[str], Source | None] = lambda name: None
    """Returns the text of a callee by its name, to show places in it."""
    premises: Premises = Premises()
    granted: tuple[str, ...] = ()
    """Grants of the user for every run, such as `shell=network`."""
    agents: frozenset[str] | None = None
    """The identities that the workspace has; None if its settings cannot be read."""
    asked_calls: str = ""
    """The limit of model calls that the workspace asks for, as long as the user has not confirmed it."""

    def span(self, place: Place) -> Span:
        """Return where a finding about a place is shown: in this document, also for a place in a callee."""
        return place.site or place.span

    def path(self, trace: Trace | None, message: str = "") -> tuple[Related, ...]:
        """Return the way of a value as the path of a flow."""
        found = []
        for one in trace.way() if trace else ():
            source = self.callee(one.document) if one.document else None
            node = f"{one.step} {one.what}".strip()
            found.append(Related(one.span, message or _told(one), source, node))
        return tuple(found)


def _told(trace: Trace) -> str:
    if not trace.step:
        return f"{trace.what} holds the value"
    if trace.before is None:
        return f"{trace.what} of step {trace.step} is where it enters"
    return f"step {trace.step} passes it on as {trace.what}"
