"""A worker: take runs from a task queue, drive a limited number at a time, and sweep.

It has two loops in two threads. The loop that `run` is called on has the store, the drives and the sweep; the other
has Temporal, whose heartbeats continue whatever a run computes.

A worker that could begin no run, because its workspace changed or vanished under it, is *unfit*: it leaves its runs to
the others, asks for no more, and looks at its workspace again until all is well. Then it starts anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from temporalio.runtime import LoggingConfig, TelemetryConfig, TelemetryFilter
from temporalio.runtime import Runtime as TemporalRuntime
from temporalio.service import RPCError
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from quire import __version__
from quire.cluster.access import NoAccess, reason
from quire.cluster.activity import DriveActivity
from quire.cluster.client import Cluster, announce_unfit, connect, worker_identity
from quire.cluster.driver import Driver, Reopen
from quire.cluster.sweep import EVERY_SECONDS, Sweep
from quire.cluster.workflow import RunWorkflow
from quire.errors import CannotStart, QuireError, StoreError
from quire.python_process import ending_signals
from quire.wording import cut

if TYPE_CHECKING:
    from temporalio.client import Client

    from quire.runs.runtime import Runtime
    from quire.workspace.settings import ClusterSettings

T = TypeVar("T")

# It logs each error that we report to it, with a traceback; this worker logs the important part itself.
logging.getLogger("temporalio.activity").setLevel(logging.CRITICAL)

CONCURRENCY = 20
GRACE_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 30.0
REPORTING_SECONDS = 10
LONGEST_REASON = 300


class ClusterWorker:
    """A worker process. `sweep_seconds` is the interval of sweeps; `grace` is how long a run may take to park.

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
        self._ground = ground
        self._read = ground()
        self._concurrency = concurrency
        self._sweep_seconds = sweep_seconds
        self._grace = grace
        self._temporal = asyncio.new_event_loop()
        self._interrupts = 0
        self._away = False

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
        with _signals(loop, self._interrupt):
            if not await self._store_is_there():
                return False
            thread = threading.Thread(target=self._temporal.run_forever, name="temporal", daemon=True)
            thread.start()
            try:
                return await self._serve(loop)
            finally:
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
        self._say(f"leaving: {self._driver.runs} runs are parked after their step (again: at once)")
        self._stopped.set()

    def _unfit(self) -> str:
        """Return why this worker may begin no run; empty if it may. Has it leave in the first case."""
        try:
            reason = "" if self._ground() == self._read else "its settings or code have changed since it read them"
        except QuireError as error:
            reason = cut(" ".join(str(error).split()), LONGEST_REASON, LONGEST_REASON)
        if reason and not self._stale.is_set():
            self._say(f"unfit: {reason}; its runs are left to other workers")
            self._stale.set()
        return reason

    async def _until_well(self, client: Client) -> bool:
        """Wait until this worker could begin runs again. Return False if it is stopped before."""
        while not self._stopped.is_set():
            try:
                self._ground()
                self._say("its workspace is well: starting anew")
                return True
            except QuireError:
                await self._there(announce_unfit(client, self._where.task_queue, self._unfit()))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), self._sweep_seconds)
        return False

    async def _serve(self, loop: asyncio.AbstractEventLoop) -> bool:
        client = await self._connected()
        if client is None:
            return False
        cluster = Cluster(client, self._where.task_queue, self._where.heartbeat)

        async def hand_over(run: str) -> None:
            with contextlib.suppress(CannotStart):  # its row is there, and the sweep finds it
                await self._there(cluster.ensure(run))

        self._runtime.hand_over = hand_over
        with ThreadPoolExecutor(4, "workflow") as threads:
            worker = await self._there(self._worker(client, loop, threads))
            serving = asyncio.ensure_future(self._there(worker.run()))
            self._say(f"driving runs of the queue {self._where.task_queue}, {self._concurrency} at a time")
            sweeping = asyncio.create_task(self._sweeping(cluster))
            ends = [asyncio.create_task(event.wait()) for event in (self._stopped, self._stale)]
            try:
                await asyncio.wait({serving, *ends}, return_when=asyncio.FIRST_COMPLETED)
                if not serving.done():
                    await self._leave(worker)
                await serving
            except (RPCError, RuntimeError) as error:
                raise CannotStart(f"Temporal at {self._where.temporal} refuses this worker: {reason(error)}") from None
            finally:
                for task in (sweeping, *ends):
                    task.cancel()
                await asyncio.gather(sweeping, *ends, return_exceptions=True)
        return self._stale.is_set() and await self._until_well(client)

    async def _worker(self, client: Client, loop: asyncio.AbstractEventLoop, threads: ThreadPoolExecutor) -> Worker:
        # Do not reload Quire for a workflow: it imports only names and two values, which never change.
        light = SandboxRestrictions.default.with_passthrough_modules("quire")
        return Worker(
            client,
            task_queue=self._where.task_queue,
            workflows=[RunWorkflow],
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

    async def _sweeping(self, cluster: Cluster) -> None:
        sweep = Sweep(self._runtime.store, self._where.task_queue, _Across(cluster, self._there), self._say)
        while True:
            # The random factor keeps workers that were started together from sweeping at the same moment.
            await asyncio.sleep(self._sweep_seconds * random.uniform(0.75, 1.25))  # noqa: S311
            await self._check(cluster)
            self._unfit()
            with contextlib.suppress(StoreError):
                await sweep.once()

    async def _check(self, cluster: Cluster) -> None:
        """Log when Temporal cannot be reached any more, and when it is back."""
        problem = ""
        try:
            await self._there(cluster.client.service_client.check_health(timeout=timedelta(seconds=5)))
        except (RPCError, RuntimeError) as error:
            problem = reason(error)
        if bool(problem) != self._away:
            self._away = bool(problem)
            where = f"Temporal at {self._where.temporal}"
            self._say(f"{where} is away ({problem}): runs go on" if problem else f"{where} is back")

    async def _connected(self) -> Client | None:
        """Connect to Temporal, retrying until it is available; return None if the worker is stopped before."""
        return await self._tried(lambda: self._there(connect(self._where)), CannotStart)

    async def _store_is_there(self) -> bool:
        return await self._tried(lambda: self._runtime.store.list(limit=1), StoreError) is not None

    async def _tried(self, attempt: Callable[[], Awaitable[T]], wrong: type[QuireError]) -> T | None:
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


class _Across:
    """The client of the cluster, callable from the other loop."""

    def __init__(self, cluster: Cluster, there: Callable[[Awaitable[None]], Awaitable[None]]) -> None:
        self._cluster = cluster
        self._there = there

    async def look(self, run: str) -> None:
        await self._there(self._cluster.look(run))

    async def ensure(self, run: str) -> None:
        await self._there(self._cluster.ensure(run))


@contextlib.contextmanager
def _signals(loop: asyncio.AbstractEventLoop, interrupt: Callable[[], None]) -> Iterator[None]:
    numbers = ending_signals()
    for number in numbers:
        try:
            loop.add_signal_handler(number, interrupt)
        except NotImplementedError:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(interrupt))
    try:
        yield
    finally:
        for number in numbers:
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(number)
