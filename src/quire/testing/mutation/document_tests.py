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
from quire.testing.file_run import FileOptions, OpenTest, open_test
from quire.testing.mutation.mutants import MOST_MUTANTS, mutants
from quire.testing.mutation.run import BaselineCase, run_mutants
from quire.testing.pure_case import CannotWalk, PureCase
from quire.testing.snapshots import SnapshotMode
from quire.testing.virtual_loop import Stuck

if TYPE_CHECKING:
    from quire.formats.test.syntax import TestReading
    from quire.testing.mutation.run import MutationReport

MOST_CASES = 200
"""Cases and rows of one file that mutants are tried on."""
_READ_ONLY = SnapshotMode()


def mutate(reading: TestReading, *, most: int = MOST_MUTANTS) -> MutationReport:
    """Try the cases of a test file on the mutants of its document. Raises `CannotStart` for a file that cannot be
    run."""
    return mutate_opened(opened(reading), most=most)


def opened(reading: TestReading) -> OpenTest:
    """Return a test file with its document. Raises `CannotStart` for a file that cannot be run."""
    test = open_test(reading, FileOptions())
    if not isinstance(test, OpenTest):
        raise CannotStart(f"{reading.source.name} cannot be run: quire test says why")
    return replace(test, bench=replace(test.bench, coverage=None))


def mutate_opened(test: OpenTest, *, most: int = MOST_MUTANTS) -> MutationReport:
    """Try the cases of a test file that was opened."""
    document = test.bench.document
    plan = document.runnable()
    cases, left_out = _cases(test)
    report = run_mutants(plan, mutants(plan, document.source, most=most), cases)
    return replace(report, left_out=(*left_out, *report.left_out))


def _cases(test: OpenTest) -> tuple[list[BaselineCase], list[str]]:
    """Return the cases that can be walked by hand, and the others with the reason."""
    found: list[BaselineCase] = []
    left_out: list[str] = []
    usable = [one for one in test.wanted if not (one.case.skip or one.case.todo or one.case.draft)]
    for wanted in usable[:MOST_CASES]:
        snapshots = partial(test.kept.of, wanted.name, _READ_ONLY)
        try:
            case = PureCase(test.bench, wanted, test.file, snapshots)
        except (CannotWalk, QuireError, Stuck) as error:
            left_out.append(f"{wanted.name}: {error}")
        else:
            found.append(BaselineCase(case.name, case.notices, case.observe))
    return found, left_out
