"""Output of `quire test`: results as they come, a line of progress on a terminal, and the summary."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, cast

import click

from quire.cli.stdio import as_utf8, wants_colour
from quire.display.test_report import FormatName, report_printer, summary
from quire.display.text import one_line
from quire.testing.results import Totals

if TYPE_CHECKING:
    from quire.testing.results import FileResult


class Report:
    """Prints results as they come, and keeps them for the files that are written at the end."""

    def __init__(self, form: FormatName) -> None:
        if not sys.stdout.isatty():
            as_utf8(sys.stdout)
        self.results: list[FileResult] = []
        self.totals = Totals()
        self._printer = report_printer(form, wants_colour(sys.stdout))
        self._line = ProgressLine()
        self._began = time.perf_counter()
        self._started = time.time()
        self.print(self._printer.begin())

    def add(self, result: FileResult) -> None:
        if not result.cases and not result.problems:
            return  # none of its cases is meant
        self.results.append(result)
        self.totals.add(result)
        self.print(self._printer.file(result))
        for line in cast("list[str]", result.details.get("near_misses", [])):
            click.echo(one_line(f"warning: {result.document}: {line} (this stops a run)"), err=True)
        if result.snapshots:
            from quire.display.test_snapshots import snapshot_lines

            for line in snapshot_lines(result, colour=wants_colour(sys.stderr)):
                click.echo(line, err=True)
        self._line.show(self.totals, result.path)

    def end(self) -> None:
        self.totals.seconds = time.perf_counter() - self._began
        self.print(self._printer.end(self.totals))
        self._line.clear()
        sys.stdout.flush()
        if self.results:
            click.echo(summary(self.totals, wants_colour(sys.stderr)), err=True)

    def junit(self) -> str:
        from datetime import UTC, datetime

        from quire.display.test_junit import junit

        return junit(self.results, datetime.fromtimestamp(self._started, UTC).strftime("%Y-%m-%dT%H:%M:%S"))

    def print(self, text: str) -> None:
        if text:
            self._line.clear()
            click.echo(text, nl=False)


class ProgressLine:
    """A line on a terminal that shows how far the tests are. It is written ten times a second at most."""

    EVERY = 0.1

    def __init__(self) -> None:
        self._wanted = sys.stderr.isatty() and wants_colour(sys.stderr)
        self._last = time.monotonic()
        self._is_there = False

    def show(self, totals: Totals, file: str) -> None:
        if self._wanted and time.monotonic() - self._last >= self.EVERY:
            from quire.display.test_report import progress

            self._last = time.monotonic()
            self._is_there = True
            sys.stderr.write(f"\r\x1b[K{progress(totals, file)}")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._is_there:
            self._is_there = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
