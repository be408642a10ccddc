"""Walking through a document: branch by branch, one request at a time, the journal asked first.

What is not recorded is performed, and its answer is recorded before the interpreter sees it. A branch that can
only wait suspends; its siblings go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from quire.engine.branches import Branch, Fanning
from quire.engine.journal import abort_path
from quire.engine.ledger import CancelRequested, Ledger
from quire.engine.perform import Performer
from quire.engine.ports import Ports
from quire.engine.records import Answer, EffectRecord, Question
from quire.engine.requests import (
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
    Outcome,
    Spawn,
    ToolRequest,
    Walk,
)
from quire.engine.spawned import Spawned
from quire.errors import JournalMismatch, LimitReached, StepFailed
from quire.values import Value

CANCEL_GRACE_SECONDS = 10.0
REPLAY_TURNS = 5
"""Turns of the event loop without any news after which a replay has come to its end."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The conditions of a drive; limits are those of now, not those of the start."""

    breakpoints: frozenset[str] = frozenset()
    expiry: float | None = 24 * 3600.0
    budget: float | None = None
    on_uncertain: str = "rerun"
    max_model_calls: int | None = None


@dataclass(slots=True)
class _Waiting:
    """A branch that waits; `question` is None for one that stopped for good."""

    branch: Branch
    question: Question | None
    answered: asyncio.Future[Answer]


class Walker:
    """Moves the branches of one drive. `stopping` makes each of them rest before its next effect.

    `broken` is what ended the run in a child that nobody waits for; `on_break` is called then. `grace` is how long
    a tool that changes the world may go on after its branch was stopped.
    """

    def __init__(self, ledger: Ledger, ports: Ports, terms: Terms, answers: dict[str, Answer]) -> None:
        self.stopping = False
        self.stopped_at: str | None = None
        self.stopped_label = ""
        self.waking = 0
        self.grace = CANCEL_GRACE_SECONDS
        self._ledger = ledger
        self._performer = Performer(ledger.lease.run, ports, ledger.feed)
        self._terms = terms
        self._answers = answers
        self._waiting: dict[str, _Waiting] = {}
        self._tasks: dict[asyncio.Task[None], Branch] = {}
        self._model_calls = ledger.journal.model_calls()
        self._resumed = bool(ledger.journal)
        self._replayed = 0
        self._spawned: dict[str, Spawned] = {}
        self.broken: BaseException | None = None
        self.on_break: Callable[[], None] = lambda: None

    async def walk(self, walk: Walk, branch: Branch) -> Value:
        answer: Any = None
        error: StepFailed | None = None
        try:
            while True:
                request = walk.send(answer) if error is None else walk.throw(error)
                self._replayed += not branch.live
                answer = error = None
                if type(request) is Emit:
                    self._ledger.feed.emit(request, branch)
                    continue
                try:
                    if isinstance(request, Fan | Metering | Spawn | Halt):
                        answer = await self._answer(request, branch)
                    elif not isinstance(request, Emit):
                        answer = await self._effect(request, branch)
                except StepFailed as failed:
                    error = failed
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        finally:
            walk.close()

    async def _answer(self, request: Fan | Metering | Spawn | Halt, branch: Branch) -> Any:
        """What takes more than one effect, or none."""
        match request:
            case Fan():
                return await self._fan(request, branch)
            case Metering():
                return self._ledger.journal.metered(request.paths)
            case Spawn():
                self._spawn(request, branch)
                return None
            case Halt():
                # Whether or not it is recorded: the children of a replay have to stop as well.
                await self._halt(request)
                return await self._effect(request, branch)

    async def _effect(self, request: Effect, branch: Branch) -> Value:
        self._ledger.journal.claim(request.path)
        record = self._ledger.journal.find(request)
        if record is not None and record.state == "ok":
            return record.value
        if record is not None and record.failure is not None:
            raise record.failure.raised(request.path)
        if isinstance(request, Boundary):
            return await self._boundary(request, branch)
        self._ledger.position = request.label
        if self.stopping:
            await self._rest_for_good(request.path, branch)
        if self._resumed and not branch.live:
            await self._let_others_replay()
        branch.mark_live()
        match request:
            case HumanRequest():
                return await self._ask(request, branch)
            case ModelRequest():
                self._check_budget()
                if (refused := self._refused(request)) is not None:
                    return await self._finish(refused)
                return await self._ask_model(request)
            case Load(refuse=refuse) if refuse is not None:
                return await self._finish(self._performer.refused(request, refuse[1], refuse[0]))
            case Join():
                return await self._finish(await self._join(request, branch))
            case Halt():
                return await self._finish(self._performer.settled(request, None))
            case ToolRequest() if self._performer.changes_the_world(request):
                again: tuple[str, ...] = ()
                if record is not None and self._terms.on_uncertain != "rerun":
                    if not await self._may_call_again(request, branch):
                        return await self._finish(self._performer.uncertain(request))
                    again = (_uncertain(request),)
                await self._write(self._performer.intent(request), supersede=again)
                return await self._finish(await self._with_grace(request))
        return await self._finish(await self._performer.perform(request))

    async def _ask_model(self, request: ModelRequest) -> Value:
        """What the call may cost is set aside while it is under way: those beside it must not count on it."""
        money = request.bounds.money if request.bounds is not None else None
        held = 0.0 if money is None else self._performer.estimate(request) or 0.0
        if money is not None:
            money.hold(held)
        try:
            return await self._finish(await self._performer.perform(request))
        finally:
            if money is not None:
                money.hold(-held)

    async def _let_others_replay(self) -> None:
        """Until no branch gets any further by the journal alone. One of them may stop this one: a parent that halted
        it, or a failure that was the last thing written before a crash. What would be cut off at once must not be
        performed by every drive that passes by."""
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

    async def _boundary(self, boundary: Boundary, branch: Branch) -> Value:
        if self.stopping or boundary.label in self._terms.breakpoints:
            self._ledger.position = boundary.label
            self.stopped_at, self.stopped_label = boundary.path, boundary.label
            await self._rest_for_good(boundary.path, branch)
        return {}

    async def _with_grace(self, request: ToolRequest) -> EffectRecord:
        """A tool that changes the world gets a while to finish when the run is cancelled, so that its end is known."""
        task = asyncio.create_task(self._performer.perform(request))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            try:
                done, _ = await asyncio.wait({task}, timeout=self.grace)
            finally:
                task.cancel()
            if done and not task.cancelled():
                await self._settle_late(task.result())
            raise

    async def _settle_late(self, record: EffectRecord) -> None:
        """What came of a tool after its branch was stopped. Nobody will consume a failure: the tool is called again."""
        with contextlib.suppress(CancelRequested):
            if record.failure is None:
                await self._ledger.write(record)
            else:
                await self._ledger.forget(record.path)

    async def _may_call_again(self, request: ToolRequest, branch: Branch) -> bool:
        """The tool was started before a crash and nobody knows whether it finished: asks, if that is the policy."""
        if self._terms.on_uncertain != "ask":
            return False
        name = f"{request.connection}/{request.tool}"
        prompt = f"{name} was under way when the run was interrupted: it may have finished. Call it again?"
        question = HumanRequest(_uncertain(request), request.label, name, "confirm", prompt)
        return await self._effect(question, branch) == "yes"

    def _check_budget(self) -> None:
        if self._terms.budget is None:
            return
        spent = self._ledger.cost
        if spent is None:
            raise LimitReached("the price of this model is not known, so a budget cannot be kept: run without --budget")
        if spent >= self._terms.budget:
            raise LimitReached(f"the budget of ${self._terms.budget:g} is used up (${spent:.4f} spent)")

    def _refused(self, request: ModelRequest) -> EffectRecord | None:
        """An ordinary failure of its step, and recorded like one: the run, or its thread, may not make that call."""
        if (over := self._performer.out_of_bounds(request)) is not None:
            return over
        most = self._terms.max_model_calls
        if most is not None and self._model_calls >= most:
            return self._performer.refused(request, f"the run has made the {most} model calls that it may make")
        self._model_calls += 1
        return None

    async def _ask(self, request: HumanRequest, branch: Branch) -> str:
        question = self._performer.question(request, self._terms.expiry)
        given = self._answers.get(request.path)
        if given is None or given.hash != question.hash:
            answer = await self._performer.ask_here(question)
            if answer is not None:
                await self._write(self._performer.settled(request, answer), consume=(request.path,))
                return answer
            given = await self._wait_for(question, branch)
        await self._write(self._performer.settled(request, given.value), consume=(request.path,))
        return given.value

    async def _wait_for(self, question: Question, branch: Branch) -> Answer:
        self._ledger.feed.say(
            "question",
            path=question.path,
            label=question.label,
            data={
                "kind": question.kind,
                "prompt": question.prompt,
                "options": list(question.options),
                "default": question.default,
            },
        )
        await self._write(questions=(question,))
        return await self._suspend(question.path, question, branch)

    async def _rest_for_good(self, path: str, branch: Branch) -> None:
        """Until the end of this drive. Where a boundary was reached, resuming passes it."""
        self.stopped_at = self.stopped_at or ""
        await self._suspend(path, None, branch)

    async def _suspend(self, path: str, question: Question | None, branch: Branch) -> Answer:
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[path] = _Waiting(branch, question, answered)
        branch.rest()
        try:
            answer = await answered
            await branch.wake()
        finally:
            if not answered.cancelled():  # else it was stopped before anybody woke it
                self.waking -= 1
        return answer

    async def take_answers(self) -> bool:
        """Hands answers that came in to the branches that wait for them; says whether there was one."""
        taken = False
        for answer in await self._ledger.store.answers(self._ledger.lease.run):
            waiting = self._waiting.get(answer.path)
            if waiting is None or waiting.question is None or waiting.answered.done():
                continue  # nobody waits for it, or a branch that is just being stopped
            if waiting.question.hash == answer.hash:
                del self._waiting[answer.path]
                self.waking += 1
                waiting.answered.set_result(answer)
                taken = True
        return taken

    async def _fan(self, fan: Fan, branch: Branch) -> list[Outcome]:
        if fan.stop_on_first_failure:
            self._ledger.journal.claim(abort_path(fan))
            if (number := self._ledger.journal.ended_by(fan)) is not None:
                await self._abort_again(fan, number, branch)

        def start(walk: Walk, child: Branch, number: int) -> None:
            task = asyncio.create_task(self._child(walk, child, number, fanning, fan.stop_on_first_failure))
            self._tasks[task] = child
            task.add_done_callback(ended)

        def ended(task: asyncio.Task[None]) -> None:
            # Here and not in the task: one that is stopped before its first turn never gets to run.
            self._tasks.pop(task).rest()

        fanning = Fanning(branch, fan.children, fan.limit, start)
        fanning.begin()
        try:
            await fanning.done
        except StepFailed as error:
            try:
                if fanning.ended_by is not None:
                    await self._write(self._performer.aborted(abort_path(fan), fanning.ended_by))
            finally:
                await self._stop_below(branch)
            # All of them ended the run, if this one does: a resume performs each of them again.
            error.also += (*(path for path in fanning.failed if path != error.path), abort_path(fan))
            raise
        except BaseException:
            await self._stop_below(branch)
            raise
        return fanning.outcomes()

    async def _abort_again(self, fan: Fan, number: int, branch: Branch) -> NoReturn:
        """Throws what ended the fan in an earlier drive. No other child is walked: of several that failed at one moment
        a replay could take another one for the first, and what was cut off must not be performed again."""
        walk = next(itertools.islice(fan.children, number, None), None)
        if walk is None:
            raise JournalMismatch(abort_path(fan))
        child = Branch(branch)
        child.start()
        try:
            await self.walk(walk, child)
        except StepFailed as error:
            error.also += (abort_path(fan),)
            raise
        finally:
            await self._stop_below(child)
            child.rest()
        raise JournalMismatch(abort_path(fan))

    async def _child(self, walk: Walk, child: Branch, number: int, fanning: Fanning, stop: bool) -> None:
        try:
            outcome = Outcome(await self.walk(walk, child))
        except StepFailed as error:
            if stop:
                fanning.failed += (error.path, *error.also)
                fanning.fail(error, number)
                child.rest()
                return
            outcome = Outcome(failure=error)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            fanning.fail(error, number)
            child.rest()
            return
        fanning.finished(child, number, outcome)

    def _spawn(self, spawn: Spawn, branch: Branch) -> None:
        """From here on the child moves beside its parent. What breaks the run breaks it from here too."""

        async def go() -> None:
            try:
                spawned.end(Outcome(await self.walk(spawn.child, child)))
            except StepFailed as error:
                spawned.end(Outcome(failure=error))
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                self.broken = self.broken or error
                self.on_break()

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.pop(task).rest()

        child = Branch(branch)
        child.start()
        task = asyncio.create_task(go())
        spawned = self._spawned[spawn.path] = Spawned(child)
        self._tasks[task] = child
        task.add_done_callback(ended)

    async def _join(self, join: Join, branch: Branch) -> EffectRecord:
        """Rests until all of the children have ended, or the time is up."""
        children = [self._spawned.get(path) for path in join.children]
        timer = asyncio.create_task(self._performer.sleep(join.seconds)) if join.seconds is not None else None
        try:
            while waiting := [child for child in children if child and child.outcome is None]:
                if timer is not None and timer.done():
                    break
                woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

                def wake(_: object = None, woken: asyncio.Future[None] = woken) -> None:
                    if not woken.done():
                        self.waking += 1
                        woken.set_result(None)

                for child in waiting:
                    child.on_end.append(wake)
                if timer is not None:
                    timer.add_done_callback(wake)
                branch.rest()
                try:
                    await woken
                    await branch.wake()
                finally:
                    if not woken.cancelled():
                        self.waking -= 1
        finally:
            if timer is not None:
                timer.cancel()
        return self._performer.settled(
            join, [child.as_value() if child else {"state": "stopped"} for child in children]
        )

    async def _halt(self, halt: Halt) -> None:
        for path in halt.children:
            spawned = self._spawned.get(path)
            if spawned is None or spawned.outcome is not None:
                continue
            await self._stop_below(spawned.branch, itself=True)
            spawned.stop()

    async def _stop_below(self, branch: Branch, *, itself: bool = False) -> None:
        """Stops what still runs under a branch and takes its open questions back."""
        current = asyncio.current_task()
        below = [task for task, owner in self._tasks.items() if task is not current and owner.within(branch)]
        await _stopped(below)
        for path, waiting in list(self._waiting.items()):
            if (itself or waiting.branch is not branch) and waiting.branch.within(branch):
                del self._waiting[path]
                self._ledger.withdraw(path)

    async def withdraw_all(self) -> None:
        """Takes every question back: the run has ended."""
        self._waiting.clear()
        await self.withdraw_stale()

    async def withdraw_stale(self) -> None:
        """Takes back what no branch waits for, answered or not: what an earlier drive asked may not be asked again.

        Left behind, an answer to it would keep the run from ever parking."""
        store, run = self._ledger.store, self._ledger.lease.run
        asked = [one.path for one in await store.questions(run)] + [one.path for one in await store.answers(run)]
        for path in asked:
            if path not in self._waiting:
                self._ledger.withdraw(path)

    async def end(self) -> None:
        """Stops whatever is still under way."""
        await _stopped(list(self._tasks))

    async def _write(
        self,
        record: EffectRecord | None = None,
        *,
        questions: tuple[Question, ...] = (),
        consume: tuple[str, ...] = (),
        supersede: tuple[str, ...] = (),
    ) -> None:
        written = await self._ledger.write(record, questions=questions, consume=consume, supersede=supersede)
        if written.answer_waiting and self._waiting:
            await self.take_answers()


def _uncertain(request: ToolRequest) -> str:
    """Where it is asked whether a tool may be called again. A yes is good for one call: the next crash asks anew."""
    return f"{request.path}/uncertain"


async def _stopped(tasks: list[asyncio.Task[None]]) -> None:
    """Stops tasks, each once however many fans want it: a second time would cut a writing tool's grace short."""
    for task in tasks:
        if not task.cancelling():
            task.cancel()
    if tasks:
        await asyncio.wait(tasks)
