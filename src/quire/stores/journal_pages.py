"""Pages of one run's journal: effects without their values, one effect with its value, and events from both ends.

A page of events is read without the others, so following a long run costs as much as following a short one. Effects are
read whole but without values: of several rows with the same path the last one counts, wherever it stands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from quire.engine.records import EffectRecord, Event
from quire.stores import row_decoder, rows

if TYPE_CHECKING:
    from quire.stores.statements import Statements

Read: TypeAlias = Callable[[str, Sequence[object]], Awaitable[Sequence[row_decoder.Row]]]


class EffectBrief(Struct, frozen=True):
    """An effect without its value."""

    record: EffectRecord
    size: int | None
    """The size of the value as JSON, in bytes; None without a value."""


@runtime_checkable
class Paged(Protocol):
    """A store that reads parts of a journal."""

    def journal(self) -> JournalPages: ...


class JournalPages:
    """Reads the journals of a store. `read` returns the rows of a statement."""

    def __init__(self, sql: type[Statements], read: Read) -> None:
        self._sql = sql
        self._read = read

    async def effects(self, run: str) -> list[EffectBrief]:
        """Return all effects of a run without their values, in the order in which their paths first appeared."""
        found = await self._read(self._sql.EFFECT_BRIEFS, (run,))
        latest = {row[0]: row for row in found}.values()
        return [_brief(row) for row in latest if row[2] != rows.SUPERSEDED]

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
        last = await self._backward(run, before, limit)
        if before is not None:
            last += await self._straddling(run, before)
        kept = sorted((one for one in last if before is None or one.seq < before), key=lambda event: event.seq)
        return kept[-limit:]

    async def _forward(self, run: str, after: int, limit: int) -> list[Event]:
        place, kept = rows.places(0, after)[0], list[Event]()
        while len(kept) < limit:
            found = await self._read(self._sql.EVENTS_FROM, (run, place, limit))
            kept += [event for row in found for event in row_decoder.events(run, row[1:]) if event.seq > after]
            if len(found) < limit:
                break
            place = int(found[-1][0]) + 1
        return sorted(kept, key=lambda event: event.seq)[:limit]

    async def _backward(self, run: str, before: int | None, limit: int) -> list[Event]:
        end = rows.places(0, before - 1)[0] if before else rows.places(0)[1]
        found = await self._read(self._sql.EVENTS_BEFORE, (run, end, limit))
        return [event for row in found for event in row_decoder.events(run, row[1:])]

    async def _straddling(self, run: str, before: int) -> list[Event]:
        """Return the events of the rows that stand behind the place of a number, but begin before it."""
        place, kept = rows.places(0, before - 1)[0], list[Event]()
        while found := await self._read(self._sql.EVENTS_FROM, (run, place, 1)):
            events = row_decoder.events(run, found[0][1:])
            if events[0].seq >= before:
                break
            kept += events
            place = int(found[0][0]) + 1
        return kept


def _brief(row: row_decoder.Row) -> EffectBrief:
    *cells, size = row
    return EffectBrief(row_decoder.effect_record(tuple(cells)), size)
