"""A run that begins in the middle of another one: what was recorded before a step is taken over, the rest is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from quire.engine.inputs import complete_inputs
from quire.engine.records import EffectRecord, Event, NewRun, RunRow, RunUpdate, Status
from quire.engine.requests import BREAK
from quire.errors import BadInputs, RunState
from quire.plan.uses import asks_a_model
from quire.runtime.ids import new_run_id
from quire.runtime.labels import check_labels
from quire.runtime.opening import passed
from quire.runtime.options import checked_budget
from quire.runtime.overrides import checked_overrides, unknown
from quire.runtime.pins import Pins
from quire.runtime.places import Place, find_place
from quire.runtime.preflight_limits import check_prices
from quire.runtime.runtime import Runtime
from quire.runtime.view import RunView
from quire.store.keeping import History, restore
from quire.trust.capabilities import Grants
from quire.values import Value, copy
from quire.workspace.grants import default_grants, reaching

FORKED = "run_forked"


@dataclass(frozen=True, slots=True)
class Changes:
    """What the new run has different. `sets` are values from the step on: of a playbook and a directive they are text.

    `budget` and `limits` hold for the whole new run, `unlimited` takes the budget away; `allow` are grants that it has
    besides, `answers` those to questions that are still to come. `out` is where its output goes: that of the old run
    keeps its place."""

    sets: Mapping[str, Value] = field(default_factory=dict)
    model: str | None = None
    allow: tuple[str, ...] = ()
    budget: float | None = None
    limits: Mapping[str, Value] = field(default_factory=dict)
    out: str = ""
    unlimited: bool = False
    answers: Mapping[str, str] = field(default_factory=dict)
    unattended: bool = False

    def __post_init__(self) -> None:
        checked_budget(self.budget)


@dataclass(frozen=True, slots=True)
class Forked:
    """`kept` is how many effects were taken over; `reason` why the new run asks its model."""

    run: str
    label: str
    kept: int
    reason: str


async def fork(runtime: Runtime, run: str, step: str, changes: Changes) -> Forked:
    """Makes the new run; nothing of it has been performed yet. Raises `CannotStart` and `RunState`.

    A run that is not as this user wrote it is forked like one from a file: its document and records, not its grants."""
    view = await runtime.view(run)
    if not view.pins.imported and not await runtime.is_sealed(run):
        view = replace(view, pins=replace(view.pins, imported={"status": str(view.row.status)}))
    place = find_place(view.document.runnable(), step)
    if changes.sets and not place.first:
        changes = replace(changes, sets=checked_overrides(view.document, changes.sets))
    pins, reason = _pins(runtime, view, place, changes)
    if not runtime.queue and (changes.budget is not None or changes.model):
        check_prices(runtime.models, [pins.instead or pins.model], pins.budget)
    kept = [record for record in view.effects if place.keeps(record.path)]
    if place.first and changes.sets:
        kept = []  # what a thread did before its first turn, it did with the inputs
    taken_over = len(kept)
    now = runtime.clock.now()
    kept = with_boundary(kept, place, changes.sets, pins, now)
    new = new_run_id(now)
    row = replace(view.row, id=new, pins=pins.as_json(), status=Status.PENDING, ended_by=(), failure=None)
    await _check_reached(runtime, view.row, row, kept, place)
    texts = {digest: await runtime.store.text(digest) for digest in pinned_texts(pins)}
    events = _events(new, now, view, place, await runtime.store.events(run), kept)
    made = NewRun(new, row.title, row.format, row.document, now, pins.as_json(), texts)
    history = History(RunUpdate(Status.PENDING), kept, events, now)
    await restore(runtime.store, made, history)
    return Forked(new, place.label, taken_over, reason)


def pinned_texts(pins: Pins) -> list[str]:
    """The hashes of all texts that a run holds on to."""
    callees = [str(cast("Mapping[str, Value]", one)["sha256"]) for one in pins.callees.values()]
    return list(dict.fromkeys([pins.document, *callees, *([pins.bundle] if pins.bundle else [])]))


def _pins(runtime: Runtime, view: RunView, place: Place, changes: Changes) -> tuple[Pins, str]:
    pins = view.pins
    pins = replace(
        pins,
        origin={"run": view.row.id, "step": place.label, "path": place.path},
        reply_to="",
        queue=runtime.queue,
        out=changes.out,
        budget=None if changes.unlimited else pins.budget if changes.budget is None else changes.budget,
        limits={**pins.limits, **changes.limits},
        warnings=(),
    )
    pins = _granted(runtime, view, pins, changes.allow, changes.limits)
    check_labels(view.document.runnable(), (), changes.answers, view.documents)
    pins = replace(
        pins,
        answers={**pins.answers, **changes.answers},
        unattended=pins.unattended or changes.unattended,
    )
    if changes.sets and place.first:
        pins = replace(pins, inputs=cast("Mapping[str, Value]", copy(_inputs(view, changes.sets))))
    if changes.model is None and not pins.imported:
        return pins, f"as run {view.row.id} was started"
    # A file from elsewhere does not say whom the prompts are sent to.
    pins = replace(pins, imported={})
    if not asks_a_model([view.document.runnable()]) and not pins.model:
        return pins, ""
    choice = runtime.choose_model(changes.model, view.document.runnable())
    runtime.check_model(choice.spec)
    return replace(pins, model=choice.spec, instead=choice.spec), choice.reason


def _granted(runtime: Runtime, view: RunView, pins: Pins, allow: tuple[str, ...], limits: Mapping[str, Value]) -> Pins:
    """The grants of a new start. Those that an imported run had, and its limits, its user was given elsewhere."""
    if not pins.imported and not allow:
        return pins
    if pins.imported:
        pins = replace(pins, allow=allow, grants=(), keys=(), unattended=False, answers={}, folder=None, limits=limits)
    else:
        pins = replace(pins, allow=tuple(dict.fromkeys((*pins.allow, *allow))))
    granted = default_grants(runtime.settings, pins.allow)
    if view.row.format != "directive":
        return replace(pins, grants=tuple(sorted(granted.patterns)))
    if view.pins.imported and view.bundle is not None:
        started = runtime.directives.again(view.bundle, pins.inputs, pins.limits, granted)
        return replace(pins, grants=tuple(sorted(started.grants.patterns)), keys=started.keys)
    return replace(pins, grants=tuple(sorted(Grants.of(pins.grants).patterns | reaching(granted))))


def _inputs(view: RunView, sets: Mapping[str, Value]) -> Mapping[str, Value]:
    """Before the first step there is nothing but inputs."""
    plan = view.document.runnable()
    if plan.format == "pipeline":
        return {**view.pins.inputs, **sets}
    known = [wanted.name for wanted in plan.inputs] if plan.format == "playbook" else list(view.pins.inputs)
    if problems := [unknown(name, known, "the document has no input") for name in sets if name not in known]:
        raise BadInputs(problems)
    given = {**view.pins.inputs, **sets}
    return complete_inputs(plan, given, one_line=False) if plan.format == "playbook" else given


def with_boundary(
    kept: list[EffectRecord], place: Place, sets: Mapping[str, Value], pins: Pins, now: float
) -> list[EffectRecord]:
    """Values are set as at a breakpoint after the step before: its record is what a person answered there."""
    if place.before is None:
        if sets and not place.first:
            raise RunState(
                f"step {place.label} is the first of its branch, where no value can be set: fork the step around it"
            )
        return kept
    path, label = place.before
    boundary = f"{path}{BREAK}"
    stood = next((record for record in kept if record.path == boundary), None)
    if not sets and (stood is not None or label not in pins.breakpoints):
        return kept
    earlier = cast("Mapping[str, Value]", stood.value) if stood else {}
    others = [record for record in kept if record is not stood]
    return [*others, passed(boundary, label, {**earlier, **sets}, now)]


async def _check_reached(
    runtime: Runtime, origin: RunRow, row: RunRow, kept: Sequence[EffectRecord], place: Place
) -> None:
    """Walks what is taken over: it has to lead to the place. A mismatch is found here, not in the middle of a run."""
    led = await runtime.view_of(row, kept)
    if place.first and not kept:
        return  # All of it is new: a thread does things before its first turn, which no replay gets past.
    step = led.replay.progress.steps.get(place.path)
    # A sub-step is skipped when another arm was taken, a step of the document when none of its own was.
    unreached = ("pending", "skipped") if "/case[" in place.path else ("pending",)
    if step is None or step.status in unreached:
        name = place.label if place.label.startswith("turn ") else f"step {place.label}"
        raise RunState(f"run {origin.id} has not come to {name}: fork it from one that it has begun")


def _events(
    run: str, now: float, view: RunView, place: Place, told: Sequence[Event], kept: Sequence[EffectRecord]
) -> list[Event]:
    """The story so far, under the new run's name and numbers. Those of effects that are not taken over go."""
    paths = {record.path for record in kept}
    story = [
        event
        for event in told
        if event.path and place.keeps_event(event) and (event.type != "effect" or event.path in paths)
    ]
    story.append(Event(FORKED, run, now, 0, "", place.label, {"origin": view.row.id, "from": place.path}))
    return [replace(event, run=run, seq=number) for number, event in enumerate(story, 1)]
