"""Measure the coverage of one document while the cases of its test file run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.engine.records import Status
from quire.plan.ways import typed_way
from quire.runs.resume import apply_amendments
from quire.source import Source, relative_to_here
from quire.testing.coverage.decisions import document_decisions
from quire.testing.coverage.file_pipelines import file_pipelines
from quire.testing.coverage.report import CoverageCount, DocumentCoverage, prompts_looked_at
from quire.testing.coverage.taken import decisions_taken, watched

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord, RunRow
    from quire.formats.test.expected import Expect
    from quire.library.document import Document
    from quire.runs.pins import PinnedRun
    from quire.testing.observation import Observation


class CoverageMeter:
    """Counts the decisions of a document that the runs of cases take.

    A case is looked at after its run and after each act, because a resume removes failures from the journal; decisions
    that it took more than once count once for each look.
    """

    def __init__(self, document: Document) -> None:
        plan, source = document.runnable(), document.source
        path = Path(relative_to_here(source.name) or source.name).as_posix()
        named = Source(path, source.text, source.stored)
        self._sha256 = document.sha256
        self._watched = watched(plan, file_pipelines(document))
        self._places: dict[str, str] = {}
        self._count = CoverageCount(named, document_decisions(document))

    async def see(self, held: PinnedRun, row: RunRow, records: Sequence[EffectRecord]) -> None:
        """Count the decisions that a run has taken. A run of another text, such as an edited one, is left out."""
        if held.document.sha256 != self._sha256:
            return
        held = replace(held, pins=apply_amendments(held.pins, records))
        stands = row.ended_by if row.status is Status.PAUSED else ()
        breakpoints = frozenset(map(typed_way, held.pins.breakpoints))
        taken = await decisions_taken(
            self._watched,
            held,
            records,
            lambda boundary: boundary.path in stands or boundary.stops_at(breakpoints),
        )
        self._places.update(self._watched.prompts)
        self._count.add_run(taken)

    def look(self, expect: Expect | None, observation: Observation) -> None:
        """Count the prompts that the expectations of a case or an act look at."""
        if expect is not None:
            looks = prompts_looked_at(expect, observation)
            self._count.add_looks(self._places.get(path, path) for path in looks)

    def result(self) -> DocumentCoverage:
        return self._count.result()
