"""The live view of a run on a terminal.

Events only change what is known; ten times a second a picture of it (`quire.display.live_frame`) is painted over the
one before, so a fast model costs no more than a slow one. Painted by hand and not by rich's `Live`: that one moves up
by the rows of its last picture at the width of then, and leaves torn lines behind when the window gets narrower.
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
from quire.display.live_frame import Moment, frame, summary
from quire.display.views import end_fan, warning_line

if TYPE_CHECKING:
    from rich.console import Console

    from quire.engine.progress import Progress
    from quire.engine.records import Event

SECONDS_BETWEEN_PICTURES = 0.1


class Painter:
    """Puts a picture where the last one was. Knows how many rows that has become when the window changed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines: list[str] = []
        self._width = 0

    def paint(self, lines: Sequence[Text]) -> None:
        text = self._rendered(lines).replace("\n", "\x1b[K\n")
        width = self._console.width
        # A row that was wrapped stays joined to the next one, whatever is painted over it, until it is erased.
        home = self._erased() if width != self._width else self._home()
        self._write(home + text + "\x1b[J")
        self._lines, self._width = [line.plain for line in lines], width

    def forget(self) -> None:
        """Leaves the last picture where it is: others have written below it."""
        self._lines = []

    def clear(self) -> None:
        if self._lines:
            self._write(self._erased())
            self._lines = []

    def print(self, lines: Sequence[Text]) -> None:
        """Lines that stay."""
        self.clear()
        self._write(self._rendered(lines))

    def _home(self) -> str:
        """To the first row of the last picture."""
        rows = self._rows()
        return f"\r\x1b[{rows}A" if rows else "\r"

    def _erased(self) -> str:
        """The same, and nothing is left of the picture. Row by row: tmux keeps a screen that is erased at once."""
        rows = self._rows()
        return self._home() + ("\x1b[2K\x1b[1B" * rows + f"\x1b[J\x1b[{rows}A" if rows else "")

    def _rows(self) -> int:
        """Most terminals that get narrower wrap the lines of the picture."""
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
    """How many rows a terminal makes of a line. A wide letter that does not fit begins the next row."""
    return len(chop_cells(line, max(2, width))) or 1


def _wraps_again(environ: Mapping[str, str]) -> bool:
    """Whether the terminal wraps its lines anew when it gets narrower. Those that do not cut them off."""
    if "TMUX" in environ:
        return True
    return "XTERM_VERSION" not in environ and not environ.get("TERM", "").startswith(("linux", "screen"))


@contextlib.contextmanager
def _told_of_going_on(call: Callable[[], None]) -> Iterator[None]:
    """Call this when the process goes on after Ctrl-Z: the shell has written below the picture.

    Not by the event loop, which would let the next picture come first.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGCONT, lambda number, frame: call())
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, before if before is not None else signal.SIG_DFL)


class LiveView:
    """The caller applies an event to `progress` before it is shown. Needs a running event loop."""

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
        if event.type == "warning" and not event.replayed:
            self.say(warning_line(event))
        elif event.type in ("step_completed", "step_failed") and (step := self._progress.steps.get(event.path)):
            end_fan(step, event)

    def say(self, line: str) -> None:
        self._painter.print([Text(line, style="yellow")])

    def note(self, line: str) -> None:
        """Stands in the status line from now on."""
        self._note = line

    def pause(self) -> None:
        if self._paused_at is None:
            self._paused_at = time.monotonic()
            self._painter.clear()
            self._keys.close()

    def resume(self) -> None:
        """The next picture comes with the next tick, so asking twice in a row does not flicker."""
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
                # After `bg` the shell writes here.
                self._painter.forget()
            elif self._paused_at is None:
                width, height = self._console.size
                self._painter.paint(frame(self._progress, width, height, self._moment()))
            await asyncio.sleep(SECONDS_BETWEEN_PICTURES)

    def _moment(self) -> Moment:
        seconds = time.monotonic() - self._since - self._waited
        pretty = (self._console.encoding or "").lower().startswith("utf")
        return Moment(time.time(), seconds, self._note, pretty, self._console.encoding or "ascii")
