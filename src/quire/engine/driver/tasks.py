"""Work that a branch starts beside itself: children, each a task of its own, and launched runs, each with a budget.

Children of a fan are waited for by their parent, spawned ones run beside it. Stopping a branch stops everything that
was started under it.

A launched run is given a part of the money that is left, which is held back from its launcher until the run has ended:
all of it if the launcher waits, with half of the rest back if the run waits for a person; otherwise half. The spending
of the run counts in its launcher: with the result if that was waited for, else with the letters of the next turn after
its end, so every replay counts it at the same turn.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, NoReturn

from msgspec import Struct

from quire.engine.driver.branches import Branch, FanInProgress
from quire.engine.driver.journal import SPENT, Journal, abort_path
from quire.engine.driver.model_calls import RESERVED
from quire.engine.records import EffectRecord, Usage
from quire.engine.requests import TINY, Failure, Fan, Halt, Join, Outcome, Spawn, Walk
from quire.errors import JournalMismatch, StepFailed

if TYPE_CHECKING:
    from quire.engine.driver.branches import WaitingBranches
    from quire.engine.driver.journal import Ledger
    from quire.engine.driver.model_calls import Budget
    from quire.engine.driver.perform import Performer
    from quire.engine.ports import LaunchedRuns
    from quire.engine.requests import Load, Money, ToolRequest
    from quire.values import Value


class Spawned:
    """A child that runs beside its parent.

    The callbacks in `on_end` are called once, when the child has ended or was stopped; waiting branches are among them.
    """

    def __init__(self, branch: Branch) -> None:
        self.branch = branch
        self.outcome: Outcome | None = None
        self.stopped = False
        self.on_end: list[Callable[[], None]] = []

    def end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        for callback in self.on_end:
            callback()

    def stop(self) -> None:
        self.stopped = True
        self.end(Outcome())

    def as_value(self) -> Value:
        """Return the state as the answer of a `Join` has it."""
        if self.outcome is None:
            return {"state": "running"}
        if self.stopped:
            return {"state": "stopped"}
        if self.outcome.failure is not None:
            failure = Failure.of(self.outcome.failure)
            return {"state": "failed", "kind": failure.kind, "message": failure.message}
        return {"state": "done", "value": self.outcome.value}


class Children:
    """The children of all branches of one drive. `walk` moves a branch to its end, `write` records an effect.

    `broken` is the error that ended the run in a child for which no branch waits; `on_break` is called then.
    """

    def __init__(
        self,
        journal: Journal,
        performer: Performer,
        resting: WaitingBranches,
        walk: Callable[[Walk, Branch], Awaitable[Value]],
        write: Callable[[EffectRecord], Awaitable[None]],
    ) -> None:
        self.broken: BaseException | None = None
        self.on_break: Callable[[], None] = lambda: None
        self.ending = False
        """True once a limit ends the run, as soon as calls under way have ended: no branch continues because its time
        is up."""
        self._journal = journal
        self._performer = performer
        self._resting = resting
        self._walk = walk
        self._write = write
        self._tasks: dict[asyncio.Task[None], Branch] = {}
        self._spawned: dict[str, Spawned] = {}

    async def fan(self, fan: Fan, branch: Branch) -> list[Outcome]:
        """Return the outcomes of all children in order. Raises the error that ended the fan early."""
        if fan.stop_on_first_failure:
            self._journal.claim(abort_path(fan))
            if (number := self._journal.ended_by(fan)) is not None:
                await self._abort_again(fan, number, branch)

        def start(walk: Walk, child: Branch, number: int) -> None:
            self._begin(self._fanned(walk, child, number, fanning, fan.stop_on_first_failure), child)

        fanning = FanInProgress(branch, fan.children, fan.limit, start)
        fanning.begin()
        try:
            await fanning.done
        except StepFailed as error:
            try:
                if fanning.ended_by is not None:
                    await self._write(self._performer.aborted(abort_path(fan), fanning.ended_by))
            finally:
                await self._stop_below(branch)
            # If this failure ends the run, so did the others: a resume performs each of them again.
            error.also += (*(path for path in fanning.failed if path != error.path), abort_path(fan))
            raise
        except BaseException:
            await self._stop_below(branch)
            raise
        return fanning.outcomes()

    async def _abort_again(self, fan: Fan, number: int, branch: Branch) -> NoReturn:
        """Raise again the failure that ended the fan in an earlier drive, by walking the child that failed.

        No other child is walked: if several failed at the same moment, a replay could take another one for the first,
        and effects that were cut off must not be performed.
        """
        walk = next(itertools.islice(fan.children, number, None), None)
        if walk is None:
            raise JournalMismatch(abort_path(fan))
        child = Branch(branch)
        child.start()
        try:
            await self._walk(walk, child)
        except StepFailed as error:
            error.also += (abort_path(fan),)
            raise
        finally:
            await self._stop_below(child)
            child.rest()
        raise JournalMismatch(abort_path(fan))

    async def _fanned(self, walk: Walk, child: Branch, number: int, fanning: FanInProgress, stop: bool) -> None:
        try:
            outcome = Outcome(await self._walk(walk, child))
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

    def spawn(self, spawn: Spawn, branch: Branch) -> None:
        """Start a child that moves beside its parent. An error in it that breaks the run is kept in `broken`."""
        child = Branch(branch)
        child.start()
        spawned = self._spawned[spawn.path] = Spawned(child)
        self._begin(self._beside(spawn.child, spawned), child)

    async def _beside(self, walk: Walk, spawned: Spawned) -> None:
        try:
            spawned.end(Outcome(await self._walk(walk, spawned.branch)))
        except StepFailed as error:
            spawned.end(Outcome(failure=error))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self.broken = self.broken or error
            self.on_break()

    async def join(self, join: Join, branch: Branch) -> EffectRecord:
        """Rest until all of the children have ended, or the time is up."""
        children = [self._spawned.get(path) for path in join.children]
        timer = asyncio.create_task(self._performer.sleep(join.seconds)) if join.seconds is not None else None
        try:
            while waiting := [child for child in children if child and child.outcome is None]:
                if timer is not None and timer.done():
                    if not self.ending:
                        break
                    timer = None
                woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

                def wake(_: object = None, woken: asyncio.Future[None] = woken) -> None:
                    self._resting.wake(woken, None)

                for child in waiting:
                    child.on_end.append(wake)
                if timer is not None:
                    timer.add_done_callback(wake)
                await self._resting.until(woken, branch)
        finally:
            if timer is not None:
                timer.cancel()
        states: list[Value] = [child.as_value() if child else {"state": "stopped"} for child in children]
        return self._performer.settled(join, states)

    async def halt(self, halt: Halt) -> None:
        """Stop the children that have not ended yet."""
        for path in halt.children:
            spawned = self._spawned.get(path)
            if spawned is None or spawned.outcome is not None:
                continue
            await self._stop_below(spawned.branch, itself=True)
            spawned.stop()

    def end_soon(self) -> None:
        self.ending = True

    async def end(self) -> None:
        """Stop everything that is still running."""
        await _stopped(list(self._tasks))

    def _begin(self, moving: Coroutine[object, object, None], child: Branch) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            # Here and not in the task: a task that is cancelled before its first turn never runs.
            self._tasks.pop(task).rest()

        task = asyncio.create_task(moving)
        self._tasks[task] = child
        task.add_done_callback(ended)

    async def _stop_below(self, branch: Branch, *, itself: bool = False) -> None:
        """Stop everything that still runs under a branch and take its open questions back."""
        current = asyncio.current_task()
        await _stopped([task for task, owner in self._tasks.items() if task is not current and owner.within(branch)])
        self._resting.withdraw_below(branch, itself=itself)


async def _stopped(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks, each once even if several fans want it: a second cancel would cut a writing tool's grace short."""
    for task in tasks:
        if not task.cancelling():
            task.cancel()
    if tasks:
        await asyncio.wait(tasks)


ASIDE = "_async"
"""The end of the name of a tool whose caller does not wait."""
WAITS = "waits"
"""In the value of an intent: true if the caller waits for the end of the run that it launches."""


class _Launched(Struct):
    effect_id: str
    held: float
    """Dollars: the budget of the run, and what it has spent once it has ended."""
    money: Money | None
    usage: Usage | None = None
    """None while the run may spend more."""


class Launches:
    """The launches of one drive. `finish` records the outcome of an effect, and returns or raises it."""

    def __init__(
        self,
        performer: Performer,
        ledger: Ledger,
        runs: LaunchedRuns,
        budget: Budget | None,
        finish: Callable[[EffectRecord], Awaitable[Value]],
    ) -> None:
        self._performer = performer
        self._ledger = ledger
        self._runs = runs
        self._budget = budget
        self._finish = finish
        self._open: dict[str, _Launched] = {}

    async def launch(self, request: ToolRequest) -> Value:
        """Launch a run with a part of the money, or refuse it if nothing is left."""
        await self.refresh()
        money, budget, effect_id = request.money, self._budget, self._performer.effect_id(request.path)
        share = await self._runs.budget_of(effect_id)
        if share is None:
            left = min(math.inf if budget is None else budget.left, math.inf if money is None else money.left)
            if left <= TINY:
                message = "nothing is left of the budget for a run of its own"
                return await self._finish(self._performer.refused(request, message, "spend_exceeded"))
            share = left / 2 if request.tool.endswith(ASIDE) else left
        self._runs.allot(effect_id, share, strictly=budget is not None)
        intent = self._performer.intent(request)
        intent.value = {RESERVED: share, WAITS: not request.tool.endswith(ASIDE)}
        self._hold(share, money, calls=1)
        try:
            await self._ledger.write(intent)
            record = await self._performer.perform(request)
            record.usage = await self._runs.spent(effect_id)
            if record.usage is None:
                aside = request.tool.endswith(ASIDE)
                self._keep(request, effect_id, share if aside else await self._runs.halve(effect_id))
            return await self._finish(record)
        finally:
            self._hold(-share, money, calls=-1)

    async def resume(self, request: ToolRequest, record: EffectRecord) -> None:
        """Hold back again what a run may spend that was launched before this drive."""
        counted = (entry.value for entry in self._ledger.journal.records if entry.kind == SPENT)
        if record.usage is None and request.path not in counted:
            effect_id = self._performer.effect_id(request.path)
            self._keep(request, effect_id, await self._runs.budget_of(effect_id) or 0.0)

    async def refresh(self) -> None:
        """Give back what launched runs have left that have ended since."""
        for run in self._open.values():
            if run.usage is None and (usage := await self._runs.spent(run.effect_id)) is not None:
                run.usage, spent = usage, usage.cost or 0.0
                self._hold(spent - run.held, run.money)
                run.held = spent

    async def take_letters(self, request: Load) -> Value:
        """Read the letters of a thread, and count the runs that it has launched and that have ended."""
        await self.refresh()
        record = await self._performer.perform(request)
        thread = request.path.rsplit("/", 2)[0]
        ended = {path: run for path, run in self._open.items() if run.usage and path.rsplit("/", 3)[0] == thread}
        for path, run in ended.items():
            turn, call = (part[5:-1] for part in path.split("/")[-3:-1])  # turn[3], tool[0]
            at = f"{request.path}/{SPENT}[{turn}.{call}]"
            self._ledger.lose(EffectRecord(at, SPENT, "ok", "", record.at, path, usage=run.usage))
        try:
            return await self._finish(record)
        finally:
            for path, run in ended.items():
                del self._open[path]
                self._hold(-run.held, run.money)

    def _keep(self, request: ToolRequest, effect_id: str, share: float) -> None:
        self._open[request.path] = _Launched(effect_id, share, request.money)
        self._hold(share, request.money)

    def _hold(self, amount: float, money: Money | None, calls: int = 0) -> None:
        if self._budget is not None:
            self._budget.hold(amount, calls)
        if money is not None:
            money.hold(amount)
