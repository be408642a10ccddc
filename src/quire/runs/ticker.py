"""The ticker: a task of each process that serves or drives runs. It reports the process to the store every few seconds
and does its duties, the work that no user asks for at that moment.

Of all processes of a workspace only the oldest fit one does the duties. Two may believe that they are the oldest, as
after a jump of the clock. Then work is tried twice, which is safe: a run has one owner, and an occurrence one claim.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from quire import __version__
from quire.engine.records import RunRow, Status
from quire.errors import BrokenSeal, CannotStart, Fenced, QuireError, RunBusy, RunState, StoreError
from quire.stores.occurrences import PREFIX, Process, ProcessState
from quire.stores.run_pages import RunFilters, newest_runs
from quire.workspace.locate import find_workspace

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime
    from quire.runs.triggers import Triggers

BEAT_SECONDS, SWEEP_SECONDS, PRUNE_SECONDS, POLL_SECONDS = 5.0, 10.0, 3600.0, 2.0
LEAVE_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 3600.0
MOST_READ, MOST_PRUNED = 1000, 200
MOST_BEGUN = 20
"""Runs that one look continues: a thousand that were parked together do not all ask their provider at once."""

Duty = Callable[[float], Awaitable[None]]
"""Gets the time of the runtime's clock."""


def is_own(runtime: Runtime, row: RunRow) -> bool:
    """Tell whether a process may continue a run by itself: none that is imported, and none of a document in another
    workspace of this machine, which has other files, servers and grants."""
    folder, places = row.pins.get("folder"), (runtime.settings.workspace.folder, runtime.settings.user)
    if row.pins.get("imported"):
        return False
    if row.pins.get("queue") or not isinstance(folder, str) or any(map(Path(folder).is_relative_to, places)):
        return True
    try:
        return find_workspace(Path(folder), runtime.environ).marker is None
    except QuireError as error:
        return isinstance(error, CannotStart)  # a missing folder is on another machine


class Ticker:
    """Reports a process and does its duties. `drive` continues a run and returns once it is owned."""

    def __init__(
        self,
        runtime: Runtime,
        kind: Literal["serve", "worker"],
        drive: Callable[[str], Awaitable[object]],
        report: Callable[[str], None],
        slots: int,
        driving: Callable[[], int],
        sweep_seconds: float = SWEEP_SECONDS,
    ) -> None:
        self._runtime, self._drive, self._report, self._driving = runtime, drive, report, driving
        self._sweep_seconds = sweep_seconds
        host, now = socket.gethostname(), runtime.clock.now()
        id, folder = f"{host}-{os.getpid()}-{os.urandom(4).hex()}", str(runtime.settings.workspace.folder)
        queue = runtime.queue or folder
        cluster = runtime.settings.cluster
        self._queues = {queue, folder, cluster.task_queue if cluster.temporal else queue}
        """The queues of the processes that have the settings of this one."""
        self.process = Process(id, kind, host, os.getpid(), __version__, queue, now, now, slots, 0)
        """The last report."""
        self._changed = asyncio.Event()
        self._alive: Sequence[Process] = ()
        self._tries: dict[tuple[str, int], tuple[int, float]] = {}
        """For each run at its epoch the number of tries, and the time before which it is not tried again."""
        self._triggers: Triggers | None = None
        self._fired = 0.0
        self.duties: list[tuple[float, Duty, bool]] = [
            (BEAT_SECONDS, self.wake, True),
            (sweep_seconds, self.sweep, True),
            (PRUNE_SECONDS, self.prune, False),
            (POLL_SECONDS, self._fire, False),
        ]
        """Each with its interval, done while this process is the oldest fit one of its workspace; True: of those of its
        task queue."""

    async def run(self) -> None:
        """Report and do the duties until cancelled. The process is forgotten then."""
        tasks = [asyncio.create_task(self._repeat(*entry)) for entry in self.duties]
        try:
            while True:
                self._changed.clear()
                await self.beat()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), BEAT_SECONDS)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with contextlib.suppress(StoreError, TimeoutError):
                if self._runtime.store.process:
                    await asyncio.wait_for(self._runtime.store.leave(self.process.id), LEAVE_SECONDS)

    async def _fire(self, now: float) -> None:
        """Start the runs of triggers that are due. Files are looked at more often than times."""
        if not (self._triggers and self._triggers.polls) and monotonic() < self._fired + BEAT_SECONDS - POLL_SECONDS:
            return
        self._fired = monotonic()
        if self._triggers is None and await self._runtime.store.triggers():
            from quire.runs.triggers import Triggers  # it loads the analysis of documents

            self._triggers = Triggers(self._runtime, self._report, "serve" if self.process.kind == "serve" else "")
        if self._triggers is not None:
            await self._triggers.tick(now, self._drive)

    def be(self, state: ProcessState, reason: str = "") -> None:
        """Take another state, and report it at once. Only a fit process does duties."""
        self.process = replace(self.process, state=state, reason=reason)
        self._changed.set()

    def is_oldest(self, *, of_queue: bool = False) -> bool:
        """Tell whether this process is the one that does the duties now."""
        mine = self.process
        rivals = [
            (process.started_at, process.id)
            for process in self._alive
            if process.state == "fit" and process.queue in ({mine.queue} if of_queue else self._queues)
        ]
        return mine.state == "fit" and bool(rivals) and min(rivals) == (mine.started_at, mine.id)

    async def beat(self) -> None:
        """Report the process, and look at the reports of the others."""
        store = self._runtime.store
        self.process = replace(self.process, seen_at=self._runtime.clock.now(), driving=self._driving())
        try:
            await store.beat(self.process)
            processes = await store.processes() if store.process else ()
        except StoreError:  # drives and readers say so
            processes = ()
        self._alive = [process for process in processes if process.is_recent(self.process.seen_at)]

    async def _repeat(self, seconds: float, duty: Duty, of_queue: bool) -> None:
        trouble = ""
        while True:
            if not self.is_oldest(of_queue=of_queue):
                await asyncio.sleep(min(seconds, BEAT_SECONDS))
                continue
            before, trouble = trouble, ""
            try:
                await duty(self._runtime.clock.now())
            except Exception as error:  # the next time may be better
                trouble = str(error) if isinstance(error, QuireError) else f"a mistake of Quire: {error!r}"
                if trouble != before:
                    self._report(f"work in the background has failed: {trouble}")
            await asyncio.sleep(seconds)

    async def wake(self, now: float) -> None:
        """Continue parked runs whose time has come."""
        if runs := await self._runtime.store.due(now):
            await self._continue(await self._runtime.store.named(runs[:MOST_READ]))

    async def sweep(self, now: float, *, age: float | None = None) -> None:
        """Drive runs that have lost their driver, or the signal to a cluster. Of others than clusters only those that
        started by themselves or in a server: the rest is left to its user. Runs of triggers begin with their triggers.
        They are driven if nothing has changed them for some seconds, or for an `age`.
        """
        store, queue = self._runtime.store, self._runtime.queue
        filters = RunFilters((Status.PENDING, Status.INTERRUPTED), tries=True)
        rows = [*(await store.page(filters, limit=MOST_READ)).rows]
        if queue:
            for run in await store.expiring(0.0, now):
                with contextlib.suppress(RunState, RunBusy, BrokenSeal):
                    # Acquiring it makes the store record the expiry, which until now only readers inferred.
                    await store.release(await store.acquire(run))
            answered = await store.named((await store.answered())[:MOST_READ])
            rows += [row for row in answered if row.status is Status.AWAITING_INPUT]
        kind, age = self.process.kind, self._sweep_seconds if age is None else age
        rows = [row for row in rows if queue or row.source not in ("", "id") or row.pins.get("door") == kind]
        rows = [row for row in rows if not (row.source.startswith(PREFIX) and row.status is Status.PENDING)]
        await self._continue([row for row in rows if abs(now - row.updated_at) > age])

    async def prune(self, now: float) -> None:
        """Remove runs that ended long ago, as the settings say. Imported runs stay."""
        store, runs = self._runtime.store, self._runtime.settings.runs
        for status in (Status.COMPLETED, Status.CANCELLED, Status.EXPIRED, Status.FAILED):
            before = now - ((runs.keep_failed if status is Status.FAILED else runs.keep) or now)
            rows = newest_runs(store, RunFilters((status,), before=before, tries=True), 10 * MOST_READ, MOST_READ)
            ended = [row.id async for row in rows if row.updated_at < before and is_own(self._runtime, row)]
            for first in range(0, len(ended), MOST_PRUNED):
                await store.remove(ended[first : first + MOST_PRUNED], dry_run=False)
                await asyncio.sleep(0)  # others write too

    async def _continue(self, rows: Sequence[RunRow]) -> None:
        queue, now = self._runtime.queue, monotonic()
        mine = [row for row in rows if row.pins.get("queue", "") == queue and is_own(self._runtime, row)]
        due = [row for row in mine if self._tries.get((row.id, row.epoch), (0, now))[1] <= now]
        if len(self._tries) > 10 * MOST_READ:
            self._tries.clear()
        for row in due[:MOST_BEGUN]:
            tries = self._tries.get((row.id, row.epoch), (0, now))[0]
            self._tries[row.id, row.epoch] = tries + 1, now + min(self._sweep_seconds * 2**tries, LONGEST_PAUSE_SECONDS)
            try:
                await self._drive(row.id)
            except (RunBusy, Fenced):
                continue
            except QuireError as error:
                self._report(f"run {row.id} cannot continue by itself: {error}")
