"""Pages of the list of runs, and pages of one run's journal.

Runs are listed from the newest to the oldest, or in another order. A cursor holds the place of the last run of a page,
so runs that are added or removed meanwhile neither repeat nor hide others.

A page of events is read without the others, so following a long run costs as much as following a short one. Effects are
read whole but without values: of several rows with the same path the last one counts, at any place.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.records import EffectRecord, Event, NewRun, RunRow, Status
from quire.patterns import late_pattern
from quire.stores import row_decoder, rows
from quire.stores.row_decoder import PINS
from quire.subject import EARLIER, subject_of
from quire.values import clean, encode

if TYPE_CHECKING:
    from quire.engine.ports import Store
    from quire.stores.statements import Statements


# Only constants of this package are put together here, never values.
# ruff: noqa: S608


MOST_COUNTED = 10_000
"""Counts end here: a larger number is reported as one more than this."""
MOST_WORDS = 8

Condition: TypeAlias = tuple[str, Sequence[object]]
"""A condition on a run `r` with its pins `p`, in the SQL of SQLite, and its parameters."""

_CURSOR = late_pattern(r"(-?\d[\d.e+-]{0,30})_(\d{1,18})", re.ASCII)
_TEXT_CURSOR = late_pattern(r"([\w.~%-]*)_(\d{1,18})", re.ASCII)
Sort: TypeAlias = Literal["started", "took", "cost", "subject"]
_LONGEST_KEY = 60
"""Characters of a subject by which runs are sorted."""
_IN_TIME = "(r.expires_at IS NULL OR r.expires_at >= ?)"


class RunFilters(Struct, frozen=True):
    """The runs that a list is about. Every filter that is given has to fit."""

    statuses: tuple[Status, ...] = ()
    document: str = ""
    """The name of a document, or the end of its path."""
    format: str = ""
    since: float | None = None
    """The earliest start, in seconds since 1970."""
    before: float | None = None
    """The time before which runs were started."""
    words: tuple[str, ...] = ()
    """Each stands in the id, the title, the document, the error or the inputs. The case of ASCII letters does not
    count."""
    origin: str = ""
    """The run that the listed ones were forked from."""
    asks: bool = False
    """Only runs with an open question."""
    min_cost: float | None = None
    """In US dollars. Leaves out runs whose cost is not known."""
    min_took: float | None = None
    """The seconds from the start to the last change."""
    tries: bool = False
    """Also tries, which end after one step."""
    tries_before: float | None = None
    """Only tries that were made before this moment."""


class RunPage(Struct, frozen=True):
    """One page of the list. `next` is the cursor of the page that follows; None after the last one."""

    rows: Sequence[RunRow]
    next: str | None = None


async def newest_runs(store: Store, filters: RunFilters, most: int, size: int = 100) -> AsyncIterator[RunRow]:
    """Yield the newest runs, read in pages of a size, up to a number of them."""
    after = None
    for _ in range(most // size):
        page = await store.page(filters, after, size)
        for row in page.rows:
            yield row
        after = page.next
        if after is None:
            return


async def with_subject(store: Store, run: NewRun) -> NewRun:
    """Return a new run with its subject."""
    earlier = await store.recent_inputs(run.document, EARLIER)
    return replace(run, subject=subject_of(run.pins.get("inputs"), run.title, run.created_at, earlier))


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text that a user typed into a search box."""
    return tuple(clean(text).split()[:MOST_WORDS])


def cursor(key: float | str, number: int, sort: Sort = "started") -> str:
    """Return the cursor of a place in the list: its key in that order, and the number of the run."""
    order = "" if sort == "started" else f"{sort}:"
    return f"{order}{quote(key, safe='') if isinstance(key, str) else repr(float(key))}_{number}"


def read_cursor(text: str, sort: Sort = "started") -> tuple[float | str, int]:
    """Return the key and the number of a cursor. Raises `ValueError`."""
    order = "" if sort == "started" else f"{sort}:"
    match = (_TEXT_CURSOR if sort == "subject" else _CURSOR).fullmatch(text.removeprefix(order))
    if match is None or not text.startswith(order):
        raise ValueError(f"{text!r} is not a cursor of the list of runs")
    return unquote(match[1]) if sort == "subject" else float(match[1]), int(match[2])


class RunQueries:
    """The queries of one store. `alive` returns the condition that the owner of a running run is alive, or not."""

    def __init__(self, sql: type[Statements], now: Callable[[], float], alive: Callable[[bool], Condition]) -> None:
        self._sql = sql
        self._now = now
        self._alive = alive

    def page(self, filters: RunFilters, after: str | None, limit: int, sort: Sort, pins: bool) -> Condition:
        """Return the query of the whole rows of a page."""
        conditions, by = self._conditions(filters), self._key(sort)
        later, way = (">", "") if sort == "subject" else ("<", " DESC")
        if after is not None:
            key, number = read_cursor(after, sort)
            behind = f"{by} {later}= ? AND ({by} {later} ? OR ({by} = ? AND r.n < ?))"
            conditions.append((behind, (key, key, key, number)))
        select, parameters = _select("r.n", conditions)
        order = f"ORDER BY {by}{way}, r.n DESC"
        keys = f"{select} {order} LIMIT ?"
        rows = self._sql.RUNS if pins else self._sql.RUNS.replace(self._sql.translate(PINS), "'{}'")
        return f"{rows} {self._sql.translate(f'WHERE r.n IN ({keys}) {order}')}", (*parameters, limit)

    def place(self, run: str, sort: Sort) -> Condition:
        """Return the query of the key and the number of a run."""
        return self._sql.translate(f"SELECT {self._key(sort)}, r.n FROM runs r WHERE r.id = ?"), (run,)

    def _key(self, sort: Sort) -> str:
        """Return what runs are sorted by, in SQL."""
        match sort:
            case "started":
                return "r.created_at"
            case "took":
                at = self._sql.LAST_AT
                moving = f"r.status = 'running' AND {at} > r.updated_at"
                return f"(CASE WHEN {moving} THEN {at} ELSE r.updated_at END - r.created_at)"
            case "cost":
                return self._sql.LAST_COST
            case "subject":
                return f"lower(substr(coalesce(r.name, r.subject, r.title), 1, {_LONGEST_KEY}))"

    def named(self, runs: Sequence[str]) -> Condition:
        marks = ", ".join("?" * len(runs))
        return f"{self._sql.RUNS} {self._sql.translate(f'WHERE r.id IN ({marks})')}", runs

    def count(self, filters: RunFilters) -> Condition:
        """Return the query of the number of runs."""
        select, parameters = _select("1", self._conditions(filters))
        sql = self._sql.translate(f"SELECT count(*) FROM ({select} LIMIT ?) counted")
        return f"{self._sql.OWNERS} {sql}", (*parameters, MOST_COUNTED + 1)

    def _conditions(self, filters: RunFilters) -> list[Condition]:
        sql, conditions = self._sql, list[Condition]()
        if filters.statuses:
            texts, parameters = _joined(" OR ", [self._status(status) for status in dict.fromkeys(filters.statuses)])
            conditions.append((f"({texts})", parameters))
        if filters.document:
            ending = f"%/{escaped(filters.document)}"
            conditions.append(("(r.document = ? OR r.document LIKE ? ESCAPE '\\')", (filters.document, ending)))
        if filters.format:
            conditions.append(("r.format = ?", (filters.format,)))
        if filters.since is not None:
            conditions.append(("r.created_at >= ?", (filters.since,)))
        if filters.before is not None:
            conditions.append(("r.created_at < ?", (filters.before,)))
        if filters.origin:
            conditions.append((sql.FORK_OF, (filters.origin, filters.origin)))
        if filters.asks:
            conditions.append((sql.ASKS, (self._now(),)))
        if filters.min_cost is not None:
            conditions.append((f"{sql.LAST_COST} >= ?", (filters.min_cost,)))
        if filters.min_took is not None:
            conditions.append((f"{self._key('took')} >= ?", (filters.min_took,)))
        if filters.tries_before is not None:
            conditions.append(("r.until IS NOT NULL AND r.created_at < ?", (filters.tries_before,)))
        elif not filters.tries:
            conditions.append(("r.until IS NULL", ()))
        for word in filters.words:
            # In the pins a word stands as JSON has it, with its quotes and control characters escaped.
            stored = f"%{escaped(encode(word)[1:-1])}%"
            conditions.append((sql.HAS_WORD, (f"%{escaped(word)}%", stored, stored)))
        return conditions

    def _status(self, status: Status) -> Condition:
        match status:
            case Status.RUNNING | Status.INTERRUPTED:
                condition, parameters = self._alive(status is Status.RUNNING)
                return f"(r.status = 'running' AND {condition})", parameters
            case Status.EXPIRED:
                waiting = "(r.status IN ('paused', 'awaiting_input') AND r.expires_at < ?)"
                return f"(r.status = 'expired' OR {waiting})", (self._now(),)
            case Status.PAUSED | Status.AWAITING_INPUT:
                return f"(r.status = ? AND {_IN_TIME})", (status.value, self._now())
            case _:
                return "r.status = ?", (status.value,)


def escaped(text: str) -> str:
    """Return a text as LIKE takes it literally, with a backslash as the sign of escape."""
    return text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")


def _select(columns: str, conditions: Sequence[Condition]) -> Condition:
    """Return the query of some columns of the runs for which all conditions hold."""
    texts, parameters = _joined(" AND ", conditions)
    where = f"WHERE {texts}" if texts else ""
    return f"SELECT {columns} FROM runs r LEFT JOIN pins p ON p.run = r.n {where}", parameters


def _joined(word: str, conditions: Sequence[Condition]) -> Condition:
    return word.join(text for text, _ in conditions), [value for _, values in conditions for value in values]


Read: TypeAlias = Callable[[str, Sequence[object]], Awaitable[Sequence[row_decoder.Row]]]


class EffectBrief(Struct, frozen=True):
    """An effect without its value."""

    record: EffectRecord
    size: int | None
    """The size of the value as JSON, in bytes; None without a value."""


class JournalPages:
    """Reads the journals of a store. `read` returns the rows of a statement."""

    def __init__(self, sql: type[Statements], read: Read) -> None:
        self._sql = sql
        self._read = read

    async def effects(self, run: str) -> list[EffectBrief]:
        """Return all effects of a run without their values, in the order in which their paths first appeared."""
        latest = {row[0]: row for row in await self._read(self._sql.EFFECT_BRIEFS, (run,))}.values()
        return [
            EffectBrief(row_decoder.effect_record(row[:-1]), row[-1]) for row in latest if row[2] != rows.SUPERSEDED
        ]

    async def records(self, run: str) -> list[EffectRecord]:
        """Return every record that was ever written, in that order: also those of effects that were performed again."""
        found = await self._read(self._sql.EFFECTS, (run,))
        return [row_decoder.effect_record(row) for row in found if row[2] != rows.SUPERSEDED]

    async def effect(self, run: str, path: str) -> EffectRecord | None:
        """Return one effect with its value; None if the run has none at this path."""
        for row in await self._read(self._sql.ONE_EFFECT, (run, path)):
            return None if row[2] == rows.SUPERSEDED else row_decoder.effect_record(row)
        return None

    async def event_page(
        self, run: str, *, after: int | None = None, before: int | None = None, limit: int = 100
    ) -> list[Event]:
        """Return up to `limit` events in their order: the first ones after a number, or else the last ones, before a
        number if one is given."""
        if after is not None:
            return await self._forward(run, after, limit)
        end = rows.places(0, before - 1)[0] if before else rows.places(0)[1]
        page = await self._read(self._sql.EVENTS_BEFORE, (run, end, limit))
        last = [event for row in page for event in row_decoder.events(run, row[1:])]
        if before is not None:
            last += await self._straddling(run, before)
        events = sorted((event for event in last if before is None or event.seq < before), key=lambda event: event.seq)
        return events[-limit:]

    async def _forward(self, run: str, after: int, limit: int) -> list[Event]:
        place, events = rows.places(0, after)[0], list[Event]()
        while len(events) < limit:
            page = await self._read(self._sql.EVENTS_FROM, (run, place, limit))
            events += [event for row in page for event in row_decoder.events(run, row[1:]) if event.seq > after]
            if len(page) < limit:
                break
            place = int(page[-1][0]) + 1
        return sorted(events, key=lambda event: event.seq)[:limit]

    async def _straddling(self, run: str, before: int) -> list[Event]:
        """Return the events of the rows that stand behind the place of a number, but begin before it."""
        place, straddling = rows.places(0, before - 1)[0], list[Event]()
        while page := await self._read(self._sql.EVENTS_FROM, (run, place, 1)):
            events = row_decoder.events(run, page[0][1:])
            if events[0].seq >= before:
                break
            straddling += events
            place = int(page[0][0]) + 1
        return straddling
