"""The rules of the analysis: each family reads a proof and yields findings about the document.

A family is added by its name in `FAMILIES`: a module of that name here with a function `check`, and one in `codes` with
its codes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from quire.analysis.proof import Proof
    from quire.analysis.rules.rule_context import RuleContext
    from quire.diagnostics import Code, Diagnostic

    class Family(Protocol):
        """The function that the module of a family provides."""

        def check(self, proof: Proof, context: RuleContext) -> Iterator[Diagnostic]:
            """Yield what the family finds."""
            ...


FAMILIES: tuple[str, ...] = (
    "bounds",
    "dead_code",
    "envelope",
    "flows",
    "gates",
    "races",
    "secrets",
)


def findings(proof: Proof, context: RuleContext) -> tuple[Diagnostic, ...]:
    """Return the findings of all rules about a document, in the order of its text."""
    found = [
        one
        for family in FAMILIES
        for one in cast("Family", import_module(f"quire.analysis.rules.{family}")).check(proof, context)
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (one.span.start, one.code.id)))


def rule_codes() -> tuple[Code, ...]:
    """Return the codes of all rules."""
    from quire.diagnostics import codes_in

    modules = [import_module(f"quire.analysis.rules.codes.{family}") for family in FAMILIES]
    return tuple(sorted(codes_in(*modules), key=lambda code: code.id))
