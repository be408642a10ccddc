"""Calibrate a judge: open it, read the labels of people, ask it about each, and keep the result beside it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.ports import Priced
from quire.errors import CannotStart, LimitReached
from quire.testing.live.calibration import (
    REPEATS,
    Calibration,
    Label,
    Standing,
    calibrate,
    labels_path,
    read_labels,
    standing_of,
    store_calibration,
)
from quire.testing.live.judge_seat import JudgeSeat, JudgeSeats
from quire.testing.live.judges import SUFFIX, Judgement, ask_judge, judge_call, load_judge
from quire.testing.live.plan import Announcement, user_models
from quire.testing.live.schedule import BUDGET, HOPELESS, Meter, Metered, Purse, require_price

if TYPE_CHECKING:
    from quire.engine.records import Usage


class CalibrationPlan(Struct, frozen=True):
    """A calibration that is ready to run."""

    path: Path
    seat: JudgeSeat
    labels: tuple[Label, ...]
    repeats: int
    budget: float | None = None

    @property
    def announcement(self) -> Announcement:
        calls = len(self.labels) * self.repeats
        model = self.seat.model
        costs = [
            model.estimate(judge_call(self.seat.judge, one.parts)) if isinstance(model, Priced) else None
            for one in self.labels
        ]
        known = [cost for cost in costs if cost is not None]
        bound = sum(known) * self.repeats if len(known) == len(costs) else None
        why = "" if bound is not None else f"the price of {self.seat.spec} is not known"
        repeats = (self.repeats, self.repeats)
        return Announcement(
            len(self.labels), (self.seat.spec,), repeats, calls, calls, 0, bound, why, None, self.budget
        )


def calibration_plan(
    path: Path,
    *,
    labels: Path | None = None,
    judge_model: str = "",
    repeats: int | None = None,
    budget: float | None = None,
    environ: Mapping[str, str] = os.environ,
) -> CalibrationPlan:
    """Read a judge and its labels, and open its model. Raises `CannotStart`."""
    if not path.name.endswith(SUFFIX):
        raise CannotStart(f"{path} is not a judge: its name ends in {SUFFIX}")
    judge = load_judge(path)
    seat = JudgeSeats(user_models(path.parent, environ), judge_model).seat(judge)
    if budget is not None:
        require_price(seat.model, seat.spec)
    found = read_labels(judge, labels or labels_path(path))
    return CalibrationPlan(path, seat, tuple(found), repeats or REPEATS, budget)


def run_calibration(plan: CalibrationPlan) -> tuple[Calibration, Standing]:
    """Ask the judge about every text, keep the calibration, and return it. Raises `LimitReached` at the budget, and
    `CannotStart` if the model cannot be asked at all; then nothing is kept."""
    purse, seat = Purse(plan.budget), plan.seat
    meter = Meter()

    async def ask(parts: Sequence[tuple[str, str]]) -> Judgement:
        return await ask_judge(Metered(seat.model, purse, meter), seat.judge, parts)

    def on_judged(done: int, usage: Usage) -> None:
        if meter.trouble == BUDGET:
            raise LimitReached(f"the budget of ${plan.budget:g} is used up after {done - 1} of the calls")
        if meter.trouble in HOPELESS:
            raise CannotStart(f"the judge cannot be asked: {meter.message}")

    try:
        found = asyncio.run(
            calibrate(seat.judge, seat.spec, plan.labels, ask, repeats=plan.repeats, on_judged=on_judged)
        )
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    store_calibration(plan.path, found)
    return found, standing_of(seat.judge, seat.spec, found)
