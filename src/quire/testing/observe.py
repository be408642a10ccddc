"""Make the observation of a case from the view of its run and from what its world has seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.engine.driver.drive import DriveResult
from quire.engine.proven_bounds import BROKEN
from quire.engine.thread_progress import path_order
from quire.runs.outcome import by_label, exit_of
from quire.testing.observation import Observation, Used
from quire.trust.capabilities import denied_capability

if TYPE_CHECKING:
    from quire.errors import QuireError
    from quire.runs.view import RunView
    from quire.testing.case_run import CaseWorld
    from quire.values import Value

NOT_STARTED = "not_started"
STATUSES = {"awaiting_input": "waiting", "running": "pending", "interrupted": "pending", "": "pending"}


def not_started(error: QuireError, inputs: Mapping[str, Value]) -> Observation:
    """Return the observation of a case whose document could not be started."""
    told: Mapping[str, Value] = {"kind": type(error).__name__, "message": str(error), "step": ""}
    return Observation(NOT_STARTED, error.exit_code, error=told, inputs=inputs)


def observe(view: RunView, world: CaseWorld, inputs: Mapping[str, Value]) -> Observation:
    """Return the observation of a run that rests or has ended."""
    row, outputs = view.row, view.details.get("outputs")
    # They are problems of their own, whether or not a case expects warnings.
    broken = {str(event.data.get("message", "")) for event in world.events if event.type == BROKEN}
    answered = {record.path: str(record.value) for record in view.effects if record.kind == "ask"}
    for path, question in world.people.seen.items():
        question.answer = answered.get(path, question.answer)
    return Observation(
        status=str(row.status),
        exit=exit_of(DriveResult(row.status, row.position, failure=view.rest.failure)),
        output=view.value,
        artifact=view.artifact,
        error=view.error,
        inputs={**inputs, **view.pins.inputs},
        named=dict(view.named),
        stores=dict(view.stores),
        outputs=outputs if isinstance(outputs, Mapping) else {},
        steps={label: STATUSES.get(step.status, step.status) for label, step in by_label(view.own_steps).items()},
        prompts=sorted(world.model.seen, key=lambda one: path_order(one.path)),
        asked=list(world.people.seen.values()),
        calls=list(world.tools.seen),
        refused=refused_in(world),
        hooks=Counter(str(event.data.get("hook", "")) for event in world.events if event.type == "hook_action"),
        files=world.folder.listing() if world.folder.is_made else {},
        events=world.events,
        warnings=[one for one in view.warnings if one[1] not in broken],
        used=_used(view, world),
    )


def refused_in(world: CaseWorld) -> list[str]:
    """Return the capabilities that were missing, each once, in order."""
    found = [call.refused for call in world.tools.seen if call.refused]
    for event in world.events:
        if event.type in ("tool_told", "agent_told") and event.data.get("kind") == "denied":
            found.append(denied_capability(str(event.data.get("result", ""))))
    return list(dict.fromkeys(filter(None, found)))


def _used(view: RunView, world: CaseWorld) -> Used:
    row, prompts = view.row, world.model.seen
    return Used(
        model_calls=len(prompts),
        tool_calls=len(world.tools.seen),
        threads=sum(event.type == "thread_started" for event in world.events),
        turns=sum("/turn[" in prompt.path for prompt in prompts),
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cost=row.cost,
        seconds=round(world.now() - row.created_at, 6),
        parallel=world.meter.most,
    )
