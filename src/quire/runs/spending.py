"""The budgets of days and months, and the most that a run counts there before it has ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from quire.engine.ports import Priced
from quire.engine.records import NewRun
from quire.errors import LimitReached
from quire.stores.contract import PeriodBudget, within
from quire.stores.occurrences import PREFIX

if TYPE_CHECKING:
    from quire.engine.records import RunRow
    from quire.runs.pins import PinnedState
    from quire.runs.runtime import Runtime
    from quire.stores.transactions import Admit


def most_cost(runtime: Runtime, pins: PinnedState) -> float | None:
    """Return the most that a run may cost: its budget or its proven cost, the smaller one. None if neither is known,
    and 0 for a script."""
    given, proven = runtime.models.given, pins.proven.get("cost")
    amounts = [float(amount) for amount in (pins.budget, proven) if isinstance(amount, int | float)]
    is_free = not isinstance(given, Priced) if given is not None else pins.model.startswith("script:")
    return min(amounts, default=0.0 if is_free else None)


def admission(runtime: Runtime, run: NewRun, day_budget: float | None = None) -> Admit | None:
    """Return the condition that the budgets of the settings have room for a run, and the `day_budget` of its trigger,
    else of the settings; None without such budgets. Raises `LimitReached` if it is not known what the run may cost."""
    budgets, now = runtime.settings.budgets, runtime.clock.now()
    if day_budget is None and run.source.startswith(PREFIX):
        trigger = runtime.settings.triggers.get(run.source.removeprefix(PREFIX))
        day_budget = trigger.day_budget if trigger else None
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    day, month = today.timestamp(), today.replace(day=1).timestamp()
    limits = (
        ("[budgets] day", budgets.day, day, ""),
        ("[budgets] month", budgets.month, month, ""),
        (f"the day_budget of {run.source}", day_budget, day, run.source),
    )
    periods = [PeriodBudget(name, most, since, source) for name, most, since, source in limits if most is not None]
    if periods and run.reserved is None:
        raise LimitReached(
            f"the most that this run may cost is not known, and {periods[0].name} has to hold: "
            "name a budget (--budget USD, or [budgets] run)"
        )
    return within(periods, run.reserved or 0.0, now) if periods else None


async def readmit(runtime: Runtime, row: RunRow, pins: PinnedState) -> None:
    """Admit again, with what it may still cost, a run that has ended or gets another budget. Raises `LimitReached`."""
    most = most_cost(runtime, pins)
    left = None if most is None else max(0.0, most - (row.cost or 0.0))
    run = NewRun(row.id, row.title, row.format, row.document, row.created_at, {}, {}, source=pins.source, reserved=left)
    if admit := admission(runtime, run):
        await runtime.store.reserve(row.id, most, admit)
