"""Results of document tests: the outcome of each case, each problem with its place, and the cases that failed last.

The failed cases are remembered for `quire test --failed` in a small file of the workspace's `.quire` folder. Nothing is
written as long as all cases pass. The file is data: a damaged one, or one that is a link, counts as empty, and a folder
that cannot be written to is not an error.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from quire.diagnostics import Severity
from quire.os_flags import NO_LINK, NO_WAIT
from quire.source import written_beside

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


FILE_NAME = "failed-tests.json"
MAX_BYTES = 5_000_000


class _Kept(msgspec.Struct):
    version: int
    failed: dict[str, list[str]]


class FailedCases:
    """The failed cases of one workspace, by the path of their file below the workspace. A file that failed as a whole
    has no names."""

    def __init__(self, workspace: Path, failed: Mapping[str, Iterable[str]] | None = None) -> None:
        self.workspace = workspace
        self.failed: dict[str, frozenset[str]] = {file: frozenset(names) for file, names in (failed or {}).items()}

    @classmethod
    def read(cls, workspace: Path) -> FailedCases:
        try:
            stored = msgspec.json.decode(_read_file(_path(workspace)), type=_Kept)
        except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
            return cls(workspace)
        return cls(workspace, stored.failed if stored.version == 1 else None)

    def of(self, path: str) -> frozenset[str] | None:
        """Return the names of the failed cases of a file, none if the whole file failed; None if it did not fail."""
        return self.failed.get(self._key(path))

    def update(self, results: Iterable[FileResult], whole: bool) -> None:
        """Note the results of a run. A case that did not run stays as it was; with `whole`, all cases of these files
        ran, so that names that are gone are forgotten."""
        for result in results:
            key = self._key(result.path)
            before = frozenset() if whole else self.failed.pop(key, frozenset())
            ran = {case.name for case in result.cases}
            names = (before - ran) | {case.name for case in result.cases if case.failed}
            if names:
                self.failed[key] = names
            elif any(problem.fails for problem in result.problems):
                self.failed[key] = frozenset()
            else:
                self.failed.pop(key, None)

    def write(self) -> None:
        """Keep the failed cases of the test files that still exist, or remove the memory if there are none."""
        path = _path(self.workspace)
        with suppress(OSError):
            there = {file: names for file, names in self.failed.items() if (self.workspace / file).is_file()}
            if not there:
                if _is_own_folder(path.parent):
                    path.unlink(missing_ok=True)
                return
            _make_folder(path.parent)
            failed = {file: sorted(names) for file, names in sorted(there.items())}
            with written_beside(path, msgspec.json.format(msgspec.json.encode(_Kept(1, failed)), indent=1)) as new:
                new.replace(path)

    def _key(self, path: str) -> str:
        whole = os.path.abspath(path)  # noqa: PTH100  # links stay as they are
        return os.path.relpath(whole, os.path.abspath(self.workspace)).replace(os.sep, "/")  # noqa: PTH100


def _path(workspace: Path) -> Path:
    from quire.stores import DEFAULT_PATH

    return workspace / DEFAULT_PATH.parent / FILE_NAME


def _read_file(path: Path) -> bytes:
    if not _is_own_folder(path.parent):
        raise OSError("it is a link")
    opened = os.open(path, os.O_RDONLY | NO_LINK | NO_WAIT)
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError("it is not a file")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError("it is too large")
    return data


def _is_own_folder(folder: Path) -> bool:
    return stat.S_ISDIR(os.lstat(folder).st_mode)


def _make_folder(folder: Path) -> None:
    """Create `.quire` as a store would. Raises `OSError` if it is a link or a file."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    if not _is_own_folder(folder):
        raise OSError("it is a link")
