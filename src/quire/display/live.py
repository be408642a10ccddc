"""The live view of a run on a terminal.

Events only update the progress; ten times a second a picture of it (`quire.display.live_frame`) is painted over the
last one, so a fast model costs no more than a slow one. rich's `Live` is not used: it moves up by the number of rows
that its last picture had at the old width, and leaves torn lines behind when the window gets narrower.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import chop_cells
from rich.text import Text

from quire.display.keyboard import may_paint, quiet_keys
from quire.display.live_frame import FrameState, frame, summary
from quire.display.run_views import View, end_fan, warning_line

if TYPE_CHECKING:
    from rich.console import Console

    from quire.engine.progress import Progress
    from quire.engine.records import Event

SECONDS_BETWEEN_PICTURES = 0.1


class Painter:
    """Paints a picture over the last one. Computes how many rows the last one takes after the window has changed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines: list[str] = []
        self._width = 0

    def paint(self, lines: Sequence[Text]) -> None:
        text = self._rendered(lines).replace("\n", "\x1b[K\n")
        width = self._console.width
        # A wrapped row stays joined to the next one until it is erased, even if it is painted over.
        home = self._erased() if width != self._width else self._home()
        self._write(home + text + "\x1b[J")
        self._lines, self._width = [line.plain for line in lines], width

    def forget(self) -> None:
        """Leave the last picture where it is, because other programs have written below it."""
        self._lines = []

    def clear(self) -> None:
        if self._lines:
            self._write(self._erased())
            self._lines = []

    def print(self, lines: Sequence[Text]) -> None:
        """Print lines that stay."""
        self.clear()
        self._write(self._rendered(lines))

    def _home(self) -> str:
        """Return the sequence that moves the cursor to the first row of the last picture."""
        rows = self._rows()
        return f"\r\x1b[{rows}A" if rows else "\r"

    def _erased(self) -> str:
        """Return the sequence that erases the last picture and moves to its first row. It erases row by row, because
        tmux keeps a screen that is erased at once."""
        rows = self._rows()
        return self._home() + ("\x1b[2K\x1b[1B" * rows + f"\x1b[J\x1b[{rows}A" if rows else "")

    def _rows(self) -> int:
        """Return the rows that the last picture takes now. Most terminals wrap its lines when they get narrower."""
        if self._console.width < self._width and _wraps_again(os.environ):
            return sum(wrapped_rows(line, self._console.width) for line in self._lines)
        return len(self._lines)

    def _rendered(self, lines: Sequence[Text]) -> str:
        with self._console.capture() as captured:
            for line in lines:
                self._console.print(line, no_wrap=True, overflow="ignore", crop=False)
        return captured.get()

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._console.file.write(text)
            self._console.file.flush()


def wrapped_rows(line: str, width: int) -> int:
    """Return how many rows a terminal needs for a line. A wide character that does not fit begins the next row."""
    return len(chop_cells(line, max(2, width))) or 1


def _wraps_again(environ: Mapping[str, str]) -> bool:
    """Return True if the terminal wraps its lines again when it gets narrower; other terminals cut them off."""
    if "TMUX" in environ:
        return True
    return "XTERM_VERSION" not in environ and not environ.get("TERM", "").startswith(("linux", "screen"))


@contextlib.contextmanager
def _told_of_going_on(call: Callable[[], None]) -> Iterator[None]:
    """Call a function when the process continues after Ctrl-Z, because the shell has then written below the picture.

    A signal handler is used instead of the event loop, which would paint the next picture first.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGCONT, lambda number, frame: call())
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, before if before is not None else signal.SIG_DFL)


class LiveView(View):
    """The view of a run that is painted on a terminal. The caller applies an event to `progress` before showing it.
    Needs a running event loop."""

    def __init__(self, progress: Progress, console: Console) -> None:
        self._progress = progress
        self._console = console
        self._painter = Painter(console)
        self._ticking: asyncio.Task[None] | None = None
        self._since = time.monotonic()
        self._waited = 0.0
        self._paused_at: float | None = None
        self._note = ""
        self._keys = contextlib.ExitStack()
        self._continued = contextlib.ExitStack()

    def start(self) -> None:
        self._since = time.monotonic()
        self._keys.enter_context(quiet_keys())
        self._continued.enter_context(_told_of_going_on(self._painter.forget))
        self._ticking = asyncio.get_running_loop().create_task(self._tick())

    def show(self, event: Event) -> None:
        if event.type in ("warning", "bound_broken", "model_switched") and not event.replayed:
            self.say(warning_line(event))
        elif event.type in ("step_completed", "step_failed") and (step := self._progress.steps.get(event.path)):
            end_fan(step, event)

    def say(self, line: str) -> None:
        self._painter.print([Text(line, style="yellow")])

    def note(self, line: str) -> None:
        """Show a line in the status line from now on."""
        self._note = line

    def pause(self) -> None:
        if self._paused_at is None:
            self._paused_at = time.monotonic()
            self._painter.clear()
            self._keys.close()

    def resume(self) -> None:
        """Continue after a pause. The next tick paints the picture, so asking twice in a row does not flicker."""
        if self._paused_at is None:
            return
        waited = time.monotonic() - self._paused_at
        self._waited, self._paused_at = self._waited + waited, None
        for step in self._progress.steps.values():
            if step.status == "running" and step.started_at is not None:
                step.started_at += waited
        self._keys.enter_context(quiet_keys())

    def stop(self) -> None:
        if self._ticking is None:
            return
        self._ticking.cancel()
        self._ticking = None
        self._continued.close()
        self.resume()
        self._painter.print(summary(self._progress, self._console.width, self._moment()))
        self._keys.close()

    async def _tick(self) -> None:
        while True:
            if not may_paint(self._console.file):
                # After `bg` the shell writes to the terminal.
                self._painter.forget()
            elif self._paused_at is None:
                width, height = self._console.size
                self._painter.paint(frame(self._progress, width, height, self._moment()))
            await asyncio.sleep(SECONDS_BETWEEN_PICTURES)

    def _moment(self) -> FrameState:
        seconds = time.monotonic() - self._since - self._waited
        pretty = (self._console.encoding or "").lower().startswith("utf")
        return FrameState(time.time(), seconds, self._note, pretty, self._console.encoding or "ascii")
