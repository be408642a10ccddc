"""Print one line for each problem of document tests: plain, or as commands that GitHub shows as annotations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.diagnostics import Diagnostic, Severity
from quire.display.diagnostics import Findings, FormatName, printer
from quire.testing.results import Outcome

if TYPE_CHECKING:
    from quire.testing.results import FileResult, Totals


class _LinePrinter:
    form: FormatName

    def begin(self) -> str:
        return ""

    def file(self, result: FileResult) -> str:
        return printer(self.form)([Findings(result.source, tuple(_findings(result)))], False)

    def end(self, totals: Totals) -> str:
        return ""


class ConcisePrinter(_LinePrinter):
    """Prints `file:line:column: CODE severity: case: message`."""

    form = "concise"


class GitHubPrinter(_LinePrinter):
    """Prints workflow commands. Messages cannot begin another command: their line ends are encoded."""

    form = "github"


def _findings(result: FileResult) -> Iterator[Diagnostic]:
    """Yield the findings with the names of their cases. A problem of a flaky case is a warning; those of a case that is
    to do or skipped are left out."""
    for problem in result.problems:
        yield problem.finding
    for case in result.cases:
        if case.outcome in (Outcome.TODO, Outcome.SKIPPED):
            continue
        for problem in case.problems:
            found = problem.finding
            code = found.code
            if case.outcome is Outcome.FLAKY and problem.fails:
                code = replace(code, severity=Severity.WARNING)
            seen = f" ({problem.value})" if problem.value and len(problem.value) <= _SHORT else ""
            yield replace(found, code=code, message=f"{case.name}: {found.message}{seen}")


_SHORT = 100
