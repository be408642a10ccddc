"""A runtime that drives no run itself: it hands runs to the cluster, and watches them in the store until they rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from quire.engine.driver.drive import Drive, DriveResult
from quire.engine.records import WAITING, Event, RunRow, Status
from quire.errors import BadInputs, CannotStart, RunState
from quire.runs.adapters import name_of
from quire.runs.drives import NOTHING_GIVEN
from quire.runs.pins import at_breakpoint
from quire.runs.runtime import Runtime

if TYPE_CHECKING:
    from quire.cluster.client import Cluster
    from quire.engine.events import Listener
    from quire.engine.ports import People, Store
    from quire.runs.drives import Given
    from quire.values import Value
    from quire.workspace.settings import Settings

POLL_SECONDS = 0.3
UNWRITTEN_SECONDS = 60.0
"""Time for the first write of a worker that has taken a run. A worker that dies before it leaves the run as it was."""

_GOES_ON = (Status.PENDING, Status.RUNNING, Status.INTERRUPTED)
_RESUMED = (Status.FAILED, Status.CANCELLED, Status.PAUSED)


async def follow(
    runtime: Runtime,
    run: str,
    show: Callable[[Event], None],
    *,
    after: int = 0,
    resumed: RunRow | None = None,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> RunRow:
    """Show the events of a run until it rests. `resumed` is the run before it was resumed: a worker has to take it and
    to write to it first, since its row says until then how it ended before."""
    store, unwritten = runtime.store, 0.0
    while True:
        # Read the row first: the events behind its state are stored by then.
        row = await runtime.row(run)
        for event in await runtime.events(row, after):
            show(event)
            after = event.seq
        taken = resumed is None or row.epoch > resumed.epoch
        written = resumed is None or row.updated_at != resumed.updated_at or unwritten >= UNWRITTEN_SECONDS
        if taken and written and await _rests(store, row):
            return row
        await pause(POLL_SECONDS)
        unwritten += POLL_SECONDS if taken else 0.0


async def _rests(store: Store, row: RunRow) -> bool:
    if row.status in _GOES_ON:
        return False
    if row.status is Status.PAUSED:
        # Otherwise its worker is shutting down, and the next one takes it in a moment.
        return at_breakpoint(row)
    if row.status not in WAITING:
        return True
    if await store.answers(row.id):
        return False
    # An answer may have been taken since the row was read: then a worker has driven the run meanwhile.
    now = await store.get(row.id)
    return now is not None and (now.status, now.epoch) == (row.status, row.epoch)


class Watching(Drive):
    """Takes the place of a drive. It can only be stopped: then the caller no longer waits for the run, and the run
    continues."""

    def __init__(self) -> None:  # nothing of a drive is here, so nothing of it is set up
        self.stopped = asyncio.Event()

    def stop(self, wake_at: float | None = None) -> None:
        self.stopped.set()


class ClusterRuntime(Runtime):
    def __init__(
        self, settings: Settings, store: Store, cluster: Cluster, *, environ: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(settings, store, environ=environ, queue=cluster.queue)
        self._cluster = cluster

    async def drive(
        self,
        run: str,
        *,
        people: People | None = None,
        listen: Listener = lambda event: None,
        overrides: Mapping[str, Value] | None = None,
        began: Callable[[Drive], None] = lambda drive: None,
        attached: bool = False,
        given: Given = NOTHING_GIVEN,
        after: int | None = None,
    ) -> DriveResult:
        """Hand the run over. With `attached`, wait until the run rests, and ask `people` its questions meanwhile."""
        if overrides or given != NOTHING_GIVEN:
            raise RunState(f"run {run} belongs to a cluster, where it continues as it was started")
        row = await self.row(run)
        last = max((event.seq for event in await self.store.events(run)), default=0)
        resume = row.status in _RESUMED
        watching = Watching()
        began(watching)
        await self._told(run, resume=resume)
        if not attached:
            return DriveResult(Status.AWAITING_INPUT, row.position)
        before = row if resume else None
        while True:
            following = asyncio.create_task(follow(self, run, listen, after=last, resumed=before))
            stopped = asyncio.create_task(watching.stopped.wait())
            try:
                await asyncio.wait({following, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    return DriveResult(Status.AWAITING_INPUT, row.position)
                row = following.result()
            finally:
                following.cancel()
                stopped.cancel()
            if row.status is not Status.AWAITING_INPUT or people is None or not await self._asked(run, people):
                return (await self.view(run)).rest
            last = max((event.seq for event in await self.store.events(run)), default=0)
            await self._told(run)

    async def _told(self, run: str, *, resume: bool = False) -> None:
        try:
            await self._cluster.look(run, resume=resume)
        except CannotStart:
            # Workers find due runs in the store; only the wish to resume is not stored there.
            if resume:
                raise

    async def _asked(self, run: str, people: People) -> bool:
        """Ask the open questions of a run. Return True if any was answered."""
        answered = False
        for question in await self.store.questions(run):
            problem = ""
            while (answer := await people.ask(question, problem)) is not None:
                try:
                    await self.answer(run, question.path, answer, by=name_of(people))
                except BadInputs as wrong:
                    problem = str(wrong)
                    continue
                answered = True
                break
        return answered
