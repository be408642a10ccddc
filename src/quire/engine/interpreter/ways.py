"""The way to a step of a callee: `3 › 1` is step 1 of what step 3 calls.

A plan knows the labels of its own steps only. Whoever calls a document names what comes out of it: the label of every
request gets the label of the calling step before it, level by level. Labels are for people; no path and no recorded
hash has a part of them that a way changes.
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
    """The walk of a callee that the step of that label calls: the same requests, under labels that say the way."""
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
                # A failure of one branch of a fan has been named on its way out, and comes out here once more.
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
