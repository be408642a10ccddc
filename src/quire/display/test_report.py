"""Reports of document tests: the printers by name, the lines on standard error, and the command for one case.

A printer gets one file after the other, in the order of the suite, so that failures appear while others still run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, assert_never

from quire.display.text import one_line
from quire.testing.results import Outcome
from quire.wording import cut, pluralize

if TYPE_CHECKING:
    from quire.testing.results import FileResult, Totals

FormatName = Literal["full", "concise", "json", "github", "tap"]
FORMATS: tuple[FormatName, ...] = ("full", "concise", "json", "github", "tap")

_WORDS = {
    Outcome.FAILED: "failed",
    Outcome.PASSED: "passed",
    Outcome.SKIPPED: "skipped",
    Outcome.TODO: "to do",
    Outcome.FLAKY: "flaky",
}
_COLOURS = {Outcome.FAILED: "\x1b[1;31m", Outcome.PASSED: "\x1b[1;32m"}
_OTHER, _OFF = "\x1b[1;33m", "\x1b[0m"
_LONGEST_NAME = 60


class ReportPrinter(Protocol):
    """Returns the text for standard output, piece by piece."""

    def begin(self) -> str: ...

    def file(self, result: FileResult) -> str: ...

    def end(self, totals: Totals) -> str: ...


def report_printer(name: FormatName, colour: bool = False) -> ReportPrinter:
    """Return the printer of that name. Only `full` has colours."""
    match name:
        case "full":
            from quire.display.test_lines import FullPrinter

            return FullPrinter(colour)
        case "concise":
            from quire.display.test_lines import ConcisePrinter

            return ConcisePrinter()
        case "github":
            from quire.display.test_lines import GitHubPrinter

            return GitHubPrinter()
        case "json":
            from quire.display.test_lines import JsonPrinter

            return JsonPrinter()
        case "tap":
            from quire.display.report_formats import TapPrinter

            return TapPrinter()
        case _:
            assert_never(name)


def summary(totals: Totals, colour: bool = False) -> str:
    """Return the last line: `2 failed, 10 passed, 1 skipped in 3 files (0.21 s)`."""
    parts = [
        _painted(f"{totals.outcomes[outcome]:,} {_WORDS[outcome]}", outcome, colour)
        for outcome in _WORDS
        if totals.outcomes[outcome]
    ]
    if totals.broken:
        errors = f"{totals.broken:,} {pluralize('file error', totals.broken)}"
        parts.insert(0, _painted(errors, Outcome.FAILED, colour))
    files = f"{totals.files:,} {pluralize('file', totals.files)}"
    return f"{', '.join(parts) or 'no case was run'} in {files} ({totals.seconds:.2f} s)"


def progress(totals: Totals, file: str = "") -> str:
    """Return a line that shows how far the tests are. It replaces the one before."""
    parts = [f"{totals.cases:,} {pluralize('case', totals.cases)}"]
    if failed := totals.outcomes[Outcome.FAILED] + totals.broken:
        parts.append(f"{failed:,} failed")
    if file:
        parts.append(cut(one_line(file), _LONGEST_NAME))
    return " · ".join(parts)


def case_id(file: str, name: str) -> str:
    """Return the name of one case as the command takes it."""
    return f"{file}::{name}"


def again(file: str, name: str = "") -> str:
    """Return the command that runs a file, or one case of it, again."""
    from quire.display.commands import shell_line

    words = [case_id(file, name) if name else file]
    return shell_line("test", *(["--", *words] if file.startswith("-") else words))


def _painted(text: str, outcome: Outcome, colour: bool) -> str:
    return f"{_COLOURS.get(outcome, _OTHER)}{text}{_OFF}" if colour else text
