"""The workers of a cluster, as Temporal sees them: those that asked for work in the last minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.cluster.access import reason
from quire.cluster.client import RPC, connect
from quire.errors import CannotStart

if TYPE_CHECKING:
    from quire.workspace.settings import ClusterSettings


async def workers_of(where: ClusterSettings, seconds: float) -> dict[str, float]:
    """Return the identity of each worker of the task queue, and the time at which it last asked for work. Raises
    `CannotStart`."""
    client = await connect(where, seconds)
    from temporalio.api.enums.v1 import TaskQueueType
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
    from temporalio.service import RPCError

    request = DescribeTaskQueueRequest(
        namespace=where.namespace,
        task_queue=TaskQueue(name=where.task_queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
    )
    try:
        found = await client.workflow_service.describe_task_queue(request, timeout=RPC)
    except (RPCError, RuntimeError) as error:
        raise CannotStart(f"Temporal does not say who works: {reason(error)}") from None
    return {one.identity: one.last_access_time.seconds + one.last_access_time.nanos / 1e9 for one in found.pollers}
