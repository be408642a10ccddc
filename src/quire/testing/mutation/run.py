"""Run the mutants of a document against its cases, and count those that no case notices.

A case is a function here: it gets a plan, and tells whether one of its expectations fails. Cases that fail on the
unchanged document say nothing about mutants and are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from quire.plan.nodes import Plan
    from quire.testing.mutation.mutants import Mutant

Judge: TypeAlias = "Callable[[Plan], bool]"
"""Runs a case on a plan. True if some expectation fails."""


class BaselineCase(Struct, frozen=True):
    """A case that mutants are tried on."""

    name: str
    notices: Judge


class Killed(Struct, frozen=True):
    """A mutant that a case has noticed."""

    mutant: Mutant
    case: str
    """The name of the first case that did."""


class MutationReport(Struct, frozen=True):
    """The mutants of one document, by their end."""

    killed: tuple[Killed, ...]
    survivors: tuple[Mutant, ...]
    cases: tuple[str, ...]
    """The names of the cases that mutants were tried on."""
    left_out: tuple[str, ...] = ()
    """Cases that fail on the unchanged document."""
    seconds: float = 0.0

    @property
    def total(self) -> int:
        return len(self.killed) + len(self.survivors)

    @property
    def score(self) -> float:
        """The share of mutants that were noticed, from 0 to 1. A document without mutants has them all."""
        return len(self.killed) / self.total if self.total else 1.0


def run_mutants(plan: Plan, mutants: Iterable[Mutant], cases: Sequence[BaselineCase]) -> MutationReport:
    """Try every mutant on the cases, in their order, up to the first that notices it."""
    began = time.perf_counter()
    usable: list[BaselineCase] = []
    left_out: list[str] = []
    for case in cases:
        if case.notices(plan):
            left_out.append(case.name)
        else:
            usable.append(case)
    killed: list[Killed] = []
    survivors: list[Mutant] = []
    for mutant in mutants:
        found = next((case.name for case in usable if case.notices(mutant.plan)), None)
        if found is None:
            survivors.append(mutant)
        else:
            killed.append(Killed(mutant, found))
    return MutationReport(
        tuple(killed),
        tuple(survivors),
        tuple(case.name for case in usable),
        tuple(left_out),
        time.perf_counter() - began,
    )
