"""Children of branches, each a task of its own: those of a fan, for which their parent waits, and spawned ones that run
beside it.

Stopping a branch stops everything that was started under it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, NoReturn

from quire.engine.driver.branches import Branch, FanInProgress
from quire.engine.driver.journal import Journal, abort_path
from quire.engine.requests import Failure, Fan, Halt, Join, Outcome, Spawn, Walk
from quire.errors import JournalMismatch, StepFailed

if TYPE_CHECKING:
    from quire.engine.driver.perform import Performer
    from quire.engine.driver.waiting import WaitingBranches
    from quire.engine.records import EffectRecord
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
        for told in self.on_end:
            told()

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
        """True once a limit ends the run, as soon as calls under way have ended: no branch goes on because its time is
        up."""
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
