"""Run a live test: announce it, try every case on every row and model, compare, and keep receipts; and calibrate a
judge: ask it about each label of people, and keep the result beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.ports import Priced
from quire.errors import CannotStart, LimitReached, QuireError
from quire.library.texts import read_prompt_files
from quire.runs.forecast import document_folder, forecast
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.stores.sqlite.in_memory import Memory, MemoryStore
from quire.testing.live.calibration import (
    REPEATS,
    Calibration,
    Label,
    calibrate,
    labels_path,
    read_labels,
    standing_of,
    store_calibration,
)
from quire.testing.live.calibration import Standing as CalibrationStanding
from quire.testing.live.judges import LONGEST_JUDGED, SUFFIX, Judgement, ask_judge, judge_call, load_judge
from quire.testing.live.plan import (
    Announcement,
    CaseForecast,
    JudgeSeat,
    JudgeSeats,
    LiveCase,
    LiveOptions,
    LivePlan,
    announce,
    live_cases,
    user_models,
)
from quire.testing.live.receipts import (
    Receipt,
    Standing,
    Subject,
    document_hash,
    read_receipts,
    seen_cost,
    standings,
    store_receipts,
)
from quire.testing.live.schedule import BUDGET, HOPELESS, Made, Meter, Metered, Purse, Schedule, require_price
from quire.testing.live.trial import LiveModel, make_try
from quire.testing.live.tries import (
    Attempt,
    JudgeNote,
    LiveReport,
    Score,
    Try,
    pairs,
    read_report,
    total_cost,
    with_baseline,
)
from quire.testing.world.model import Meter as EffectMeter
from quire.values import encode
from quire.workspace.grants import default_grants

if TYPE_CHECKING:
    from quire.engine.ports import Model
    from quire.engine.records import Usage
    from quire.plan.nodes import Plan


_JUDGED = 8_000
"""Characters of a text for which the price of a judge is foreseen; longer ones are seldom."""


def announcement_of(plan: LivePlan) -> Announcement:
    """Return what a live test may cost, from the bounds of the document and from receipts. Asks no model."""
    forecasts = asyncio.run(_forecasts(plan))
    return announce([case.terms for case in plan.cases], tuple(plan.models), forecasts, plan.options.budget)


def run_live(plan: LivePlan, on_try: Callable[[Try], None] = lambda made: None) -> LiveReport:
    """Run a live test to its end, to its budget, or until the user interrupts it. Keeps a receipt for each case."""
    earlier = read_report(plan.options.baseline) if plan.options.baseline else None
    purse = Purse(plan.options.budget)
    terms = [case.terms for case in plan.cases]
    # A model in this process answers one call at a time.
    local = [spec for spec in plan.models if spec.startswith("local:")]
    schedule = Schedule(terms, tuple(plan.models), purse, plan.options.at_once, on_try, local)
    cases = {case.key: case for case in plan.cases}

    workspace = asyncio.Semaphore(1)

    async def perform(attempt: Attempt) -> Made:
        case = cases[attempt.case]
        # Real tools change one and the same workspace.
        real = plan.real[_home(case)] if case.live.tools == "real" else None
        async with workspace if real is not None else contextlib.nullcontext():
            return await make_try(case, attempt, plan.models[attempt.model], purse, real)

    interrupted = False
    try:
        asyncio.run(schedule.run(perform))
    except KeyboardInterrupt:
        # Tries are paid for, so they are reported.
        interrupted = True
    scores = schedule.scores()
    _keep(plan.cases, scores)
    return LiveReport(
        tuple(plan.models),
        tuple(scores),
        tuple(pairs(scores)),
        with_baseline(scores, earlier) if earlier else (),
        tuple(JudgeNote(seat.judge.name, seat.spec, seat.standing.gates, seat.standing.reason) for seat in plan.seats),
        plan.skipped,
        schedule.given_up,
        schedule.planned,
        len(schedule.tries),
        purse.spent,
        purse.unpriced,
        plan.options.budget,
        purse.exhausted,
        interrupted,
    )


def live_standings(options: LiveOptions) -> list[Standing]:
    """Return the standing of every live case, from receipts alone."""
    cases, _ = live_cases(replace(options, real_tools=True))
    result = []
    for folder in dict.fromkeys(_home(case) for case in cases):
        subjects = [subject_of(case) for case in cases if _home(case) == folder]
        result += standings(subjects, read_receipts(folder))
    return result


async def _forecasts(plan: LivePlan) -> list[CaseForecast]:
    receipts = {folder: read_receipts(folder) for folder in {_home(case) for case in plan.cases}}
    return [
        await _forecast(case, spec, model, seen_cost(receipts[_home(case)], case.file, case.case.name, spec))
        for case in plan.cases
        for spec, model in plan.models.items()
    ]


async def _forecast(case: LiveCase, spec: str, model: Model, cost_seen: float | None) -> CaseForecast:
    # The bounds are those of the row with the longest inputs.
    row = max(case.rows.values(), key=lambda candidate: len(encode(dict(candidate.case.setting.inputs))))
    setting = row.case.setting
    options = RunOptions(unattended=bool(setting.unattended), allow=setting.allow or (), limits=setting.limits)
    runtime = _runtime(case, LiveModel(model, spec, EffectMeter()))
    ahead = await forecast(runtime, case.bench.document, setting.inputs, options)
    judge_cost: float | None = 0.0
    if case.seat is not None:
        text = "x" * min(_JUDGED, LONGEST_JUDGED)
        call = judge_call(case.seat.judge, [(case.seat.judge.reads[0], text)])
        judge_cost = case.seat.model.estimate(call) if isinstance(case.seat.model, Priced) else None
    calls, price = ahead.bounds.model_calls.most, ahead.price
    judged = int(case.seat is not None)
    why = price.why if price.most is None else "the price of the judge is not known" if judge_cost is None else ""
    return CaseForecast(case.key, spec, calls, price.most, why, cost_seen, judge_cost, judged)


def _keep(cases: Sequence[LiveCase], scores: Sequence[Score]) -> None:
    """Keep a receipt for each score, apart from those that an interruption or the budget left incomplete."""
    by_key = {case.key: case for case in cases}
    subjects = {case.key: subject_of(case) for case in cases}
    fresh: dict[Path, list[Receipt]] = {}
    for score in scores:
        if not score.tried or not score.complete:
            continue
        subject, made = subjects[score.case], score.tried + score.lost
        receipt = Receipt(
            subject.file,
            subject.case,
            score.model,
            subject.plan,
            subject.test,
            score.status,
            score.passed,
            score.tried,
            time.time(),
            None if score.cost is None else score.cost / made,
            score.seconds_half,
        )
        fresh.setdefault(_home(by_key[score.case]), []).append(receipt)
    for folder, receipts in fresh.items():
        store_receipts(folder, receipts)


def subject_of(case: LiveCase) -> Subject:
    """Return the identity of a case as it is now, for receipts."""
    document, runtime = case.bench.document, _runtime(case)
    callees = runtime.callees().reachable(document.runnable())
    texts = _texts(case, runtime, [document.runnable(), *(callee.plan for callee in callees.values())])
    return Subject(case.file, case.case.name, document_hash(document, callees, texts), case.test_hash)


def _texts(case: LiveCase, runtime: Runtime, plans: Sequence[Plan]) -> dict[str, str]:
    """Return the texts that a document is made of besides its plan: files with prompts, and parts of a directive."""
    document = case.bench.document
    texts = read_prompt_files(plans, document_folder(document))
    if document.runnable().thread:
        setting = next(iter(case.rows.values())).case.setting
        granted = default_grants(runtime.settings, setting.allow or ())
        # A directive that cannot start is composed of nothing; its tries say why.
        with contextlib.suppress(QuireError):
            started = runtime.directives.start(document, setting.inputs, setting.limits, granted, one_model=True)
            texts[document.name] = started.bundle.encoded()
    return texts


def _home(case: LiveCase) -> Path:
    return case.bench.settings.workspace.folder


def _runtime(case: LiveCase, model: Model | None = None) -> Runtime:
    return Runtime(case.bench.settings, MemoryStore(Memory(), now=time.time), environ={}, model=model)


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
        each = total_cost(
            model.estimate(judge_call(self.seat.judge, label.parts)) if isinstance(model, Priced) else None
            for label in self.labels
        )
        bound = None if each is None else each * self.repeats
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
) -> CalibrationPlan:
    """Read a judge and its labels, and open its model. Raises `CannotStart`."""
    if not path.name.endswith(SUFFIX):
        raise CannotStart(f"{path} is not a judge: its name ends in {SUFFIX}")
    judge = load_judge(path)
    seat = JudgeSeats(user_models(path.parent, os.environ), judge_model).seat(judge)
    if budget is not None:
        require_price(seat.model, seat.spec)
    labelled = read_labels(judge, labels or labels_path(path))
    return CalibrationPlan(path, seat, tuple(labelled), repeats or REPEATS, budget)


def run_calibration(plan: CalibrationPlan) -> tuple[Calibration, CalibrationStanding]:
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
        calibration = asyncio.run(
            calibrate(seat.judge, seat.spec, plan.labels, ask, repeats=plan.repeats, on_judged=on_judged)
        )
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    store_calibration(plan.path, calibration)
    return calibration, standing_of(seat.judge, seat.spec, calibration)
