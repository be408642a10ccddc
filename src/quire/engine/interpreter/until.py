"""End a walk after one step: the run is complete when the step is, and the output of the step is the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from quire.engine.requests import BREAK, Emit, Fan, Metering, ModelRequest, Spawn, Walk
from quire.errors import LimitReached, StepFailed

if TYPE_CHECKING:
    from quire.values import Value


class StepReached(Exception):
    """The step has ended. Drivers and replays end the run with the result, or with the failure."""

    def __init__(self, output: Value, failure: StepFailed | None = None) -> None:
        self.result: dict[str, Value] = {"output": output}
        self.failure = failure


def is_within(path: str, until: str) -> bool:
    """Tell whether an effect belongs to the step at a path."""
    return path == until or path.startswith(f"{until}/")


def ends_after(walk: Walk, until: str, temperature: float | None = None) -> Walk:
    """Return a walk that raises `StepReached` once the step at exactly this path has ended.

    A step in a loop emits no event, so it has also ended when its branch asks for something else, or ends. Then its
    output is the last reply. `temperature` replaces that of the model calls of the step.
    """
    answer: Any = None
    error: StepFailed | LimitReached | None = None
    reply: Value = None
    inside = False
    try:
        while True:
            try:
                request = walk.send(answer) if error is None else walk.throw(error)
            except StopIteration as stop:
                if inside:
                    raise StepReached(reply) from None
                result: Value = stop.value
                return result
            except StepFailed as failed:
                if inside:
                    raise StepReached(None, failed) from None
                raise
            answer = error = None
            if isinstance(request, Emit):
                yield request
                if request.type == "step_completed" and request.path == until:
                    raise StepReached(request.live.get("output"))
                continue
            if not isinstance(request, Metering):
                here = is_within(request.path, until)
                if (inside and not here) or request.path == f"{until}{BREAK}":
                    raise StepReached(reply)
                inside = here
            if isinstance(request, Fan):
                request = replace(
                    request, children=(ends_after(child, until, temperature) for child in request.children)
                )
            elif isinstance(request, Spawn):
                request = replace(request, child=ends_after(request.child, until, temperature))
            elif isinstance(request, ModelRequest) and inside and temperature is not None:
                request = replace(request, temperature=temperature)
            try:
                answer = yield request
            except (StepFailed, LimitReached) as failed:
                error = failed
            if isinstance(request, ModelRequest) and isinstance(answer, Mapping):
                reply = answer.get("text")
    finally:
        walk.close()
