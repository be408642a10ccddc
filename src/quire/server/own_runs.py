"""The runs that this server drives: started, resumed and answered in the page, each in a task of its own.

A run belongs to the server and not to the request. When the server stops, each run rests at its next boundary, with
everything that it did recorded; a run that was to continue continues in a process of its own. The others are due at
once, so the next server continues them, or another one that is alive. A run that a user paused is not among them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.engine.records import Status
from quire.errors import Fenced, QuireError, RunBusy, StoreError
from quire.operations.problems import Problem
from quire.runs.drives import Given
from quire.runs.scripts import reopened

if TYPE_CHECKING:
    from quire.engine.driver.drive import Drive, DriveResult
    from quire.engine.events import Listener
    from quire.engine.records import Event
    from quire.runs.live_views import LiveViews
    from quire.runs.runtime import Runtime
    from quire.values import Value

MOST_RUNS = 2000
SECONDS_TO_REST = 10.0


class OwnRun:
    """A run that is being driven here."""

    task: asyncio.Task[DriveResult | None]

    def __init__(self, run: str, goes_on: bool) -> None:
        self.run = run
        self.goes_on = goes_on
        """True if the run is to continue in a process of its own when the server ends."""
        self.drive: Drive | None = None
        self.begun = asyncio.Event()
        """Set once the run is owned, or the attempt has ended."""
        self.error: QuireError | None = None
        self.stopping = False
        """True once the run was told to rest."""
        self._wake_at: float | None = None

    def began(self, drive: Drive) -> None:
        self.drive = drive
        self.begun.set()
        if self.stopping:
            drive.stop(self._wake_at)

    def stop(self, wake_at: float | None = None) -> None:
        """Bring the run to rest, until a time if one is given."""
        if not self.stopping:
            self._wake_at = wake_at
        self.stopping = True
        if self.drive is not None:
            self.drive.stop(self._wake_at)


class OwnRuns:
    """All runs that this process drives. `listen` gets their events as they happen, `written` those that the store has;
    `hand_over` leaves a run to its own process."""

    def __init__(
        self,
        runtime: Runtime,
        views: LiveViews,
        *,
        listen: Listener,
        written: Callable[[Sequence[Event]], None],
        hand_over: Callable[[str], None],
        report: Callable[[str], None],
    ) -> None:
        self._runtime = runtime
        self._views = views
        self._listen = listen
        self._written = written
        self.hand_over = hand_over
        self._report = report
        self._runs: dict[str, OwnRun] = {}
        self._closed = False
        self._leaving = asyncio.Event()
        self._hurrying = asyncio.Event()

    def __contains__(self, run: str) -> bool:
        return run in self._runs

    def __len__(self) -> int:
        return len(self._runs)

    async def go_on(
        self,
        run: str,
        *,
        given: Given | None = None,
        overrides: Mapping[str, Value] | None = None,
        goes_on: bool = False,
    ) -> OwnRun:
        """Drive a run. Returns once the run is owned; raises the `QuireError` that kept it from being driven."""
        if self._closed:
            raise Problem.of("too-many", "the server is stopping")
        if len(self._runs) >= MOST_RUNS:
            raise Problem.of("too-many", f"{len(self._runs)} runs are under way, and no more than {MOST_RUNS} may be")
        if run in self._runs:
            raise RunBusy(f"run {run} is being driven by this server already")
        own = self._runs[run] = OwnRun(run, goes_on)
        own.task = asyncio.create_task(self._drive(own, given or Given(), overrides or {}))
        own.task.add_done_callback(lambda task: self._forget(own))
        await own.begun.wait()
        if own.error is not None:
            raise own.error
        return own

    async def _drive(self, own: OwnRun, given: Given, overrides: Mapping[str, Value]) -> DriveResult | None:
        try:
            runtime = await reopened(self._runtime, own.run)
            async with self._views.driving(own.run) as following:

                def listen(event: Event) -> None:
                    following.listen(event)
                    self._listen(event)

                def written(events: Sequence[Event]) -> None:
                    following.written(events)
                    self._written(events)

                def began(drive: Drive) -> None:
                    drive.when_written(written)
                    following.began(drive)
                    own.began(drive)

                return await runtime.drive(own.run, listen=listen, began=began, given=given, overrides=overrides)
        except QuireError as error:
            if own.begun.is_set() and not isinstance(error, Fenced):
                self._report(f"run {own.run}: {error}")
            own.error = error
            return None
        finally:
            own.begun.set()

    def _forget(self, own: OwnRun) -> None:
        if self._runs.get(own.run) is own:
            del self._runs[own.run]
        if not own.task.cancelled() and (error := own.task.exception()):
            self._report(f"run {own.run} was broken off by a mistake of Quire: {error!r}")

    def pause(self, run: str) -> bool:
        """Stop a run at its next boundary. Return False if it is not driven here."""
        own = self._runs.get(run)
        if own is None:
            return False
        own.stop()
        return True

    async def ended(self, run: str, seconds: float) -> None:
        """Wait until a run that is driven here rests or the server stops, but at most `seconds` seconds."""
        own = self._runs.get(run)
        if own is None:
            return
        leaving = asyncio.ensure_future(self._leaving.wait())
        try:
            await asyncio.wait([own.task, leaving], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()

    def leave(self) -> None:
        """Let go of the requests that wait for a run, because the server stops. A second call lets go of the runs."""
        if self._leaving.is_set():
            self._hurrying.set()
        self._leaving.set()

    async def close(self) -> None:
        """Bring all runs to rest at their next boundary, or at once after some seconds."""
        self._closed = True
        owned = [*self._runs.values()]
        for own in owned:
            own.stop(None if own.goes_on else self._runtime.clock.now())
        if tasks := [own.task for own in owned]:
            rest = asyncio.ensure_future(asyncio.wait(tasks, timeout=SECONDS_TO_REST))
            hurry = asyncio.ensure_future(self._hurrying.wait())
            await asyncio.wait([rest, hurry], return_when=asyncio.FIRST_COMPLETED)
            for waiting in (rest, hurry, *tasks):
                waiting.cancel()
            await asyncio.gather(rest, hurry, *tasks, return_exceptions=True)
        for own in (own for own in owned if own.goes_on):
            with contextlib.suppress(StoreError):  # then the run is found interrupted
                row = await self._runtime.store.get(own.run)
                if row is not None and row.status in (Status.PENDING, Status.PAUSED, Status.INTERRUPTED):
                    self.hand_over(own.run)
