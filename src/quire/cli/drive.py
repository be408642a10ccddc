"""Drive a run from the command line, in the way that `run`, `resume`, `fork` and `answer` share."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO, TypeAlias

import click
from msgspec import Struct, field
from msgspec.structs import replace

from quire.cli.inputs import given_limits, parse_pairs
from quire.cli.options import NO_BUDGET, budget_of
from quire.cli.run_end import RunReport, finish, stdout_error
from quire.cli.stdio import stdout_aside, tell, with_runtime
from quire.cli.terminal import Interrupts, Terminal, accepted_misses, somebody_is_here, with_grants, with_trust
from quire.display.run_views import JsonLines, PlainView, QuietView, View
from quire.display.text import one_line, visible
from quire.engine.driver.drive import DriveResult
from quire.engine.progress import Progress
from quire.engine.records import Event, Status
from quire.errors import Fenced, NearMisses, QuireError, StoreError, StoreGone
from quire.python_process import start_module
from quire.runs.drives import Given
from quire.runs.outcome import EXIT_FAILED
from quire.runs.scripts import pinned_spec, with_script

if TYPE_CHECKING:
    from quire.cli.output import Target
    from quire.engine.driver.drive import Drive
    from quire.runs.outcome import RunView
    from quire.runs.runtime import Runtime
    from quire.values import Value


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


class DriveOptions(Struct, frozen=True, kw_only=True):
    """The options of verbs that drive a run, as they were given: each verb has some of them."""

    model: str | None = None
    script: str | None = None
    answers: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    unattended: bool = False
    says_yes: bool = False
    force: bool = False
    detach: bool = False
    cluster: bool = False
    budget: float | None = None
    limits: tuple[str, ...] = ()
    out: str | None = None
    as_json: bool = False
    quiet: bool = False

    @property
    def spec(self) -> str | None:
        """The model, or the script in its place."""
        spec = f"script:{self.script}" if self.script else self.model
        return pinned_spec(spec) if spec else None

    def for_the_rest(self) -> Given:
        """Return the options that apply to the rest of a run that continues. Raises `UsageError` for a wrong value."""
        return Given(
            limits=given_limits(self.limits),
            budget=budget_of(self.budget),
            unlimited=self.budget == NO_BUDGET,
            model=pinned_spec(self.model) if self.model else "",
            answers=parse_pairs(self.answers, "--answer"),
            unattended=self.unattended,
            says_yes=self.says_yes,
            breakpoints=self.breaks,
        )


Work: TypeAlias = Callable[["Runtime", tuple[str, ...]], Coroutine[object, object, int]]


def with_workspace(
    work: Work, *, ask: bool, allow: tuple[str, ...] | None = None, runtime: Runtime | None = None
) -> int:
    """Do the work of a verb with the runtime of the workspace, which is opened once, and return the exit code.

    If the work is refused before it begins, for want of trust or a seal, and the user agrees, it is done again in the
    workspace opened anew: consent changes its settings. With `allow` the user may also allow what an unsigned directive
    asks for; the work receives these grants. `runtime` was opened before.
    """

    accepted: tuple[str, ...] = ()

    def begin(runtime: Runtime, granted: tuple[str, ...]) -> Coroutine[object, object, int]:
        runtime.accepted = accepted
        return work(runtime, granted)

    def attempt(granted: tuple[str, ...]) -> int:
        nonlocal runtime, accepted
        opened, runtime = runtime, None
        try:
            return with_runtime(lambda runtime: begin(runtime, granted), opened)
        except NearMisses as stopped:
            accepted = accepted_misses(stopped, ask=ask)
        return with_runtime(lambda runtime: begin(runtime, granted))

    if allow is None:
        return with_trust(lambda: attempt(()), ask=ask)
    return with_grants(lambda granted: with_trust(lambda: attempt(granted), ask=ask), allow, ask=ask)


def start_alone(run: str, *options: str) -> None:
    """Start a process that resumes the run. Prints nothing, because a server speaks its protocol on stdout."""
    start_module("quire", "resume", run, "--quiet", *options)


async def say_warnings(runtime: Runtime, run: str) -> None:
    """Print the warnings of the checks before the start. A detached run has no terminal to show them on."""
    for warning in await runtime.warnings(run):
        tell(one_line(f"warning: {warning}"))


def spawn_detached(run: str, *options: str) -> int:
    """Start a process that continues the run after this one ends, and print how to look at it.

    The current folder determines the workspace. `options` are those of `quire resume`.
    """
    start_alone(run, *options)
    click.echo(run)
    tell(f"to see it: quire runs {run} --follow")
    return 0


async def drive(
    runtime: Runtime,
    run: str,
    manner: SessionOptions,
    *,
    overrides: Mapping[str, Value] | None = None,
    script: str | None = None,
    why: str = "as the run was started",
    most: str = "",
) -> int:
    """Drive a run until it rests, show it meanwhile and report how it ended. Return the exit code.

    `why` is the reason for its model; `script` replaces the model that the run was started with. `most` says what the
    run can do at most.
    """
    view = await runtime.view(run)
    if manner.given.model:
        view = replace(view, pins=replace(view.pins, instead=manner.given.model))
    runtime = await with_script(runtime, view, script)
    with stdout_aside() as stdout:
        screen = _Screen(_so_far(view, manner), manner, stdout, _model_lines(view, manner, script, why, most))
        if not manner.quiet:
            runtime.notice = screen.view.say

        async def work() -> DriveResult:
            listen = _Listener(screen.progress, screen.view)
            ended = await runtime.drive(
                run, people=screen.terminal, listen=listen, overrides=overrides, began=screen.began, given=manner.given
            )
            note = screen.view.note
            while await runtime.has_waited(run, lambda line: note(one_line(line)), lambda: screen.interrupts.count > 0):
                ended = await runtime.drive(run, people=screen.terminal, listen=listen, began=screen.began)
            return ended

        try:
            ended = await screen.until_rest(work())
        except QuireError as error:
            if not screen.begun:
                raise
            return _broken_off(run, error)
    row, questions, reuse = view.row, view.questions, None
    # A store that cannot be read now does not change how the run ended.
    with contextlib.suppress(StoreError):
        row, questions = await runtime.row(run), await runtime.store.questions(run)
        if view.pins.reuse:
            from quire.runs.reuse import reuse_of

            taken, earlier = await runtime.store.effects(run), await runtime.store.effects(view.pins.reuse)
            reuse = reuse_of(view.pins.reuse, taken, screen.progress, earlier)
    rest, interrupted = ended or DriveResult(Status.PAUSED), screen.interrupts.count > 0
    permissions = ""
    if view.thread is not None:
        from quire.runs.why import permissions_of

        permissions = permissions_of(view, runtime.settings)
    end = RunReport(row, screen.progress, rest, questions, interrupted, permissions, reuse)
    return finish(end, screen.view, manner)


class _Screen:
    """The terminal while a run is driven: the view of the run, its questions, and Ctrl-C."""

    def __init__(self, progress: Progress, manner: SessionOptions, stdout: TextIO, lines: Sequence[str]) -> None:
        """`lines` are printed when the drive has begun, above the view."""
        self.progress = progress
        self.view = choose_view(progress, manner, stdout)
        self.terminal = Terminal(self.view, progress) if manner.interactive else None
        self.interrupts = Interrupts(self.view.note, self.terminal.leave if self.terminal else lambda: False)
        if isinstance(self.view, JsonLines):
            self.view.gone = lambda error: self.interrupts.interrupt(
                f"{stdout_error(error)}: pausing after this step …"
            )
        self.begun = False
        self._lines = lines

    def began(self, drive: Drive) -> None:
        self.begun = True
        for line in self._lines:
            tell(line)
        self.view.start()
        self.interrupts.began(drive)

    async def until_rest(self, work: Coroutine[object, object, DriveResult]) -> DriveResult | None:
        """Wait for the end of the drive. Return None if the user stopped it at once."""
        task = asyncio.ensure_future(work)
        status = Status.PAUSED
        try:
            with self.interrupts.watching(task):
                ended = await task
                status = ended.status
                return ended
        except asyncio.CancelledError:
            if not self.interrupts.count:
                raise
            return None
        except QuireError:
            status = Status.FAILED if self.begun else status
            raise
        finally:
            if status is not Status.COMPLETED:
                self.progress.settle(status)
            self.view.stop()


def _model_lines(view: RunView, manner: SessionOptions, script: str | None, why: str, most: str) -> list[str]:
    """Return the lines that name the model of the run, the reason for it, and what the run can do at most."""
    pins, instead = view.pins, manner.given.model
    if manner.quiet or manner.json:
        return []
    if not pins.model:
        return [one_line(most)] if most else []
    from quire.models.downloads import SMALLEST, TOY

    name = instead or pins.instead or pins.model
    model = f"script:{script} (--script)" if script else f"{name} ({'--model' if instead else why})"
    toy = pins.model == f"local:{SMALLEST}" and not script and not os.environ.get("QUIRE_DEMO")
    line = f"model: {model}; {most}" if most else f"model: {model}"
    return [one_line(line), *([TOY] if toy else [])]


def _so_far(view: RunView, manner: SessionOptions) -> Progress:
    """Return the progress that the view begins with: the steps of the document and their recorded effects."""
    progress = Progress.of(view.document.runnable())
    progress.limits = _limits(view, manner.given.limits)
    for record in view.effects:
        if record.path not in view.row.ended_by:
            progress.add_effect(record)
    return progress


def _broken_off(run: str, error: QuireError) -> int:
    """Report the error that ended a drive after it had begun, and return the exit code. The run itself has started."""
    further = f"quire runs {run}" if isinstance(error, Fenced) else f"quire resume {run}"
    lost = "" if isinstance(error, StoreGone) else f"\nnothing that was recorded is lost: {further}"
    tell(f"quire: {visible(str(error))}{lost}")
    return EXIT_FAILED if isinstance(error, StoreError) else error.exit_code


def _limits(view: RunView, overrides: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return the limits of the run's outermost thread; empty if it has none."""
    if view.thread is None:
        return {}
    from quire.engine.interpreter.thread.budgets import resolve_limits

    composed = view.thread.composed
    limits = resolve_limits(composed.limits_declared, {**view.pins.limits, **overrides}, None, composed.rules)
    return limits.as_value()


_MOVES = frozenset({"delta", "reading", "effect", "step_started", "step_completed", "question"})
"""Event types that show that the run makes progress again."""


class _Listener:
    """Passes the events of a run to its view, and shows a note while something waits or is to be tried again."""

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
        if event.type in ("retry", "queued", "store_locked"):
            self._retrying = True
            before = {
                "retry": f"asking again in {event.live.get('seconds')} s: ",
                "store_locked": "nothing can be recorded yet, trying again: ",
            }
            self._view.note(before.get(event.type, "") + one_line(str(event.live["reason"])))
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
