"""The activity of a worker: pass an order to the driver on its own loop, and send heartbeats meanwhile.

Temporal has its own thread and loop, so a run that computes for seconds does not make its worker look dead. A loop
that hangs is detected too: it has to respond now and then, or the heartbeats end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from datetime import timedelta

from temporalio import activity
from temporalio.client import AsyncActivityCancelledError, AsyncActivityHandle, Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError

from quire.cluster.access import reason
from quire.cluster.client import RPC, SEEN_SECONDS, pollers
from quire.cluster.driver import Attempt, Driver, Later
from quire.cluster.orders import DRIVE, HEARTBEAT_SECONDS, Order, Outcome
from quire.errors import CannotStart

BEATS = 4
"""Number of heartbeats per heartbeat timeout."""

HANGS_SECONDS = 60.0
PARK_SECONDS = 15.0


class Pulse:
    """Tells from another thread whether a loop still runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._seen = time.monotonic()
        self._asked = False

    def beats(self) -> bool:
        if not self._asked:
            self._asked = True
            self._loop.call_soon_threadsafe(self._turned)
        return time.monotonic() - self._seen < HANGS_SECONDS

    def _turned(self) -> None:
        self._seen = time.monotonic()
        self._asked = False


class DriveActivity:
    """The activity that drives runs. `loop` is the loop of the driver and its store."""

    def __init__(self, loop: asyncio.AbstractEventLoop, driver: Driver) -> None:
        self._loop = loop
        self._driver = driver
        self._pulse = Pulse(loop)

    @activity.defn(name=DRIVE)
    async def drive(self, order: Order) -> Outcome:
        info, here, activity_client = activity.info(), asyncio.get_running_loop(), activity.client()
        handle = activity_client.get_async_activity_handle(task_token=info.task_token)

        async def tell(*details: object) -> None:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_told(handle, *details), here))

        async def workers() -> Collection[str]:
            asked = _workers(activity_client, info.task_queue)
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asked, here))

        attempt = Attempt(info.attempt, _epoch(info), tell, _refusals(info), workers)
        limit = info.heartbeat_timeout.total_seconds() if info.heartbeat_timeout else HEARTBEAT_SECONDS
        work = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._driver.look(order, attempt), self._loop))
        while not work.done():
            try:
                await self._watch(work, attempt, limit / BEATS)
            except asyncio.CancelledError:
                if not _unwanted():
                    # Temporal was away, or has given the run to another worker. If another worker drives it, the epoch
                    # shows that; if none does, stopping would only lose time.
                    continue
                self._loop.call_soon_threadsafe(self._driver.cancel, order.run, attempt)
                await asyncio.wait({work}, timeout=PARK_SECONDS)
                raise
        try:
            if work.cancelled():
                # This attempt had joined one that was just being stopped. Do not report it as cancelled: Temporal
                # does not retry an activity that was cancelled.
                raise Later(f"run {order.run} was being parked", 1.0)
            return work.result()
        except Later as later:
            raise ApplicationError(
                str(later),
                type="Later",
                next_retry_delay=timedelta(seconds=later.seconds),
                category=ApplicationErrorCategory.BENIGN,
            ) from None

    async def _watch(self, work: asyncio.Future[Outcome], attempt: Attempt, seconds: float) -> None:
        """Send heartbeats until the work is done."""
        while not work.done():
            await asyncio.wait({work}, timeout=seconds)
            if not work.done() and self._pulse.beats():
                activity.heartbeat(attempt.epoch, attempt.refusals)


async def _workers(client: Client, queue: str) -> Collection[str]:
    """Return the workers that ask for runs now. Raises `Later`."""
    try:
        found = await pollers(client, queue)
    except CannotStart as error:
        raise Later(str(error), 1.0) from None
    return [name for name, at in found.items() if at > time.time() - SEEN_SECONDS]


async def _told(handle: AsyncActivityHandle, *details: object) -> None:
    """Send a heartbeat and wait until Temporal confirms it. The SDK throttles its own heartbeats and does not report
    whether they arrived. Raises `Later`."""
    try:
        await handle.heartbeat(*details, rpc_timeout=RPC)
    except AsyncActivityCancelledError:
        pass  # it has arrived; the next heartbeat of the SDK delivers the cancellation
    except (RPCError, RuntimeError) as error:
        raise Later(f"Temporal was not told who has the run: {reason(error)}", 1.0) from None


def _unwanted() -> bool:
    """Return True if the workflow was stopped, False if Temporal lost contact with this worker."""
    details = activity.cancellation_details()
    return details is None or not (details.not_found or details.timed_out)


def _epoch(info: activity.Info) -> int | None:
    """Return the epoch under which the previous attempt owned the run; None if it is not known."""
    told = info.heartbeat_details[0] if info.heartbeat_details else None
    return told if isinstance(told, int) else None


def _refusals(info: activity.Info) -> dict[str, int]:
    """Return the workers that could not begin the run, with the number of their attempts."""
    details = info.heartbeat_details
    return details[1] if len(details) > 1 and isinstance(details[1], dict) else {}
