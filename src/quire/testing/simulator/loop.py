"""An event loop whose time is a number: nothing waits, and the same program takes the same turns again.

Which of several branches is ahead is decided by how long their effects take, and that is drawn from a seed. So every
order that can happen for real can happen here, and none that cannot.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

START = 1_000_000.0
LONGEST = 200_000.0
"""Seconds of its own time after which a simulation counts as one that gets nowhere."""


class Stuck(Exception):
    """Nothing moves any more, and nothing ever will."""


class _Timeless(selectors.SelectSelector):
    """Never waits for a file: where the loop would sleep, its time goes on instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck("nothing moves, and nothing is waited for")
        if timeout > 0:
            self.now += timeout
            if self.now > START + LONGEST:
                raise Stuck(f"nothing has come to an end in {LONGEST:g} seconds")
        return []


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
