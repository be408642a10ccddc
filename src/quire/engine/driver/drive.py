"""One drive of a run: from the end of its journal until it completes, fails, or can only wait."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.driver.branches import Branch
from quire.engine.driver.journal import CancelRequested, Journal, Ledger
from quire.engine.driver.model_calls import lost_calls
from quire.engine.driver.walker import DriveLimits, Walker
from quire.engine.interpreter.until import StepReached
from quire.engine.records import PARKED, Answer, Batch, Lease, Letter, RunUpdate, Status
from quire.engine.requests import Effect, Failure, Walk
from quire.errors import JournalMismatch, LimitReached, QuireError, StepFailed

if TYPE_CHECKING:
    from quire.engine.events import Listener
    from quire.engine.ports import Ports
    from quire.engine.progress import Progress
    from quire.engine.proven_bounds import ProvenBounds
    from quire.engine.records import EffectRecord, Event
    from quire.values import Value

CANCEL_POLL_SECONDS = 1.0


class DriveResult(Struct, frozen=True):
    """The end of a drive. `position` is the way to the step that it reached, `result` the result of the walk."""

    status: Status
    position: str = ""
    result: Value = None
    failure: Failure | None = None


async def _no_letters(ended: DriveResult) -> tuple[Letter, ...]:
    return ()


class Drive:
    """Owns the run while the drive lasts. `stop` parks it at the next boundary; cancelling the task stops it at once.

    `answers` were given while no process drove the run; `report` returns the letters about its end. `warnings` are
    emitted at the start. `proven` is the most that the whole run can do; at its end an event says what exceeds it. The
    caller must release the lease.
    """

    def __init__(
        self,
        lease: Lease,
        journal: Journal,
        ports: Ports,
        terms: DriveLimits,
        listen: Listener = lambda event: None,
        answers: Iterable[Answer] = (),
        report: Callable[[DriveResult], Awaitable[tuple[Letter, ...]]] = _no_letters,
        warnings: Iterable[str] = (),
        proven: ProvenBounds | None = None,
    ) -> None:
        self._ledger = Ledger(lease, journal, ports.store, ports.clock, listen)
        self._walker = Walker(self._ledger, ports, terms, {answer.path: answer for answer in answers})
        self._clock = ports.clock
        self._terms = terms
        self._root = Branch()
        self._still = asyncio.Event()
        self._wake_at: float | None = None
        self._report = report
        self._warnings = tuple(warnings)
        self._proven = proven

    @property
    def records(self) -> Sequence[EffectRecord]:
        """The records of the run so far, in the order in which their paths first appeared."""
        return self._ledger.journal.records

    @property
    def progress(self) -> Progress | None:
        return self._walker.progress

    def when_written(self, tell: Callable[[Sequence[Event]], None]) -> None:
        """Call `tell` too with the events of each write of this drive, after its commit."""
        self._ledger.readers.append(tell)

    def keep_requests(self, requests: dict[str, Effect]) -> None:
        """Put each request that is answered by more than the journal into `requests`, by its path."""
        self._walker.requests = requests

    def follow(self, progress: Progress) -> None:
        """Apply to `progress` the same events as a replay. A run whose branches move side by side cannot be followed:
        the order of a replay is another one."""
        self._walker.progress = progress

    def stop(self, wake_at: float | None = None) -> None:
        """Park the run as soon as its running effects have been recorded, until a time if one is given."""
        self._walker.stopping, self._wake_at = True, wake_at

    async def until_rest(self, walk: Walk, opening: Batch) -> DriveResult:
        """Drive until no branch moves. `opening` is the first write of the drive."""
        self._root.on_rest = self._walker.children.on_break = self._still.set
        self._ledger.feed.say("run_resumed" if self._ledger.lease.epoch > 1 else "run_started")
        for warning in self._warnings:
            self._ledger.feed.say("warning", data={"message": warning})
        self._count_lost_calls()
        await self._ledger.open(opening)
        if self._walker.stopping and not self._ledger.journal:
            # Stopped before the first step: it must not even begin, nor the steps after it that have no effects.
            walk.close()
            return await self._pause()
        self._root.start()
        main = asyncio.create_task(self._walker.walk(walk, self._root))
        main.add_done_callback(lambda done: self._still.set())
        watch = _Watch(self._ledger, self._walker, main)
        try:
            return await self._settle(main)
        except asyncio.CancelledError:
            self._walker.grace = 0.0  # cancelling the task itself means stopping at once
            main.cancel()
            await self._abandon()
            raise
        finally:
            if not main.cancelling():  # a second cancel would cut a writing tool's grace short
                main.cancel()
            if not main.done():
                await asyncio.gather(main, return_exceptions=True)
            await watch.end()
            await self._walker.children.end()

    async def _settle(self, main: asyncio.Task[Value]) -> DriveResult:
        while True:
            await self._still.wait()
            if main.done():
                return await self._end(main)
            if self._walker.children.broken is not None:
                main.cancel()
                await asyncio.gather(main, return_exceptions=True)
                return await self._end_by(self._walker.children.broken)
            self._still.clear()
            # During a cancellation the branches come to rest one by one; that is not a wait.
            resting = not self._root.active and not self._walker.resting.waking and not main.cancelling()
            if resting and (parked := await self._park()):
                return parked

    async def _end(self, main: asyncio.Task[Value]) -> DriveResult:
        try:
            result = main.result()
        except (StepReached, StepFailed, LimitReached, JournalMismatch) as error:
            return await self._end_by(error)
        except (CancelRequested, asyncio.CancelledError) as error:
            return await self._end_by(error)
        return await self._complete(result)

    async def _complete(self, result: Value) -> DriveResult:
        self._compare_with_proven()
        self._ledger.feed.say("run_completed", live=_told(result))
        ended = DriveResult(Status.COMPLETED, self._ledger.position, result)
        await self._ledger.close(RunUpdate(status=Status.COMPLETED), await self._report(ended))
        return ended

    async def _end_by(self, error: BaseException) -> DriveResult:
        match error:
            case StepReached():
                return await (self._end_by(error.failure) if error.failure else self._complete(error.result))
            case StepFailed():
                # The record that a fan was aborted is not a failure of its own: it is not reported, and it is removed
                # at once.
                aborts = self._ledger.journal.aborts(error.also)
                paths = [error.path, *(path for path in error.also if path not in aborts)] if error.path else []
                # A step that fails before its first effect has not moved the run's position.
                self._ledger.position = error.label or self._ledger.position
                return await self._fail(Failure.of(error), tuple(paths), aborts)
            case LimitReached():
                self._ledger.position = error.label or self._ledger.position
                return await self._fail(Failure(error.kind, str(error)), (error.path,) if error.path else ())
            case JournalMismatch():
                return await self._fail(Failure("journal", str(error)), ())
            case CancelRequested() | asyncio.CancelledError():
                self._compare_with_proven()
                self._ledger.feed.say("run_cancelled")
                await self._walker.resting.withdraw_all()
                await self._ledger.close(RunUpdate(status=Status.CANCELLED))
                return DriveResult(Status.CANCELLED, self._ledger.position)
        raise error

    def _count_lost_calls(self) -> None:
        """Count the calls that were under way when the last drive ended without recording them: they may be paid."""
        lost = list(lost_calls(self._ledger.lease.records))
        if not lost:
            return
        self._ledger.count_lost(lost)
        amount = sum(record.usage.cost or 0.0 for record in lost if record.usage is not None)
        message = (
            f"{len(lost)} model call{'s were' if len(lost) > 1 else ' was'} under way when the run was interrupted: "
            f"the amount set aside for {'them' if len(lost) > 1 else 'it'} counts as spent (${amount:.4f})"
        )
        self._ledger.feed.say("warning", data={"message": message})

    def _compare_with_proven(self) -> None:
        if self._proven is None:
            return
        from quire.engine.proven_bounds import BROKEN, broken_bounds

        for broken in broken_bounds(self._proven, self._ledger.journal.records):
            self._ledger.feed.say(BROKEN, data=broken.as_value())

    async def _fail(self, failure: Failure, ended_by: tuple[str, ...], supersede: tuple[str, ...] = ()) -> DriveResult:
        self._compare_with_proven()
        self._ledger.feed.say(
            "run_failed", label=self._ledger.position, data={"kind": failure.kind, "message": failure.message}
        )
        await self._walker.resting.withdraw_all()
        ended = DriveResult(Status.FAILED, self._ledger.position, failure=failure)
        update = RunUpdate(Status.FAILED, self._ledger.position or None, failure, ended_by)
        await self._ledger.close(update, await self._report(ended), supersede)
        return ended

    async def _park(self) -> DriveResult | None:
        """Store the wait and return how the drive ended; None if an answer came in and a branch moves again."""
        if self._walker.stopped_at is not None:
            return await self._pause()
        await self._walker.resting.withdraw_stale()
        status, wait = Status.AWAITING_INPUT, self._walker.parked
        wake_at = None if wait is None else wait.wake_at
        ends = [end for end in (self._expires(wake_at), self._walker.resting.first_expiry()) if end is not None]
        update = RunUpdate(status, self._ledger.position, expires_at=min(ends, default=None))
        if wait is not None:
            update.status = status = Status.PAUSED
            update.wake_at, update.failure = wake_at, Failure(PARKED, wait.reason)
            data: Mapping[str, Value] = {"wake_at": wait.wake_at, "reason": wait.reason}
            self._ledger.feed.say("run_paused", label=self._ledger.position, data=data)
        if await self._ledger.park(update):
            return DriveResult(status, self._ledger.position)
        if not await self._walker.resting.take_answers() and not self._walker.resting.waking:
            self._still.set()  # the answer is to a stale question: withdraw it and try to park again
        return None

    async def _pause(self) -> DriveResult:
        stopped_at = (self._walker.stopped_at,) if self._walker.stopped_at else ()
        # The place where it stopped, not the one that a concurrent branch reached: a resume passes just that boundary.
        position = self._walker.stopped_label or self._ledger.position
        self._ledger.feed.say("run_paused", label=position)
        await self._ledger.close(RunUpdate(Status.PAUSED, position, None, stopped_at, self._expires(), self._wake_at))
        return DriveResult(Status.PAUSED, position)

    async def _abandon(self) -> None:
        """Pause the run at once: recorded effects stay, and the row says that the run can continue."""
        if self._ledger.closed:
            return
        self._ledger.feed.say("run_paused", label=self._ledger.position)
        with contextlib.suppress(QuireError):
            # One try only: a caller that stops the run at once does not wait for a lock.
            self._ledger.closed = True
            position, expires_at = self._ledger.position, self._expires()
            update = RunUpdate(Status.PAUSED, position, expires_at=expires_at, wake_at=self._wake_at)
            await self._ledger.open(Batch(update=update))

    def _expires(self, wake_at: float | None = None) -> float | None:
        """Return when the wait expires: not before the run has continued by itself."""
        since = self._clock.now() if wake_at is None else wake_at
        return None if self._terms.expiry is None else since + self._terms.expiry


class _Watch:
    """Poll the store, so that a cancellation from elsewhere does not have to wait for the next write.

    A timer and not a task: of a thousand runs in one process nearly all have just written, and learnt it there.
    """

    def __init__(self, ledger: Ledger, walker: Walker, main: asyncio.Task[Value]) -> None:
        self._ledger = ledger
        self._walker = walker
        self._main = main
        self._loop = asyncio.get_running_loop()
        self._looking: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(CANCEL_POLL_SECONDS, self._due)

    async def end(self) -> None:
        self._timer.cancel()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
            self._timer.cancel()

    def _due(self) -> None:
        left = self._ledger.learnt_at + CANCEL_POLL_SECONDS - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._due)
        else:
            self._looking = self._loop.create_task(self._look())

    async def _look(self) -> None:
        with contextlib.suppress(QuireError):
            written = await self._ledger.look()
            if written.cancel_requested:
                self._main.cancel()
                return
            if written.answer_waiting:
                await self._walker.resting.take_answers()
        self._timer = self._loop.call_later(CANCEL_POLL_SECONDS, self._due)


def _told(result: Value) -> Mapping[str, Value]:
    """Return the form of a result that listeners get: always with the artifact, and its type or null."""
    outcome = result if isinstance(result, Mapping) else {"output": result}
    kind = outcome.get("artifact_type") or None
    return {**outcome, "artifact": outcome.get("artifact", outcome.get("output")), "artifact_type": kind}
