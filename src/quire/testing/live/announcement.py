"""The numbers that a user sees before a live test spends anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.testing.live.tries import total_cost

if TYPE_CHECKING:
    from quire.testing.live.schedule import Terms


class CaseForecast(Struct, frozen=True):
    """The most that one try of a case on a model may do, and the price of one that was seen earlier."""

    case: str
    model: str
    calls: int | None = None
    """Calls of the model at most; None if there is no bound."""
    cost: float | None = None
    """In dollars at most; None if that is not known."""
    why: str = ""
    """Why the cost is not known."""
    seen: float | None = None
    judge_cost: float | None = 0.0
    """Of the judge at most; None if that is not known."""
    judge_calls: int = 0


class Announcement(Struct, frozen=True):
    """A live test that is not started yet."""

    rows: int
    models: tuple[str, ...]
    repeats: tuple[int, int]
    """The fewest and the most repeats of a case."""
    tries: int
    calls: int | None
    """Calls of models at most, without those of judges; None if there is no bound."""
    judge_calls: int
    bound: float | None
    """Dollars at most, judges included; None if that is not known."""
    why: str
    """Why the bound is not known."""
    seen: float | None
    """Dollars, if each try costs what it did when it was seen last; None if some were never seen."""
    budget: float | None = None


def announce(
    terms: Sequence[Terms], models: Sequence[str], forecasts: Sequence[CaseForecast], budget: float | None
) -> Announcement:
    """Add up what all tries of a live test may do."""
    often = {one.case: len(one.rows) * one.repeats for one in terms}
    times = [often[one.case] for one in forecasts]
    calls = [None if one.calls is None else one.calls * count for one, count in zip(forecasts, times, strict=True)]
    costs = [total_cost((one.cost, one.judge_cost)) for one in forecasts]
    bound = total_cost(None if cost is None else cost * count for cost, count in zip(costs, times, strict=True))
    seen = total_cost(
        None if one.seen is None else one.seen * count for one, count in zip(forecasts, times, strict=True)
    )
    repeats = [one.repeats for one in terms]
    return Announcement(
        sum(len(one.rows) for one in terms),
        tuple(models),
        (min(repeats, default=0), max(repeats, default=0)),
        sum(often.values()) * len(models),
        None if None in calls else sum(count for count in calls if count is not None),
        sum(one.judge_calls * count for one, count in zip(forecasts, times, strict=True)),
        bound,
        next((one.why for one in forecasts if one.why and one.cost is None), "") if bound is None else "",
        seen,
        budget,
    )
