"""Label the steps of a callee with the way to them: `3 › 1` is step 1 of the document that step 3 calls.

A plan knows the labels of its own steps only. The caller of a document adds the label of the calling step in front of
the label of every request that comes out of it, level by level. Labels are for people: the added part never enters a
path or a recorded hash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from quire.engine.requests import Boundary, Emit, Fan, Metering, Request, Spawn, ToolRequest, Walk
from quire.errors import StepFailed
from quire.plan.ways import JOINT

if TYPE_CHECKING:
    from quire.values import Value


def below(label: str, walk: Walk) -> Walk:
    """Return the walk of a callee that the step with this label calls, its requests labelled with the way to them."""
    above = f"{label}{JOINT}"
    answer: Any = None
    error: StepFailed | None = None
    try:
        while True:
            request = walk.send(answer) if error is None else walk.throw(error)
            answer = error = None
            try:
                answer = yield _named(request, label, above)
            except StepFailed as failed:
                # The failure of a branch of a fan was already labelled when it left the branch, and comes out here
                # again.
                failed.label = failed.label.removeprefix(above)
                error = failed
    except StopIteration as stop:
        result: Value = stop.value
        return result
    except StepFailed as failed:
        failed.label = f"{above}{failed.label}" if failed.label else ""
        raise
    finally:
        walk.close()


def _named(request: Request, label: str, above: str) -> Request:
    match request:
        case Emit() | ToolRequest() | Boundary():
            if request.label:
                request.label = f"{above}{request.label}"
            return request
        case Metering():
            return request
        case Fan(children=children):
            return replace(request, children=(below(label, child) for child in children))
        case Spawn(child=child):
            return replace(request, child=below(label, child))
    return replace(request, label=f"{above}{request.label}") if request.label else request
