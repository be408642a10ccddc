"""Which recorded effects still answer what another document asks: a walk through it, by an old journal.

A record is kept where its request is the same at the same path. Behind one that does not fit its branch stops, so that
whatever comes after it is done again; branches beside it keep their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.driver.journal import Journal, abort_path
from quire.engine.driver.replay import Begin, replay, to_perform_again
from quire.engine.progress import Progress
from quire.engine.pure_work import PURE_WORK
from quire.errors import JournalMismatch

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord
    from quire.engine.requests import Effect, Fan, Recorded


class Refit(Struct, frozen=True):
    """`misfit` is the first request that another one was recorded for, `next` the first that has no record: where the
    walk goes on. Either is None where there is none."""

    kept: tuple[EffectRecord, ...]
    misfit: Recorded | None
    next: Effect | None


class _Fitting(Journal):
    """A journal in which a record for another request counts as missing."""

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
    """`begin` starts the walk of the new document. Raises `LimitReached` as a replay does.

    What a thread has used is read from the journal as a whole, so it is walked again until nothing more is dropped."""
    kept = {record.path: record for record in records}
    misfit: Recorded | None = None
    while True:
        journal = _Fitting(kept.values())
        try:
            again = await replay(begin, (), Progress({}), lambda boundary: False, pure_work=pure_work, journal=journal)
        except JournalMismatch as error:
            # A fan was ended by a child that does not fail any more.
            del kept[error.path]
            continue
        misfit = misfit or journal.misfit
        dropped = kept.keys() - journal.used
        if not dropped:
            dropped = set(await to_perform_again(begin, kept.values(), pure_work=pure_work))
        if not dropped:
            return Refit(tuple(kept.values()), misfit, again.open[0] if again.open else None)
        kept = {path: record for path, record in kept.items() if path not in dropped}
