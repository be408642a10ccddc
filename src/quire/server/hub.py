"""The hub: notices what changes in the store and in the runs that this process drives, and tells the subscribers.

A frame with an id is an event of the journal: each one reaches each subscriber once and in order. Events of runs that
are driven here are sent twice: at once, as provisional and without a number, and with their number after the commit. A
process that dies between the two gives the number to another event. Events of other processes are read from the store
when it has changed, as are events that a subscriber has missed because it came between two commits.

Changes are those of the store and of the documents since the last look, made by this process or by another one. They
are sent as server-sent events.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace
from starlette.responses import StreamingResponse

from quire.display.run_json import row_data
from quire.engine.records import FINAL, Event, Status
from quire.errors import QuireError
from quire.operations.problems import Problem
from quire.runs.live_views import last_event
from quire.server.open_replies import OpenReplies
from quire.stores.contract import Marks
from quire.values import encode

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from quire.engine.records import RunRow
    from quire.runs.runtime import Runtime
    from quire.values import Value

MOST_ROWS = 200
"""Rows that are sent with one change; beyond that only the number is sent, and lists are read again."""
MOST_KNOWN = 20_000
"""Rows whose last state is remembered, so that a run that did not change is not sent again."""
OVERLAP_SECONDS = 10.0
"""Rows are read from so long before the last look: clocks of other machines differ, and a commit takes its time."""
SECONDS_BETWEEN_ROWS = 1.0
"""Rows are read this often while another process drives a run: its death writes nothing."""
SECONDS_BETWEEN_DOCUMENTS = 2.0

State = tuple[float, str, int, str]


class Changed(Struct, frozen=True):
    """Everything that changed between two looks."""

    runs: Mapping[str, RunRow] = field(default_factory=dict)
    gone: Sequence[str] = ()
    """Runs that were removed."""
    questions: bool = False
    documents: bool = False

    def frames(self) -> Iterator[tuple[str, Value]]:
        """Yield the events that clients of the whole workspace get."""
        if self.runs or self.gone:
            rows = list(self.runs.values())
            shown: list[Value] = [row_data(row) for row in rows[:MOST_ROWS]]
            yield "runs", {"rows": shown, "more": max(0, len(rows) - MOST_ROWS), "gone": list(self.gone)}
        if self.questions:
            yield "questions", {}
        if self.documents:
            yield "documents", {}


class Changes:
    """Looks for changes. `seconds` is the time between two looks while clients listen.

    `documents` returns a value that changes with the documents of the workspace.
    """

    seconds = 0.25

    def __init__(self, runtime: Runtime, documents: Callable[[], object]) -> None:
        self._runtime = runtime
        self._documents = documents
        self._seen_documents: object = None
        self._documents_at = -SECONDS_BETWEEN_DOCUMENTS
        self._marks = Marks()
        self._writes: int | None = -1
        self._known: dict[str, State] = {}
        self._rows_at = time.time()
        self._rows_due = 0.0

    async def since_last(self, touched: Collection[str]) -> Changed:
        """Return the changes since the last call. `touched` are runs that this process has changed."""
        store = self._runtime.store
        rows = [row for run in touched if (row := await store.get(run)) is not None]
        for row in rows:
            self._known[row.id] = _state(row)
        documents = await self._documents_changed()
        writes = await store.foreign_writes()
        foreign = writes is None or writes != self._writes
        self._writes = writes
        if foreign or time.monotonic() >= self._rows_due:
            rows += await self._foreign(foreign)
        if not foreign and not touched:
            return Changed({row.id: row for row in rows}, documents=documents)
        marks, before = await store.marks(), self._marks
        self._marks = marks
        gone = await self._gone() if marks.runs < before.runs else ()
        questions = (marks.questions, marks.last_asked) != (before.questions, before.last_asked)
        return Changed({row.id: row for row in rows}, gone, questions, documents)

    async def _foreign(self, foreign: bool) -> list[RunRow]:
        """Return the rows that another process has changed, and the running ones whose process is gone."""
        if not foreign and not any(status == Status.RUNNING for _, status, _, _ in self._known.values()):
            self._rows_due = time.monotonic() + SECONDS_BETWEEN_ROWS
            return []
        since, self._rows_at = self._rows_at - OVERLAP_SECONDS, time.time()
        rows = await self._runtime.store.written_since(since)
        self._rows_due = time.monotonic() + SECONDS_BETWEEN_ROWS
        changed = [row for row in rows if self._known.get(row.id) != _state(row)]
        for row in changed:
            self._known.pop(row.id, None)
            self._known[row.id] = _state(row)
        for run in list(self._known)[: max(0, len(self._known) - MOST_KNOWN)]:
            del self._known[run]
        return changed

    async def _gone(self) -> tuple[str, ...]:
        gone = tuple([run for run in self._known if await self._runtime.store.get(run) is None])
        for run in gone:
            del self._known[run]
        return gone

    async def _documents_changed(self) -> bool:
        if time.monotonic() < self._documents_at + SECONDS_BETWEEN_DOCUMENTS:
            return False
        before, self._seen_documents = self._seen_documents, await asyncio.to_thread(self._documents)
        self._documents_at = time.monotonic()
        return before is not None and before != self._seen_documents

    async def events(self, run: str, after: int) -> Sequence[Event]:
        return await self._runtime.store.events(run, after)

    async def last_event(self, run: str) -> int:
        return await last_event(self._runtime.store, run)


def _state(row: RunRow) -> State:
    return row.updated_at, str(row.status), row.epoch, row.position


MEDIA_TYPE = "text/event-stream"
RETRY_MILLISECONDS = 2000
COMMENT_SECONDS = 15.0
"""A comment is sent after so much silence, so that proxies and clients see that the connection lives."""


class Frame(Struct, frozen=True):
    """One event on its way to a client. An event without an `id` is not repeated after a reconnect."""

    event: str
    data: Value
    id: str = ""

    def encode(self) -> bytes:
        # JSON of one line: a line break would end the field.
        head = f"id: {self.id}\n" if self.id else ""
        return f"{head}event: {self.event}\ndata: {encode(self.data)}\n\n".encode()


class EventStream(StreamingResponse):
    """The response that sends these frames. It ends when they end or the client leaves; then `leave` is called, even if
    nothing was sent."""

    def __init__(self, frames: AsyncIterator[Frame], leave: Callable[[], None]) -> None:
        headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
        super().__init__(_bytes(frames), media_type=MEDIA_TYPE, headers=headers)
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


async def _bytes(frames: AsyncIterator[Frame]) -> AsyncIterator[bytes]:
    yield f"retry: {RETRY_MILLISECONDS}\n\n".encode()
    following = asyncio.ensure_future(anext(frames, None))
    try:
        while True:
            done, _ = await asyncio.wait([following], timeout=COMMENT_SECONDS)
            if not done:
                yield b": still here\n\n"
                continue
            frame = following.result()
            if frame is None:
                return
            yield frame.encode()
            following = asyncio.ensure_future(anext(frames, None))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        if hasattr(frames, "aclose"):
            await frames.aclose()


MOST_WAITING = 20_000
"""Frames that may wait for a slow client. Beyond that deltas are left out, then the stream is ended: the client comes
back and continues where it was."""
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
        self.replies = OpenReplies()
        self._trouble = ""
        """The last error of a look at the store; empty while it works."""
        self._closed = False
        self.kept: dict[str, tuple[float, Value]] = {}
        """See `Host.kept`."""

    @property
    def listeners(self) -> int:
        """The number of clients that listen."""
        return len(self._subscriptions)

    def listen(self, event: Event) -> None:
        """Take an event of a run that this process drives."""
        if event.replayed:
            return
        event = self.replies.take(event)
        if event.seq:
            self._touched.add(event.run)
            self._wake.set()
        for subscription in self._subscriptions:
            if event.run in subscription.seen:
                subscription.live(event)

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
        self.kept.clear()
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
        for delta in (delta for run in runs for delta in self.replies.deltas(run)):
            listener.live(delta)
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
            changed = await self._changes.since_last(touched)
            runs |= changed.runs.keys()
            if changed != Changed():
                self.kept.clear()
            behind, self._behind = self._behind, set()
            behind |= {
                (subscription, run)
                for subscription in self._subscriptions
                for run in changed.runs.keys() - touched & subscription.seen.keys()
            }
            for listener, run in behind:
                await self._catch_up(listener, run)
            for run in touched & changed.runs.keys():
                if changed.runs[run].status is not Status.RUNNING:
                    self.replies.forget(run)
                    # The last write of a drive that was cancelled is not reported.
                    for listener in [listener for listener in self._subscriptions if run in listener.seen]:
                        listener.stored(await self._changes.events(run, listener.seen[run]))
            for name, data in changed.frames():
                self._tell(Frame(name, data))
            await self._end_finished(changed.runs)
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
        for subscription in self._subscriptions:
            if subscription.whole:
                subscription.put(frame)

    async def _catch_up(self, listener: Subscription, run: str) -> None:
        events = await self._changes.events(run, listener.seen[run])
        if not events and listener.seen[run] > await self._changes.last_event(run):
            # The number is unknown: the run was pruned, or its last events were lost with their process.
            listener.seen[run] = 0
            listener.put(Frame("reset", {"run": run}))
            events = await self._changes.events(run, 0) if not listener.whole else ()
        listener.stored(events)

    async def _end_finished(self, runs: Mapping[str, RunRow]) -> None:
        """End the streams that follow a single run, once it is final."""
        for subscription in list(self._subscriptions):
            if subscription.whole:
                continue
            (run,) = subscription.seen
            row = runs.get(run)
            if row is not None and row.status in FINAL:
                await self._catch_up(subscription, run)
                subscription.put(Frame("end", {"run": run}))
                subscription.end()

    def close(self) -> None:
        """End all streams, because the server stops."""
        self._closed = True
        for subscription in self._subscriptions:
            _close(subscription)


def _close(subscription: Subscription) -> None:
    subscription.put(Frame("closing", {}))
    subscription.end()
