"""Coverage of documents over many runs: measure it while cases run, sum it up, hold it to gates, write it as LCOV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.diagnostics import Diagnostic, Severity
from quire.engine.progress import place_in_plan
from quire.engine.records import Status
from quire.errors import CannotStart
from quire.formats.test import codes
from quire.formats.test.syntax import COVERAGE_KINDS
from quire.plan.vocabulary import typed_way
from quire.runs.drives import apply_amendments
from quire.source import Source, relative_to_here
from quire.testing.case_results import Problem
from quire.testing.coverage.decisions import KINDS, Decision, decision_id, document_decisions
from quire.testing.coverage.taken import decisions_taken, file_pipelines
from quire.testing.coverage.watched_documents import watched
from quire.values import clean
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord, RunRow
    from quire.formats.test.expected import Expect
    from quire.library.document import Document
    from quire.runs.pins import PinnedRun
    from quire.source import Span
    from quire.testing.observation import Observation

ALL = "all"
_LISTED = 5
"""Missing decisions that a finding names."""


def read_gates(texts: Iterable[str], under: float | None = None) -> dict[str, float]:
    """Read gates of the command line, `arms=100`; `under` is the least share of all. Raises `CannotStart`."""
    gates: dict[str, float] = {} if under is None else {ALL: _percentage(str(under))}
    for text in texts:
        kind, _, least = (part.strip() for part in text.partition("="))
        if kind not in COVERAGE_KINDS:
            hint = did_you_mean(nearest(kind, COVERAGE_KINDS), f"the kinds are {', '.join(COVERAGE_KINDS)}")
            raise CannotStart(f"{kind!r} is not a kind of coverage: {hint}")
        gates[kind] = _percentage(least)
    return gates


def _percentage(text: str) -> float:
    try:
        least = float(text)
    except ValueError:
        least = -1.0
    if not 0 <= least <= 100:
        raise CannotStart(f"{text!r} is not a percentage: write a number from 0 to 100, such as arms=100")
    return least


def gate_problems(coverage: DocumentCoverage, gates: Mapping[str, float], span: Span) -> tuple[Problem, ...]:
    """Return a problem for each gate that the coverage of a document does not reach. `span` is in the test file."""
    return tuple(
        Problem(_below(coverage, kind, share, least, span))
        for kind, least in gates.items()
        if not (share := coverage.share(kind)).reaches(least)
    )


def _below(coverage: DocumentCoverage, kind: str, share: Share, least: float, span: Span) -> Diagnostic:
    missing = coverage.missing(*(() if kind == ALL else (kind,)))
    places = [f"{coverage.path}:{coverage.line(decision)} {decision.label}" for decision in missing[:_LISTED]]
    more = len(missing) - len(places)
    what = "decisions" if kind == ALL else kind
    message = f"{share.taken} of {share.total} {what} are covered, {share.percent} %, and {least:g} % is asked for"
    listed = "; ".join([*places, *([f"and {more} more"] if more > 0 else [])])
    return Diagnostic(codes.COVERAGE_BELOW, message, span, "", f"not covered: {listed}")


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
        counted = [decision for decision in self.decisions if kind in (ALL, decision.kind)]
        return Share(sum(1 for decision in counted if self.count(decision)), len(counted))

    def shares(self) -> dict[str, Share]:
        return {kind: self.share(kind) for kind in (ALL, *KINDS)}

    def missing(self, *kinds: str) -> list[Decision]:
        """Return the decisions that no run took, in the order of the file; of all kinds if none is named."""
        decisions = [
            decision
            for decision in self.decisions
            if not self.count(decision) and (not kinds or decision.kind in kinds)
        ]
        return sorted(decisions, key=lambda decision: decision.span.start)


class CoverageCount:
    """Counts the runs of one file. Adding counts of several processes gives the same as one process would.

    Two tests of a file with several pipelines may know different ones of them: all their decisions count.
    """

    def __init__(self, source: Source, decisions: tuple[Decision, ...]) -> None:
        self._source = source
        self._decisions = decisions
        self._counts: Counter[str] = Counter()
        self._prompts = frozenset(decision.place for decision in decisions if decision.kind == "prompts")

    def add_run(self, taken: Iterable[str]) -> None:
        """Count the decisions that one run took."""
        self._counts.update(frozenset(taken))

    def add_looks(self, paths: Iterable[str]) -> None:
        """Count the prompts that the expectations of one case look at, by the paths of their model calls."""
        places = {place for path in paths if (place := self._model_step(path))}
        self._counts.update(decision_id("prompts", place) for place in places)

    def add(self, other: DocumentCoverage) -> None:
        ids = {decision.id for decision in self._decisions}
        self._decisions = (*self._decisions, *(decision for decision in other.decisions if decision.id not in ids))
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


def uncovered_findings(coverage: DocumentCoverage) -> tuple[Diagnostic, ...]:
    """Return the arms that no run took as findings about the document itself, for annotations beside its lines."""
    code = replace(codes.COVERAGE_BELOW, severity=Severity.WARNING)
    return tuple(
        Diagnostic(code, f"not covered by any case: {decision.label}", decision.span)
        for decision in coverage.missing("arms")
    )


def lcov(coverages: Iterable[DocumentCoverage], name: str = "quire") -> str:
    """Return the tracefile of some documents, which editors and services paint.

    Each line that something is decided on has a `DA`. Each question that is decided there is a block of branches
    (`BRDA`), numbered from 0 on its line, so that an edit elsewhere does not change the numbers. A step is a line, and
    not a branch. A branch of a question that no run came to has `-` in place of a number. `name` has only letters,
    digits and `_`, as the format asks.
    """
    return "".join(f"{line}\n" for coverage in coverages for line in _record(coverage, name))


def _record(coverage: DocumentCoverage, name: str) -> Iterator[str]:
    lines: dict[int, list[Decision]] = {}
    for decision in coverage.decisions:
        lines.setdefault(coverage.line(decision), []).append(decision)
    reached = {decision.block for decision in coverage.decisions if coverage.count(decision)}
    yield f"TN:{name}"
    # A line end in a name would begin another record.
    yield "SF:" + clean(coverage.path).replace("\r", " ").replace("\n", " ")
    total = hit = 0
    for line in sorted(lines):
        for block, branches in enumerate(_blocks(lines[line])):
            counts = [coverage.count(decision) for decision in branches]
            is_reached = not reached.isdisjoint((branches[0].block, decision_id("steps", branches[0].place)))
            for branch, count in enumerate(counts):
                yield f"BRDA:{line},{block},{branch},{count if is_reached else '-'}"
            total += len(counts)
            hit += sum(1 for count in counts if count)
    yield f"BRF:{total}"
    yield f"BRH:{hit}"
    most = {line: max(map(coverage.count, decisions)) for line, decisions in sorted(lines.items())}
    for line, count in most.items():
        yield f"DA:{line},{count}"
    yield f"LF:{len(most)}"
    yield f"LH:{sum(1 for count in most.values() if count)}"
    yield "end_of_record"


def _blocks(decisions: list[Decision]) -> list[list[Decision]]:
    """Return the branches of a line, grouped by the question that they decide, in the order of the document."""
    blocks: dict[str, list[Decision]] = {}
    for decision in decisions:
        if decision.kind != "steps":
            blocks.setdefault(decision.block, []).append(decision)
    return list(blocks.values())


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
