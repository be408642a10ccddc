"""The virtual loop of the simulator: as in tests of documents, but with servers that are really there.

Which of several branches is ahead is decided by how long their effects take, and that is drawn from a seed. So every
order that can happen for real can happen here, and none that cannot.

Where somebody waits for a server that is really there, its time stands still until the server has answered.
"""

from __future__ import annotations

import asyncio
import select
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from quire.testing.virtual_loop import Stuck, VirtualClock, VirtualTime

__all__ = ["GRACE", "LONGEST", "PATIENCE", "START", "ServerLoop", "Stuck", "VirtualClock", "run"]

T = TypeVar("T")

START = 1_000_000.0
LONGEST = 200_000.0
"""Seconds of its own time after which a simulation counts as one that gets nowhere."""

PATIENCE = 60.0
"""Real seconds for a server to answer anybody."""

GRACE = 0.05
"""Real seconds for it to answer everybody else as well."""

_OWN_FILES = 1
"""The loop has one itself, by which other threads would wake it."""


class _Timeless(selectors.SelectSelector):
    """Waits for files only when there is nothing else to do, and then for all of them: so it is not speed that decides
    who goes first. Where the loop would sleep otherwise, its time goes on instead."""

    def __init__(self, pass_time: Callable[[float | None], None]) -> None:
        super().__init__()
        self._pass_time = pass_time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if (timeout is None or timeout > 0) and len(self.get_map()) > _OWN_FILES:
            return self._answered()
        self._pass_time(timeout)
        return []

    def _answered(self) -> list[tuple[selectors.SelectorKey, int]]:
        keys = list(self.get_map().values())
        waiting = keys[_OWN_FILES:]
        until = time.monotonic() + PATIENCE
        while waiting and (left := until - time.monotonic()) > 0:
            readers = [key.fd for key in waiting if key.events & selectors.EVENT_READ]
            writers = [key.fd for key in waiting if key.events & selectors.EVENT_WRITE]
            readable, writable, _ = select.select(readers, writers, [], left)
            found = {*readable, *writable}
            if found and len(waiting) == len(keys) - _OWN_FILES:
                # The others may wait for a lock of a transaction that this answer belongs to.
                until = time.monotonic() + GRACE
            waiting = [key for key in waiting if key.fd not in found]
        if len(waiting) == len(keys) - _OWN_FILES:
            raise Stuck(f"a server has not answered in {PATIENCE:g} seconds")
        order = {key.fd: number for number, key in enumerate(keys)}
        return sorted(super().select(0), key=lambda one: order[one[0].fd])


class ServerLoop(VirtualTime, asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__(START, longest=LONGEST, selector=_Timeless(self.pass_time))


def run(loop: ServerLoop, main: Coroutine[Any, Any, T]) -> T:
    """Runs to the end of `main`, stops whatever else is under way then, and closes the loop."""
    asyncio.set_event_loop(loop)
    try:
        return loop.run(main)
    finally:
        asyncio.set_event_loop(None)
        loop.close()
