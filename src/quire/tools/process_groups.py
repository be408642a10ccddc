"""The process groups of servers that this process has started: none of them may outlive it.

Servers are asked to end, and get a moment for it. If there is no time left, at the last of several Ctrl-C, the
remaining ones are killed.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

_groups: set[int] = set()


def remember(group: int) -> None:
    """Remember a group. 0 is not a group: the caller may not know the number of a server."""
    if group > 1:
        _groups.add(group)


def forget(group: int) -> None:
    _groups.discard(group)


def kill(group: int) -> None:
    """Kill a group at once, with everything it has started. A forgotten group is left alone: its number may belong to
    another one now."""
    if group in _groups and hasattr(os, "killpg"):
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)


def kill_all() -> None:
    for group in tuple(_groups):
        kill(group)
