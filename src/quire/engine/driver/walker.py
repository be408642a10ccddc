"""Walk through a document branch by branch, one request at a time, looking in the journal first.

An effect that is not recorded is performed, and its answer is recorded before the interpreter sees it. A branch that
can only wait is suspended; its siblings continue.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from quire.engine.driver.branches import WaitingBranches
from quire.engine.driver.journal import CancelRequested, Ledger
from quire.engine.driver.model_calls import ModelCalls
from quire.engine.driver.perform import Performer
from quire.engine.driver.tasks import Children
from quire.engine.events import replayed_event
from quire.engine.interpreter.until import is_within
from quire.engine.premises import PURE_WORK, REPLAY_FACTOR, REPLY_TOKENS, TIMEOUT, exhausted, replay_exhausted
from quire.engine.requests import (
    UNCERTAIN,
    Boundary,
    Effect,
    Emit,
    Fan,
    Halt,
    HumanRequest,
    Join,
    Load,
    Metering,
    ModelRequest,
    Spawn,
    ToolRequest,
    Walk,
    WorkCheck,
)
from quire.errors import LimitReached, Parked, StepFailed
from quire.plan.uses import LAUNCHES

if TYPE_CHECKING:
    from quire.engine.driver.branches import Branch
    from quire.engine.driver.tasks import Launches
    from quire.engine.ports import LaunchedRuns, Ports
    from quire.engine.progress import Progress
    from quire.engine.records import Answer, EffectRecord, Question
    from quire.values import Value

CANCEL_GRACE_SECONDS = 10.0
STOP_SECONDS = 1.0
"""How long to wait for a cancelled tool, so that its task ends before the event loop does."""
WORKED = "pure_work"
"""Failure kind of a step that is not begun because the run has used up its pure work."""

NO_CHANGES = "a try changes nothing in the world: this tool does not run in one"

REPLAY_TURNS = 5
"""Turns of the event loop without any progress after which a replay counts as finished."""

_NOTHING_SET: Mapping[str, Value] = {}
"""The answer to a boundary where no person has set a value."""


class DriveLimits(Struct, frozen=True):
    """The conditions of a drive; limits are those of now, not those of the start."""

    breakpoints: frozenset[str] = frozenset()
    expiry: float | None = 30 * 24 * 3600.0
    budget: float | None = None
    on_uncertain: str = "rerun"
    max_model_calls: int | None = None
    pure_work: int = PURE_WORK
    reply_tokens: int | None = REPLY_TOKENS
    """Tokens of a reply where neither the agent nor its tier sets `max_tokens`; None in runs that were started before
    there was such a limit."""
    timeout: float = TIMEOUT
    """The longest silence of any service, where a request sets none."""
    until: str = ""
    """The path of the step after which a try ends: it performs no other, and nothing that changes the world."""


class Walker:
    """Move the branches of one drive. `stopping` makes each of them rest before its next effect.

    `grace` is the time that a tool which changes the world may continue after its branch was stopped.
    """

    def __init__(self, ledger: Ledger, ports: Ports, terms: DriveLimits, answers: dict[str, Answer]) -> None:
        self.stopping = False
        self.progress: Progress | None = None
        self.stopped_at: str | None = None
        self.stopped_label = ""
        self.parked: Parked | None = None
        self.grace = CANCEL_GRACE_SECONDS
        self._ledger = ledger
        self._performer = Performer(ledger.lease.run, ports, ledger.feed, terms.reply_tokens, terms.timeout)
        self._performer.parks = True
        self.resting = WaitingBranches(ledger)
        self.children = Children(ledger.journal, self._performer, self.resting, self.walk, self._write)
        self.requests: dict[str, Effect] | None = None
        """Receives the requests of the effects that are performed, if given."""
        self._terms = terms
        self._sharing = asyncio.Lock()
        self._answers = answers
        self._model_calls = ModelCalls(ledger, self._performer, terms, self._finish, self.children.end_soon)
        self._launches = None if ports.launched_runs is None else self._launching(ports.launched_runs)
        self._resumed = bool(ledger.journal)
        self._replayed = 0

    async def walk(self, walk: Walk, branch: Branch) -> Value:
        answer: Any = None
        error: StepFailed | LimitReached | None = None
        try:
            while True:
                request = walk.send(answer) if error is None else walk.throw(error)
                self._replayed += not branch.live
                answer = error = None
                if type(request) is Emit:
                    self._ledger.feed.emit(request, live=branch.live)
                    if self.progress is not None:
                        self.progress.apply(replayed_event(request))
                    continue
                if type(request) is Boundary and not self._stops(request) and self._ledger.journal.passes(request.path):
                    answer = _NOTHING_SET
                    continue
                try:
                    if isinstance(request, WorkCheck):
                        await self._check_work(request, branch)
                    elif isinstance(request, (Fan, Metering, Spawn, Halt)):
                        answer = await self._answer(request, branch)
                    elif not isinstance(request, Emit):
                        answer = await self._effect(request, branch)
                except (StepFailed, LimitReached) as failed:
                    error = failed
                    if isinstance(failed, LimitReached):  # at the step of the call, not at one that moved since
                        failed.label = failed.label or getattr(request, "label", "")
        except StopIteration as stop:
            result: Value = stop.value
            return result
        finally:
            walk.close()

    async def _answer(self, request: Fan | Metering | Spawn | Halt, branch: Branch) -> Any:
        """Answer the requests that take more than one effect, or none."""
        match request:
            case Fan():
                self.progress = None
                return await self.children.fan(request, branch)
            case Metering():
                return self._ledger.journal.metered(request)
            case Spawn():
                self.progress = None
                self.children.spawn(request, branch)
                return None
            case Halt():
                # Done even if it is recorded: the children of a replay have to stop as well.
                await self.children.halt(request)
                return await self._effect(request, branch)

    async def _effect(self, request: Effect, branch: Branch) -> Value:
        self._ledger.journal.claim(request.path)
        record = self._ledger.journal.find(request)
        if record is not None and record.state == "ok":
            if isinstance(request, ToolRequest) and (launches := self._launches_of(request)) is not None:
                await launches.resume(request, record)
            return record.value
        if record is not None and record.failure is not None:
            raise record.failure.raised(request.path)
        if isinstance(request, Boundary):
            if self._stops(request):
                self._ledger.position = request.label
                self.stopped_at, self.stopped_label = request.path, request.label
                await self._rest_for_good(request.path, branch)
            return {}
        self._ledger.position = request.label
        if self.stopping or (self._terms.until and not is_within(request.path, self._terms.until)):
            await self._rest_for_good(request.path, branch)
        if self._terms.until and isinstance(request, ToolRequest) and self._performer.writes(request):
            return await self._finish(self._performer.refused(request, NO_CHANGES, "denied"))
        if self._resumed and not branch.live:
            await self._let_others_replay()
        branch.mark_live()
        if self.requests is not None:
            self.requests[request.path] = request
        match request:
            case HumanRequest():
                return await self._ask(request, branch)
            case ModelRequest():
                if (reused := self._performer.reused(request)) is not None:
                    return await self._finish(reused)
                if self._launches is not None:
                    await self._launches.refresh()
                try:
                    return await self._model_calls.make(request)
                except Parked as wait:
                    self.parked = min(wait, self.parked or wait, key=lambda each: each.wake_at)
                # Other branches continue; the run parks when none of them moves.
                await self.resting.until_answered(request.path, None, branch)
            case Load(refuse=refuse) if refuse is not None:
                return await self._finish(self._performer.refused(request, refuse[1], refuse[0]))
            case Load(scheme="letters") if self._launches is not None:
                return await self._launches.take_letters(request)
            case Join():
                return await self._finish(await self.children.join(request, branch))
            case Halt(children=children):
                return await self._finish(self._performer.settled(request, list(children)))
            case ToolRequest() if (launches := self._launches_of(request)) is not None:
                # A launch holds back all that is left: another one of the same turn waits for the rest, instead of
                # failing.
                async with self._sharing:
                    return await launches.launch(request)
            case ToolRequest() if self._performer.changes_the_world(request):
                again: tuple[str, ...] = ()
                if record is not None and self._terms.on_uncertain != "rerun":
                    if not await self._may_call_again(request, branch):
                        return await self._finish(self._performer.uncertain(request))
                    again = (_uncertain(request),)
                await self._write(self._performer.intent(request), supersede=again)
                return await self._finish(await self._with_grace(request))
        return await self._finish(await self._performer.perform(request))

    def _launching(self, runs: LaunchedRuns) -> Launches:
        from quire.engine.driver.tasks import Launches

        return Launches(self._performer, self._ledger, runs, self._model_calls.budget, self._finish)

    def _launches_of(self, request: ToolRequest) -> Launches | None:
        """Return the launches of this drive if this is one that has to share money with the run that it starts."""
        shares = self._model_calls.budget is not None or request.money is not None
        return self._launches if request.connection == LAUNCHES and shares else None

    async def _check_work(self, request: WorkCheck, branch: Branch) -> None:
        """Give the event loop its turn, or refuse further work.

        A refusal never contradicts the journal: while it holds effects that the walk has not reached, a step that was
        done before must not fail now, and the run ends instead.
        """
        record = self._ledger.journal.find(request)
        if record is not None and record.failure is not None:
            raise record.failure.raised(request.path)
        if self.stopping:
            await self._rest_for_good(request.path, branch)
        limit, used = self._terms.pure_work, request.work.used
        if used > limit and not self._ledger.journal.holds_more():
            self._ledger.position = request.label or self._ledger.position
            await self._finish(self._performer.refused(request, exhausted(limit, request.label, request.path), WORKED))
        if used > limit * REPLAY_FACTOR:
            raise LimitReached(replay_exhausted(limit))
        request.work.allow()
        await asyncio.sleep(0)

    async def _let_others_replay(self) -> None:
        """Wait until no branch gets any further by the journal alone.

        Another branch may stop this one: a parent that halted it, or a failure that was the last record before a crash.
        An effect that would be cut off at once must not be performed by every drive that comes past it.
        """
        still = 0
        while still < REPLAY_TURNS:
            before = self._replayed
            await asyncio.sleep(0)
            still = still + 1 if self._replayed == before else 0

    async def _finish(self, record: EffectRecord) -> Value:
        try:
            await self._write(record)
        except (CancelRequested, asyncio.CancelledError):
            if record.failure is not None:
                await self._ledger.forget(record.path)
            raise
        if record.failure is not None:
            raise record.failure.raised(record.path)
        return record.value

    def _stops(self, boundary: Boundary) -> bool:
        breakpoints = self._terms.breakpoints
        return (self.stopping and not boundary.inner) or (bool(breakpoints) and boundary.stops_at(breakpoints))

    async def _with_grace(self, request: ToolRequest) -> EffectRecord:
        """Perform a tool that changes the world.

        If the run is cancelled, the tool gets some time to finish, so that its outcome is known.
        """
        task = asyncio.create_task(self._performer.perform(request))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            try:
                done, _ = await asyncio.wait({task}, timeout=self.grace)
            finally:
                task.cancel()
            if not done:
                await asyncio.wait({task}, timeout=STOP_SECONDS)
            if done and not task.cancelled():
                await self._settle_late(task.result())
            raise

    async def _settle_late(self, record: EffectRecord) -> None:
        """Record the result of a tool whose branch was stopped.

        A failure is not recorded, since no walk would receive it: the tool is called again.
        """
        with contextlib.suppress(CancelRequested):
            if record.failure is None:
                await self._ledger.write(record)
            else:
                await self._ledger.forget(record.path)

    async def _may_call_again(self, request: ToolRequest, branch: Branch) -> bool:
        """Ask, if that is the policy, whether to repeat a tool that was started before a crash and may have
        finished."""
        if self._terms.on_uncertain != "ask":
            return False
        name = f"{request.connection}/{request.tool}"
        prompt = f"{name} was under way when the run was interrupted: it may have finished. Call it again?"
        question = HumanRequest(_uncertain(request), request.label, name, "confirm", prompt)
        return await self._effect(question, branch) == "yes"

    async def _ask(self, request: HumanRequest, branch: Branch) -> str:
        question = self._performer.question(request, self._terms.expiry)
        stored = self._answers.get(request.path)
        answer = stored if stored is not None and stored.hash == question.hash else None
        try:
            if answer is None and self._performer.is_attended(question):
                answer = await self._ask_both(question, branch)
            elif answer is None:
                here = await self._performer.ask_here(question)
                if here is None:
                    await self._put(question)
                else:
                    answer = self._performer.answer_of(question, here)
        except StepFailed as error:
            # Recorded like every failure: a policy or a model may continue after it, and so must every replay.
            await self._finish(self._performer.refused(request, error.message, error.kind))
            raise
        if answer is None:
            answer = await self.resting.until_answered(question.path, question, branch)
        await self._write(self._performer.settled(request, answer.value, answer.by), consume=(request.path,))
        return answer.value

    async def _ask_both(self, question: Question, branch: Branch) -> Answer | None:
        """Ask the person who is present and, through the inbox, everyone else.

        Return None if no person is present any more: then the question stays in the inbox.
        """
        with self.resting.expecting(question, branch) as elsewhere:
            await self._put(question)
            here = asyncio.create_task(self._performer.ask_here(question))
            try:
                either: set[asyncio.Future[Any]] = {here, elsewhere}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if not elsewhere.done():
                    answer = here.result()
                    return None if answer is None else await self._performer.first_answer(question, answer)
            finally:
                here.cancel()
                await asyncio.gather(here, return_exceptions=True)
            self._performer.overtaken(question, elsewhere.result().value)
            return elsewhere.result()

    async def _put(self, question: Question) -> None:
        """Put the question into the inbox."""
        self._ledger.feed.say(
            "question",
            path=question.path,
            label=question.way,
            data={
                "kind": question.kind,
                "prompt": question.prompt,
                "options": list(question.options),
                "default": question.default,
            },
        )
        await self._write(questions=(question,))

    async def _rest_for_good(self, path: str, branch: Branch) -> None:
        """Rest until the end of this drive. If a boundary was reached, resuming passes it."""
        self.stopped_at = self.stopped_at or ""
        await self.resting.until_answered(path, None, branch)

    async def _write(
        self,
        record: EffectRecord | None = None,
        *,
        questions: tuple[Question, ...] = (),
        consume: tuple[str, ...] = (),
        supersede: tuple[str, ...] = (),
    ) -> None:
        written = await self._ledger.write(record, questions=questions, consume=consume, supersede=supersede)
        if written.answer_waiting and self.resting:
            await self.resting.take_answers()


def _uncertain(request: ToolRequest) -> str:
    """Return the path of the question whether a tool may be called again.

    A yes is valid for one call: after the next crash the question is asked again.
    """
    return f"{request.path}{UNCERTAIN}"
