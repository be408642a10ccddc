"""Play a case by hand, on its document or on a changed plan of it: in microseconds, without a store and a driver.

The case is driven once, so everything that a start decides (inputs, models, callees, grants) is what a run has. Then
its plan can be replaced and walked as often as one likes. Only the run itself and answers that come later in `then` are
played: other acts need a store, and `crash: everywhere` a journal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from quire.engine.events import replayed_event
from quire.engine.progress import Progress
from quire.formats.test.syntax import ActKind
from quire.testing.case_run import CaseRun
from quire.testing.cassettes.player import CassettePlayer
from quire.testing.expectations import Judging, always, judge
from quire.testing.leftovers import leftovers
from quire.testing.pure_answers import WalkLimits
from quire.testing.pure_observation import observe_walk
from quire.testing.pure_start import PureStart
from quire.testing.pure_walk import run_pure
from quire.testing.pure_world import WorldAnswers
from quire.trust.capabilities import Grants
from quire.workspace.grants import default_grants, reaching

if TYPE_CHECKING:
    from quire.engine.ports import Loader, Tools
    from quire.engine.requests import Emit
    from quire.formats.test.syntax import Act, Case, TestFile
    from quire.plan.nodes import Plan
    from quire.runs.pins import PinnedRun
    from quire.testing.case_rows import CaseRow
    from quire.testing.case_run import Bench
    from quire.testing.matchers import Snapshots
    from quire.testing.observation import Observation
    from quire.testing.results import Problem
    from quire.values import Value

PURE_WORK = 3_000_000
MAX_EFFECTS = 2_000
"""Less than a run may use: a changed plan may be a loop without an end."""


class CannotWalk(Exception):
    """The case does not start its document, so there is nothing to walk."""


class PureCase:
    """One case, or one row of it. `snapshots` returns those of the case, for expectations that read them."""

    def __init__(
        self, bench: Bench, wanted: CaseRow, file: TestFile, snapshots: Callable[[], Snapshots | None] = lambda: None
    ) -> None:
        """Drive the case once. Raises `CannotWalk` if its document does not start, and `QuireError`."""
        self.name = wanted.name
        self._bench = bench
        self._wanted = wanted
        self._file = file
        self._snapshots = snapshots
        first = PinningRun(bench, replace(wanted.case, then=(), crash_everywhere=False))
        self.baseline: Observation = first.play()[0].observation
        pinned = first.pinned
        if pinned is None:
            raise CannotWalk(f"the case {wanted.name!r} does not start its document")
        self._pinned = pinned
        self._start = PureStart.of(pinned)
        if pinned.plan.format == "directive":
            # The permissions of a directive are its own: those of the plan that is walked.
            self._start = replace(self._start, grants=None)

    @property
    def plan(self) -> Plan:
        return self._pinned.plan

    def notices(self, plan: Plan) -> bool:
        """Tell whether some expectation of the case fails on a plan."""
        return bool(self.problems(plan))

    def problems(self, plan: Plan) -> list[Problem]:
        """Walk a plan, and return the problems that `quire test` would report of it."""
        run = _WalkedRun(self._bench, self._wanted.case, self._pinned, replace(self._start, plan=self._cast(plan)))
        try:
            return self._judged(run)
        finally:
            run.world.folder.remove()

    def observe(self, plan: Plan) -> Observation:
        """Walk a plan, and return the observation of its first rest."""
        run = _WalkedRun(self._bench, self._wanted.case, self._pinned, replace(self._start, plan=self._cast(plan)))
        try:
            return run.walk()
        finally:
            run.world.folder.remove()

    def _cast(self, plan: Plan) -> Plan:
        """Give the steps of a playbook the models that the settings choose for them."""
        steps = self._pinned.pins.steps.get("")
        if not steps:
            return plan
        from quire.library.step_models import read_step_models, with_step_models

        return with_step_models(plan, read_step_models(steps))

    def _judged(self, run: _WalkedRun) -> list[Problem]:
        case, row = self._wanted.case, cast("Mapping[str, Value]", self._wanted.row)
        snapshots = self._snapshots()
        seen = run.walk()
        problems = judge(case.expect, Judging(seen, case.span, row, snapshots))
        complete = True
        for act in case.then:
            if act.kind is not ActKind.ANSWER:
                complete = False
                break
            run.take(act)
            seen = run.walk()
            if act.expect is not None:
                problems += judge(act.expect, Judging(seen, act.span, row, snapshots))
        if self._file.always:
            problems += always(self._file.always, Judging(seen, case.span, row))
        if self._bench.cassettes is not None and isinstance(run.world.model, CassettePlayer):
            problems = self._bench.cassettes.problems(run.world.model, case.span, problems)
        return leftovers(run.world, case, problems, complete=complete)


class PinningRun(CaseRun):
    """A driven run that keeps what it has pinned."""

    pinned: PinnedRun | None = None

    async def _look(self) -> Observation:
        runtime = self._runtime()
        self.pinned = await runtime.stored(await runtime.row(self._run))
        return await super()._look()


class _WalkedRun(CaseRun):
    """A run of a case that is walked by hand."""

    def __init__(self, bench: Bench, case: Case, pinned: PinnedRun, start: PureStart) -> None:
        super().__init__(bench, replace(case, then=()))
        self._pinned = pinned
        self._from = start
        self._answers: WorldAnswers | None = None

    def walk(self) -> Observation:
        """Walk from the start until the run rests. What was answered before is answered the same again."""
        answers = self._answers = self._answers or self._prepared()
        progress = Progress.of(self._from.plan)
        self.world.events.clear()
        self.world.threads.clear()

        def listen(said: Emit) -> None:
            event = replayed_event(said)
            progress.apply(event)
            event.replayed = False
            self.world.hear(event)

        limits = self._settings.spawn.max_pipeline_spawns if self._from.plan.format == "pipeline" else 0
        end = run_pure(
            self._from.begin,
            answers,
            limits=WalkLimits(pure_work=PURE_WORK, max_effects=MAX_EFFECTS, max_model_calls=limits or None),
            listen=listen,
        )
        return observe_walk(end, progress, self._from, self.world, self._pinned.pins)

    def take(self, act: Act) -> None:
        """Add the answers and the scripts of an act."""
        self.world.people.answers.add(act.answers)
        if act.model is not None:
            self.world.model.replies.add(act.model)
        self.world.tools.scripts.add(act.tools)

    def _prepared(self) -> WorldAnswers:
        self._prepare()
        return WorldAnswers(
            self.world,
            self._bench.loop,
            self._gate,
            self._loader,
            unattended=bool(self.case.setting.unattended),
        )

    def _gate(self) -> Tools:
        granted = default_grants(self._settings, self._pinned.pins.allow)
        plans = (self._from.plan, *self._from.environment.documents.values())
        if self._from.plan.format == "directive":
            # Each request carries the grants of its thread, which the gate narrows to these.
            granted = Grants(frozenset({"*"}) | reaching(granted))
        else:
            granted = granted.narrow(Grants.of(self._pinned.pins.grants))
        return self._runtime().gate(plans, granted, "run")

    def _loader(self, gate: Tools) -> Loader:
        return self._runtime().loader("run", self._pinned.pins, gate)
