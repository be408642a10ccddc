"""Look at a run for a worker: do nothing, drive it, or give it up.

Everything here runs on the loop of the store. The row of a run says whether it is due: the order to look may come
late, twice, or to a worker that already has the run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping

from msgspec import Struct

from quire.cluster.orders import BUSY, ENDED, HANDED_OVER, WAITS, Order, Outcome
from quire.engine.driver.drive import Drive, DriveResult
from quire.engine.records import WAITING, Batch, Event, RunRow, RunUpdate, Status
from quire.engine.requests import Failure
from quire.errors import BrokenSeal, Fenced, QuireError, RunBusy, RunState, StoreError
from quire.runs.drives import letters_about
from quire.runs.notify import announce
from quire.runs.pins import PinnedState, at_breakpoint
from quire.runs.runtime import Runtime

TRIES = 3
"""Attempts for a run that cannot even begin, if no other worker is left to try it."""
MOST_ATTEMPTS = 600
"""Attempts of at least a second each in which a run is left to workers that have not tried it."""

Reopen = Callable[[Runtime, str], Awaitable[Runtime]]


class Later(Exception):
    """The order cannot be carried out now: look again after this number of seconds."""

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.seconds = seconds


def _away(error: StoreError, attempt: Attempt) -> Later:
    return Later(str(error), min(2.0 ** min(attempt.number, 5), 30.0))


class Attempt:
    """One activity attempt. `epoch` is the epoch under which this attempt owns (or is about to own) the run.

    It starts as the epoch of the previous attempt: Temporal lost that worker, so an owner with that epoch is
    considered dead. `refusals` are the workers that could not begin the run, each with the number of its attempts.
    `tell` returns once the next attempt would know both, and raises `Later` if that cannot be ensured. `workers`
    returns the workers that may begin runs.
    """

    def __init__(
        self,
        number: int,
        epoch: int | None,
        tell: Callable[[int | None, Mapping[str, int]], Awaitable[None]],
        refusals: Mapping[str, int],
        workers: Callable[[], Awaitable[Collection[str]]],
    ) -> None:
        self.number = number
        self.before = epoch
        self.epoch = epoch
        self.refusals = dict(refusals)
        self._tell = tell
        self._workers = workers

    async def will_own(self, epoch: int) -> None:
        """Announce the epoch before taking the run.

        A worker that is suspended between the two has taken nothing. A worker that took the run without announcing it
        would look like a rightful owner, and would hold the run as long as it stays suspended.
        """
        self.epoch = epoch
        await self._tell(epoch, self.refusals)

    async def refuse(self, worker: str) -> float | None:
        """Note that a worker cannot begin the run. Return the seconds until the next attempt; None if the run has to be
        given up, because no other worker is left, or none took it in ten minutes."""
        self.refusals[worker] = self.refusals.get(worker, 0) + 1
        await self._tell(self.epoch, self.refusals)
        tries = sum(self.refusals.values())
        if tries >= TRIES and not await self.is_for_others():
            return None
        return float(min(tries, TRIES))

    async def is_for_others(self) -> bool:
        """Tell whether workers that have not tried to begin the run may still do so."""
        return self.number < MOST_ATTEMPTS and bool(set(await self._workers()) - self.refusals.keys())


class Look(Struct):
    """A look in progress, and the attempt that it currently serves."""

    task: asyncio.Task[Outcome]
    attempt: Attempt
    drive: Drive | None = None


class Driver:
    """Looks at runs and drives them. `reopen` returns the runtime that continues a run; `say` writes to the worker's
    log; `unfit` says why this worker must not begin a run now, empty if it may."""

    def __init__(
        self,
        runtime: Runtime,
        reopen: Reopen,
        say: Callable[[str], None],
        unfit: Callable[[], str] = lambda: "",
        name: str = "",
    ) -> None:
        self.stopping = False
        self._unfit = unfit
        self._name = name
        self._runtime = runtime
        self._reopen = reopen
        self._say = say
        self._looks: dict[str, Look] = {}

    @property
    def runs(self) -> int:
        return len(self._looks)

    async def workers(self) -> Collection[str]:
        """Return the names of the workers of this queue that may begin runs. Raises `Later`."""
        try:
            processes = await self._runtime.store.processes()
        except StoreError as error:
            raise Later(str(error), 1.0) from None
        fit = (process for process in processes if process.state == "fit" and process.is_recent(time.time()))
        return {f"quire {process.pid}@{process.host}" for process in fit if process.queue == self._runtime.queue}

    async def look(self, order: Order, attempt: Attempt) -> Outcome:
        """Drive the run if it is due. Raises `Later`, and no other exception of its own."""
        run = order.run
        under_way = self._looks.get(run)
        if under_way is None:
            under_way = Look(asyncio.create_task(self._look(order, attempt)), attempt)
            self._looks[run] = under_way
            under_way.task.add_done_callback(lambda _: self._looks.pop(run, None))
        else:
            # Temporal lost contact with this worker during the look: the new attempt replaces the old one.
            attempt.epoch, under_way.attempt = under_way.attempt.epoch, attempt
            if attempt.epoch is not None:
                await attempt.will_own(attempt.epoch)
        return await asyncio.shield(under_way.task)

    def cancel(self, run: str, attempt: Attempt) -> None:
        """Park the run at once, unless a newer attempt has replaced this one."""
        under_way = self._looks.get(run)
        if under_way is not None and under_way.attempt is attempt:
            under_way.task.cancel()

    def stop(self) -> None:
        """Have every run parked as soon as its current effects are recorded."""
        self.stopping = True
        for look in self._looks.values():
            if look.drive is not None:
                look.drive.stop()

    async def interrupt(self) -> None:
        """Park the remaining runs at once."""
        left = [look.task for look in self._looks.values()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _look(self, order: Order, attempt: Attempt) -> Outcome:
        try:
            row = await self._runtime.store.get(order.run)
        except StoreError as error:
            raise _away(error, attempt) from None
        return Outcome("gone", ENDED) if row is None else await self._look_at(row, order, attempt)

    async def _look_at(self, row: RunRow, order: Order, attempt: Attempt) -> Outcome:
        run, store = row.id, self._runtime.store
        try:
            if not await self._due(row, order.resume, attempt):
                return _rest(row)
            if self.stopping:
                return Outcome(str(row.status), HANDED_OVER)
            self._require_fit()
            if self._name in attempt.refusals and await attempt.is_for_others():
                raise Later("another worker has not tried it yet", 1.0)
            await attempt.will_own(row.epoch + 1)
            if row.status is Status.RUNNING or row.epoch == attempt.before:
                # If a worker has only just taken the run, its row shows nothing but the epoch yet.
                self._say(f"run {run}: its worker has fallen silent; taking it over")
                await store.evict(run, row.epoch)
            runtime = await self._reopen(self._runtime, run)
            # If this worker was suspended since it read the row, others may have driven the run to a breakpoint.
            await runtime.drive(run, began=lambda drive: self._began(run, drive), after=row.epoch)
        except asyncio.CancelledError:
            if not self.stopping:
                self._say(f"run {run} is not this worker's any more")
                raise
        except Later:
            raise  # nothing has been touched
        except (RunBusy, Fenced) as error:
            self._say(str(error))
            return Outcome(str(Status.RUNNING), BUSY)
        except BrokenSeal as error:
            # No worker may drive it or write to it: it was stored from outside this cluster.
            self._say(str(error))
            return Outcome(str(row.status), ENDED)
        except RunState:
            pass  # it ended or expired since the row was read
        except StoreError as error:
            raise _away(error, attempt) from None
        except QuireError as error:
            await self._refuse(row, attempt, type(error).__name__, str(error))
        except Exception as error:
            # A bug, ours or a tool's. Another worker may be of another version.
            self._say(f"run {run}: {type(error).__name__}: {error}")
            await self._refuse(row, attempt, "internal", f"{type(error).__name__}: {error}")
        return await self._rested(run)

    def _require_fit(self) -> None:
        """Raise `Later` if this worker is unfit: the run is for another one, and this does not count as an attempt."""
        if reason := self._unfit():
            raise Later(f"its worker is unfit: {reason}", 1.0)

    async def _refuse(self, row: RunRow, attempt: Attempt, kind: str, message: str) -> None:
        """Leave a run that cannot begin here to another worker, or give it up if there is none."""
        self._require_fit()
        pause = await attempt.refuse(self._name)
        if pause is not None:
            raise Later(message, pause)
        await self._give_up(row, kind, message)

    def _began(self, run: str, drive: Drive) -> None:
        self._looks[run].drive = drive
        if self.stopping:
            drive.stop()

    async def _rested(self, run: str) -> Outcome:
        try:
            row = await self._runtime.row(run)
        except StoreError as error:
            raise Later(str(error), 2.0) from None
        if (
            self.stopping
            and row.status in (Status.PAUSED, Status.INTERRUPTED, Status.PENDING)
            and not _stays_paused(row)
        ):
            return Outcome(str(row.status), HANDED_OVER)
        return _rest(row)

    async def _due(self, row: RunRow, resume: bool, attempt: Attempt) -> bool:
        before = attempt.before
        taken = before is not None and row.epoch >= before
        match row.status:
            case Status.PENDING | Status.INTERRUPTED:
                return True
            case Status.RUNNING:
                # Or the previous attempt was about to take it from a dead worker, and died too.
                return before is not None and row.epoch in (before, before - 1)
            case Status.AWAITING_INPUT:
                return resume or bool(await self._runtime.store.answers(row.id))
            case Status.PAUSED:
                if row.wake_at is not None and not resume:
                    due = row.wake_at <= self._runtime.clock.now()
                    return due or bool(await self._runtime.store.answers(row.id))
                # A worker that was shutting down has parked it, and died before it could report that.
                return resume or (taken and not _stays_paused(row))
            case Status.FAILED | Status.CANCELLED:
                # If taken, the previous attempt has resumed it, and this is the result.
                return resume and not taken
        return False

    async def _give_up(self, row_before: RunRow, kind: str, message: str) -> None:
        """Mark the run as failed, with everything it did recorded: `quire resume` continues it once the cause is
        gone."""
        run, store, now = row_before.id, self._runtime.store, self._runtime.clock.now()
        try:
            epoch = (await self._runtime.row(run)).epoch
            if epoch > row_before.epoch + 1:
                return  # one more is our own attempt; others have had it since
            self._say(f"run {run} is given up: {message}")
            lease = await store.acquire(run, after=epoch)
        except (RunBusy, RunState, Fenced):
            return
        except QuireError as error:
            raise Later(str(error), 5.0) from None
        try:
            row, failure = await self._runtime.row(run), Failure(kind, message)
            ended = DriveResult(Status.FAILED, row.position, failure=failure)
            failed = Event(
                "run_failed", run, now, lease.last_seq + 1, way=row.position, data={"kind": kind, "message": message}
            )
            await store.write(
                lease,
                Batch(
                    events=(failed,),
                    withdraw=tuple(question.path for question in await store.questions(run)),
                    letters=await letters_about(self._runtime, row, ended),
                    update=RunUpdate(status=Status.FAILED, failure=failure),
                ),
            )
            await announce(self._runtime, row, PinnedState.of(row.pins), ended)
        except StoreError as error:
            raise Later(str(error), 5.0) from None
        finally:
            await store.release(lease)


def _rest(row: RunRow) -> Outcome:
    if row.status in WAITING:
        ends = [end for end in (row.expires_at, row.wake_at) if end is not None]
        return Outcome(str(row.status), WAITS, min(ends, default=None))
    if row.status in (Status.RUNNING, Status.INTERRUPTED, Status.PENDING):
        return Outcome(str(row.status), BUSY)
    return Outcome(str(row.status), ENDED)


def _stays_paused(row: RunRow) -> bool:
    """Return True for a paused run that continues at a time or when its user wants it; False if its worker has left."""
    return row.wake_at is not None or at_breakpoint(row)
