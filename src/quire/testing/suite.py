"""Run a suite: many test files, in several processes where that pays, with results in the order of the files.

A file with very many cases is shared among processes, each of which takes every N-th case. That needs nothing of
the whole file: a file with snapshots or gates of coverage is not shared.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from quire.diagnostics import Diagnostic
from quire.errors import Unreadable
from quire.formats.test.parse import parse
from quire.source import MAX_TEST_BYTES, NOWHERE, Source, read_source, real_path
from quire.testing.case_results import FileResult, Problem
from quire.testing.discovery import EVERYTHING, Selection, names_at
from quire.testing.worker_processes import in_order, usable_processes

if TYPE_CHECKING:
    from quire.testing.case_results import FailedCases
    from quire.testing.coverage.report import DocumentCoverage
    from quire.testing.discovery import TestTarget
    from quire.testing.file_run import FileOptions

LARGE_FILE = 60_000
"""Bytes from which on a file is shared."""
MANY_ROWS = 100
"""Cases and rows from which on a smaller file is shared. They take about a tenth of a second."""
_ROWS = ("each:", "matrix:")
_WHOLE = ("!snapshot", "coverage:", "cassette")


class Job(Struct, frozen=True):
    """A test file, or a share of it, for one process."""

    path: str
    selection: Selection = EVERYTHING
    lines: frozenset[int] = frozenset()
    """Lines of cases that are wanted besides the names of the selection."""


RunJob: TypeAlias = "Callable[[Job], FileResult]"


def run_job(job: Job, options: FileOptions) -> FileResult:
    """Read one file and run the cases that are wanted of it. A file that cannot be read is a result, too."""
    from quire.formats.test import codes
    from quire.testing.file_run import run_file

    try:
        source = read_source(Path(job.path), limit=MAX_TEST_BYTES)
    except Unreadable as error:
        finding = Diagnostic(codes.SYNTAX, str(error), NOWHERE)
        return FileResult(job.path, Source.of("", job.path), problems=(Problem(finding),))
    reading = parse(source)
    selection = job.selection
    if job.lines and reading.file is not None:
        names = names_at(source, reading.file, job.lines) | (selection.names or frozenset())
        selection = replace(selection, names=names)
    return run_file(reading, replace(options, selection=selection))


def jobs_of(targets: Sequence[TestTarget], selection: Selection, failed: FailedCases | None = None) -> list[Job]:
    """Return a job for each file. With `failed`, only for the cases that failed the last time."""
    jobs = []
    for target in targets:
        names = target.names if not target.is_whole else None
        job = Job(target.path, replace(selection, names=names), target.lines)
        if failed is not None:
            remembered = failed.of(target.path)
            if remembered is None:
                continue
            if remembered:
                again = remembered if names is None else remembered & names
                job = Job(target.path, replace(selection, names=again))
        jobs.append(job)
    return jobs


def run_suite(
    jobs: Sequence[Job],
    run_job: RunJob,
    *,
    processes: int | None = None,
    stop_at_failure: bool = False,
    divide: bool = True,
) -> Iterator[FileResult]:
    """Yield the results of all files in their order. With `stop_at_failure` the first failure is the last result.

    `divide` allows sharing one file among processes. `processes` is the number of cores unless it is given.
    """
    count = usable_processes(processes)
    shares: list[Job] = []
    for job in jobs:
        if divide and count > 1 and _is_large(Path(job.path)):
            shares += [replace(job, selection=replace(job.selection, share=(mine, count))) for mine in range(count)]
        else:
            shares.append(job)
    with _rare_collections():
        # A file that is shared is large: no need to find out first whether copies pay.
        results = in_order(shares, run_job, count, alone=0 if len(shares) > len(jobs) else None)
        for _, group in groupby(zip(shares, results, strict=True), key=lambda pair: pair[0].path):
            whole = joined([result for _, result in group])
            if stop_at_failure and whole.failed:
                yield until_failure(whole)
                return
            yield whole


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Let the collector of garbage run rarely, which takes a tenth off each case: a case leaves a few kilobytes."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _is_large(path: Path) -> bool:
    """Tell whether a file has very many cases. A wrong answer costs some milliseconds."""
    try:
        source = read_source(path, limit=MAX_TEST_BYTES)
    except Unreadable:
        return False
    text = source.text
    if any(word in text for word in _WHOLE):
        return False
    return len(text) > LARGE_FILE or (any(word in text for word in _ROWS) and _rows(source) >= MANY_ROWS)


def _rows(source: Source) -> int:
    """Count the rows of all cases of a file. Rows that cannot be read are not counted."""
    from quire.testing.case_rows import BadRows, rows_of

    file = parse(source).file
    folder, count = real_path(Path(source.name)).parent, 0
    for case in file.cases if file else ():
        with suppress(BadRows):
            count += len(rows_of(case.rows, folder)) if case.rows else 1
    return count


def joined(shares: Sequence[FileResult]) -> FileResult:
    """Return the result of a file from those of its shares."""
    first, *others = shares
    if not others:
        return first
    longest = max(len(share.cases) for share in shares)
    cases = [share.cases[at] for at in range(longest) for share in shares if at < len(share.cases)]
    return replace(first, cases=tuple(cases), coverage=_joined_coverage(shares))


def _joined_coverage(shares: Sequence[FileResult]) -> DocumentCoverage | None:
    measured = [share.coverage for share in shares if share.coverage is not None]
    if not measured:
        return None
    from quire.testing.coverage.report import merged

    return merged(measured)[0]


def until_failure(result: FileResult) -> FileResult:
    """Return the result as if the file had been left at its first failure."""
    if any(problem.fails for problem in result.problems):
        return replace(result, cases=())
    last = next(at for at, case in enumerate(result.cases) if case.failed)
    return replace(result, cases=result.cases[: last + 1])
