"""The process groups of servers that this process has started: none of them is to outlive it.

Servers are asked to end, and get a moment for it. Where there is no moment left, at the last of several Ctrl-C, what
is still here is killed.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

_groups: set[int] = set()


def remember(group: int) -> None:
    """0 is no group: whoever starts a server may not know its number."""
    if group > 1:
        _groups.add(group)


def forget(group: int) -> None:
    _groups.discard(group)


def kill(group: int) -> None:
    """At once, with all that it has started. One that is forgotten is left alone: its number may be another's now."""
    if group in _groups and hasattr(os, "killpg"):
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)


def kill_all() -> None:
    for group in tuple(_groups):
        kill(group)
