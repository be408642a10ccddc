"""A run read completely from a store, to be checked against its seals and driven."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.records import EffectRecord, Status
from quire.errors import BrokenSeal
from quire.stores import row_decoder, rows
from quire.stores.rows import Cells, JournalEnd
from quire.stores.seals import NO_ANCHOR, StoredRun, check_run, seal_pins, seal_row, seal_state

if TYPE_CHECKING:
    from quire.stores.row_decoder import Row
    from quire.trust.seal import Seal

# Indexes into a row: the cells of the journal, its seal, and the texts that `blob` and `events_blob` name.
_PLACE, _POSITION, _INPUT, _OUTPUT, _COST, _PATH, _STATE = 0, 2, 3, 4, 5, 6, 8
_VALUE, _USAGE, _EVENTS = 11, slice(15, 21), 21
_SEAL, _BODY, _EVENTS_BODY = 23, 24, 25


class SealedRun(Struct, frozen=True):
    """A stored run with its whole journal."""

    stored: StoredRun
    journal: Sequence[Row]
    """All rows, in order."""
    first: int
    """The key before the first row."""

    def check(self, seal: Seal) -> None:
        """Raise `BrokenSeal` unless the whole run is as this user wrote it."""
        check_run(seal, self.stored, self.journal)

    def holds(self, seal: Seal) -> bool:
        try:
            self.check(seal)
        except BrokenSeal:
            return False
        return True

    def resealed(self, seal: Seal) -> tuple[str, list[tuple[str, int]], tuple[int, str]]:
        """Return new seals for the run as stored: of the pins, of each row with its place, and the anchor with the
        run's seal."""
        run = self.stored
        last = pins = seal_pins(seal, run.id, run.title, run.format, run.document, run.created_at, run.pins)
        made: list[tuple[str, int]] = []
        for row in self.journal:
            last = seal_row(seal, last, row[:_SEAL])
            made.append((last, row[_PLACE]))
        anchor = self.journal[-1][_PLACE] if self.journal else NO_ANCHOR
        return pins, made, (anchor, seal_state(seal, pins, run.state, anchor, last))

    def tail(self) -> JournalEnd:
        run = self.stored
        seal = run.pins_seal or ""
        if not self.journal:
            return JournalEnd(self.first, pins_seal=seal, seal=seal, state=run.state)
        last = self.journal[-1]
        return JournalEnd(
            last[_PLACE],
            last[_POSITION],
            last[_INPUT],
            last[_OUTPUT],
            last[_COST],
            seal,
            last[_SEAL] or "",
            run.state,
            sum(row[_PLACE] > (run.anchor or NO_ANCHOR) for row in self.journal),
            frozenset(path for path, state in self._states().items() if state == "intent"),
        )

    def _states(self) -> dict[str, str]:
        return {row[_PATH]: row[_STATE] for row in self.journal if row[_PATH] is not None}

    def records(self) -> tuple[EffectRecord, ...]:
        """Return the records in the order in which their paths first appeared."""
        latest = {row[_PATH]: row for row in self.journal if row[_PATH] is not None}.values()
        return tuple(_record(row) for row in latest if row[_STATE] != rows.SUPERSEDED)

    def marks(self) -> tuple[int, frozenset[tuple[str, str]]]:
        """Return the highest number and the (type, path) of all kept events."""
        told = [(row[_EVENTS] or row[_EVENTS_BODY], row[_PATH]) for row in self.journal]
        return row_decoder.marks([one for one in told if one[0] is not None])

    def state_as(self, status: Status) -> Cells:
        """Return the status columns for ending the run, which is not being driven, with this status."""
        _, kind, message, ended_by, expires_at = self.stored.state
        if status is Status.CANCELLED:
            return status.value, None, None, ended_by, None
        return status.value, kind, message, ended_by, expires_at


def _record(row: Row) -> EffectRecord:
    path, kind, state, request, at, value, _, failure, message = row[_PATH : _PATH + 9]
    return row_decoder.effect_record(
        (path, kind, state, request, at, row[_BODY] if value is None else value, failure, message, *row[_USAGE])
    )
