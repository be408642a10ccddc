"""The options of `quire test` about coverage: what to measure, the gates, and the LCOV file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from quire.cli.options import Command, with_options
from quire.cli.report_file import require_writable, write_report

if TYPE_CHECKING:
    from quire.display.test_report import FormatName
    from quire.testing.coverage.report import DocumentCoverage
    from quire.testing.results import FileResult

_ASKED = ""
"""The value of `--cov` without a gate."""


def coverage_options(command: Command) -> Command:
    """Add the options to the command."""
    options = (
        click.option(
            "--cov",
            "gates",
            multiple=True,
            is_flag=False,
            flag_value=_ASKED,
            metavar="[KIND=N]",
            help="Show the decisions that no case takes; with a gate, such as arms=100, fail below it.",
        ),
        click.option(
            "--cov-fail-under",
            "under",
            type=click.FloatRange(0, 100),
            metavar="N",
            help="Fail if the coverage of a document is below so many percent.",
        ),
        click.option("--lcov", metavar="FILE", callback=require_writable, help="Write the coverage as LCOV too."),
    )
    return with_options(command, options)


class CoverageWish(Struct, frozen=True):
    """The coverage that a user asks for."""

    shown: bool
    gates: Mapping[str, float]
    lcov: str | None
    paths: tuple[str, ...] = ()
    """Words after `--cov` that are not gates: `quire test --cov examples` names a folder."""

    @property
    def measured(self) -> bool:
        return self.shown or bool(self.gates) or self.lcov is not None


def read_wish(gates: Sequence[str], under: float | None, lcov: str | None) -> CoverageWish:
    """Read the values of the options. Raises `CannotStart` for a gate that cannot be meant."""
    if not gates and under is None:
        return CoverageWish(False, {}, lcov)
    from quire.testing.coverage.report import read_gates

    written = [one for one in gates if "=" in one]
    paths = tuple(one for one in gates if one != _ASKED and "=" not in one)
    return CoverageWish(True, read_gates(written, under), lcov, paths)


class CoverageReport:
    """The coverage of all documents of a suite, by the cases of all their tests together."""

    def __init__(self, wish: CoverageWish, results: Sequence[FileResult]) -> None:
        from quire.testing.coverage.report import merged

        self._wish = wish
        self.documents: list[DocumentCoverage] = merged(one.coverage for one in results if one.coverage is not None)

    def text(self, form: FormatName) -> str:
        """Return what is printed after the cases."""
        if not self._wish.shown:
            return ""
        from quire.display.test_coverage import coverage_text

        return coverage_text(self.documents, form)

    def failures(self) -> list[FileResult]:
        """Return a result for each document that does not reach the gates of the command line."""
        from quire.source import NOWHERE
        from quire.testing.coverage.report import gate_problems
        from quire.testing.results import FileResult

        found = ((one, gate_problems(one, self._wish.gates, NOWHERE)) for one in self.documents)
        return [FileResult(one.path, one.source, one.path, problems=below) for one, below in found if below]

    def write(self) -> None:
        if self._wish.lcov is not None:
            from quire.testing.coverage.report import lcov

            write_report(self._wish.lcov, lcov(self.documents))
