"""A worker: take runs from a task queue, drive a limited number at a time, and signal runs whose signal was lost.

It has two loops in two threads. The loop that `run` is called on has the store, the drives and the sweep; the other
has Temporal, whose heartbeats continue during any computation of a run. A loop that hangs is detected too: it has to
respond now and then, or the heartbeats end.

A worker that could begin no run, because its workspace changed or vanished under it, is *unfit*: it leaves its runs to
the others, asks for no more, and looks at its workspace again until all is well. Then it starts anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from temporalio import activity
from temporalio.client import AsyncActivityCancelledError, AsyncActivityHandle, Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.runtime import LoggingConfig, TelemetryConfig, TelemetryFilter
from temporalio.runtime import Runtime as TemporalRuntime
from temporalio.service import RPCError
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from quire import __version__
from quire.cluster.client import RPC, Cluster, NoAccess, connect, reason, worker_identity
from quire.cluster.driver import Attempt, Driver, Later, Reopen
from quire.cluster.orders import DRIVE, HEARTBEAT_SECONDS, Order, Outcome
from quire.cluster.workflow import RunWorkflow, WaitingRunWorkflow
from quire.engine.records import Status
from quire.errors import CannotStart, QuireError, StoreError
from quire.python_process import EndingSignals
from quire.runs.ticker import Ticker
from quire.wording import cut

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime
    from quire.workspace.settings import ClusterSettings


EVERY_SECONDS = 30.0

T = TypeVar("T")

# It logs each error that we report to it, with a traceback; this worker logs the important part itself.
logging.getLogger("temporalio.activity").setLevel(logging.CRITICAL)

CONCURRENCY = 20
GRACE_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 30.0
REPORTING_SECONDS = 10
LONGEST_REASON = 300


class ClusterWorker:
    """A worker process. `sweep_seconds` is the interval of sweeps and checks; `grace` is the time to park a run in.

    `ground` returns everything of the workspace that runs depend on and that this process has read, to be compared. It
    raises `QuireError` if no run could begin."""

    def __init__(
        self,
        runtime: Runtime,
        where: ClusterSettings,
        say: Callable[[str], None],
        *,
        reopen: Reopen,
        ground: Callable[[], object] = lambda: None,
        concurrency: int = CONCURRENCY,
        sweep_seconds: float = EVERY_SECONDS,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self._runtime = runtime
        self._where = where
        self._say = say
        self._driver = Driver(runtime, reopen, say, self._unfit, worker_identity())
        self.ticker = Ticker(
            runtime, "worker", self._signal, say, concurrency, lambda: self._driver.runs, sweep_seconds
        )
        self.ticker.be("unfit", "Temporal has not answered yet")
        self._ground = ground
        self._read = ground()
        self._concurrency = concurrency
        self._sweep_seconds = sweep_seconds
        self._grace = grace
        self._temporal = asyncio.new_event_loop()
        self._interrupts = 0

    async def run(self) -> bool:
        """Work until SIGTERM or Ctrl-C; then runs are parked at their next boundary, and other workers continue them.

        Return True if the process has to start anew, because its workspace has changed. Raises `CannotStart` if no
        retry would help.
        """
        loop = asyncio.get_running_loop()
        _hush()
        self._stopped = asyncio.Event()
        self._leaving = asyncio.Event()
        self._stale = asyncio.Event()
        with EndingSignals(loop, self._interrupt):
            if await self._tried(lambda: self._runtime.store.list(limit=1), StoreError) is None:
                return False
            thread = threading.Thread(target=self._temporal.run_forever, name="temporal", daemon=True)
            thread.start()
            ticking = asyncio.create_task(self.ticker.run())
            try:
                return await self._serve(loop)
            finally:
                ticking.cancel()
                await asyncio.gather(ticking, return_exceptions=True)
                self._temporal.call_soon_threadsafe(self._temporal.stop)
                thread.join()
                self._temporal.close()

    def _interrupt(self) -> None:
        self._interrupts += 1
        if self._interrupts > 2:
            os._exit(130)
        if self._interrupts == 2:
            self._grace = 0.0
            self._leaving.set()
            return
        self.ticker.be("leaving")
        self._say(f"leaving: {self._driver.runs} runs are parked after their step (again: at once)")
        self._stopped.set()

    def _unfit(self) -> str:
        """Return why this worker may begin no run; empty if it may. Has it leave in the first case."""
        try:
            reason = "" if self._ground() == self._read else "its settings or code have changed since it read them"
        except QuireError as error:
            reason = cut(" ".join(str(error).split()), LONGEST_REASON, LONGEST_REASON)
        if reason:
            self.ticker.be("unfit", reason)
        if reason and not self._stale.is_set():
            self._say(f"unfit: {reason}; its runs are left to other workers")
            self._stale.set()
        return reason

    async def _until_well(self) -> bool:
        """Wait until this worker could begin runs again. Return False if it is stopped before."""
        while not self._stopped.is_set():
            try:
                self._ground()
                self._say("its workspace is well: starting anew")
                return True
            except QuireError:
                self._unfit()  # the reason may be another one
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), self._sweep_seconds)
        return False

    async def _serve(self, loop: asyncio.AbstractEventLoop) -> bool:
        client = await self._tried(lambda: self._there(connect(self._where)), CannotStart)
        if client is None:
            return False
        cluster = self._cluster = Cluster(client, self._where.task_queue, self._where.heartbeat)
        self.ticker.be("fit")

        async def hand_over(run: str) -> None:
            with contextlib.suppress(CannotStart):  # its row exists, and the sweep finds it
                await self._there(cluster.look(run, signal=False))

        self._runtime.hand_over = hand_over
        with ThreadPoolExecutor(4, "workflow") as threads:
            worker = await self._there(self._worker(client, loop, threads))
            serving = asyncio.ensure_future(self._there(worker.run()))
            self._say(f"driving runs of the queue {self._where.task_queue}, {self._concurrency} at a time")
            checking = asyncio.create_task(self._checking(client))
            ends = [asyncio.create_task(event.wait()) for event in (self._stopped, self._stale)]
            try:
                await asyncio.wait({serving, *ends}, return_when=asyncio.FIRST_COMPLETED)
                if not serving.done():
                    await self._leave(worker)
                await serving
            except (RPCError, RuntimeError) as error:
                raise CannotStart(f"Temporal at {self._where.temporal} refuses this worker: {reason(error)}") from None
            finally:
                for task in (checking, *ends):
                    task.cancel()
                await asyncio.gather(checking, *ends, return_exceptions=True)
        return self._stale.is_set() and await self._until_well()

    async def _signal(self, run: str) -> None:
        """Have a worker look at a run that is due. A run that was never taken needs only a workflow."""
        row = await self._runtime.row(run)
        signal, resume = row.status is not Status.PENDING, row.status is Status.PAUSED
        await self._there(self._cluster.look(run, resume=resume, signal=signal))

    async def _worker(self, client: Client, loop: asyncio.AbstractEventLoop, threads: ThreadPoolExecutor) -> Worker:
        # Do not reload Quire for a workflow: it imports only names and two values, which never change.
        light = SandboxRestrictions.default.with_passthrough_modules("quire")
        return Worker(
            client,
            task_queue=self._where.task_queue,
            workflows=[RunWorkflow, WaitingRunWorkflow],
            activities=[DriveActivity(loop, self._driver).drive],
            max_concurrent_activities=self._concurrency,
            max_concurrent_workflow_tasks=4,
            # A task that Temporal gives to an open poll of a suspended worker is lost until its timeout: each poll can
            # swallow one, the same run again and again. One poll fetches dozens of runs a second; workflows need two.
            max_concurrent_activity_task_polls=1,
            max_concurrent_workflow_task_polls=2,
            workflow_task_executor=threads,
            workflow_runner=SandboxedWorkflowRunner(restrictions=light),
            build_id=f"quire {__version__}",  # else all modules are hashed to make one up
            identity=worker_identity(),
            # Tasks meant for a worker that is gone reach other workers only after this time.
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=2),
            max_heartbeat_throttle_interval=timedelta(seconds=1),
            graceful_shutdown_timeout=timedelta(seconds=self._grace + REPORTING_SECONDS),
        )

    async def _leave(self, worker: Worker) -> None:
        # First accept no new runs: a run that is handed back must not come here again.
        leaving = asyncio.ensure_future(self._there(worker.shutdown()))
        self._driver.stop()
        at_once = asyncio.create_task(self._leaving.wait())
        await asyncio.wait({leaving, at_once}, timeout=self._grace, return_when=asyncio.FIRST_COMPLETED)
        at_once.cancel()
        await self._driver.interrupt()
        await leaving

    async def _checking(self, client: Client) -> None:
        """Log when Temporal cannot be reached any more, and when it is back. Meanwhile this worker is unfit."""
        before, where = "", f"Temporal at {self._where.temporal}"
        while True:
            # The random factor keeps workers that were started together from checking at the same moment.
            await asyncio.sleep(self._sweep_seconds * random.uniform(0.75, 1.25))  # noqa: S311
            problem = ""
            try:
                await self._there(client.service_client.check_health(timeout=timedelta(seconds=5)))
            except (RPCError, RuntimeError) as error:
                problem = reason(error)
            if bool(problem) != bool(before):
                self._say(f"{where} is away ({problem}): runs continue" if problem else f"{where} is back")
                self.ticker.be("unfit" if problem else "fit", problem)
            before = problem
            self._unfit()

    async def _tried(self, attempt: Callable[[], Awaitable[T]], wrong: type[QuireError]) -> T | None:
        """Try until the error is gone; return None if the worker is stopped before."""
        pause = 0.5
        while not self._stopped.is_set():
            try:
                return await attempt()
            except NoAccess:
                raise
            except wrong as error:
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                self._say(f"{error}; trying again in {pause:g} s")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), pause)
        return None

    def _there(self, work: Awaitable[T]) -> Awaitable[T]:
        """Run the work on Temporal's loop, and wait for it on this one."""

        async def done() -> T:
            return await work

        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(done(), self._temporal))


def _hush() -> None:
    """Limit the logs of Temporal's core, which writes to stdout, in colours, and repeats itself; this worker reports
    itself when Temporal cannot be reached.

    These logs must not be forwarded to Python: they come from the core's own threads, and a thread that logs during
    interpreter shutdown crashes the process.
    """
    logs = LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))
    TemporalRuntime.set_default(TemporalRuntime(telemetry=TelemetryConfig(logging=logs)), error_if_already_set=False)


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
        info, here = activity.info(), asyncio.get_running_loop()
        handle = activity.client().get_async_activity_handle(task_token=info.task_token)

        async def tell(*details: object) -> None:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_told(handle, *details), here))

        # The epoch under which the previous attempt owned the run, and the workers that could not begin the run.
        epoch, refusals = (*info.heartbeat_details, None, None)[:2]
        attempt = Attempt(
            info.attempt,
            epoch if isinstance(epoch, int) else None,
            tell,
            refusals if isinstance(refusals, dict) else {},
            self._driver.workers,
        )
        limit = info.heartbeat_timeout.total_seconds() if info.heartbeat_timeout else HEARTBEAT_SECONDS
        work = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._driver.look(order, attempt), self._loop))
        while not work.done():
            try:
                await self._watch(work, attempt, limit / BEATS)
            except asyncio.CancelledError:
                lost = activity.cancellation_details()
                if lost is not None and (lost.not_found or lost.timed_out):
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


async def _told(handle: AsyncActivityHandle, *details: object) -> None:
    """Send a heartbeat and wait until Temporal confirms it. The SDK throttles its own heartbeats and does not report
    whether they arrived. Raises `Later`."""
    try:
        await handle.heartbeat(*details, rpc_timeout=RPC)
    except AsyncActivityCancelledError:
        pass  # it has arrived; the next heartbeat of the SDK delivers the cancellation
    except (RPCError, RuntimeError) as error:
        raise Later(f"Temporal was not told who has the run: {reason(error)}", 1.0) from None
