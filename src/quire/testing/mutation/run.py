"""Run the mutants of a document against its cases, and count those that no case notices.

A case is a function here: it gets a plan, and tells whether one of its expectations fails. Cases that fail on the
unchanged document say nothing about mutants and are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from quire.testing.mutation.differences import telling_expectation
from quire.testing.mutation.operators import OPERATORS

if TYPE_CHECKING:
    from quire.plan.nodes import Plan
    from quire.testing.mutation.mutants import Mutant
    from quire.testing.observation import Observation

MOST_SECONDS = 120.0
"""Time for the mutants of one document. A document that wants more is tested as far as this goes."""

Judge: TypeAlias = "Callable[[Plan], bool]"
"""Runs a case on a plan. True if some expectation fails."""


class BaselineCase(Struct, frozen=True):
    """A case that mutants are tried on."""

    name: str
    notices: Judge
    observe: Callable[[Plan], Observation] | None = None
    """Runs the case and returns all that was seen, for the values of expectations."""


class Killed(Struct, frozen=True):
    """A mutant that a case has noticed."""

    mutant: Mutant
    case: str
    """The name of the first case that did."""


class Survivor(Struct, frozen=True):
    """A mutant that no case has noticed, and the expectation that would."""

    mutant: Mutant
    case: str
    """The case that the expectation belongs into, and in which it fails on the mutant. Empty if no case has a run that
    the mutant changes: then it takes a new one."""
    expectation: str
    """One line of YAML below `expect:`."""
    wanted: str = ""
    """The kind of case that it takes, if it takes a new one: `in which step 3 is skipped`."""


class MutationReport(Struct, frozen=True):
    """The mutants of one document, by their end."""

    killed: tuple[Killed, ...]
    survivors: tuple[Survivor, ...]
    cases: tuple[str, ...]
    """The names of the cases that mutants were tried on."""
    left_out: tuple[str, ...] = ()
    """Cases that fail on the unchanged document, or cannot be walked by hand, with the reason."""
    seconds: float = 0.0
    untried: int = 0
    """Mutants that there was no time for."""

    @property
    def total(self) -> int:
        return len(self.killed) + len(self.survivors)

    @property
    def score(self) -> float:
        """The share of mutants that were noticed, from 0 to 1. A document without mutants has them all."""
        return len(self.killed) / self.total if self.total else 1.0


def run_mutants(
    plan: Plan, mutants: Sequence[Mutant], cases: Sequence[BaselineCase], *, most_seconds: float = MOST_SECONDS
) -> MutationReport:
    """Try every mutant on the cases, in their order, up to the first that notices it."""
    began = time.perf_counter()
    usable: list[BaselineCase] = []
    left_out: list[str] = []
    for case in cases:
        if case.notices(plan):
            left_out.append(f"{case.name}: it fails on the unchanged document")
        else:
            usable.append(case)
    killed: list[Killed] = []
    survivors: list[Survivor] = []
    untried = 0
    observed = _Observed(plan)
    for number, mutant in enumerate(mutants):
        if time.perf_counter() - began > most_seconds:
            untried = len(mutants) - number
            break
        found = next((case.name for case in usable if case.notices(mutant.plan)), None)
        if found is None:
            survivors.append(_survivor(mutant, usable, observed))
        else:
            killed.append(Killed(mutant, found))
    return MutationReport(
        tuple(killed),
        tuple(survivors),
        tuple(case.name for case in usable),
        tuple(left_out),
        time.perf_counter() - began,
        untried,
    )


class _Observed:
    """The observations of the unchanged document, each made once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._found: dict[str, Observation] = {}

    def by(self, case: BaselineCase) -> Observation | None:
        if case.observe is None:
            return None
        if case.name not in self._found:
            self._found[case.name] = case.observe(self._plan)
        return self._found[case.name]


def _survivor(mutant: Mutant, cases: Sequence[BaselineCase], observed: _Observed) -> Survivor:
    """Return the expectation for a case in which the mutant changes something; else for a case of its own."""
    for case in cases:
        before = observed.by(case)
        if before is not None and case.observe is not None:
            told = telling_expectation(before, case.observe(mutant.plan), mutant.kill.subject)
            if told is not None:
                return Survivor(mutant, case.name, told)
    place = {"": "the document", "thread": "the thread"}.get(mutant.step, f"step {mutant.step}")
    return Survivor(mutant, "", mutant.expectation(), OPERATORS[mutant.operator].case.format(step=place))
