"""Changes of the store and of the documents since the last look, in whatever process they were made."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.display.run_json import row_data

if TYPE_CHECKING:
    from quire.engine.records import Event, RunRow
    from quire.runs.runtime import Runtime
    from quire.values import Value

MOST_ROWS = 200
"""Rows that are sent with one change; beyond that only the number is sent, and lists are read again."""


class Changed(Struct, frozen=True):
    """Everything that changed between two looks."""

    runs: Mapping[str, RunRow] = field(default_factory=dict)
    gone: Sequence[str] = ()
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
    """Looks for changes. `seconds` is the time between two looks while clients listen."""

    seconds = 0.25

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._questions: tuple[tuple[str, str], ...] = ()

    async def since_last(self, touched: Collection[str]) -> Changed:
        """Return the changes since the last call. `touched` are runs that this process has changed."""
        store = self._runtime.store
        rows = {row.id: row for run in touched if (row := await store.get(run)) is not None}
        asked = tuple((one.run, one.path) for one in await store.questions())
        changed = asked != self._questions
        self._questions = asked
        return Changed(rows, questions=changed)

    async def events(self, run: str, after: int) -> Sequence[Event]:
        return await self._runtime.store.events(run, after)

    async def last_event(self, run: str) -> int:
        events = await self._runtime.store.events(run)
        return events[-1].seq if events else 0
