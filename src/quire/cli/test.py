"""`quire test`: run the tests of documents, without a model, a key or a network, and report the failures; with
`--record`, run cases that have a cassette on a real model, and keep its replies.

Results are printed as they come, with a line of progress on a terminal, and a summary at the end.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import click

from quire.cli.options import require_text
from quire.cli.output import require_writable, write_report
from quire.cli.stdio import as_utf8, complain, wants_colour
from quire.cli.test_live import LIVE_OPTIONS, StatusLine, live, live_options, mark_recording, wishes
from quire.cli.test_measures import add_measures, measure_options, measure_wish
from quire.display.test_report import FORMATS, FormatName, report_printer, summary
from quire.display.text import one_line
from quire.display.visible import visible
from quire.errors import CannotStart, NoSuchDocument, QuireError
from quire.testing.case_results import Totals
from quire.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from quire.testing.case_results import FailedCases, FileResult
    from quire.testing.cassettes.record import RecordedCase, Recording, Which
    from quire.testing.discovery import Selection, TestTarget
    from quire.testing.file_run import FileOptions
    from quire.testing.suite import Job


WATCHED = ("watch", "words", "tags", "processes", "keep", "allow")
"""The options that go together with --watch."""


@click.command("test")
@click.argument("paths", nargs=-1, metavar="PATH…", callback=require_text)
@click.option(
    "-k",
    "words",
    metavar="NAME",
    callback=require_text,
    help='Only cases by name; "and", "or", "not", ( ) combine.',
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", callback=require_text, help="Only cases with this tag.")
@click.option("--failed", is_flag=True, help="Only cases that failed the last time.")
@click.option("-x", "stop", is_flag=True, help="Stop at the first failure.")
@click.option("-j", "processes", type=click.IntRange(1, 64), metavar="N", help="Number of processes.")
@click.option("--watch", is_flag=True, help="Run again after each change of a file.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="full",
    metavar="FORMAT",
    help="full (default), concise, json, github or tap.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--update", is_flag=True, help="Write changed snapshots, remove unused ones.")
@click.option("--keep", is_flag=True, help="Use recorded replies although their prompts changed.")
@click.option(
    "--record",
    is_flag=False,
    flag_value="missing",
    metavar="[missing|all]",
    help="Record replies for cases with a cassette: PAID.",
)
@click.option("--junit", metavar="FILE", callback=require_writable, help="Write a JUnit file too.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of test files and exit.")
@measure_options
@click.option(
    "--allow",
    type=click.Choice(["shell", "tools"]),
    multiple=True,
    help="shell: commands in tools; tools: in live cases.",
)
@live_options
@click.pass_context
def command(
    context: click.Context,
    paths: tuple[str, ...],
    words: str | None,
    tags: tuple[str, ...],
    failed: bool,
    stop: bool,
    processes: int | None,
    watch: bool,
    form: FormatName,
    as_json: bool,
    update: bool,
    keep: bool,
    record: str | None,
    junit: str | None,
    schema: bool,
    allow: tuple[str, ...],
) -> None:
    """Run document tests: files that end in .test.yaml.

    PATH is a test, a document, a folder or a quoted glob; PATH::NAME is one case. Exit 0: all pass, 1: one fails, 2:
    nothing to test, 5: the budget is reached.
    """
    if schema:
        from quire.formats.test.fields import schema_text

        click.echo(schema_text(), nl=False)
        return
    from quire.testing.discovery import Selection, find_tests, keyword

    if as_json:
        form = "json"
    if watch:
        _require_no_others(context, "--watch", WATCHED)
    selection = Selection(keyword(words) if words else None, tags)
    wish = measure_wish(context)
    paths = (*wish.paths, *paths)
    if record is not None:
        mark_recording(context)
        if record not in WHICH:
            record, paths = WHICH[0], (record, *paths)
    if record is None and wishes(context).wanted:
        _require_no_others(context, wishes(context).verb, LIVE_OPTIONS)
    if wishes(context).calibrate is not None:
        context.exit(live(wishes(context), [], selection, processes, as_json=form == "json"))
    targets, problems = find_tests(paths or (".",))
    if not targets:
        raise NoSuchDocument("\n".join(problems))
    for problem in problems:
        complain(problem)
    if record is not None:
        context.exit(record_cassettes(record, wishes(context).models, wishes(context).budget, targets, selection))
    if wishes(context).wanted:
        context.exit(
            live(wishes(context), targets, selection, processes, as_json=form == "json", real_tools="tools" in allow)
        )
    from quire.testing.file_run import FileOptions
    from quire.testing.snapshots import SnapshotMode

    options = FileOptions(
        stop_at_failure=stop,
        shell="shell" in allow,
        snapshots=SnapshotMode.of(os.environ, update=update),
        keep_replies=keep,
        coverage=wish.covers,
    )
    if watch:
        from quire.cli.test_watch import watch_tests

        context.exit(watch_tests(paths or (".",), selection, processes, options))
    jobs, memory = _jobs(targets, selection, failed)
    report = Report(form)
    for result in _results(jobs, processes, options):
        report.add(result)
    if memory is not None:
        whole = all(target.is_whole for target in targets)
        memory.update(report.results, whole=whole and not (words or tags or failed or stop))
        memory.write()
    add_measures(wish, report, [target.path for target in targets], processes, form)
    report.end()
    if junit is not None:
        write_report(junit, report.junit())
    if not report.totals.cases and not report.totals.broken:
        complain(f"none of the cases in {counted(len(targets), 'file')} is selected")
        context.exit(2)
    context.exit(2 if problems else int(report.totals.failed))


def _require_no_others(context: click.Context, flag: str, allowed: Collection[str]) -> None:
    """Raise a usage error for options that have no meaning together with a flag."""
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        is_extra = source is click.core.ParameterSource.COMMANDLINE and option.name not in allowed
        if is_extra and isinstance(option, click.Option):
            raise click.UsageError(f"{flag} and {option.opts[-1]} exclude each other", context)


def _jobs(targets: list[TestTarget], selection: Selection, failed: bool) -> tuple[list[Job], FailedCases | None]:
    """Return the jobs, and the memory of the workspace around the current folder, if that is the user's."""
    from quire.testing.case_results import FailedCases
    from quire.testing.suite import jobs_of
    from quire.workspace.locate import current_folder, find_workspace

    memory = None
    with suppress(QuireError):
        memory = FailedCases.read(find_workspace(current_folder()).folder)
    if failed and memory is not None:
        jobs = jobs_of(targets, selection, memory)
        if jobs:
            return jobs, memory
        click.echo("no failed cases are remembered here: all are run", err=True)
    return jobs_of(targets, selection), memory


def _results(jobs: list[Job], processes: int | None, options: FileOptions) -> Iterable[FileResult]:
    from functools import partial

    from quire.testing.suite import run_job, run_suite

    work = partial(run_job, options=options)
    return run_suite(jobs, work, processes=processes, stop_at_failure=options.stop_at_failure)


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
            from quire.display.test_report import snapshot_lines

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

        from quire.display.report_formats import junit

        return junit(self.results, datetime.fromtimestamp(self._started, UTC).strftime("%Y-%m-%dT%H:%M:%S"))

    def print(self, text: str) -> None:
        if text:
            self._line.clear()
            click.echo(text, nl=False)


class ProgressLine(StatusLine):
    """Shows how far the tests are. It is written ten times a second at most."""

    EVERY = 0.1

    def __init__(self) -> None:
        super().__init__()
        self._last = time.monotonic()

    def show(self, totals: Totals, file: str) -> None:
        if self.is_on and time.monotonic() - self._last >= self.EVERY:
            from quire.display.test_report import progress

            self._last = time.monotonic()
            self.write(progress(totals, file))


WHICH = ("missing", "all")
EXIT_BUDGET = 5


def record_cassettes(
    which: str, models: tuple[str, ...], budget: float | None, targets: list[TestTarget], selection: Selection
) -> int:
    """Record the cases, and return the exit code. Raises `CannotStart`."""
    from quire.cli.terminal import somebody_is_here, with_trust
    from quire.testing.cassettes.record import RecordOptions, plan_recording, record

    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise CannotStart("--record writes files, and CI is set: record on your own machine")
    if len(models) > 1:
        raise CannotStart("a cassette is recorded with one model: give --model once")
    model = models[0] if models else ""
    options = RecordOptions(tuple(targets), selection, cast("Which", which), model, budget)
    recording = with_trust(lambda: plan_recording(options), ask=somebody_is_here())
    if not _agreed(recording, budget):
        return 2
    made = record(recording, _say)
    failed = [case for case in made if case.problems]
    click.echo(f"{counted(len(made) - len(failed), 'case')} recorded, {len(failed)} not kept", err=True)
    if len(made) < len(recording.cases):
        click.echo("the budget is reached", err=True)
        return EXIT_BUDGET
    return int(bool(failed))


def _agreed(recording: Recording, budget: float | None) -> bool:
    """Say what is paid, and ask on a terminal. Without one the budget is the answer."""
    most = f", at most ${budget:.2f}" if budget is not None else ""
    click.echo(f"PAID: {counted(len(recording.cases), 'case')} on {recording.spec}{most}", err=True)
    if sys.stdin.isatty() and sys.stderr.isatty():
        return click.confirm("Record?", default=False, err=True)
    if budget is None:
        raise CannotStart("--record asks a real model: without a terminal it needs --budget USD")
    return True


def _say(made: RecordedCase) -> None:
    name = f"{made.file}::{made.case}"
    if made.problems:
        click.echo(f"not kept  {visible(name)}: {visible(made.problems[0])}")
        return
    click.echo(f"recorded  {visible(name)} ({counted(made.calls, 'call')})")
