"""An event loop whose time is a number: nothing waits, and the same program takes the same turns again.

Which of several branches is ahead is decided by how long their effects take, and that is drawn from a seed. So every
order that can happen for real can happen here, and none that cannot.

Where somebody waits for a server that is really there, its time stands still until the server has answered.
"""

from __future__ import annotations

import asyncio
import select
import selectors
import time
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

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


class Stuck(Exception):
    """Nothing moves any more, and nothing ever will."""


class _Timeless(selectors.SelectSelector):
    """Waits for files only when there is nothing else to do, and then for all of them: so it is not speed that decides
    who goes first. Where the loop would sleep otherwise, its time goes on instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return []
        if len(self.get_map()) > _OWN_FILES:
            return self._answered()
        if timeout is None:
            raise Stuck("nothing moves, and nothing is waited for")
        self.now += timeout
        if self.now > START + LONGEST:
            raise Stuck(f"nothing has come to an end in {LONGEST:g} seconds")
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


class VirtualLoop(asyncio.SelectorEventLoop):
    """`lost` are exceptions that no task was left to hear of."""

    def __init__(self) -> None:
        self._timeless = _Timeless()
        self.lost: list[BaseException] = []
        super().__init__(self._timeless)
        # Two timers of one moment are one turn, whatever adding up floats makes of them.
        self._clock_resolution = 1e-6
        self.set_exception_handler(self._heard)

    def time(self) -> float:
        return self._timeless.now

    def _heard(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self.lost.append(error)


class VirtualClock:
    """The engine's `Clock` on such a loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(loop: VirtualLoop, main: Coroutine[Any, Any, T]) -> T:
    """Runs to the end of `main` and stops whatever else is under way then."""
    asyncio.set_event_loop(loop)
    try:
        task = loop.create_task(main)
        try:
            return loop.run_until_complete(task)
        finally:
            left = [one for one in asyncio.all_tasks(loop) if not one.done()]
            for one in left:
                one.cancel()
            if left:
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    finally:
        asyncio.set_event_loop(None)
        loop.close()
