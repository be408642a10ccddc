"""Control the keyboard while a view is painted: typed keys must neither disturb the picture nor answer a later
question."""

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
    """Return True if this process is in the foreground of its terminal. A background process is stopped when it
    touches the terminal."""
    try:
        return os.tcgetpgrp(STDIN) == os.getpgrp()
    except AttributeError:
        return True
    except OSError:
        return False


def may_paint(stream: IO[str]) -> bool:
    """Return True if the view may be painted: the stream is not a terminal, or this process is in its foreground."""
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except (AttributeError, OSError, ValueError):
        return True


@contextlib.contextmanager
def quiet_keys() -> Iterator[None]:
    """Turn off the echo of keys (Enter and ^C would move the picture). Signals still work."""
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
    """Discard the keys typed so far."""
    if termios is not None and _attributes() is not None:
        termios.tcflush(STDIN, termios.TCIFLUSH)


def _attributes() -> list[int | list[bytes | int]] | None:
    """Return the settings of the terminal; None if there is none, or if it must not be touched."""
    if termios is None or not in_foreground():
        return None
    try:
        return termios.tcgetattr(STDIN)
    except termios.error:
        return None
