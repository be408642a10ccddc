"""Changes of the store and of the documents since the last look, made by this process or by another one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.display.run_json import row_data
from quire.engine.records import Status
from quire.runs.live_views import last_event
from quire.stores.contract import Marks, Watchable

if TYPE_CHECKING:
    from quire.engine.records import Event, RunRow
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
        if not isinstance(store, Watchable):
            return Changed({row.id: row for row in rows}, questions=bool(touched), documents=documents)
        writes = await store.foreign_writes()
        foreign = writes is None or writes != self._writes
        self._writes = writes
        if foreign or time.monotonic() >= self._rows_due:
            rows += await self._foreign(store, foreign)
        if not foreign and not touched:
            return Changed({row.id: row for row in rows}, documents=documents)
        marks, before = await store.marks(), self._marks
        self._marks = marks
        gone = await self._gone() if marks.runs < before.runs else ()
        asked = (marks.questions, marks.last_asked) != (before.questions, before.last_asked)
        return Changed({row.id: row for row in rows}, gone, asked, documents)

    async def _foreign(self, store: Watchable, foreign: bool) -> list[RunRow]:
        """Return the rows that another process has changed, and the running ones whose process is gone."""
        if not foreign and not any(status == Status.RUNNING for _, status, _, _ in self._known.values()):
            self._rows_due = time.monotonic() + SECONDS_BETWEEN_ROWS
            return []
        since, self._rows_at = self._rows_at - OVERLAP_SECONDS, time.time()
        found = await store.written_since(since)
        self._rows_due = time.monotonic() + SECONDS_BETWEEN_ROWS
        changed = [row for row in found if self._known.get(row.id) != _state(row)]
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
