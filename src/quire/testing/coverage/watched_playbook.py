"""A playbook whose branches tell which of their conditions were tested, and which arm was chosen.

The interpreter reads the condition of an arm when it tests it, and the body of an arm when it has chosen it. So an arm
that tells when it is read sees every decision, without a second copy of the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from quire.plan.nodes import Case, Comparison, Match, Plan, Sequence, Step, walk
from quire.testing.coverage.decisions import decision_id
from quire.testing.coverage.question_ways import way_of_answer
from quire.testing.coverage.watched_document import WatchedDocument

if TYPE_CHECKING:
    from collections.abc import Callable

    from quire.engine.pure_work import PureWork
    from quire.engine.requests import Emit, HumanRequest, Walk
    from quire.runs.pins import PinnedRun

# No value has the empty name, so it reads as empty text and this condition never holds.
_NEVER = Comparison("", "!=", "")


class _WatchedCase:
    """An arm that tells when its condition is read, and when its body is."""

    def __init__(self, case: Case, tested: Callable[[], None], chosen: Callable[[], None]) -> None:
        self._case = case
        self._tested = tested
        self._chosen = chosen

    @property
    def test(self) -> Comparison | None:
        self._tested()
        return self._case.test

    @property
    def body(self) -> Sequence:
        self._chosen()
        return self._case.body


class WatchedPlaybook(WatchedDocument):
    """A playbook: its arms, its events and its questions show its decisions."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._steps = dict(walk(plan.body))

    def walk(self, run: PinnedRun, work: PureWork) -> Walk:
        # The run has pinned the models of the steps, so the plan is that of the run.
        return run.with_plan(replace(run.plan, body=self._sequence(run.plan.body, ""))).walk(work)

    def emitted(self, event: Emit) -> None:
        if event.path in self._steps:
            if event.type == "step_started":
                self.take("steps", event.path)
            elif event.type == "step_skipped":
                # It has begun, to test its conditions; none of them held.
                self.taken.discard(decision_id("steps", event.path))

    def answered(self, request: HumanRequest, answer: str) -> None:
        path = request.path.removesuffix("/ask")
        step = self._steps.get(path)
        if step is not None and step.ask is not None:
            by, listed = self.author_of(request.path), bool(step.ask.options)
            self.taken.update(way_of_answer(path, answer, by, request.kind, request.options, listed))

    def _sequence(self, sequence: Sequence, prefix: str) -> Sequence:
        return Sequence(tuple(self._step(step, f"{prefix}{step.position}") for step in sequence.steps))

    def _step(self, step: Step, path: str) -> Step:
        return step if step.match is None else replace(step, match=self._match(step.match, path))

    def _match(self, match: Match, path: str) -> Match:
        """Watch the arms. Reading the condition of one arm means that those before it did not hold; a last arm that
        never holds stands for a missing `else`."""
        take = self.take
        cases = []
        for number, case in enumerate(match.cases, 1):
            body = self._sequence(case.body, f"{path}/case[{number}]/")

            def tested(before: int = number - 1) -> None:
                if before:
                    take("conditions", path, f"if[{before}]", "false")

            def chosen(here: int = number, decides: bool = case.test is not None) -> None:
                take("arms", path, "arm", str(here))
                if decides:
                    take("conditions", path, f"if[{here}]", "true")

            cases.append(_WatchedCase(Case(case.test, body), tested, chosen))

        def none_held() -> None:
            take("arms", path, "arm", "none")
            take("conditions", path, f"if[{len(match.cases)}]", "false")

        cases.append(_WatchedCase(Case(_NEVER, Sequence(())), none_held, lambda: None))
        return replace(match, cases=cast("tuple[Case, ...]", tuple(cases)))
