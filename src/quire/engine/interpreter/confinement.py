"""Run a callee with its caller's permissions and budget.

A thread may call a document that was granted more than the thread itself; every request of the callee is rewritten to
carry the caller's grants, and its model calls are paid from the caller's purse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from quire.engine.requests import Bounds, Fan, Meter, Metering, ModelRequest, Request, Spawn, ToolRequest, Walk
from quire.errors import StepFailed

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.budget import Purse
    from quire.engine.interpreter.thread.limits import Limits
    from quire.values import Value


def confined(walk: Walk, grants: tuple[str, ...], purse: Purse, limits: Limits | None = None) -> Walk:
    """Return the same walk, restricted to what its caller may do.

    A thread inside it has bounds of its own and keeps them.
    """
    answer: Any = None
    error: StepFailed | None = None
    try:
        while True:
            request = walk.send(answer) if error is None else walk.throw(error)
            counted = isinstance(request, ModelRequest) and request.bounds is None
            answer = error = None
            try:
                answer = yield _held(request, grants, purse, limits)
            except StepFailed as failed:
                error = failed
            if counted and isinstance(request, ModelRequest):
                meters: list[Meter] = yield Metering((request.path,))
                for meter in meters:
                    purse.pay(meter.cost)
    except StopIteration as stop:
        result: Value = stop.value
        return result
    finally:
        walk.close()


def _held(request: Request, grants: tuple[str, ...], purse: Purse, limits: Limits | None) -> Request:
    match request:
        case ToolRequest(grants=None):
            return replace(request, grants=grants, limits=limits)
        case ModelRequest(bounds=None):
            return replace(request, bounds=Bounds(money=purse))
        case Fan():
            return replace(request, children=(confined(child, grants, purse, limits) for child in request.children))
        case Spawn():
            return replace(request, child=confined(request.child, grants, purse, limits))
    return request
