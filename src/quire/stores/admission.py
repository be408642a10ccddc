"""Conditions for creating a run, checked in the transaction that creates it: the money that a period has left.

Each is an `Admit` of `quire.stores.transactions`. Runs that are created at the same moment are admitted one after the
other, so together they never pass a budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.requests import TINY

if TYPE_CHECKING:
    from quire.stores.statements import Statements
    from quire.stores.transactions import Admit, Reads, Steps


class PeriodBudget(Struct, frozen=True):
    """The most, in dollars, for the runs of a source that are started from a time on."""

    name: str
    """The name of its setting, for messages."""
    most: float
    since: float
    source: str = ""
    """Empty for all runs."""


def spending(sql: type[Statements], since: float, now: float, source: str = "") -> Reads[float]:
    """Return what the runs that were started from a time on have cost, and what those that continue may still cost."""
    ((dollars,),) = yield sql.SPENDING, (now, since, source, source)
    return float(dollars)


def within(budgets: Sequence[PeriodBudget], cost: float, now: float) -> Admit:
    """Admit a run that may cost this much at most, if it fits into each of the budgets."""

    def admit(sql: type[Statements]) -> Steps[str]:
        if budgets:
            yield sql.LOCK_ADMISSION, ("money",)
        for budget in budgets:
            spent = yield from spending(sql, budget.since, now, budget.source)
            if spent + cost > budget.most + TINY:
                return (
                    f"{budget.name} = ${budget.most:g} is reached: runs of this period have cost or set aside "
                    f"${spent:.2f}, and this one may cost ${cost:.2f}"
                )
        return ""

    return admit
