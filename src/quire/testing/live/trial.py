"""Make one try of a live test: run the case on a model, grade it, and ask its judge."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from quire.testing.live.graders import grade, parts_of, terms
from quire.testing.live.judges import Judgement, ask_judge
from quire.testing.live.purse import BUDGET, Meter, Metered, Purse
from quire.testing.live.schedule import Made
from quire.testing.live.tries import Attempt, Ending, Try
from quire.testing.live.try_run import LiveRun, RealTools
from quire.wording import cut

if TYPE_CHECKING:
    from quire.engine.ports import Model
    from quire.testing.case_run import Stage
    from quire.testing.live.judge_seat import JudgeSeat
    from quire.testing.live.plan import LiveCase
    from quire.testing.observation import Observation
    from quire.values import Value

_MOST_PROBLEMS = 5
_LONGEST = 300


async def make_try(case: LiveCase, attempt: Attempt, model: Model, purse: Purse, real: RealTools | None = None) -> Made:
    """Try a case once, with the real tools if they are given. Errors of the run are a failed try; troubles of the
    service and the budget a lost one."""
    row = case.rows[attempt.row]
    meter, judge_meter = Meter(), Meter()
    run = LiveRun(case.bench, row.case, Metered(model, purse, meter), attempt.model, real)
    began = time.monotonic()
    stages, problems = await run.go()
    seconds = time.monotonic() - began
    judgement: Judgement | None = None
    lost = _is_lost(meter, stages)
    if stages and not lost:
        problems += grade(stages, row.case, cast("Mapping[str, Value]", row.row), case.always)
        problems += [f"{one.tool} was called: {one.reason}" for one in run.world.tools.unscripted]
        problems += terms(row.case.live or case.live, stages[-1].observation, meter.cost, seconds)
        if case.seat is not None and not problems:
            judgement = await _judged(case.seat, stages[-1].observation, purse, judge_meter)
    gates = case.seat is not None and case.seat.standing.gates
    if judgement is not None and gates and not judgement.passed:
        problems.append(f"the judge says {judgement.verdict or 'nothing'}: {judgement.reason}")
    ending: Ending = "failed" if problems else "passed"
    trouble = ""
    if lost:
        ending, trouble, problems = "lost", meter.trouble, [meter.message]
    elif judge_meter.trouble == BUDGET or (gates and judge_meter.trouble):
        # The judge could not be asked, which says nothing about the model under test.
        ending, problems = "lost", [judge_meter.message]
        trouble = BUDGET if judge_meter.trouble == BUDGET else "judge"
    made = Try(
        attempt,
        ending,
        tuple(cut(" ".join(one.split()), _LONGEST) for one in problems[:_MOST_PROBLEMS]),
        seconds,
        meter.calls,
        meter.input_tokens,
        meter.output_tokens,
        meter.cost,
        judge_meter.cost,
        (judgement.verdict or "no verdict") if judgement else "",
        (judgement.reason or "no reason") if judgement and not gates else "",
    )
    return Made(made, trouble)


async def _judged(seat: JudgeSeat, seen: Observation, purse: Purse, meter: Meter) -> Judgement:
    parts = parts_of(seen, seat.judge.reads)
    if parts is None:
        return Judgement(None, f"a part that the judge reads is not there: {', '.join(seat.judge.reads)}")
    return await ask_judge(Metered(seat.model, purse, meter), seat.judge, parts)


def _is_lost(meter: Meter, stages: list[Stage]) -> bool:
    """Tell whether a try failed because of the service or the budget. A run that went on all the same is not lost."""
    if meter.trouble == BUDGET:
        return True
    completed = bool(stages) and stages[-1].observation.status == "completed"
    return bool(meter.trouble) and not completed
