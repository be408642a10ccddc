"""The ticker: a task of each process that serves or drives runs. It reports the process to the store every few seconds,
and has the work done that no user asks for at that moment: its duties.

Of all processes of a store only the oldest fit one does the duties. If two believe that they are the oldest, work is
tried twice, which is safe: a run has one owner, and an occurrence one claim. A process counts as alive while its report
changes, by the clock of the process that looks, so a clock that jumps or differs harms nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from quire import __version__
from quire.engine.records import RunRow, Status
from quire.errors import Fenced, QuireError, RunBusy, StoreError
from quire.stores.occurrences import Process, ProcessState
from quire.stores.run_pages import RunFilters

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime

BEAT_SECONDS = 5.0
SEEN_SECONDS = 15.0
"""A process whose report is older counts as gone."""
LEAVE_SECONDS = 2.0
SWEEP_SECONDS = 10.0
MOST_READ = 1000
MOST_BEGUN = 20
"""Runs that one look continues: a thousand that were parked together do not all ask their provider at once."""
LONGEST_PAUSE_SECONDS = 3600.0

Duty = Callable[[float], Awaitable[None]]
"""Work to be done from time to time. Gets the time of the store's clock."""


class _Entry(Struct, frozen=True):
    seconds: float
    duty: Duty
    of_queue: bool


class Ticker:
    """Reports a process of a `kind` and does its duties. `drive` continues a run and returns once it is owned; `report`
    prints a line for the user."""

    def __init__(
        self,
        runtime: Runtime,
        kind: Literal["serve", "worker"],
        drive: Callable[[str], Awaitable[object]],
        report: Callable[[str], None],
        *,
        slots: int,
        driving: Callable[[], int],
    ) -> None:
        self._runtime = runtime
        self._report = report
        self._driving = driving
        host, now = socket.gethostname(), runtime.clock.now()
        id = f"{host}-{os.getpid()}-{os.urandom(4).hex()}"
        self.process = Process(id, kind, host, os.getpid(), __version__, runtime.queue, now, now, slots, 0)
        """The last report."""
        self._seen: dict[str, tuple[float, float]] = {}
        """For each process the time of its last report, and when this process first saw that report."""
        self._alive: Sequence[Process] = ()
        self._changed = asyncio.Event()
        self._duties: list[_Entry] = []
        recovery = Recovery(runtime, drive, report, lambda: slots - driving())
        self.add(BEAT_SECONDS, recovery.wake, of_queue=True)
        self.add(SWEEP_SECONDS, recovery.sweep, of_queue=True)

    def add(self, seconds: float, duty: Duty, *, of_queue: bool = False) -> None:
        """Have a duty done every so many seconds while this process is the oldest fit one; with `of_queue` while it is
        the oldest of those that drive runs of the same task queue."""
        self._duties.append(_Entry(seconds, duty, of_queue))

    async def run(self) -> None:
        """Report and do the duties until cancelled. The process is forgotten then."""
        tasks = [asyncio.create_task(self._repeat(entry)) for entry in self._duties]
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
                await asyncio.wait_for(self._runtime.store.leave(self.process.id), LEAVE_SECONDS)

    def be(self, state: ProcessState, reason: str = "") -> None:
        """Report another state at once. Only a fit process does duties."""
        if (state, reason) != (self.process.state, self.process.reason):
            self.process = replace(self.process, state=state, reason=reason)
            self._changed.set()

    def is_oldest(self, *, of_queue: bool = False) -> bool:
        """Tell whether this process is the one that does the duties now."""
        mine = self.process
        rivals = [
            (process.started_at, process.id)
            for process in self._alive
            if process.state == "fit" and (not of_queue or process.queue == mine.queue)
        ]
        return mine.state == "fit" and bool(rivals) and min(rivals) == (mine.started_at, mine.id)

    async def beat(self) -> None:
        """Report the process, and look at the reports of the others."""
        self.process = replace(self.process, seen_at=self._runtime.clock.now(), driving=self._driving())
        try:
            await self._runtime.store.beat(self.process)
            processes, before = await self._runtime.store.processes(), self._seen
        except StoreError:  # drives and readers say so
            self._alive = ()
            return
        self._seen, now = {}, monotonic()
        for process in processes:
            seen_at, since = before.get(process.id, (inf, now))
            if seen_at != process.seen_at:
                # The first look has only the clocks to go by.
                since = now if seen_at != inf or is_recent(process, self.process.seen_at) else -inf
            self._seen[process.id] = process.seen_at, since
        self._alive = [process for process in processes if self._seen[process.id][1] > now - SEEN_SECONDS]

    async def _repeat(self, entry: _Entry) -> None:
        trouble = ""
        while True:
            if not self.is_oldest(of_queue=entry.of_queue):
                await asyncio.sleep(min(entry.seconds, BEAT_SECONDS))
                continue
            before, trouble = trouble, ""
            try:
                await entry.duty(self._runtime.clock.now())
            except Exception as error:  # the next time may be better
                trouble = str(error) if isinstance(error, QuireError) else f"a mistake of Quire: {error!r}"
                if trouble != before:
                    self._report(f"work that nobody asked for has failed: {trouble}")
            await asyncio.sleep(entry.seconds)


def is_recent(process: Process, now: float) -> bool:
    """Tell by the clocks whether a process has reported itself just now."""
    return abs(now - process.seen_at) <= SEEN_SECONDS


class Recovery:
    """The duties that continue runs: wake those whose time has come, and drive those that were left between their claim
    and their drive. `room` is the number of further runs that this process may drive."""

    def __init__(
        self,
        runtime: Runtime,
        drive: Callable[[str], Awaitable[object]],
        report: Callable[[str], None],
        room: Callable[[], int],
    ) -> None:
        self._runtime = runtime
        self._drive = drive
        self._report = report
        self._room = room
        self._tries: dict[tuple[str, int], tuple[int, float]] = {}
        """For each run at its epoch the number of tries, and the time before which it is not tried again."""

    async def wake(self, now: float) -> None:
        """Continue parked runs whose time has come."""
        if runs := await self._runtime.store.due(now):
            await self._continue(await self._runtime.store.named(runs[:MOST_READ]))

    async def sweep(self, now: float) -> None:
        """Drive runs that started by themselves and lost their driver. Those that a user has started are left to the
        user, and those that wait in a lane to its admission."""
        filters = RunFilters((Status.PENDING, Status.INTERRUPTED), tries=True)
        rows = (await self._runtime.store.page(filters, limit=MOST_READ)).rows
        await self._continue(
            [
                row
                for row in rows
                if row.source not in ("", "id")
                and abs(now - row.updated_at) > SWEEP_SECONDS
                and not (row.status is Status.PENDING and row.lane)
            ]
        )

    async def _continue(self, rows: Sequence[RunRow]) -> None:
        queue, now = self._runtime.queue, monotonic()
        if len(self._tries) > 10_000:
            self._tries.clear()
        mine = [row for row in rows if row.pins.get("queue", "") == queue and not row.pins.get("imported")]
        due = [row for row in mine if self._tries.get((row.id, row.epoch), (0, now))[1] <= now]
        for row in due[: max(0, min(MOST_BEGUN, self._room()))]:
            tries, _ = self._tries.get((row.id, row.epoch), (0, now))
            pause = min(SWEEP_SECONDS * 2**tries, LONGEST_PAUSE_SECONDS)
            self._tries[row.id, row.epoch] = tries + 1, now + pause
            try:
                await self._drive(row.id)
            except (RunBusy, Fenced):
                continue
            except QuireError as error:
                self._report(f"run {row.id} cannot continue by itself: {error}")
