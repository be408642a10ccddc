"""Coverage of documents over many runs: shares by kind, and missing decisions with their places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.diagnostics import Diagnostic, Severity
from quire.engine.progress import place_in_plan
from quire.formats.test.codes import measures
from quire.testing.coverage.decisions import KINDS, Decision, Kind, decision_id
from quire.testing.coverage.gates import ALL

if TYPE_CHECKING:
    from quire.formats.test.expected import Expect
    from quire.source import Source
    from quire.testing.observation import Observation


class Share(Struct, frozen=True):
    """The decisions that were taken, out of all."""

    taken: int
    total: int

    @property
    def percent(self) -> int:
        """Rounded down, so that 100 means all of them. Nothing to decide is 100 too."""
        return self.taken * 100 // self.total if self.total else 100

    def reaches(self, least: float) -> bool:
        return self.taken * 100 >= least * self.total


class DocumentCoverage(Struct, frozen=True):
    """The decisions of one document, each with the number of runs that took it."""

    source: Source
    """Its name is the path of the file, relative to the folder in which the tests run."""
    decisions: tuple[Decision, ...]
    counts: Mapping[str, int]
    """By the id of the decision."""

    @property
    def path(self) -> str:
        return self.source.name

    def count(self, decision: Decision) -> int:
        return self.counts.get(decision.id, 0)

    def line(self, decision: Decision) -> int:
        return self.source.position(decision.span.start).line

    def share(self, kind: str) -> Share:
        """Return the share of a kind, or of `all`."""
        counted = [one for one in self.decisions if kind in (ALL, one.kind)]
        return Share(sum(1 for one in counted if self.count(one)), len(counted))

    def shares(self) -> dict[str, Share]:
        return {kind: self.share(kind) for kind in (ALL, *KINDS)}

    def missing(self, *kinds: str) -> list[Decision]:
        """Return the decisions that no run took, in the order of the file; of all kinds if none is named."""
        found = [one for one in self.decisions if not self.count(one) and (not kinds or one.kind in kinds)]
        return sorted(found, key=lambda one: one.span.start)


class CoverageCount:
    """Counts the runs of one file. Adding counts of several processes gives the same as one process would.

    Two tests of a file with several pipelines may know different ones of them: all their decisions count.
    """

    def __init__(self, source: Source, decisions: tuple[Decision, ...]) -> None:
        self._source = source
        self._decisions = decisions
        self._counts: Counter[str] = Counter()
        self._prompts = frozenset(one.place for one in decisions if one.kind == "prompts")

    def add_run(self, taken: Iterable[str]) -> None:
        """Count the decisions that one run took."""
        self._counts.update(frozenset(taken))

    def add_looks(self, paths: Iterable[str]) -> None:
        """Count the prompts that the expectations of one case look at, by the paths of their model calls."""
        places = {place for path in paths if (place := self._model_step(path))}
        self._counts.update(decision_id("prompts", place) for place in places)

    def add(self, other: DocumentCoverage) -> None:
        known = {one.id for one in self._decisions}
        self._decisions = (*self._decisions, *(one for one in other.decisions if one.id not in known))
        self._counts.update(other.counts)

    def result(self) -> DocumentCoverage:
        return DocumentCoverage(self._source, self._decisions, dict(self._counts))

    def _model_step(self, path: str) -> str:
        """Return the model step that a call belongs to; empty for a call of another document."""
        place = place_in_plan(path)
        while place and place not in self._prompts:
            place = place.rpartition("/")[0]
        return place


def prompts_looked_at(expect: Expect, observation: Observation) -> frozenset[str]:
    """Return the paths of the model calls whose prompts some expectations look at."""
    named = [check.name for check in expect.of("prompts")]
    return frozenset(
        prompt.path for prompt in observation.prompts if any(not name or prompt.is_of(name) for name in named)
    )


def merged(parts: Iterable[DocumentCoverage]) -> list[DocumentCoverage]:
    """Return one coverage for each document, in the order in which the documents come first."""
    counts: dict[str, CoverageCount] = {}
    for part in parts:
        if part.path not in counts:
            counts[part.path] = CoverageCount(part.source, ())
        counts[part.path].add(part)
    return [count.result() for count in counts.values()]


def uncovered_findings(coverage: DocumentCoverage, kinds: tuple[Kind, ...] = ("arms",)) -> tuple[Diagnostic, ...]:
    """Return the missing decisions as findings about the document itself, for annotations beside its lines."""
    code = replace(measures.COVERAGE_BELOW, severity=Severity.WARNING)
    return tuple(
        Diagnostic(code, f"not covered by any case: {one.label}", one.span) for one in coverage.missing(*kinds)
    )
