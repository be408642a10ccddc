"""`quire test --watch`: run the tests again that a change of a file concerns, until the user ends it.

Every run of a test is in a copy of this process, which has loaded the modules already and has nothing in its caches.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import click

from quire.cli.stdio import wants_colour
from quire.display.test_report import report_printer, snapshot_lines, summary
from quire.errors import CannotStart
from quire.testing.case_results import Totals
from quire.testing.discovery import TestTarget, find_tests
from quire.testing.suite import jobs_of
from quire.testing.watched_files import Watched, run_watched
from quire.testing.worker_processes import one_each, usable_processes
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.testing.discovery import Selection
    from quire.testing.file_run import FileOptions

EVERY = 0.05
"""Seconds between two looks at the files."""
SEARCH_EVERY = 1.0
"""Seconds between two searches for new tests."""


def watch_tests(arguments: Sequence[str], selection: Selection, processes: int | None, options: FileOptions) -> int:
    """Run all tests, then those that a change concerns, until Ctrl-C. Returns the exit code."""
    if not hasattr(os, "fork"):
        raise CannotStart("--watch needs a system that can copy processes: Linux, macOS or a BSD")
    watching = _Watching(arguments, selection, usable_processes(processes), options)
    with contextlib.suppress(KeyboardInterrupt):
        watching.run(find_tests(arguments)[0])
        searched = time.monotonic()
        while True:
            time.sleep(EVERY)
            tests = watching.watched.changed()
            if time.monotonic() - searched >= SEARCH_EVERY:
                searched = time.monotonic()
                watching.search()
            if tests:
                watching.again(tests)
    return 0


class _Watching:
    def __init__(self, arguments: Sequence[str], selection: Selection, processes: int, options: FileOptions) -> None:
        self.watched = Watched()
        self._arguments = arguments
        self._selection = selection
        self._processes = processes
        self._options = options
        self._targets: dict[str, TestTarget] = {}

    def search(self) -> None:
        """Run tests that are new, and leave those that are gone."""
        targets = {target.path: target for target in find_tests(self._arguments)[0]}
        self.watched.forget(set(self._targets) - set(targets))
        new = [target for path, target in targets.items() if path not in self._targets]
        self._targets = targets
        if new:
            self.run(new)

    def again(self, tests: Sequence[str]) -> None:
        self.run([self._targets[test] for test in tests if test in self._targets])

    def run(self, targets: Sequence[TestTarget]) -> None:
        self._targets |= {target.path: target for target in targets}
        began = time.perf_counter()
        jobs = jobs_of(targets, self._selection)
        totals = Totals()
        printer = report_printer("full", wants_colour(sys.stdout))
        modules: set[str] = set()
        runs = one_each(jobs, partial(run_watched, options=self._options), self._processes)
        for job, run in zip(jobs, runs, strict=True):
            self.watched.note(job.path, run.stamps)
            modules.update(run.modules)
            if run.result.cases or run.result.problems:
                totals.add(run.result)
                click.echo(printer.file(run.result), nl=False)
                for line in snapshot_lines(run.result, colour=wants_colour(sys.stderr)):
                    click.echo(line, err=True)
        totals.seconds = time.perf_counter() - began
        sys.stdout.flush()
        files = f"{self.watched.count:,} {pluralize('file', self.watched.count)}"
        line = f"{time.strftime('%H:%M:%S')} {summary(totals, wants_colour(sys.stderr))} · watching {files}"
        click.echo(line, err=True)
        _load(modules)


def _load(modules: set[str]) -> None:
    """Load modules of this Python's libraries, so that the next copies have them."""
    for name in sorted(modules - set(sys.modules)):
        if name.partition(".")[0] != "__main__":
            with contextlib.suppress(ImportError):
                import_module(name)
