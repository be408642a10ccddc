"""Findings of the rules about small documents, for the tests of each family."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from quire.analysis.rules import RuleContext
from quire.engine.premises import Premises
from quire.library.document import read
from quire.library.foresight import Foresight
from quire.source import Source

if TYPE_CHECKING:
    from quire.analysis.proof import Proof
    from quire.analysis.rules import Family
    from quire.diagnostics import Diagnostic


def proof_of(text: str, name: str = "p.yaml") -> Proof:
    """Return the proof of a document without a workspace."""
    reading = read(Source.of(text, name))
    plan = reading.plan
    assert plan is not None, [one.message for one in reading.diagnostics]
    return Foresight(None).proof(plan)


def findings_of(
    family: str, text: str, name: str = "p.yaml", premises: Premises | None = None, granted: tuple[str, ...] = ()
) -> list[Diagnostic]:
    """Return the findings of one family about a document without a workspace."""
    context = RuleContext(Source.of(text, name), premises=premises or Premises(), granted=granted)
    rules = cast("Family", import_module(f"quire.analysis.rules.{family}"))
    return list(rules.check(proof_of(text, name), context))


def codes_of(family: str, text: str, name: str = "p.yaml") -> list[str]:
    return [one.code.id for one in findings_of(family, text, name)]
