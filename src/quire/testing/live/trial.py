"""Make one try of a live test: run the case on a real model, grade it, and ask its judge.

The world is that of the case: scripted tools and people, and its own folder. Expectations that describe a script, such
as those about prompts, calls and steps, are left out, as are snapshots: a real model does not follow a script.

With real tools a try is a run as `quire run` makes it, in the workspace itself, with the settings, the keys and the
consent of the user. Only its records are not kept. Grants, settings and files of the case do not hold there: a test
may come from others.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.ports import Model, ModelCall, ModelReply, Priced
from quire.errors import QuireError
from quire.formats.test.codes import UNEXPECTED_WARNING
from quire.formats.test.expected import Expect, Snapshot, Subject
from quire.patterns import late_pattern
from quire.runs.runtime import Runtime
from quire.testing.case_run import Bench, CaseRun, CaseRuntime, CaseWorld, Stage, moment
from quire.testing.expectations import Judging, always, judge
from quire.testing.live.judges import Judgement, ask_judge
from quire.testing.live.schedule import BUDGET, Made, Meter, Metered, Purse
from quire.testing.live.tries import Attempt, Ending, Try
from quire.testing.world.model import CaseModel, Replies
from quire.testing.world.model import Meter as ModelMeter
from quire.testing.world.workspace import CaseProcess, MortalStore
from quire.values import Value, pretty
from quire.wording import cut

if TYPE_CHECKING:
    from quire.engine.ports import Tools
    from quire.formats.test.syntax import Case, Live, Script
    from quire.plan.nodes import Plan
    from quire.plan.pipeline_work import Formula
    from quire.testing.live.plan import JudgeSeat, LiveCase
    from quire.testing.observation import Observation, SeenPrompt
    from quire.trust.capabilities import Grants
    from quire.workspace.settings import Settings


SUBJECTS: frozenset[Subject] = frozenset(
    ("status", "exit", "error", "output", "artifact", "named", "stores", "outputs", "files", "that")
)
"""The subjects of expectations that grade live tries; expectations about others are left out."""
LONGEST_COMPARED = 200_000
"""Characters of a text whose words are compared."""
_LONGEST = 300
_WORDS = late_pattern(r"\w+")


def graders(expect: Expect | None) -> Expect | None:
    """Return the expectations that a real model can meet; None if there are none."""
    checks = [
        check
        for check in (expect.checks if expect else ())
        if check.subject in SUBJECTS and not _has_snapshot(check.matcher)
    ]
    return replace(expect, checks=tuple(checks)) if expect is not None and checks else None


def grades_something(case: Case, formulas: Sequence[Formula]) -> bool:
    """Tell whether anything beyond the status of a run decides about a try."""
    expects = [graders(expect) for expect in (case.expect, *(act.expect for act in case.then))]
    checks = [check for expect in expects if expect for check in expect.checks]
    expects_more = any(check.subject not in ("status", "exit") for check in checks)
    live = case.live
    return expects_more or bool(formulas) or (live is not None and (live.judge is not None or bool(live.similar)))


def grade(stages: Sequence[Stage], case: Case, row: Mapping[str, Value], formulas: Sequence[Formula]) -> list[str]:
    """Return what is wrong with a try, one line each."""
    problems = []
    for stage in stages:
        expect = stage.expect(case)
        if stage.act is not None and expect is None:
            continue
        # A case that expects warnings knows that the document may give them.
        warns = any(check.subject == "warnings" for check in (expect.checks if expect else ()))
        for problem in judge(graders(expect), Judging(stage.observation, case.span, row)):
            if not (warns and problem.finding.code is UNEXPECTED_WARNING):
                message, value = problem.finding.message, " ".join(problem.value.split())
                problems.append(cut(message if not value or value in message else f"{message}: {value}", _LONGEST))
    if formulas:
        judging = Judging(stages[-1].observation, case.span, row)
        problems += [cut(problem.finding.message, _LONGEST) for problem in always(formulas, judging)]
    return problems


def terms(live: Live, observation: Observation, cost: float | None, seconds: float) -> Iterator[str]:
    """Yield the terms of a live test, apart from judges, that a try does not meet."""
    if live.cost is not None and cost is None:
        yield "its cost is not known"
    elif live.cost is not None and cost is not None and cost > live.cost:
        yield f"it cost more than ${live.cost:g}"
    if live.seconds is not None and seconds > live.seconds:
        yield f"it took longer than {live.seconds:g} s"
    if live.similar:  # the reader of the test has checked it
        least, share = live.similar.get("least"), similarity(text_of(observation.output), str(live.similar["to"]))
        bound = float(least) if isinstance(least, int | float) else 0.7
        if share < bound:
            yield f"the output is not similar: {share:.1f} of {bound:g}"


def similarity(text: str, other: str) -> float:
    """Return how much two texts have in common, from 0 to 1: the F1 of their words, in any order and case.

    It is a rough measure, and the same everywhere: it needs no model.
    """
    words = [Counter(_WORDS.findall(content[:LONGEST_COMPARED].casefold())) for content in (text, other)]
    total = words[0].total() + words[1].total()
    return 2 * (words[0] & words[1]).total() / total if total else 1.0


def parts_of(observation: Observation, reads: Sequence[str]) -> list[tuple[str, str]] | None:
    """Return the texts that a judge reads; None if one of them is missing."""
    parts: list[tuple[str, str]] = []
    for name in reads:
        table, _, key = name.partition(".")
        if table == "output":
            parts.append((name, text_of(observation.output)))
        elif table == "artifact":
            parts.append((name, observation.artifact))
        else:
            values: Mapping[str, Value] = getattr(observation, table)
            if key not in values:
                return None
            parts.append((name, text_of(values[key])))
    return parts


def text_of(value: Value) -> str:
    """Return a value as a judge reads it."""
    return "" if value is None else pretty(value)


def _has_snapshot(matcher: object) -> bool:
    if isinstance(matcher, Snapshot):
        return True
    if isinstance(matcher, Struct):
        return any(_has_snapshot(getattr(matcher, name)) for name in matcher.__struct_fields__ if name != "span")
    return isinstance(matcher, tuple) and any(map(_has_snapshot, matcher))


_MOST_PROBLEMS = 5


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
    # A run that continued all the same is not lost.
    completed = bool(stages) and stages[-1].observation.status == "completed"
    lost = meter.trouble == BUDGET or (bool(meter.trouble) and not completed)
    if stages and not lost:
        problems += grade(stages, row.case, row.row, case.always)
        problems += [f"{call.tool} was called: {call.reason}" for call in run.world.tools.unscripted]
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
        tuple(cut(" ".join(problem.split()), _LONGEST) for problem in problems[:_MOST_PROBLEMS]),
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


async def _judged(seat: JudgeSeat, observation: Observation, purse: Purse, meter: Meter) -> Judgement:
    parts = parts_of(observation, seat.judge.reads)
    if parts is None:
        return Judgement(None, f"a part that the judge reads is missing: {', '.join(seat.judge.reads)}")
    return await ask_judge(Metered(seat.model, purse, meter), seat.judge, parts)


LONGEST_TRY = 600.0
"""Seconds that one run may take."""
LONGEST_WAIT = 60.0
"""Seconds that a document may really wait."""


class LiveModel(CaseModel):
    """A real model under its own name, which keeps every prompt. It replaces all models of the document."""

    def __init__(self, model: Model, spec: str, meter: ModelMeter, script: Script | None = None) -> None:
        super().__init__(Replies(script, {}), meter)
        self.name = spec
        self._model = model

    def estimate(self, call: ModelCall) -> float | None:
        return self._model.estimate(call) if isinstance(self._model, Priced) else None

    async def _reply(self, call: ModelCall, prompt: SeenPrompt, on_delta: Callable[[str], None]) -> ModelReply:
        return await self._model.complete(call, on_delta)


class LiveWorld(CaseWorld):
    """The world of a case with a real model and real time, which long waits set forward."""

    def __init__(self, bench: Bench, case: Case, model: Model, spec: str) -> None:
        super().__init__(bench, case)
        self.model = LiveModel(model, spec, self.meter)
        self._ahead = moment(case.setting.clock) - time.time() if case.setting.clock else 0.0

    def now(self) -> float:
        return time.time() + self._ahead

    async def sleep(self, seconds: float) -> None:
        if seconds > LONGEST_WAIT:
            self.advance(seconds)
            seconds = 0.0
        await asyncio.sleep(seconds)

    def advance(self, seconds: float) -> None:
        self._ahead += seconds


class RealTools(Struct, frozen=True):
    """The settings and the environment of the user, for tries with real tools."""

    settings: Settings
    environ: Mapping[str, str]


class RealToolsRuntime(CaseRuntime):
    """A runtime whose tools are those of the workspace, behind its own gate."""

    def __init__(self, real: RealTools, world: LiveWorld, process: CaseProcess) -> None:
        store = MortalStore(world.memory, world.now, process)
        Runtime.__init__(self, real.settings, store, environ=real.environ, model=world.model, clock=world)

    def gate(self, plans: Sequence[Plan], grants: Grants, run: str = "") -> Tools:
        return Runtime.gate(self, plans, grants, run)

    def _reaches_out(self, plans: Sequence[Plan]) -> bool:
        return Runtime._reaches_out(self, plans)


class LiveRun(CaseRun):
    """One try of a case, or of one row of it. With `real`, its tools are real."""

    def __init__(self, bench: Bench, case: Case, model: Model, spec: str, real: RealTools | None = None) -> None:
        if real is not None:
            case = replace(case, setting=replace(case.setting, allow=(), config={}, files={}))
        super().__init__(bench, case)
        self.world: LiveWorld = LiveWorld(bench, case, model, spec)
        self._real = real

    def _prepare(self) -> None:
        if self._real is None:
            super()._prepare()

    def _runtime(self) -> CaseRuntime:
        if self._real is None:
            return super()._runtime()
        self.world.enter(self.process)
        return RealToolsRuntime(self._real, self.world, self.process)

    async def go(self) -> tuple[list[Stage], list[str]]:
        """Run the case on the running event loop, and return its stages; or none, and the reason."""
        try:
            async with asyncio.timeout(LONGEST_TRY):
                return await self._play(), []
        except TimeoutError:
            return [], [f"it took longer than {LONGEST_TRY:g} s"]
        except QuireError as error:
            return [], [str(error)]
        finally:
            self.world.folder.remove()
