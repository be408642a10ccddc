"""The hub: notices what changes in the store and in the runs that this process drives, and tells the subscribers.

A frame with an id is an event of the journal: each one reaches each subscriber once and in order. Events of runs that
are driven here are sent twice: at once, as provisional and without a number, and with their number after the commit. A
process that dies between the two gives the number to another event. Events of other processes are read from the store
when it has changed, as are events that a subscriber has missed because it came between two commits.
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.engine.records import FINAL, Event, Status
from quire.errors import QuireError
from quire.operations.problems import Problem
from quire.server.sse import Frame

if TYPE_CHECKING:
    from quire.engine.records import RunRow
    from quire.server.changes import Changes
    from quire.values import Value

MOST_WAITING = 20_000
"""Frames that may wait for a slow client. Beyond that deltas are left out, then the stream is ended: the client comes
back and goes on where it was."""
SECONDS_TO_COLLECT = 0.1
"""Changes of runs are collected for so long and sent together."""
SECONDS_AFTER_TROUBLE = 1.0


class Subscription:
    """One client that listens. `runs` are the runs that it follows, each with the last number that it has seen."""

    def __init__(self, runs: Mapping[str, int], *, whole: bool) -> None:
        self.seen = dict(runs)
        self.whole = whole
        """True for a client that also wants the changes of all runs, questions and documents."""
        self._frames: deque[Frame] = deque()
        self._ready = asyncio.Event()
        self._ended = False

    @property
    def id(self) -> str:
        """Return the place of the client in all runs that it follows."""
        return ",".join(f"{run}:{seq}" for run, seq in self.seen.items())

    def live(self, event: Event) -> None:
        """Take an event as it happens, which may never be written."""
        if len(self._frames) < MOST_WAITING // 2:
            data = replace(event, seq=0).as_json()
            self.put(Frame(event.type, {**data, "provisional": True} if event.seq else data))

    def written(self, event: Event) -> bool:
        """Take an event that was just written. Return False if the store has to be read for the events before it."""
        last = self.seen[event.run]
        if event.seq > last + 1:
            return False
        if event.seq == last + 1:
            self._pass(event)
        return True

    def stored(self, events: Sequence[Event]) -> None:
        """Take events from the store."""
        for event in events:
            if event.seq > self.seen[event.run]:
                self._pass(event)

    def put(self, frame: Frame) -> None:
        if len(self._frames) >= MOST_WAITING:
            self.end()
            return
        self._frames.append(frame)
        self._ready.set()

    def end(self) -> None:
        self._ended = True
        self._ready.set()

    async def frames(self) -> AsyncIterator[Frame]:
        while True:
            while self._frames:
                yield self._frames.popleft()
            if self._ended:
                return
            self._ready.clear()
            await self._ready.wait()

    def _pass(self, event: Event) -> None:
        self.seen[event.run] = event.seq
        self.put(Frame(event.type, replace(event, live={}).as_json(), self.id if self.whole else str(event.seq)))


class Hub:
    """All subscribers of one server, at most `most` at a time."""

    def __init__(self, changes: Changes, report: Callable[[str], None], most: int) -> None:
        self._changes = changes
        self._report = report
        self._most = most
        self._subscriptions: set[Subscription] = set()
        self._behind: set[tuple[Subscription, str]] = set()
        self._touched: set[str] = set()
        self._wake = asyncio.Event()
        self._trouble = ""
        """The last error of a look at the store; empty while it works."""
        self._closed = False

    @property
    def listeners(self) -> int:
        """The number of clients that listen."""
        return len(self._subscriptions)

    def listen(self, event: Event) -> None:
        """Take an event of a run that this process drives."""
        if event.replayed:
            return
        if event.seq:
            self._touched.add(event.run)
            self._wake.set()
        for one in self._subscriptions:
            if event.run in one.seen:
                one.live(event)

    def written(self, events: Sequence[Event]) -> None:
        """Take events that a drive of this process has just written."""
        for event in events:
            self.touch(event.run)
            for listener in self._subscriptions:
                if event.run in listener.seen and not listener.written(event):
                    self._behind.add((listener, event.run))

    def touch(self, run: str) -> None:
        """Note that this process has changed a run."""
        self._touched.add(run)
        self._wake.set()

    def join(self, runs: Mapping[str, int], *, whole: bool) -> Subscription:
        """Subscribe a client before its response begins; the response has to `leave` at its end. Raises `Problem` if no
        further client can listen."""
        if self.listeners >= self._most:
            raise Problem.of("too-many", f"{self.listeners} clients listen already: [serve] listeners allows no more")
        listener = Subscription(runs, whole=whole)
        if whole and self._trouble:
            listener.put(Frame("store", {"error": self._trouble}))
        self._subscriptions.add(listener)
        return listener

    def leave(self, listener: Subscription) -> None:
        self._subscriptions.discard(listener)

    async def catch_up(self, listener: Subscription) -> None:
        """Send a client everything that is kept after the numbers that it has seen."""
        for run in listener.seen:
            await self._catch_up(listener, run)
        self._wake.set()
        if self._closed:  # a client that comes while the server stops is told so, as those before it were
            _close(listener)

    async def watch(self) -> None:
        """Tell the subscribers about changes until the task is cancelled. Nothing is polled while no client listens.

        A mistake of ours in one look is reported, and must not end the next ones: pages would be silent without a word.
        """
        while True:
            if not self._subscriptions:
                self._wake.clear()
                await self._wake.wait()
                continue
            with contextlib.suppress(asyncio.TimeoutError):
                async with asyncio.timeout(self._changes.seconds):
                    await self._wake.wait()
            if self._wake.is_set():
                await asyncio.sleep(SECONDS_TO_COLLECT)
            self._wake.clear()
            try:
                await self._look()
                self._tell_trouble("")
            except Exception as error:
                self._tell_trouble(self._in_words(error))
                await asyncio.sleep(SECONDS_AFTER_TROUBLE)

    def _in_words(self, error: Exception) -> str:
        """Return an error for the pages. A mistake of ours is reported with its traceback, when it first happens."""
        if isinstance(error, QuireError):
            return str(error)
        text = f"the server cannot read what has changed, because of a mistake of Quire: {error!r}"
        if text != self._trouble:
            self._report(f"{text}\n{''.join(traceback.format_exception(error))}")
        return text

    async def _look(self) -> None:
        touched, self._touched = self._touched, set()
        runs, behind = set(touched), set[tuple[Subscription, str]]()
        try:
            found = await self._changes.since_last(touched)
            runs |= found.runs.keys()
            behind, self._behind = self._behind, set()
            behind |= {
                (one, run) for one in self._subscriptions for run in found.runs.keys() - touched & one.seen.keys()
            }
            for one, run in behind:
                await self._catch_up(one, run)
            for run in touched & found.runs.keys():
                if found.runs[run].status is not Status.RUNNING:
                    # The last write of a drive that was cancelled is not reported.
                    for one in [one for one in self._subscriptions if run in one.seen]:
                        one.stored(await self._changes.events(run, one.seen[run]))
            for name, data in found.frames():
                self._tell(Frame(name, data))
            await self._end_finished(found.runs)
        except Exception:  # the next look reads the same runs
            self._touched |= runs
            self._behind |= behind
            raise

    def _tell_trouble(self, error: str) -> None:
        """Tell the pages what is wrong with the store, and with an empty text that it works again."""
        if error != self._trouble:
            self._trouble = error
            self._tell(Frame("store", {"error": error}))

    def _tell(self, frame: Frame) -> None:
        for one in self._subscriptions:
            if one.whole:
                one.put(frame)

    async def _catch_up(self, one: Subscription, run: str) -> None:
        events = await self._changes.events(run, one.seen[run])
        if not events and one.seen[run] > await self._changes.last_event(run):
            # The number is unknown: the run was pruned, or its last events were lost with their process.
            one.seen[run] = 0
            data: Value = {"run": run}
            one.put(Frame("reset", data))
            events = await self._changes.events(run, 0) if not one.whole else ()
        one.stored(events)

    async def _end_finished(self, runs: Mapping[str, RunRow]) -> None:
        """End the streams that follow a single run, once it is final."""
        for one in list(self._subscriptions):
            if one.whole:
                continue
            (run,) = one.seen
            row = runs.get(run)
            if row is not None and row.status in FINAL:
                await self._catch_up(one, run)
                one.put(Frame("end", {"run": run}))
                one.end()

    def close(self) -> None:
        """End all streams, because the server stops."""
        self._closed = True
        for one in self._subscriptions:
            _close(one)


def _close(one: Subscription) -> None:
    one.put(Frame("closing", {}))
    one.end()
