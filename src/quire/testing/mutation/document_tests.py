"""Mutate the document of a test file, and try its cases on every mutant.

Cases are walked by hand (`pure_case.py`), so a thousand mutants take seconds. The gate of the case answers the tools:
a refused call is seen, and directives need no driver either. A case whose walk by hand fails on the unchanged document
is left out, with the reason.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.errors import CannotStart, QuireError
from quire.testing.case_rows import expand
from quire.testing.document_under_test import open_document
from quire.testing.mutation.mutants import MOST_MUTANTS, mutants
from quire.testing.mutation.run import BaselineCase, run_mutants
from quire.testing.pure_case import CannotWalk, PureCase
from quire.testing.rows import BadRows
from quire.testing.snapshots import SnapshotFile, SnapshotMode
from quire.testing.virtual_loop import Stuck

if TYPE_CHECKING:
    from quire.formats.test.syntax import TestFile, TestReading
    from quire.testing.case_run import Bench
    from quire.testing.mutation.run import MutationReport

_READ_ONLY = SnapshotMode()
MOST_ROWS = 50
"""Rows of one case that mutants are tried on."""


def mutate(reading: TestReading, *, most: int = MOST_MUTANTS) -> MutationReport:
    """Try the cases of a test file on the mutants of its document.

    Raises `CannotStart` for a file with errors, and `QuireError` if its document cannot be found or read.
    """
    if reading.file is None:
        raise CannotStart(f"{reading.source.name} has errors")
    bench = open_document(reading.source, reading.file)
    plan = bench.document.runnable()
    cases, left_out = _cases(reading.file, bench, SnapshotFile.beside(reading.source.name))
    report = run_mutants(plan, mutants(plan, bench.document.source, most=most), cases)
    return replace(report, left_out=(*left_out, *report.left_out))


def _cases(file: TestFile, bench: Bench, kept: SnapshotFile) -> tuple[list[BaselineCase], list[str]]:
    """Return the cases that can be walked by hand, and the others with the reason."""
    found: list[BaselineCase] = []
    left_out: list[str] = []
    names = [one.name for one in bench.document.runnable().inputs]
    for case in file.cases:
        if case.skip is not None or case.todo is not None or case.draft:
            continue
        try:
            rows = expand(case, bench.folder, names)
        except BadRows as error:
            left_out.append(f"{case.name}: {error}")
            continue
        for wanted in rows[:MOST_ROWS]:
            try:
                one = PureCase(bench, wanted, file, partial(kept.of, wanted.name, _READ_ONLY))
            except (CannotWalk, QuireError, Stuck) as error:
                left_out.append(f"{wanted.name}: {error}")
            else:
                found.append(BaselineCase(one.name, one.notices, one.observe))
    return found, left_out
