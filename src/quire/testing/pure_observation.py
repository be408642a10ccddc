"""Make the observation of a walk that was driven by hand, equal to the one that a driven run gives.

Two things are not seen here: events of the driver itself (`effect`, `question`, `run_failed`), and the expiry of
questions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.engine.driver.drive import DriveResult
from quire.engine.records import Status
from quire.engine.requests import Failure, ModelRequest
from quire.engine.thread_progress import path_order
from quire.plan.thread import THREAD_PATH
from quire.plan.ways import JOINT, last_label
from quire.runs.outcome import by_label, exit_of
from quire.testing.observation import Observation, Used
from quire.testing.observe import NOT_STARTED, STATUSES, refused_in
from quire.values import pretty

if TYPE_CHECKING:
    from quire.engine.progress import Progress
    from quire.runs.pins import PinnedState
    from quire.testing.case_run import CaseWorld
    from quire.testing.pure_answers import Failed, WalkEnd
    from quire.testing.pure_start import PureStart
    from quire.values import Value


def observe_walk(
    end: WalkEnd, progress: Progress, start: PureStart, world: CaseWorld, pins: PinnedState
) -> Observation:
    """Return the observation of a walk that rests or has ended."""
    failure = end.failure
    inputs = {**start.inputs}
    if not end.started and failure is not None:
        told: Mapping[str, Value] = {"kind": failure.kind, "message": failure.message, "step": ""}
        return Observation(NOT_STARTED, 6 if failure.kind == "denied" else 2, error=told, inputs=inputs)
    pipeline = start.plan.format == "pipeline"
    result = end.result if isinstance(end.result, Mapping) else {}
    value = result.get("output", None if pipeline else "")
    _settle(end, progress)
    stores = result.get("stores") if pipeline else {}
    kept = None if failure is None else Failure(failure.kind, failure.message)
    return Observation(
        status=str(end.status),
        exit=exit_of(DriveResult(end.status, failure=kept)),
        output=value,
        artifact=str(result.get("artifact", pretty(value))),
        error=None if failure is None else _error(failure, end.position, progress, pipeline=pipeline),
        inputs=inputs,
        named=dict(progress.named),
        stores=stores if isinstance(stores, Mapping) else {**start.inputs, **progress.stores},
        outputs=_outputs(progress) if start.plan.format == "directive" else {},
        steps=_steps(progress, turns=start.plan.format == "directive"),
        prompts=sorted(world.model.seen, key=lambda one: path_order(one.path)),
        asked=list(world.people.seen.values()),
        calls=list(world.tools.seen),
        refused=refused_in(world),
        hooks=Counter(str(event.data.get("hook", "")) for event in world.events if event.type == "hook_action"),
        files=world.folder.listing() if world.folder.is_made else {},
        events=world.events,
        warnings=[*(("", one) for one in pins.warnings), *progress.warnings],
        used=_used(end, world),
    )


def _settle(end: WalkEnd, progress: Progress) -> None:
    """Give the steps that wait, or were under way, their status."""
    for question in end.questions:
        step = progress.step_of(question.path)
        if step is not None:
            step.status = str(Status.AWAITING_INPUT)
    if end.status is not Status.COMPLETED:
        progress.settle(end.status)


def _error(failure: Failed, position: str, progress: Progress, *, pipeline: bool) -> dict[str, Value]:
    stands = failure.label or position
    step = progress.step_of(failure.path) if pipeline and failure.path else None
    label = step.label if step is not None else last_label(stands)
    way = step.way if step is not None and JOINT not in stands else stands
    error: dict[str, Value] = {"kind": failure.kind, "message": failure.message, "step": label, "way": way}
    return {**error, "path": failure.path} if pipeline else error


def _outputs(progress: Progress) -> Mapping[str, Value]:
    thread = progress.threads.get(THREAD_PATH)
    outputs = (thread.ended or {}).get("outputs") if thread is not None else None
    return outputs if isinstance(outputs, Mapping) else {}


def _steps(progress: Progress, *, turns: bool) -> dict[str, str]:
    own = [step for step in progress.steps.values() if turns or not step.thread]
    return {label: STATUSES.get(step.status, step.status) for label, step in by_label(own).items()}


def _used(end: WalkEnd, world: CaseWorld) -> Used:
    meters, prompts = list(end.meters.values()), world.model.seen
    costs = [
        end.meters[path].cost
        for path, request in end.asked.items()
        if path in end.meters and isinstance(request, ModelRequest)
    ]
    known = [cost for cost in costs if cost is not None]
    return Used(
        model_calls=len(prompts),
        tool_calls=len(world.tools.seen),
        threads=sum(event.type == "thread_started" for event in world.events),
        turns=sum("/turn[" in prompt.path for prompt in prompts),
        input_tokens=sum(meter.input_tokens for meter in meters),
        output_tokens=sum(meter.output_tokens for meter in meters),
        cost=sum(known) if len(known) == len(costs) else None,
        seconds=round(end.seconds, 6),
        parallel=end.parallel,
    )
