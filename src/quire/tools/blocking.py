"""Run blocking work beside the event loop, in threads that can be abandoned.

The loop's own pool joins its threads when the program ends: one call that never returns would hold it for ever. These
threads are daemons: a call that is out of time, or cancelled, is abandoned.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


class OutOfTime(Exception):
    """The work took longer than allowed. Not a `TimeoutError`, which the work itself may raise."""


async def within(work: Awaitable[T], seconds: float | None) -> T:
    """Await the work and return its result. Raises `OutOfTime` and cancels the work after the given seconds."""
    import asyncio

    try:
        async with asyncio.timeout(seconds) as limit:
            return await work
    except TimeoutError:
        if limit.expired():
            raise OutOfTime from None
        raise


@runtime_checkable
class ThreadlessLoop(Protocol):
    """An event loop that does blocking work in its turn, because its time does not pass while a thread works. The work
    has no limit of time there."""

    threadless: bool


async def in_thread(function: Callable[[], T], *, seconds: float | None = None) -> T:
    """Call the function in a thread, for its result or its error. Raises `OutOfTime` after the given seconds."""
    import asyncio

    loop = asyncio.get_running_loop()
    if isinstance(loop, ThreadlessLoop):
        return contextvars.copy_context().run(function)
    done: asyncio.Future[Callable[[], T]] = loop.create_future()

    def deliver(result: Callable[[], T]) -> None:
        if not done.done():
            done.set_result(result)

    def run(context: contextvars.Context) -> None:
        result: Callable[[], T]
        try:
            value = context.run(function)
            result = lambda: value  # noqa: E731
        except BaseException as error:  # SystemExit as well: it must not reach the terminal
            failure = error

            def result() -> T:
                raise failure

        try:
            loop.call_soon_threadsafe(deliver, result)
        except RuntimeError:
            # The loop is closed: no task waits any more.
            return

    thread = threading.Thread(target=run, args=(contextvars.copy_context(),), name="quire-tool", daemon=True)
    thread.start()
    return (await within(done, seconds))()
