"""Explain a step: the values it read and their origins, its requests, their results, and the cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.progress import place_in_plan
from quire.engine.requests import Boundary, Effect
from quire.errors import CannotStart, RunState
from quire.plan.descriptions import step_title
from quire.plan.ways import JOINT, last_label, typed_way
from quire.runs.provenance import ProvenanceProgress, ValueSource, origins
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord
    from quire.engine.step_progress import StepView
    from quire.plan.nodes import Step
    from quire.runs.runtime import Runtime
    from quire.runs.view import RunView


class Performed(Struct, frozen=True):
    """One effect of a step: the request exactly as it was made, and its record; None if there is none yet."""

    request: Effect
    record: EffectRecord | None

    @property
    def path(self) -> str:
        return self.request.path


class Why(Struct, frozen=True):
    """The explanation of a step."""

    run: str
    path: str
    label: str
    way: str
    """The way to a step of a callee; otherwise the label."""
    title: str
    status: str
    message: str
    values: Sequence[ValueSource]
    told: Sequence[str]
    """The labels of the earlier steps whose results were sent to the model with the prompt."""
    performed: Sequence[Performed]

    @property
    def elapsed(self) -> float:
        return sum(one.record.elapsed for one in self.performed if one.record)

    @property
    def input_tokens(self) -> int:
        return sum(one.record.usage.input_tokens for one in self.performed if one.record and one.record.usage)

    @property
    def output_tokens(self) -> int:
        return sum(one.record.usage.output_tokens for one in self.performed if one.record and one.record.usage)

    @property
    def cost(self) -> float | None:
        """The cost of all calls; None if the price of one is not known."""
        costs = [one.record.usage.cost for one in self.performed if one.record and one.record.usage]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None


async def traced(runtime: Runtime, run: str) -> RunView:
    """Return the view of a run whose progress knows the origin of each value."""
    row = await runtime.row(run)
    effects = await runtime.store.effects(run)
    questions = await runtime.store.questions(run)
    return await runtime.view_of(row, effects, questions, lambda plan: _tracing(ProvenanceProgress.of(plan), effects))


def _tracing(progress: object, effects: Sequence[EffectRecord]) -> ProvenanceProgress:
    assert isinstance(progress, ProvenanceProgress)  # noqa: S101  # made by `of` of that class
    return progress.listening_to(effects)


def why(view: RunView, named: str) -> Why:
    """Explain a step by its label, or anything by its path: an item of a list, one effect. Raises `CannotStart`, and
    `RunState` if the run has not reached it."""
    if JOINT in (way := typed_way(named)) and (found := _in_callee(view, way)):
        return found
    return why_at(view, _find(view, named.strip()), named)


def why_at(view: RunView, path: str, named: str = "") -> Why:
    """Explain the step, the item or the effect at a path, and nothing else that has the path as its name. Raises
    `RunState` if the run has not reached it."""
    step = view.replay.progress.steps.get(path)
    planned = path if step else place_in_plan(path)
    around = step or view.replay.progress.step_of(path)
    performed = _performed(view, path)
    inner = None if step else _inner(view, planned)
    # No event reports whether a step of a loop or a fan was reached if it asks for nothing.
    reached = inner is not None and planned == path and around is not None and around.status == "completed"
    if step is None and not performed and not reached:
        raise RunState(f"run {view.row.id} has not come to {named or path}")
    way = _way(performed, step, around)
    return Why(
        view.row.id,
        path,
        inner.label if inner else around.label if around else "",
        inner.label if inner and JOINT not in way else way,
        step_title(inner) if inner else around.title if around else "",
        (step or around).status if around else "",
        (f"survived: {step.survived}" if step.survived else step.message) if step else "",
        origins(view, planned),
        _told(view, performed),
        performed,
    )


def _inner(view: RunView, path: str) -> Step | None:
    """Return the step of a pipeline at a path of its plan, in a loop or a fan."""
    if view.row.format != "pipeline":
        return None
    return next((step for at, step in view.document.runnable().steps() if at == path), None)


def _way(performed: Sequence[Performed], step: StepView | None, around: StepView | None) -> str:
    """Return the way of the effects below, if all of them belong to one step of a callee; otherwise that of the
    step."""
    ways = {one.request.label for one in performed}
    if step is None and len(ways) == 1 and JOINT in (only := ways.pop()):
        return only
    return around.way if around else ""


def _in_callee(view: RunView, way: str) -> Why | None:
    """Explain a step of a callee by all its requests, in whichever items of a list. None if it has made none."""
    records = {record.path: record for record in view.effects}
    performed = [
        Performed(request, records.get(path))
        for path, request in view.replay.asked.items()
        if request.label == way and (path in records or not isinstance(request, Boundary))
    ]
    around = view.replay.progress.step_of(performed[0].path) if performed else None
    if not performed or (around is not None and around.way == way):
        return None
    parts = [one.path.split("/") for one in performed]
    shared = [same[0] for same in zip(*parts, strict=False) if len(set(same)) == 1]
    path = "/".join(shared[:-1] if len(shared) == len(min(parts, key=len)) else shared)
    status, message = _status(performed)
    return Why(view.row.id, path, last_label(way), way, "", status, message, (), _told(view, performed), performed)


def _status(performed: Sequence[Performed]) -> tuple[str, str]:
    failures = [one.record.failure.message for one in performed if one.record and one.record.failure]
    if any(one.record is None for one in performed):
        return "running", ""
    return ("failed", failures[-1]) if failures else ("completed", "")


def _performed(view: RunView, path: str) -> list[Performed]:
    records = {record.path: record for record in view.effects}
    asked = view.replay.asked
    below = [at for at in asked if at == path or at.startswith(f"{path}/")]
    if not below:
        # A step inside a loop occurs once in the plan, and once for each item in the journal.
        below = [at for at in asked if place_in_plan(at) == path or place_in_plan(at).startswith(f"{path}/")]
    found = [Performed(asked[at], records.get(at)) for at in below]
    return [one for one in found if one.record is not None or not isinstance(one.request, Boundary)]


def _told(view: RunView, performed: Sequence[Performed]) -> list[str]:
    """Return the labels of the earlier steps whose results were sent. They are searched in the sent text, which may
    have been cut."""
    systems = [str(getattr(one.request, "system", "")) for one in performed[:1] if hasattr(one.request, "system")]
    if view.row.format != "playbook" or not systems:
        return []
    steps = view.replay.progress.steps.values()
    return [
        step.label
        for step in steps
        if f"[Step {step.label}: {step.title}" in systems[0] or f"[Step {step.label}]" in systems[0]
    ]


def _find(view: RunView, named: str) -> str:
    steps = view.replay.progress.steps
    wanted = typed_way(named).lower()
    labelled = [path for path, step in steps.items() if wanted in (step.way.lower(), step.label.lower())]
    if not labelled and named.isdecimal():
        labelled = [path for path, step in steps.items() if step.label == f"turn {named}"]
    whole = view.document.runnable()
    # The one step of a thread has no name for users.
    plan = [] if whole.thread else [(path, step.label) for path, step in whole.steps()]
    labelled = labelled or [path for path, label in plan if label.lower() == named.lower() and path not in steps]
    if len(labelled) > 1 and named not in labelled:
        raise CannotStart(f"several steps are called {named}: say which by its path ({', '.join(labelled)})")
    if labelled:
        return labelled[0]
    asked = view.replay.asked
    if named in steps or any(at == named or at.startswith(f"{named}/") for at in asked):
        return named
    if any(path == named for path, _ in plan):
        return named
    labels = list(dict.fromkeys([*(step.label for step in steps.values()), *(label for _, label in plan)]))
    ways = dict.fromkeys(one.label for one in asked.values() if JOINT in one.label)
    close = nearest(typed_way(named), [*labels, *ways, *asked])
    known = did_you_mean(close, f"there are {', '.join([*labels, *ways][:20])}")
    raise CannotStart(f"run {view.row.id} has no step {named}: {known}")
