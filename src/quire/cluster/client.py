"""Client of the cluster: ask Temporal to have a worker look at a run, and list the workers of a queue."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.cluster.access import read_credentials, reason, refusal
from quire.cluster.orders import HEARTBEAT_SECONDS, LOOK, WORKFLOW, Order
from quire.errors import CannotStart
from quire.workspace.consent import require_trusted

if TYPE_CHECKING:
    from temporalio.client import Client

    from quire.workspace.settings import ClusterSettings, Settings

CONNECT_SECONDS = 5.0
RPC = timedelta(seconds=5)
UNFIT_POLL = timedelta(seconds=3)
UNFIT_QUEUE = "{}.unfit"
"""The task queue that only unfit workers ask for work; it never has any."""
SEEN_SECONDS = 90.0
"""Temporal lists a worker for minutes after it has left. One that is there asks for work at least every minute."""
TASK = timedelta(seconds=5)
"""Time limit for a worker to decide the next action of a workflow. It takes milliseconds, unless the worker is gone."""


class Cluster:
    def __init__(self, client: Client, queue: str, heartbeat: float = HEARTBEAT_SECONDS) -> None:
        self.client = client
        self.queue = queue
        self._heartbeat = heartbeat

    @classmethod
    async def connect(cls, where: ClusterSettings) -> Cluster:
        """Connect to the cluster. Raises `CannotStart`."""
        return cls(await connect(where), where.task_queue, where.heartbeat)

    async def look(self, run: str, *, resume: bool = False) -> None:
        """Have a worker look at a run, whether or not the cluster already knows it. Raises `CannotStart`."""
        await self._start(run, resume=resume, signal=True)

    async def ensure(self, run: str) -> None:
        """Make sure that the run has a workflow, without a signal: an existing workflow gets no entry in its history.
        Raises `CannotStart`."""
        await self._start(run, resume=False, signal=False)

    async def _start(self, run: str, *, resume: bool, signal: bool) -> None:
        from temporalio.common import WorkflowIDConflictPolicy
        from temporalio.service import RPCError

        try:
            await self.client.start_workflow(
                WORKFLOW,
                Order(run, self._heartbeat),
                id=run,
                task_queue=self.queue,
                task_timeout=TASK,
                start_signal=LOOK if signal else None,
                start_signal_args=[resume] if signal else [],
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                rpc_timeout=RPC,
            )
        except (RPCError, RuntimeError) as error:
            raise CannotStart(f"Temporal did not take run {run}: {reason(error)}") from None


async def connect(where: ClusterSettings, seconds: float = CONNECT_SECONDS) -> Client:
    """Connect to Temporal. Raises `CannotStart` if it is not reached in time; `NoAccess` if trying again would not
    help."""
    if find_spec("temporalio") is None:
        raise CannotStart("a cluster needs the package temporalio: pip install 'quire[cluster]'")
    if not where.temporal:
        raise CannotStart(NOT_SET)
    from temporalio.client import Client
    from temporalio.service import RPCError

    shown = read_credentials(where.access)
    try:
        async with asyncio.timeout(seconds):
            return await Client.connect(where.temporal, namespace=where.namespace, tls=shown.tls, api_key=shown.api_key)
    except TimeoutError:
        raise CannotStart(f"Temporal at {where.temporal} does not answer") from None
    except (RuntimeError, RPCError, ValueError) as error:
        raise await asyncio.to_thread(refusal, error, where.temporal, where.access) from None


NOT_SET = (
    'no cluster is configured: set temporal = "HOST:PORT" in the table [cluster] of quire.toml, '
    'and url = "postgresql://…" in [store]'
)


def require_cluster(settings: Settings) -> ClusterSettings:
    """Return the cluster of a workspace. Raises `CannotStart` if there is none, `Untrusted` if the user has not agreed
    to it."""
    if not settings.cluster.temporal:
        raise CannotStart(NOT_SET)
    if not settings.store_url:
        raise CannotStart(
            "a cluster needs a store that its workers share: "
            'set url = "postgresql://…" in the table [store] of quire.toml'
        )
    if "cluster" in settings.requested:
        require_trusted(settings)
    return settings.cluster


class SeenWorker(Struct, frozen=True):
    """A worker as Temporal lists it."""

    identity: str
    seen_at: float
    """The time at which it last asked for work."""
    unfit: str = ""
    """Why it takes no runs; empty if it does."""


def worker_identity() -> str:
    return f"quire {os.getpid()}@{socket.gethostname()}"


async def workers_of(where: ClusterSettings, seconds: float) -> list[SeenWorker]:
    """Return the workers of the task queue, also those that are unfit. Raises `CannotStart`."""
    client = await connect(where, seconds)
    workers = {name: SeenWorker(name, at) for name, at in (await pollers(client, where.task_queue)).items()}
    unfit = await pollers(client, UNFIT_QUEUE.format(where.task_queue))
    for text, at in sorted(unfit.items(), key=lambda entry: entry[1]):
        name, _, why = text.partition(": ")
        if at > time.time() - SEEN_SECONDS and (name not in workers or at > workers[name].seen_at):
            workers[name] = SeenWorker(name, at, why)
    return [workers[name] for name in sorted(workers)]


async def pollers(client: Client, queue: str) -> dict[str, float]:
    """Return the identities of the workers that ask a queue for runs to drive, and when each last did. Raises
    `CannotStart`."""
    from temporalio.api.enums.v1 import TaskQueueType
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
    from temporalio.service import RPCError

    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
    )
    try:
        queued = await client.workflow_service.describe_task_queue(request, timeout=RPC)
    except (RPCError, RuntimeError) as error:
        raise CannotStart(f"Temporal does not say who works: {reason(error)}") from None
    times = {poller.identity: poller.last_access_time for poller in queued.pollers}
    return {name: at.seconds + at.nanos / 1e9 for name, at in times.items()}


async def announce_unfit(client: Client, queue: str, why: str) -> None:
    """Have Temporal list this worker among the unfit ones. Its name says why."""
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice.v1 import PollActivityTaskQueueRequest
    from temporalio.service import RPCError

    request = PollActivityTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=UNFIT_QUEUE.format(queue)),
        identity=f"{worker_identity()}: {why}",
    )
    with contextlib.suppress(RPCError, RuntimeError):
        await client.workflow_service.poll_activity_task_queue(request, timeout=UNFIT_POLL)
