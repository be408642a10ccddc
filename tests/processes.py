"""Processes that tests start: each is ended with its test, and none is waited for without end."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Timer
from typing import Any

PATIENCE = 60.0


def _heed_signals() -> None:
    """Tests in the background of a shell ignore SIGINT, those under nohup SIGHUP, and so would what they start."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Starts a process as `subprocess.Popen` does and kills it in the end.

    A process that says nothing and does not end is killed after `PATIENCE` seconds, so that a test that reads its
    pipes or waits for it fails instead of hanging.
    """
    options.setdefault("preexec_fn", _heed_signals)
    with subprocess.Popen(command, **options) as process:
        alarm = Timer(PATIENCE, process.kill)
        alarm.daemon = True
        alarm.start()
        try:
            yield process
        finally:
            alarm.cancel()
            process.kill()


def wait_until(done: Callable[[], object], complaint: Callable[[], str] = str, *, patience: float = PATIENCE) -> None:
    """Looks again and again without taking the processor from the process that is waited for."""
    deadline = time.monotonic() + patience
    pause = Event()
    while not done():
        assert time.monotonic() < deadline, complaint()
        pause.wait(0.01)
