"""Find the recorded effects that are still valid for another document, by walking it with an old journal.

A record is kept if the request at its path is the same. A branch stops at the first record that does not fit, so
everything after it is performed again; concurrent branches keep their own records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.driver.journal import Journal, abort_path
from quire.engine.driver.replay import Begin, replay, to_perform_again
from quire.engine.premises import PURE_WORK
from quire.engine.progress import Progress
from quire.errors import JournalMismatch

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord
    from quire.engine.requests import Effect, Fan, Recorded


class Refit(Struct, frozen=True):
    """The result of walking another document with an old journal."""

    kept: tuple[EffectRecord, ...]
    misfit: Recorded | None
    """The first request for which a different one was recorded, or None."""
    next: Effect | None
    """The first request without a record, where the walk goes on; None if there is none."""


class _Fitting(Journal):
    """A journal in which a record of another request counts as missing."""

    def __init__(self, records: Iterable[EffectRecord]) -> None:
        super().__init__(records)
        self.used: set[str] = set()
        self.misfit: Recorded | None = None

    def find(self, request: Recorded) -> EffectRecord | None:
        try:
            record = super().find(request)
        except JournalMismatch:
            self.misfit = self.misfit or request
            self._records.pop(request.path, None)
            return None
        if record is not None:
            self.used.add(record.path)
        return record

    def ended_by(self, fan: Fan) -> int | None:
        found = super().ended_by(fan)
        if found is not None:
            self.used.add(abort_path(fan))
        return found


async def refit(begin: Begin, records: Iterable[EffectRecord], *, pure_work: int = PURE_WORK) -> Refit:
    """Walk a new document, started by `begin`, with old records. Raises `LimitReached` as a replay does.

    A thread's usage is read from the journal as a whole, so the document is walked again until no more records are
    dropped.
    """
    kept = {record.path: record for record in records}
    misfit: Recorded | None = None
    while True:
        journal = _Fitting(kept.values())
        try:
            again = await replay(begin, (), Progress({}), lambda boundary: False, pure_work=pure_work, journal=journal)
        except JournalMismatch as error:
            # A fan was ended by a child that no longer fails.
            del kept[error.path]
            continue
        misfit = misfit or journal.misfit
        dropped = kept.keys() - journal.used
        if not dropped:
            dropped = set(await to_perform_again(begin, kept.values(), pure_work=pure_work))
        if not dropped:
            return Refit(tuple(kept.values()), misfit, again.open[0] if again.open else None)
        kept = {path: record for path, record in kept.items() if path not in dropped}
