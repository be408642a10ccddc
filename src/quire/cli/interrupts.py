"""Ctrl-C: the first pauses the run after its step, the second stops it at once, the third ends the process.

Before the run has begun, the first Ctrl-C stops; servers that were started for the run are stopped too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, TypeVar

import click

from quire.cli import INTERRUPTED
from quire.python_process import ending_signals

if TYPE_CHECKING:
    from quire.engine.driver.drive import Drive

PAUSING = "pausing after this step … (Ctrl-C again stops at once)"

T = TypeVar("T")


class Interrupts:
    """Counts interrupts from the user or the system; SIGTERM and SIGHUP (of a closed terminal) count as Ctrl-C.
    Recorded effects are never lost."""

    def __init__(self, say: Callable[[str], None], leave: Callable[[], bool]) -> None:
        """`leave` removes an open question from the screen and returns True if there was one."""
        self.count = 0
        self._say = say
        self._leave = leave
        self._drive: Drive | None = None
        self._task: asyncio.Task[object] | None = None

    def began(self, drive: Drive) -> None:
        self._drive = drive
        if self.count:
            drive.stop()

    def interrupt(self, why: str = PAUSING) -> None:
        self.count += 1
        if self.count > 2:
            from quire.tools import process_groups

            process_groups.kill_all()
            os._exit(INTERRUPTED)
        if self.count == 2 or self._drive is None:
            if self._task is not None:
                self._task.cancel()
            return
        self._drive.stop()
        if not self._leave():
            self._say(why)

    @contextlib.contextmanager
    def watching(self, task: asyncio.Task[object]) -> Iterator[None]:
        self._task = task
        loop = asyncio.get_running_loop()
        signals = ending_signals()
        before = [signal.getsignal(number) for number in signals]
        for number in signals:
            try:
                loop.add_signal_handler(number, self.interrupt)
            except NotImplementedError:
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(self.interrupt))
        try:
            yield
        finally:
            for number, handler in zip(signals, before, strict=True):
                with contextlib.suppress(NotImplementedError):
                    loop.remove_signal_handler(number)
                signal.signal(number, handler)


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
