"""Results of document tests: the outcome of each case, and each problem with its place in the test file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.diagnostics import Severity

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.source import Source
    from quire.testing.coverage.report import DocumentCoverage
    from quire.testing.observation import Observation, Used
    from quire.values import Value


class Outcome(StrEnum):
    """The end of a case."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    TODO = "todo"
    """It failed, as its `todo` says."""
    FLAKY = "flaky"
    """It failed, and its `flaky` says that it may."""


class Problem(Struct, frozen=True):
    """A finding about a case or a file: the reason why it failed, or a warning."""

    finding: Diagnostic
    """Its span is in the test file."""
    value: str = ""
    """The value that was seen, as text; empty if there is none to show."""
    parts: tuple[tuple[str, str], ...] = ()
    """The paths inside of a failing expression, with their values."""
    expected: str | None = None
    """The text that was expected, where a diff with `actual` helps."""
    actual: str | None = None

    @property
    def fails(self) -> bool:
        """Tell whether it is more than a warning or advice."""
        return self.finding.severity is Severity.ERROR


class CaseResult(Struct, frozen=True):
    """The result of one case, or of one row of it."""

    name: str
    """With the row: `rows[row 3]`."""
    line: int
    outcome: Outcome
    problems: tuple[Problem, ...] = ()
    seconds: float = 0.0
    """Real time."""
    used: Used | None = None
    tags: tuple[str, ...] = ()
    reason: str = ""
    """Why it is skipped, to do or flaky."""
    observation: Observation | None = None
    """Only where the caller asked for it."""
    snapshots: Mapping[str, Value] = field(default_factory=dict)
    """The values that were compared with snapshots, by their places."""

    @property
    def failed(self) -> bool:
        return self.outcome is Outcome.FAILED


class SnapshotChange(Struct, frozen=True):
    """A snapshot that was written (`after`), changed, or removed (only `before`), as text."""

    case: str
    place: str
    before: str | None
    after: str | None


class FileResult(Struct, frozen=True):
    """The results of one test file."""

    path: str
    source: Source
    document: str = ""
    """The file of the document, or its name."""
    cases: tuple[CaseResult, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Problems of the file itself: it cannot be read, its coverage is too low, a snapshot is not used."""
    details: Mapping[str, Value] = field(default_factory=dict)
    """Further results, such as the hash of the document."""
    coverage: DocumentCoverage | None = None
    """Of the cases in this result; None if it was not measured."""
    snapshots: tuple[SnapshotChange, ...] = ()
    """The snapshots that were written or removed."""

    @property
    def failed(self) -> bool:
        return any(problem.fails for problem in self.problems) or any(case.failed for case in self.cases)


class Totals:
    """Counts of all results so far."""

    def __init__(self) -> None:
        self.files = 0
        self.broken = 0
        """Files that failed by a problem of their own."""
        self.outcomes: Counter[Outcome] = Counter()
        self.seconds = 0.0
        """Real time from the start of the command. The caller sets it."""

    def add(self, result: FileResult) -> None:
        self.files += 1
        self.broken += any(problem.fails for problem in result.problems)
        self.outcomes.update(case.outcome for case in result.cases)

    @property
    def cases(self) -> int:
        return self.outcomes.total()

    @property
    def failed(self) -> bool:
        return bool(self.broken or self.outcomes[Outcome.FAILED])
