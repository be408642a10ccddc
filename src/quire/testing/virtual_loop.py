"""An event loop whose time is a number: nothing waits, and the same program takes the same turns again.

Where another loop would sleep, the time of this one continues at once. It has no files, no sockets, no threads and no
processes: blocking work is done in its turn, and a program that waits for something else is stuck. One loop serves any
number of cases, one after the other: each `run` leaves nothing behind for the next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, NoReturn, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

LONGEST = 400 * 24 * 3600.0
"""Seconds of its own time that one run of a program may take."""

MOST_TURNS = 1_000_000
"""Turns of the loop that one run of a program may take, so that polling is not endless."""

RESOLUTION = 1e-6
"""Two timers of one moment are one turn, even if the sums of floats differ."""


class Stuck(Exception):
    """The program waits for something that never happens, or has taken too long."""


class VirtualTime(asyncio.BaseEventLoop):
    """The time of a virtual loop, and the runs of programs on it. A subclass has the selector, whose `select` calls
    `pass_time` instead of waiting."""

    # Of the base class, which does not say so.
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self, start: float = 0.0, *, longest: float = LONGEST, **options: object) -> None:
        self._now = start
        self._longest = longest
        self._turns = 0
        self._limit = start + longest
        self.lost: list[BaseException] = []
        """Exceptions that were raised where no task could receive them."""
        super().__init__(**options)
        self._clock_resolution = RESOLUTION
        self.set_exception_handler(self._hear)

    def time(self) -> float:
        return self._now

    def set_time(self, now: float) -> None:
        """Go to another moment, also to an earlier one, between two runs."""
        if self.is_running():
            raise RuntimeError("a program is running: its time can only be advanced")
        self._now = now

    def advance(self, seconds: float) -> None:
        """Let time pass. Timers that fall due in it go off at the next turn, as after a machine has slept."""
        if not seconds >= 0:
            raise ValueError(f"time cannot be advanced by {seconds} seconds")
        self._now += seconds
        self._limit += seconds

    def pass_time(self, timeout: float | None) -> None:
        """Let the time pass for which the loop would wait. Raises `Stuck` if that is for ever, or too long."""
        self._turns += 1
        if self._turns > MOST_TURNS:
            raise Stuck(f"it has not come to an end in {MOST_TURNS} turns of its loop")
        if timeout is None:
            raise Stuck("it waits, and nothing is under way that it could wait for")
        if timeout > 0:
            self._now += timeout
            if self._now > self._limit:
                raise Stuck(f"it has not come to an end in {self._longest:g} seconds")

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a program to its end, and stop the tasks that it has left behind. Raises `Stuck`."""
        self._limit = self._now + self._longest
        self._turns = 0
        try:
            return self.run_until_complete(main)
        finally:
            if left := asyncio.all_tasks(self):
                self._stop(left)
            self._ready.clear()
            self._scheduled.clear()
            self._timer_cancelled_count = 0

    def _stop(self, tasks: Collection[asyncio.Task[Any]]) -> None:
        self._turns = 0
        for task in tasks:
            task.cancel()
        try:
            self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        except Stuck as stuck:
            self.lost.append(stuck)

    def _hear(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self.lost.append(error)


class _Idle:
    """A selector without files. Where it would wait, time passes."""

    def __init__(self, pass_time: Callable[[float | None], None]) -> None:
        self._pass_time = pass_time

    def select(self, timeout: float | None) -> Sequence[object]:
        self._pass_time(timeout)
        return ()


class VirtualLoop(VirtualTime):
    """The loop of document tests. Creating one opens nothing, and closing it is not necessary."""

    threadless = True
    """As in `quire.tools.blocking.ThreadlessLoop`."""

    def __init__(self, start: float = 0.0, *, longest: float = LONGEST) -> None:
        super().__init__(start, longest=longest)
        self._selector = _Idle(self.pass_time)

    def run_in_executor(self, executor: object, func: Callable[[Unpack[Ts]], T], *args: *Ts) -> asyncio.Future[T]:
        """Call the function at once: a thread would not be ready at the same turn each time."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    async def getaddrinfo(self, *args: object, **options: object) -> NoReturn:
        raise OSError("a test of a document has no network")

    async def getnameinfo(self, *args: object, **options: object) -> NoReturn:
        raise OSError("a test of a document has no network")

    def __del__(self) -> None:
        """Nothing is open that could be left open."""

    def _process_events(self, events: Sequence[object]) -> None:
        """No file is ever ready."""

    def _write_to_self(self) -> None:
        """No other thread has to wake the loop: it never sleeps."""


class VirtualClock:
    """The engine's `Clock` on a virtual loop."""

    def __init__(self, loop: VirtualTime) -> None:
        self._loop = loop

    def now(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
