"""Why a step came out as it did: what it read and from whom, what it asked for, what it was answered, what it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quire.engine.progress import place_in_plan
from quire.engine.records import EffectRecord
from quire.engine.requests import Boundary, Effect
from quire.errors import CannotStart, RunState
from quire.runtime.origins import Origin, Tracing, origins
from quire.runtime.runtime import Runtime
from quire.runtime.view import RunView
from quire.wording import nearest


@dataclass(frozen=True, slots=True)
class Performed:
    """One effect of a step: the request exactly as it was made, and its record; None where there is none yet."""

    request: Effect
    record: EffectRecord | None

    @property
    def path(self) -> str:
        return self.request.path


@dataclass(frozen=True, slots=True)
class Why:
    """`told` are the labels of the earlier steps whose results the model was told with the prompt."""

    run: str
    path: str
    label: str
    title: str
    status: str
    message: str
    values: Sequence[Origin]
    told: Sequence[str]
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
        """None where the price of a call is not known."""
        costs = [one.record.usage.cost for one in self.performed if one.record and one.record.usage]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None


async def traced(runtime: Runtime, run: str) -> RunView:
    """The view of a run whose progress knows who wrote what."""
    row = await runtime.row(run)
    effects = await runtime.store.effects(run)
    questions = await runtime.store.questions(run)
    return await runtime.view_of(row, effects, questions, lambda plan: _tracing(Tracing.of(plan), effects))


def _tracing(progress: object, effects: Sequence[EffectRecord]) -> Tracing:
    assert isinstance(progress, Tracing)  # noqa: S101  # what `of` of that class makes
    return progress.listening_to(effects)


def why(view: RunView, named: str) -> Why:
    """A step by its label, or anything by its path: an item of a list, one effect. Raises `CannotStart`."""
    path = _find(view, named.strip())
    steps = view.replay.progress.steps
    step = steps.get(path)
    planned = path if step else place_in_plan(path)
    around = step or view.replay.progress.step_of(path)
    performed = _performed(view, path)
    if step is None and not performed:
        raise RunState(f"run {view.row.id} has not come to {named}")
    return Why(
        view.row.id,
        path,
        around.label if around else "",
        around.title if around else "",
        (step or around).status if around else "",
        step.message if step else "",
        origins(view, planned),
        _told(view, performed),
        performed,
    )


def _performed(view: RunView, path: str) -> list[Performed]:
    records = {record.path: record for record in view.effects}
    asked = view.replay.asked
    below = [at for at in asked if at == path or at.startswith(f"{path}/")]
    if not below:
        # A step inside of a loop stands in the plan once, and in the journal once for each item.
        below = [at for at in asked if place_in_plan(at) == path or place_in_plan(at).startswith(f"{path}/")]
    found = [Performed(asked[at], records.get(at)) for at in below]
    return [one for one in found if one.record is not None or not isinstance(one.request, Boundary)]


def _told(view: RunView, performed: Sequence[Performed]) -> list[str]:
    """Looked for in what was sent, which may have been cut."""
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
    labelled = [path for path, step in steps.items() if step.label.lower() == named.lower()]
    if not labelled and named.isdecimal():
        labelled = [path for path, step in steps.items() if step.label == f"turn {named}"]
    is_thread = view.row.format == "directive"  # whose plan has one step, which nobody calls by a name
    plan = [] if is_thread else [(path, step.label) for path, step in view.document.runnable().steps()]
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
    close = nearest(named, [*labels, *asked])
    known = f"did you mean {close}?" if close else f"there are {', '.join(labels[:20])}"
    raise CannotStart(f"run {view.row.id} has no step {named}: {known}")
