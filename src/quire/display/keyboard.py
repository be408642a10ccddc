"""The keyboard while something is painted: what is typed must neither tear the picture nor answer a later question."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import IO

try:
    import termios
except ImportError:  # Windows
    termios = None  # type: ignore[assignment]

STDIN = 0


def in_foreground() -> bool:
    """Whether the terminal listens to this process: one in the background is stopped when it touches it."""
    try:
        return os.tcgetpgrp(STDIN) == os.getpgrp()
    except AttributeError:
        return True
    except OSError:
        return False


def may_paint(stream: IO[str]) -> bool:
    """Whether a picture may be painted: on what is not a terminal, and on one that no other process has for itself."""
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except (AttributeError, OSError, ValueError):
        return True


@contextlib.contextmanager
def quiet_keys() -> Iterator[None]:
    """Keys are not echoed meanwhile (Enter and ^C would move the picture). Signals work as ever."""
    before = _attributes()
    if termios is None or before is None:
        yield
        return
    quiet = before[:]
    modes = before[3]
    assert isinstance(modes, int)  # noqa: S101
    quiet[3] = modes & ~termios.ECHO
    termios.tcsetattr(STDIN, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        if in_foreground():
            termios.tcsetattr(STDIN, termios.TCSADRAIN, before)


def drop_typed() -> None:
    """Forgets what was typed so far."""
    if termios is not None and _attributes() is not None:
        termios.tcflush(STDIN, termios.TCIFLUSH)


def _attributes() -> list[int | list[bytes | int]] | None:
    """How the terminal is set, where there is one that may be touched."""
    if termios is None or not in_foreground():
        return None
    try:
        return termios.tcgetattr(STDIN)
    except termios.error:
        return None
