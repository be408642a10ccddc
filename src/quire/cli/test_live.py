"""`quire test --live`, `--calibrate` and `--status`: announce what it costs, ask the user, run, and print."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from quire.cli.options import Amount, Command, kept, kept_option, require_text, with_options
from quire.cli.output import require_writable, write_report
from quire.cli.stdio import as_utf8, wants_colour
from quire.errors import CannotStart

if TYPE_CHECKING:
    from quire.testing.discovery import Selection, TestTarget
    from quire.testing.live.plan import Announcement, LiveOptions
    from quire.testing.live.tries import Try

INTERRUPTED = 130
_SHARED = ("paths", "words", "tags", "processes", "form", "as_json", "allow")


class Wishes(Struct):
    """The options of live tests."""

    live: bool = False
    status: bool = False
    models: tuple[str, ...] = ()
    repeat: int | None = None
    budget: float | None = None
    each: str | None = None
    baseline: str | None = None
    calibrate: str | None = None
    judge_model: str | None = None
    chart: str | None = None
    recording: bool = False
    """True with --record, which takes --model and --budget, too."""

    @property
    def wanted(self) -> bool:
        return self.recording or self.live or self.status or self.calibrate is not None

    @property
    def verb(self) -> str:
        """The option that decides what is done."""
        return "--calibrate" if self.calibrate is not None else "--status" if self.status else "--live"


LIVE_OPTIONS = frozenset((*_SHARED, *Wishes.__struct_fields__))
"""The parameters that have a meaning with --live, --calibrate and --status."""


def live_options(function: Command) -> Command:
    """Add the options of live tests to a command. Their values are kept aside: `wishes` returns them."""
    file = click.Path(dir_okay=False)
    options = (
        kept_option(Wishes, "--live", is_flag=True, help="Try cases with live terms on real models."),
        kept_option(
            Wishes,
            "--model",
            "models",
            check=require_text,
            multiple=True,
            metavar="MODEL",
            help="With --live or --record: the model.",
        ),
        kept_option(
            Wishes,
            "--repeat",
            type=click.IntRange(1, 1_000),
            metavar="N",
            help="Run each row N times.",
        ),
        kept_option(
            Wishes,
            "--budget",
            type=Amount(min=0),
            metavar="USD",
            help="Never spend more than this.",
        ),
        kept_option(Wishes, "--each", type=file, metavar="FILE", help="Rows from a file."),
        kept_option(Wishes, "--baseline", type=file, metavar="FILE", help="Compare with an earlier JSON report."),
        kept_option(Wishes, "--chart", check=require_writable, metavar="FILE", help="Write an SVG picture too."),
        kept_option(Wishes, "--judge-model", check=require_text, metavar="MODEL", help="The model that judges."),
        kept_option(Wishes, "--calibrate", type=file, metavar="JUDGE", help="Compare a judge with labels of people."),
        kept_option(Wishes, "--status", is_flag=True, help="Show what --live has verified. FREE."),
    )
    return with_options(function, options)


def wishes(context: click.Context) -> Wishes:
    """Return the options of live tests. Raises `click.UsageError` for one that has no effect without --live."""
    wish = kept(context, Wishes)
    if not wish.wanted:
        idle = next((name for name in wish.__struct_fields__ if getattr(wish, name)), None)
        if idle is not None:
            name = "model" if idle == "models" else idle.replace("_", "-")
            raise click.UsageError(f"--{name} is for tests on real models: add --live", context)
    return wish


def mark_recording(context: click.Context) -> None:
    """Note that the command records cassettes."""
    kept(context, Wishes).recording = True


def live(
    wish: Wishes,
    targets: list[TestTarget],
    selection: Selection,
    at_once: int | None,
    *,
    as_json: bool = False,
    real_tools: bool = False,
) -> int:
    """Perform the options of live tests, and return the exit code. Raises `CannotStart`."""
    if not sys.stdout.isatty():
        as_utf8(sys.stdout)
    if wish.calibrate is not None:
        return _calibrate(wish, Path(wish.calibrate), as_json)
    from quire.testing.live.plan import LiveOptions
    from quire.testing.live.schedule import AT_ONCE

    options = LiveOptions(
        tuple(targets),
        selection,
        wish.models,
        wish.repeat,
        wish.budget,
        Path(wish.each) if wish.each else None,
        Path(wish.baseline) if wish.baseline else None,
        wish.judge_model or "",
        at_once or AT_ONCE,
        real_tools,
    )
    return _status(options, as_json) if wish.status else _live(wish, options, as_json)


def _live(wish: Wishes, options: LiveOptions, as_json: bool) -> int:
    from quire.cli.terminal import somebody_is_here, with_trust
    from quire.display.test_live import report_json, report_text
    from quire.testing.live.live_run import announcement_of, run_live
    from quire.testing.live.plan import live_plan

    plan = with_trust(lambda: live_plan(options), ask=somebody_is_here())
    announced = announcement_of(plan)
    if not _agreed(announced, wish.budget):
        return 2
    progress = _Progress(announced.tries)
    report = run_live(plan, progress.show)
    progress.clear()
    click.echo(report_json(report) if as_json else report_text(report, wants_colour(sys.stdout)), nl=False)
    if wish.chart is not None:
        from quire.display.test_live import live_svg

        write_report(wish.chart, live_svg(report))
    return INTERRUPTED if report.interrupted else report.exit_code


def _status(options: LiveOptions, as_json: bool) -> int:
    from quire.display.test_live import standings_json, standings_text
    from quire.testing.live.live_run import live_standings

    standings = live_standings(options)
    text = standings_json(standings) if as_json else standings_text(standings, time.time(), wants_colour(sys.stdout))
    click.echo(text, nl=False)
    return 0


def _calibrate(wish: Wishes, path: Path, as_json: bool) -> int:
    from quire.cli.terminal import somebody_is_here, with_trust
    from quire.display.test_live import calibration_json, calibration_text
    from quire.testing.live.live_run import calibration_plan, run_calibration

    labels = Path(wish.each) if wish.each else None
    plan = with_trust(
        lambda: calibration_plan(
            path, labels=labels, judge_model=wish.judge_model or "", repeats=wish.repeat, budget=wish.budget
        ),
        ask=somebody_is_here(),
    )
    if not _agreed(plan.announcement, wish.budget):
        return 2
    calibration, standing = run_calibration(plan)
    text = calibration_json(calibration, standing) if as_json else calibration_text(str(path), calibration, standing)
    click.echo(text, nl=False)
    return 0 if standing.gates else 1


def _agreed(announced: Announcement, budget: float | None) -> bool:
    """Show what is about to be spent, and ask, unless a budget was given or the models are free. Raises
    `CannotStart` without a terminal."""
    from quire.cli.terminal import somebody_is_here, yes_or_no
    from quire.display.test_live import announcement_line

    click.echo(announcement_line(announced), err=True)
    if budget is not None or announced.bound == 0:
        return True
    if not somebody_is_here():
        raise CannotStart("without a terminal a paid test needs --budget USD")
    return yes_or_no("Spend that? yes or no [no]: ")


class StatusLine:
    """A line on a terminal that is written again and again."""

    def __init__(self) -> None:
        self.is_on = sys.stderr.isatty() and wants_colour(sys.stderr)
        self._is_there = False

    def write(self, text: str) -> None:
        self._is_there = bool(text)
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._is_there:
            self.write("")


class _Progress(StatusLine):
    """Counts the tries."""

    def __init__(self, planned: int) -> None:
        super().__init__()
        self._planned = planned
        self._done = self._passed = 0
        self._cost: float | None = 0.0

    def show(self, made: Try) -> None:
        from quire.display.test_live import progress_line
        from quire.testing.live.tries import total_cost

        self._done += 1
        self._passed += made.ending == "passed"
        self._cost = total_cost((self._cost, made.cost, made.judge_cost))
        if self.is_on:
            self.write(progress_line(self._done, self._planned, self._passed, self._cost))
