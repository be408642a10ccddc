"""Drive a run from the command line, in the way that `run`, `resume`, `fork` and `answer` share."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

import click
from msgspec import Struct, field
from msgspec.structs import replace

from quire.cli.inputs import given_limits, split_pairs
from quire.cli.interrupts import Interrupts
from quire.cli.options import NO_BUDGET, budget_of
from quire.cli.report import (
    EXIT_FAILED,
    RunReport,
    closed_stdout,
    nobody_reads,
    print_output,
    result_line,
    tell,
    unread,
    unwritten,
    write_output,
)
from quire.cli.scripts import pinned_spec, with_script
from quire.cli.stdio import stdout_aside
from quire.cli.terminal import Terminal
from quire.cli.trust_prompt import somebody_is_here
from quire.display.text import one_line, visible
from quire.display.views import JsonLines, PlainView, QuietView, View
from quire.engine.driver.drive import DriveResult
from quire.engine.progress import Progress
from quire.engine.records import Event, Status
from quire.errors import Fenced, QuireError, StoreError
from quire.models.downloads import SMALLEST, TOY
from quire.runs.resume import Given

if TYPE_CHECKING:
    from quire.cli.output import Target
    from quire.engine.driver.drive import Drive
    from quire.runs.runtime import Runtime
    from quire.runs.view import RunView
    from quire.values import Value
    from quire.workspace.settings import Settings


class SessionOptions(Struct, frozen=True):
    """How a run is shown, where its output goes, and the options for the rest of the run."""

    json: bool = False
    quiet: bool = False
    unattended: bool = False
    to: Target | None = None
    given: Given = field(default_factory=Given)

    @property
    def interactive(self) -> bool:
        return not self.json and not self.unattended and somebody_is_here()

    def writing_to(self, to: Target | None) -> SessionOptions:
        return replace(self, to=to)


def given_now(
    limits: tuple[str, ...],
    budget: float | None,
    *,
    model: str | None = None,
    answers: tuple[str, ...] = (),
    unattended: bool = False,
    breaks: tuple[str, ...] = (),
) -> Given:
    """Return the options of `resume` and `answer` that apply to the rest of a run."""
    return Given(
        limits=given_limits(limits),
        budget=budget_of(budget),
        unlimited=budget == NO_BUDGET,
        model=pinned_spec(model) if model else "",
        answers=split_pairs(answers, "--answer"),
        unattended=unattended,
        breakpoints=breaks,
    )


async def drive(
    runtime: Runtime,
    run: str,
    manner: SessionOptions,
    *,
    overrides: Mapping[str, Value] | None = None,
    script: str | None = None,
    why: str = "as the run was started",
) -> int:
    """Drive a run until it rests, show it meanwhile and report how it ended. Return the exit code.

    `why` is the reason for its model; `script` replaces the model that the run was started with.
    """
    known = await runtime.view(run)
    if manner.given.model:
        known = replace(known, pins=replace(known.pins, instead=manner.given.model))
    runtime = await with_script(runtime, known, script)
    progress = _so_far(known, manner)
    with stdout_aside() as stdout:
        view = choose_view(progress, manner, stdout)
        if not manner.quiet:
            runtime.notice = view.say
        terminal = Terminal(view, progress) if manner.interactive else None
        interrupts = Interrupts(view.note, terminal.leave if terminal else lambda: False)
        if isinstance(view, JsonLines):
            view.gone = lambda error: interrupts.interrupt(f"{unwritten(error)}: pausing after this step …")
        begun = False

        def began(drive: Drive) -> None:
            nonlocal begun
            begun = True
            if not manner.quiet and not manner.json and known.pins.model:
                asked = manner.given.model
                name = known.pins.instead or known.pins.model
                model = f"script:{script} (--script)" if script else f"{asked or name} ({'--model' if asked else why})"
                click.echo(f"model: {one_line(model)}", err=True)
                if known.pins.model == f"local:{SMALLEST}" and not script and not os.environ.get("QUIRE_DEMO"):
                    click.echo(TOY, err=True)
            view.start()
            interrupts.began(drive)

        work = runtime.drive(
            run,
            people=terminal,
            listen=_Listener(progress, view),
            overrides=overrides,
            began=began,
            given=manner.given,
        )
        task = asyncio.ensure_future(work)
        ended: DriveResult | None = None
        try:
            with interrupts.watching(task):
                ended = await task
        except asyncio.CancelledError:
            if not interrupts.count:
                raise
        except QuireError as error:
            if not begun:
                raise
            progress.settle(Status.FAILED)
            view.stop()
            return _broken_off(run, error)
        finally:
            if ended is None or ended.status is not Status.COMPLETED:
                progress.settle(ended.status if ended else Status.PAUSED)
            view.stop()
    row, questions = known.row, known.questions
    # A store that cannot be read now does not change how the run ended.
    with contextlib.suppress(StoreError):
        row, questions = await runtime.row(run), await runtime.store.questions(run)
    rest = ended or DriveResult(Status.PAUSED)
    end = RunReport(row, progress, rest, questions, interrupts.count > 0, _permissions(known, runtime.settings))
    return conclude(end, view, manner)


def _permissions(known: RunView, settings: Settings) -> str:
    """Return `FILE:LINE` of the first permission of a directive; empty for other formats."""
    if known.thread is None:
        return ""
    from quire.runs.permission_origins import permissions_of

    return permissions_of(known, settings)


def _so_far(known: RunView, manner: SessionOptions) -> Progress:
    """Return the progress that the view begins with: the steps of the document and their recorded effects."""
    progress = Progress.of(known.document.runnable())
    progress.limits = _limits(known, manner.given.limits)
    for record in known.effects:
        if record.path not in known.row.ended_by:
            progress.add_effect(record)
    return progress


def _broken_off(run: str, error: QuireError) -> int:
    """Report the error that ended a drive after it had begun, and return the exit code. The run itself has started."""
    further = f"quire runs {run}" if isinstance(error, Fenced) else f"quire resume {run}"
    click.echo(f"quire: {visible(str(error))}\nnothing that was recorded is lost: {further}", err=True)
    return EXIT_FAILED if isinstance(error, StoreError) else error.exit_code


def _limits(known: RunView, overrides: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return the limits of the run's outermost thread; empty if it has none."""
    if known.thread is None:
        return {}
    from quire.engine.interpreter.thread.limits import resolve_limits

    given = {**known.pins.limits, **overrides}
    return resolve_limits(known.thread.composed.limits_declared, given, None, known.thread.composed.rules).as_value()


_MOVES = frozenset({"delta", "effect", "step_started", "step_completed", "question"})
"""Event types that show that the run makes progress again."""


class _Listener:
    """Passes the events of a run to its view, and shows a note while something is to be tried again."""

    def __init__(self, progress: Progress, view: View) -> None:
        self._progress = progress
        self._view = view
        self._retrying = False
        self._silent = type(view) is QuietView

    def __call__(self, event: Event) -> None:
        if self._silent and event.type == "delta" and not self._retrying:
            return
        self._progress.apply(event)
        self._view.show(event)
        if isinstance(self._view, JsonLines):
            return
        if event.type == "retry":
            self._retrying = True
            self._view.note(f"asking again in {event.live['seconds']} s: {one_line(str(event.live['reason']))}")
        elif event.type == "store_locked":
            self._retrying = True
            self._view.note(f"nothing can be recorded yet, trying again: {one_line(str(event.live['reason']))}")
        elif self._retrying and event.type in _MOVES:
            self._retrying = False
            self._view.note("")


def choose_view(progress: Progress, manner: SessionOptions, out: TextIO | None = None) -> View:
    """Return the view for the options and the terminal. `out` replaces stdout for the views that write there."""
    if manner.json:
        return JsonLines(out or sys.stdout, sys.stderr)
    if manner.quiet:
        return QuietView(sys.stderr)
    if not sys.stderr.isatty() or os.environ.get("TERM", "") in ("dumb", "unknown", ""):
        return PlainView(progress, sys.stderr)
    from rich.console import Console

    from quire.display.live import LiveView

    # COLUMNS and LINES exported by a shell may be outdated; the view has to fit the current window.
    environ = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    return LiveView(progress, Console(stderr=True, highlight=False, _environ=environ))


def conclude(end: RunReport, view: View, manner: SessionOptions) -> int:
    tell(end)
    code = end.exit_code
    if isinstance(view, JsonLines):
        view.line(result_line(end))
        if view.broken is not None:
            nobody_reads()
            code = unread(end, view.broken)
        closed_stdout(end, "--json")
    if end.status is not Status.COMPLETED:
        return code
    # A result is never lost because a disk is full; with --json it is in the last line already.
    written = manner.to is not None and write_output(end, manner.to, manner.quiet)
    if not written and not manner.json:
        code = print_output(end)
    if manner.to is not None and not written:
        code = EXIT_FAILED
    return code
