"""The user at the terminal: questions of a run while its event loop continues, Ctrl-C, and consent that is missing.

Answers are typed into a line editor; a terminal that cannot move its cursor delivers plain lines. The loop itself
reads both, not a thread: a thread that waits in `readline` cannot be interrupted and would keep the process from
ending. Meanwhile the question is in the inbox too; Ctrl-C leaves it there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from quire.cli import INTERRUPTED
from quire.cli.stdio import tell
from quire.display.keyboard import STDIN, drop_typed
from quire.display.text import folded, one_line, place, terminal_columns, wrapped
from quire.engine.interpreter.playbook.steps import WrongAnswer, checked_answer
from quire.errors import BadDocument, BrokenSeal, NearMisses, Refused, ToolChanged, Untrusted
from quire.patterns import late_pattern
from quire.python_process import EndingSignals
from quire.runs.adapters import option_by_number
from quire.workspace.locate import account_name

if TYPE_CHECKING:
    from quire.display.run_views import View
    from quire.engine.driver.drive import Drive
    from quire.engine.progress import Progress
    from quire.engine.records import Question
    from quire.trust.risk import Ungranted


CONTEXT_LINES = 24
"""Lines of the previous step's result shown above a question, because the question is often about it."""
_ITEM = late_pattern(r"(?:for_each|fold)\[")


class Terminal:
    """The `People` of a run with a user at the terminal. After `leave` no user is available any more."""

    def __init__(self, view: View, progress: Progress) -> None:
        self._view = view
        self._progress = progress
        self._one_at_a_time = asyncio.Lock()
        self._left = asyncio.Event()
        self._shown: set[str | tuple[str, str]] = set()
        self._asking = False
        self.by = f"{account_name()} (terminal)"

    async def ask(self, question: Question, problem: str) -> str | None:
        async with self._one_at_a_time:
            if self._left.is_set():
                return None
            self._view.pause()
            self._asking = True
            try:
                if (question.run, question.path) not in self._shown:
                    self._show(question)
                    # Do not show the user's own answer again above the next question.
                    self._shown |= {(question.run, question.path), question.path.rpartition("/")[0]}
                if problem:
                    tell(one_line(problem))
                return await self._fitting_answer(question)
            finally:
                self._asking = False
                self._view.resume()

    def is_here(self, question: Question) -> bool:
        return not self._left.is_set()

    def overtaken(self, question: Question, value: str) -> None:
        """Print that a question was answered elsewhere, if its prompt is already on the screen."""
        if (question.run, question.path) in self._shown:
            self._view.pause()
            tell(f"{place(question.way)} was answered elsewhere: {one_line(value)}")
            self._view.resume()

    def leave(self) -> bool:
        """Remove the open question from the screen. Return True if there was one."""
        self._left.set()
        return self._asking

    async def _fitting_answer(self, question: Question) -> str | None:
        """Ask until the answer fits. Returning a wrong answer would let a sibling's question come in between."""
        while (answer := await self._answer(question)) is not None:
            try:
                return checked_answer(question.kind, question.options, answer)
            except WrongAnswer as wrong:
                tell(one_line(str(wrong)))
        return None

    async def _answer(self, question: Question) -> str | None:
        # Keys typed before the prompt appeared do not count: the user has not seen the question yet.
        drop_typed()
        options = ("yes", "no") if question.kind == "confirm" else tuple(question.options)
        line = await typed_line(_prompt(question), options, self._left)
        if line is None:
            return None
        if not line.strip() and question.default is not None:
            return question.default
        return option_by_number(question.kind, question.options, line)

    def _show(self, question: Question) -> None:
        """Print the result of the step before, then the question with its options."""
        before = [step for step in self._progress.steps.values() if step.status == "completed" and step.displayed]
        if before and before[-1].path not in self._shown:
            self._shown.add(before[-1].path)
            heading = f"{place(before[-1].way)}: {one_line(before[-1].title)}"
            click.echo(f"\n{heading}\n{_beginning(before[-1].displayed)}", err=True)
        click.echo("\n" + question_text(question, by_path=bool(_ITEM.search(question.path))), err=True)


def question_text(question: Question, *, by_path: bool = False) -> str:
    """Return the question as people read it, without the possible answers except its options. The path distinguishes
    items of one step."""
    title = question.path if by_path else one_line(question.title)
    head = place(question.way) + (f" ({title})" if title and title != question.prompt else "") + " asks:"
    styled = sys.stderr.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown", "")
    from quire.display.question_text import question_lines

    lines = [question_lines(head, question.prompt, styled=styled)]
    options = (f"  {number}. {one_line(option)}" for number, option in enumerate(question.options, 1))
    lines += [folded(option, terminal_columns(), "   ") for option in options]
    return "\n".join(lines)


def answer_text(question: Question) -> str:
    """Say which answers a question takes, for users without a terminal."""
    kinds = {"confirm": "yes or no", "select": "one of the options, or its number"}
    default = f"; the default is {one_line(question.default)}" if question.default is not None else ""
    return f"{kinds.get(question.kind, 'a text')}{default}"


def _prompt(question: Question) -> str:
    default = f" [{one_line(question.default)}]" if question.default is not None else ""
    kinds = {"confirm": "yes or no", "select": "a number or an option"}
    return f"{kinds.get(question.kind, 'answer')}{default}: "


def _beginning(text: str) -> str:
    lines = wrapped(text.strip(), "  ").split("\n")
    cut = len(lines) - CONTEXT_LINES
    if cut > 0:
        lines = [*lines[:CONTEXT_LINES], f"  … {cut} more lines"]
    return "\n".join(lines)


async def typed_line(prompt: str, options: tuple[str, ...] = (), left: asyncio.Event | None = None) -> str | None:
    """Read a line at a prompt, in the line editor if the terminal supports it; None if `left` is set first."""
    from quire.cli import line_editor

    if line_editor.usable():
        return await line_editor.edit(line_editor.Field(prompt, options), left)
    click.echo(prompt, nl=False, err=True)
    line = None
    try:
        line = await read_line(left or asyncio.Event())
    finally:
        if line is None:  # left, or answered elsewhere: end the line of the prompt
            click.echo(err=True)
    return line


async def read_line(left: asyncio.Event) -> str | None:
    """Read one line from the terminal without its line end; None at the end of input, or if `left` is set first."""
    from quire.cli.line_editor import done_or_left

    loop = asyncio.get_running_loop()
    got: asyncio.Future[bytes] = loop.create_future()

    def readable() -> None:
        # The terminal delivers whole lines of at most 4,095 bytes, which is its own limit.
        try:
            line = os.read(STDIN, 65536)
        except OSError:
            line = b""
        if not got.done():
            got.set_result(line)

    try:
        loop.add_reader(STDIN, readable)
    except NotImplementedError:
        # The loop of Windows cannot wait for a terminal.
        text = await asyncio.to_thread(sys.stdin.readline)
        return text.rstrip("\r\n") if text else None
    try:
        await done_or_left(got, left)
    finally:
        loop.remove_reader(STDIN)
    if not got.done() or not (line := got.result()):
        return None
    return line.decode(sys.stdin.encoding or "utf-8", "replace").splitlines()[0]


PAUSING = "pausing after this step … (Ctrl-C again stops at once)"

T = TypeVar("T")


class Interrupts:
    """Counts interrupts from the user or the system; SIGTERM and SIGHUP (of a closed terminal) count as Ctrl-C.

    The first pauses the run after its step, the second stops it at once, the third ends the process. Before the run
    has begun, the first one stops; servers that were started for the run are stopped too. Recorded effects are never
    lost. A process that leads its own session was detached, or is a service: its run is due at once, and so continues
    after a reboot.
    """

    def __init__(self, say: Callable[[str], None], leave: Callable[[], bool], *, goes_on: bool = False) -> None:
        """`leave` removes an open question from the screen and returns True if there was one. With `goes_on` the runs
        are due at once in any process."""
        self.count = 0
        self._say = say
        self._leave = leave
        is_service = hasattr(os, "getsid") and os.getsid(0) == os.getpid() and not somebody_is_here()
        self._wake_at = time.time() if goes_on or is_service else None
        self._drives: list[Drive] = []
        self._task: asyncio.Future[Any] | None = None

    def began(self, drive: Drive) -> None:
        self._drives.append(drive)
        if self.count:
            drive.stop(self._wake_at)

    def interrupt(self, why: str = PAUSING) -> None:
        self.count += 1
        if self.count > 2:
            from quire.tools import server_process

            server_process.kill_all()
            os._exit(INTERRUPTED)
        if self.count == 2 or not self._drives:
            if self._task is not None:
                self._task.cancel()
            return
        for drive in self._drives:
            drive.stop(self._wake_at)
        if not self._leave():
            self._say(why)

    @contextlib.contextmanager
    def watching(self, task: asyncio.Future[Any]) -> Iterator[None]:
        self._task = task
        with EndingSignals(asyncio.get_running_loop(), self.interrupt):
            yield


async def starting(work: Coroutine[object, object, T]) -> T:
    """Do the work before a run, which may start servers. Raises `click.Abort` if Ctrl-C or SIGTERM stops it."""
    interrupts = Interrupts(lambda line: None, lambda: False)
    task = asyncio.ensure_future(work)
    try:
        with interrupts.watching(task):
            return await task
    except asyncio.CancelledError:
        if not interrupts.count:
            raise
    click.echo("\nnothing was started", err=True)
    raise click.Abort


_LONGEST_REASON = 300


def with_trust(work: Callable[[], T], *, ask: bool) -> T:
    """Do the work; if it is refused for missing trust, a missing seal or a tool that has changed since it was locked,
    and the user agrees, do it again. The refusal comes before the work begins."""
    try:
        return work()
    except Untrusted:
        if not ask or not _agreed():
            raise
    except ToolChanged as changed:
        from quire.cli.lock import lock_changed_tools

        if not ask or not lock_changed_tools(changed):
            raise
    except BrokenSeal as broken:
        from quire.cli.runs.maintenance import seal_old_runs

        if not (ask and broken.old and seal_old_runs()):
            raise
    return work()


def with_grants(work: Callable[[tuple[str, ...]], T], allow: tuple[str, ...], *, ask: bool) -> T:
    """Do the work with the grants of `--allow`, and with those that the user allows an unsigned directive at the
    terminal.

    The refusal comes before the work begins, so it can be started again.
    """
    while True:
        try:
            return work(allow)
        except Refused as refused:
            from quire.trust.risk import Ungranted

            if not isinstance(refused, Ungranted):
                raise
            # A capability that is refused although it was allowed cannot be allowed at all.
            if not ask or set(refused.missing) <= set(allow) or not _allowed(refused):
                raise
            allow = (*allow, *refused.missing)


def accepted_misses(stopped: NearMisses, *, ask: bool) -> tuple[str, ...]:
    """Show the findings that stop a run, and return their codes if the user runs it all the same. Raises
    `BadDocument`."""
    from quire.cli.stdio import wants_colour
    from quire.display.diagnostics import Findings, printer

    if not ask:
        raise BadDocument(f"{stopped}\ncorrect it, or run it all the same with --force") from None
    findings = [Findings(source, tuple(several)) for source, several in stopped.documents]
    click.echo(printer("full")(findings, wants_colour(sys.stderr)), nl=False, err=True)
    if not yes_or_no("Run anyway? yes or no [no]: "):
        raise BadDocument("not started") from None
    return stopped.codes


def _allowed(refused: Ungranted) -> bool:
    from quire.display.text import short

    tell(f"{one_line(refused.item_id)} is not signed by anybody you trust, and asks for:")
    for capability, tier in refused.missing.items():
        tell(f"  {one_line(capability)} ({tier.value}: {tier.meaning})")
    for tier in dict.fromkeys(refused.missing.values()):
        if reason := refused.reasons.get(tier.value, "").strip():
            tell(f"  why, in the words of its author: {short(reason, _LONGEST_REASON)}")
    return yes_or_no("Allow that, for this run? yes or no [no]: ")


def yes_or_no(prompt: str) -> bool:
    """Ask like a question of a run: keys typed before the prompt do not count, and Ctrl-C works at any moment."""
    while True:
        drop_typed()
        line = asyncio.run(typed_line(prompt, ("yes", "no")))
        if not line or not line.strip():
            return False
        try:
            return checked_answer("confirm", (), line) == "yes"
        except WrongAnswer as wrong:
            tell(str(wrong))


def _agreed() -> bool:
    from quire.cli.trust import ask_to_trust
    from quire.workspace.configuration import settings_here
    from quire.workspace.consent import requests

    settings = settings_here()
    tell(f"{settings.workspace.folder} requests permissions that you have not confirmed yet:")
    for line in requests(settings):
        tell(f"  {one_line(line)}")
    return ask_to_trust(settings)


def somebody_is_here() -> bool:
    """Return True if the user can be asked: on a terminal with this process in the foreground."""
    from quire.display.keyboard import in_foreground

    return sys.stdin.isatty() and sys.stderr.isatty() and in_foreground()
