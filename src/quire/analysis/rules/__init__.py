"""The rules of the analysis: each family reads a proof, with the texts and settings around it (`RuleContext`), and
yields findings about the document.

A family is added by its name in `FAMILIES`: a module of that name here with a function `check`. Its codes stand in
`codes`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from quire.diagnostics import Related
from quire.engine.premises import Premises

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from quire.analysis.facts import Place
    from quire.analysis.labels import Trace
    from quire.analysis.proof import Proof
    from quire.diagnostics import Code, Diagnostic
    from quire.source import Source, Span

    class Family(Protocol):
        """The function that the module of a family provides."""

        def check(self, proof: Proof, context: RuleContext) -> Iterator[Diagnostic]:
            """Yield the findings of the family."""
            ...


FAMILIES: tuple[str, ...] = ("bounds", "dead_code", "permissions", "flows", "approvals", "stores", "secrets")


def findings(proof: Proof, context: RuleContext) -> tuple[Diagnostic, ...]:
    """Return the findings of all rules about a document, in the order of its text."""
    families = (cast("Family", import_module(f"quire.analysis.rules.{name}")) for name in FAMILIES)
    several = dict.fromkeys(finding for family in families for finding in family.check(proof, context))
    return tuple(sorted(several, key=lambda finding: (finding.span.start, finding.code.id)))


def rule_codes() -> tuple[Code, ...]:
    """Return the codes of all rules."""
    from quire.analysis.rules import codes
    from quire.diagnostics import codes_in

    return tuple(sorted(codes_in(codes), key=lambda code: code.id))


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

    def path(self, trace: Trace | None) -> tuple[Related, ...]:
        """Return the way of a value as the path of a flow."""
        places = []
        for place in trace.way() if trace else ():
            source = self.callee(place.document) if place.document else None
            node = f"{place.step} {place.what}".strip()
            places.append(Related(place.span, _words(place), source, node))
        return tuple(places)


def _words(place: Trace) -> str:
    if not place.step:
        return f"{place.what} holds the value"
    if place.before is None:
        return f"{place.what} of step {place.step} is where it enters"
    return f"step {place.step} passes it on as {place.what}"
