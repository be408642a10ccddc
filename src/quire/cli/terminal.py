"""Ask the user at the terminal while the run's event loop continues.

Answers are typed into a line editor; a terminal that cannot move its cursor delivers plain lines. The loop itself
reads both, not a thread: a thread that waits in `readline` cannot be interrupted and would keep the process from
ending. Meanwhile the question is in the inbox too; Ctrl-C leaves it there.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Literal

import click

from quire.display.keyboard import STDIN, drop_typed
from quire.display.text import one_line, place, wrapped
from quire.engine.interpreter.playbook.steps import WrongAnswer, checked_answer
from quire.patterns import late_pattern
from quire.runs.adapters import option_by_number
from quire.workspace.locate import account_name

if TYPE_CHECKING:
    from quire.display.views import View
    from quire.engine.progress import Progress
    from quire.engine.records import Question

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
                    click.echo(one_line(problem), err=True)
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
            click.echo(f"{place(question.way)} was answered elsewhere: {one_line(value)}", err=True)
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
                click.echo(one_line(str(wrong)), err=True)
        return None

    async def _answer(self, question: Question) -> str | None:
        # Keys typed before the prompt appeared do not count: the user has not seen the question yet.
        drop_typed()
        line = await self._typed(question)
        if line is None:
            return None
        if not line.strip() and question.default is not None:
            return question.default
        return option_by_number(question.kind, question.options, line)

    async def _typed(self, question: Question) -> str | None:
        options = ("yes", "no") if question.kind == "confirm" else tuple(question.options)
        return await typed_line(_prompt(question), options, self._left)

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
    lines += [f"  {number}. {one_line(option)}" for number, option in enumerate(question.options, 1)]
    return "\n".join(lines)


def answer_text(question: Question) -> str:
    """Say which answers a question takes, for users without a terminal."""
    kinds = {"confirm": "yes or no", "select": "one of the options, or its number"}
    default = f"; the default is {one_line(question.default)}" if question.default is not None else ""
    return f"{kinds.get(question.kind, 'a text')}{default}"


def _prompt(question: Question) -> str:
    default = f" [{one_line(question.default)}]" if question.default is not None else ""
    match question.kind:
        case "confirm":
            return f"yes or no{default}: "
        case "select":
            return f"a number or an option{default}: "
    return f"answer{default}: "


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
        return await _read_in_thread()
    leaving = asyncio.create_task(left.wait())
    try:
        waited: set[asyncio.Future[bytes] | asyncio.Future[Literal[True]]] = {got, leaving}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(STDIN)
        leaving.cancel()
    if not got.done() or not (line := got.result()):
        return None
    return line.decode(sys.stdin.encoding or "utf-8", "replace").splitlines()[0]


async def _read_in_thread() -> str | None:
    """Read a line in a thread, for systems whose loop cannot wait for a terminal (Windows)."""
    line = await asyncio.to_thread(sys.stdin.readline)
    return line.rstrip("\r\n") if line else None
