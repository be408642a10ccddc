"""Fork a run: start a new run in the middle of another one.

The records before a step are taken over, the rest is new. A `Place` tells which records lie before the step, and where
values can be set for it; a `Receipt` tells what the fork keeps, what it does again, and the most that it may still do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from msgspec import Struct, field
from msgspec.structs import replace

from quire.engine.driver.journal import is_lost_call
from quire.engine.inputs import run_inputs
from quire.engine.records import EffectRecord, Event, NewRun, RunRow, RunUpdate, Status, total_cost
from quire.engine.requests import BREAK
from quire.errors import BadInputs, CannotStart, RunState
from quire.library.foresight import Foresight
from quire.plan.bounds import PlanBounds, Range, rest_of
from quire.plan.thread import THREAD_PATH
from quire.plan.uses import asks_a_model
from quire.plan.vocabulary import path_named
from quire.runs.drives import boundary_record, checked_overrides, unknown
from quire.runs.options import call_limit, check_step_labels, checked_budget
from quire.runs.start import new_run_id, require_meant, written_directives
from quire.runs.static_failures import check_prices, check_unattended
from quire.stores.contract import History
from quire.trust.capabilities import Grants
from quire.values import Value, copy
from quire.wording import did_you_mean, nearest
from quire.workspace.grants import default_grants, reaching

if TYPE_CHECKING:
    from quire.plan.nodes import Plan
    from quire.runs.outcome import RunView
    from quire.runs.pins import PinnedState
    from quire.runs.runtime import Runtime
    from quire.workspace.settings import Settings


_TURN = re.compile(rf"{THREAD_PATH}/turn\[(\d+)\](?=/|$)")
_NAMED_TURN = re.compile(r"(?:turn )?([0-9]{1,6})")
_ENDINGS = ("step_completed", "step_failed", "step_skipped", "thread_ended")


class Place(Struct, frozen=True):
    """A step at which a run can be forked."""

    path: str
    label: str
    before: tuple[str, str] | None
    """The path and label of the step at whose end values can be set for this one. None if there is none: it is the
    `first` of all, or the first of its branch."""
    order: Mapping[str, int]
    """The position of each step by its path, to tell which of two steps comes first."""
    first: bool

    def keeps(self, path: str) -> bool:
        """Tell whether an effect was requested before the run reached this place."""
        if path.startswith(f"{THREAD_PATH}/"):
            turn = _TURN.match(path)
            return int(turn[1]) < self._turn if turn else not path.startswith(f"{THREAD_PATH}/end")
        owner = self._owner(path)
        if owner is None or self.order[owner] >= self.order[self.path]:
            return False
        return not (self._around(owner) and path == f"{owner}{BREAK}")

    def keeps_event(self, event: Event) -> bool:
        if event.path == THREAD_PATH and self._turn:
            return event.type not in _ENDINGS
        return self.keeps(event.path) and not (self._around(event.path) and event.type in _ENDINGS)

    @property
    def _turn(self) -> int:
        match = _TURN.match(self.path)
        return int(match[1]) if match else 0

    def _around(self, path: str) -> bool:
        return self.path.startswith(f"{path}/")

    def _owner(self, path: str) -> str | None:
        while path and path not in self.order:
            path = path.rpartition("/")[0]
        return path or None


def find_place(plan: Plan, named: str) -> Place:
    """Find a place by label or path: a step of a playbook, a top-level step of a pipeline, a turn of a directive.

    Raises `CannotStart`, with the nearest name, for an unknown step.
    """
    named = named.strip()
    if plan.thread:
        return _turn(named)
    steps = {path: step.label for path, step in plan.stops().items()}
    path = path_named(named, steps)
    if path is None:
        raise _no_step(plan, named, steps)
    order = {step: number for number, step in enumerate(steps)}
    above, _, _ = path.rpartition("/")
    siblings = [step for step in steps if step.rpartition("/")[0] == above]
    at = siblings.index(path)
    before = (siblings[at - 1], steps[siblings[at - 1]]) if at else None
    return Place(path, steps[path], before, order, first=not above and at == 0)


def _turn(named: str) -> Place:
    match = _NAMED_TURN.fullmatch(named.lower()) or _TURN.fullmatch(named)
    number = int(match[1]) if match else 0
    if not number:
        raise CannotStart(f"{named!r} is not a turn of a directive: write 'turn 3', or just 3")
    before = (f"{THREAD_PATH}/turn[{number - 1}]", f"turn {number - 1}") if number > 1 else None
    return Place(f"{THREAD_PATH}/turn[{number}]", f"turn {number}", before, {}, first=number == 1)


def _no_step(plan: Plan, named: str, steps: Mapping[str, str]) -> CannotStart:
    labels = list(dict.fromkeys(steps.values()))
    inside = next((path for path, step in plan.steps() if named in (path, step.label)), None)
    if inside is not None:
        top = inside.partition("/")[0]
        return CannotStart(f"step {named} is inside of step {top}: a pipeline is forked between its own steps")
    hint = did_you_mean(nearest(named, labels), f"the steps are {', '.join(labels)}")
    return CannotStart(f"unknown step {named}: {hint}")


FORKED = "run_forked"


class Changes(Struct, frozen=True):
    """The differences between a fork and its original run."""

    sets: Mapping[str, Value] = field(default_factory=dict)
    """Values that hold from the step on. In a playbook and a directive they are texts."""
    model: str | None = None
    allow: tuple[str, ...] = ()
    """Additional grants."""
    budget: float | None = None
    """The budget of the whole new run."""
    limits: Mapping[str, Value] = field(default_factory=dict)
    """Limits that hold for the whole new run."""
    out: str = ""
    """The place of the new run's output; the output of the old run keeps its own."""
    unlimited: bool = False
    """Remove the budget."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """Answers to questions that are still to come."""
    unattended: bool = False
    says_yes: bool = False
    """As in `RunOptions`, like the next three."""
    door: str = ""
    source: str = ""
    force: bool = False

    def __post_init__(self) -> None:
        checked_budget(self.budget)
        call_limit(self.limits)


class PreparedFork(Struct, frozen=True):
    """A fork that has passed all checks, before it is stored and after."""

    made: NewRun
    history: History
    origin: RunView
    place: Place
    pins: PinnedState
    kept: Sequence[EffectRecord]
    """The effects that are taken over."""
    reason: str
    """The reason for the choice of its model."""

    @property
    def run(self) -> str:
        return self.made.id


async def fork(runtime: Runtime, run: str, step: str, changes: Changes) -> PreparedFork:
    """Create the new run; none of its own effects is performed yet. Raises `CannotStart` and `RunState`."""
    prepared = await prepare_fork(runtime, run, step, changes)
    await runtime.restore(prepared.made, prepared.pins, prepared.history)
    return prepared


async def prepare_fork(runtime: Runtime, run: str, step: str, changes: Changes) -> PreparedFork:
    """Check a fork and return it; nothing is stored. Raises `CannotStart` and `RunState`.

    A run that is not as this user wrote it is forked like one from a file: with its document and records, but without
    its grants.
    """
    view = await view_to_fork(runtime, run)
    place = find_place(view.document.runnable(), step)
    if changes.sets and not place.first:
        changes = replace(changes, sets=checked_overrides(view.document, changes.sets))
    pins, reason = pins_of_fork(runtime, view, place, changes)
    if not runtime.queue and (changes.budget is not None or changes.model):
        check_prices(runtime.models, [pins.instead or pins.model], pins.budget)
    # Money that the old run set aside for a call is not spent again.
    records = [record for record in view.effects if place.keeps(record.path) and not is_lost_call(record)]
    if place.first and changes.sets:
        records = []  # effects of a thread before its first turn depend on its inputs
    taken_over = records
    if changes.unattended and not changes.says_yes and not view.pins.unattended:
        check_unattended(view.document.runnable(), view.documents, pins.answers, [record.path for record in records])
    now = runtime.clock.now()
    records = with_boundary(records, place, changes.sets, pins, now)
    new = new_run_id(now)
    row = replace(view.row, id=new, pins=pins.as_json(), status=Status.PENDING, ended_by=(), failure=None)
    await _check_reached(runtime, view.row, row, records, place)
    texts = {digest: await runtime.store.text(digest) for digest in pinned_texts(pins)}
    written = [(view.document.source, row.format, pins.declared), *written_directives(view.bundle)]
    accepted = () if view.pins.imported else pins.forced
    codes = require_meant(written, force=changes.force, accepted=(*runtime.accepted, *accepted))
    pins = replace(pins, forced=tuple(sorted({*accepted, *codes})))
    events = _events(new, now, view, place, await runtime.store.events(run), records)
    made = NewRun(new, row.title, row.format, row.document, now, pins.as_json(), texts)
    history = History(RunUpdate(Status.PENDING), records, events, now)
    return PreparedFork(made, history, view, place, pins, taken_over, reason)


async def view_to_fork(runtime: Runtime, run: str) -> RunView:
    """Return the view of a run; one that is not as this user wrote it counts as imported."""
    view = await runtime.view(run)
    if view.pins.imported or await runtime.is_sealed(run):
        return view
    return replace(view, pins=replace(view.pins, imported={"status": str(view.row.status)}))


def pinned_texts(pins: PinnedState) -> list[str]:
    """Return the hashes of all texts that a run pins."""
    callees = [str(cast("Mapping[str, Value]", callee)["sha256"]) for callee in pins.callees.values()]
    return list(dict.fromkeys([pins.document, *callees, *([pins.bundle] if pins.bundle else [])]))


def pins_of_fork(runtime: Runtime, view: RunView, place: Place, changes: Changes) -> tuple[PinnedState, str]:
    """Return the pins of a new run from this place on, and the reason for the choice of its model."""
    pins = view.pins
    budgets = changes.budget, None if changes.unlimited else pins.budget, runtime.settings.budgets.run
    pins = replace(
        pins,
        origin={"run": view.row.id, "step": place.label, "path": place.path},
        reply_to="",
        queue=runtime.queue,
        out=changes.out,
        budget=next((amount for amount in budgets if amount is not None), None),
        limits={**pins.limits, **changes.limits},
        warnings=(),
        door=changes.door,
        source=changes.source,
        reuse="",
        until="",
    )
    pins = _granted(runtime, view, pins, changes.allow, changes.limits)
    check_step_labels(view.document.runnable(), (), changes.answers, view.documents)
    pins = replace(pins, answers={**pins.answers, **changes.answers}, unattended=pins.unattended or changes.unattended)
    if changes.sets and place.first:
        pins = replace(pins, inputs=cast("Mapping[str, Value]", copy(_inputs(view, changes.sets))))
    if changes.model is None and not pins.imported:
        return pins, f"as run {view.row.id} was started"
    # A file from elsewhere does not decide which model receives the prompts.
    pins = replace(pins, imported={})
    if not asks_a_model([view.document.runnable()]) and not pins.model:
        return pins, ""
    choice = runtime.choose_model(changes.model, view.document.runnable())
    runtime.check_model(choice.spec)
    settings = choice.settings.as_value()
    return replace(pins, model=choice.spec, instead=choice.spec, model_settings=settings), choice.reason


def _granted(
    runtime: Runtime, view: RunView, pins: PinnedState, allow: tuple[str, ...], limits: Mapping[str, Value]
) -> PinnedState:
    """Return the pins with the grants of a new start. The grants and limits of an imported run are dropped, because its
    user was given them elsewhere."""
    if not pins.imported and not allow:
        return pins
    if pins.imported:
        pins = replace(pins, allow=allow, grants=(), keys=(), unattended=False, answers={}, folder=None, limits=limits)
    else:
        pins = replace(pins, allow=tuple(dict.fromkeys((*pins.allow, *allow))))
    granted = default_grants(runtime.settings, pins.allow)
    if view.thread is None:
        return replace(pins, grants=tuple(sorted(granted.patterns)))
    if view.pins.imported and view.bundle is not None:
        started = runtime.directives.again(view.bundle, pins.inputs, pins.limits, granted)
        return replace(pins, grants=tuple(sorted(started.grants.patterns)), keys=started.keys)
    return replace(pins, grants=tuple(sorted(Grants.of(pins.grants).patterns | reaching(granted))))


def _inputs(view: RunView, sets: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return the inputs with the new values: before the first step, inputs are the only values that can be set. Raises
    `BadInputs` for a name that the document does not have."""
    plan = view.document.runnable()
    inputs = {**view.pins.inputs, **sets}
    if plan.format == "pipeline":
        return run_inputs(plan, inputs)
    names = list(view.pins.inputs) if plan.thread else [own.name for own in plan.inputs]
    if problems := [unknown(name, names, "the document has no input") for name in sets if name not in names]:
        raise BadInputs(problems)
    return inputs if plan.thread else run_inputs(plan, inputs, one_line=False)


def with_boundary(
    records: list[EffectRecord], place: Place, sets: Mapping[str, Value], pins: PinnedState, now: float
) -> list[EffectRecord]:
    """Add the values as a breakpoint after the previous step would: in its record, as a person's answer there. Raises
    `RunState` for the first step of a branch."""
    if place.before is None:
        if sets and not place.first:
            raise RunState(
                f"step {place.label} is the first of its branch, where no value can be set: fork the step around it"
            )
        return records
    path, label = place.before
    boundary = f"{path}{BREAK}"
    stood = next((record for record in records if record.path == boundary), None)
    if not sets and (stood is not None or label not in pins.breakpoints):
        return records
    earlier = cast("Mapping[str, Value]", stood.value) if stood else {}
    others = [record for record in records if record is not stood]
    return [*others, boundary_record(boundary, label, {**earlier, **sets}, now)]


async def _check_reached(
    runtime: Runtime, origin: RunRow, row: RunRow, records: Sequence[EffectRecord], place: Place
) -> None:
    """Replay the records that are taken over and check that they lead to the place, so that a mismatch is found here
    and not in the middle of a run. Raises `RunState`."""
    led = await runtime.view_of(row, records)
    if place.first and not records:
        return  # Everything is new. A thread has effects before its first turn, which a replay cannot pass.
    step = led.replay.progress.steps.get(place.path)
    if step is None or not _is_reached(step.path, step.status):
        name = place.label if place.label.startswith("turn ") else f"step {place.label}"
        raise RunState(f"run {origin.id} has not come to {name}: fork it from one that it has begun")


def _events(
    run: str, now: float, view: RunView, place: Place, events: Sequence[Event], records: Sequence[EffectRecord]
) -> list[Event]:
    """Return the events so far, with the new run's id and numbers. Events of effects that are not taken over are left
    out."""
    paths = {record.path for record in records}
    story = [
        event
        for event in events
        if event.path and place.keeps_event(event) and (event.type != "effect" or event.path in paths)
    ]
    return retold(run, now, story, place.label, {"origin": view.row.id, "from": place.path})


def retold(run: str, now: float, events: Sequence[Event], label: str, data: Mapping[str, Value]) -> list[Event]:
    """Return events of another run with the id and numbers of a new one, and the first event of its own."""
    story = [*events, Event(FORKED, run, now, 0, "", label, data)]
    return [replace(event, run=run, seq=number) for number, event in enumerate(story, 1)]


def _is_reached(path: str, status: str) -> bool:
    """Tell whether a run has begun a step. A sub-step is skipped if another branch was taken; a step of the document,
    if none of its own branches was."""
    return status not in (_NOT_DONE if "/case[" in path else ("pending",))


_NOT_DONE = ("pending", "skipped")


class ForkStep(Struct, frozen=True):
    """A step at which a run can be forked. `reached` tells whether the run has begun it."""

    path: str
    label: str
    title: str
    status: str
    reached: bool
    settable: bool
    """True if values can be set for it."""
    first: bool
    """True for the first step of all: the values that can be set for it are the inputs."""
    names: Sequence[str] = ()
    """The results of the steps before it, by name."""


class Receipt(Struct, frozen=True):
    """The consequences of a fork."""

    fork: PreparedFork
    cost: float | None
    """The price of the effects that are kept; None if that of one is not known."""
    again: Sequence[ForkStep]
    """The steps that the run has done and the fork does again."""
    later: int
    """The number of steps after those, some of which may be skipped."""
    bounds: PlanBounds


def fork_steps(view: RunView) -> list[ForkStep]:
    """Return the steps at which a run can be forked, in the order of the document."""
    plan = view.document.runnable()
    if plan.thread:
        turns = sorted(_turns(view.effects) | {1})
        status = str(view.row.status)
        return [
            ForkStep(f"{THREAD_PATH}/turn[{turn}]", f"turn {turn}", "", status, True, True, turn == 1) for turn in turns
        ]
    views = view.replay.progress.steps
    steps: list[ForkStep] = []
    captures = {path: step.capture.name for path, step in plan.steps() if step.capture}
    order = {path: number for number, (path, _) in enumerate(plan.steps())}
    for path, step in plan.stops().items():
        earlier = (at for at in captures if order[at] < order[path] and not path.startswith(f"{at}/"))
        names = tuple(dict.fromkeys(captures[at] for at in earlier if not captures[at].startswith("__")))
        place = find_place(plan, path)
        status = views[path].status if path in views else "pending"
        settable = place.first or place.before is not None
        reached = place.first or _is_reached(path, status)
        steps.append(ForkStep(path, step.label, step.title, status, reached, settable, place.first, names))
    return steps


async def receipt(runtime: Runtime, run: str, step: str, changes: Changes) -> Receipt:
    """Check a fork and tell what it would do; nothing is stored. Raises the errors of `prepare_fork`."""
    prepared = await prepare_fork(runtime, run, step, changes)
    steps = fork_steps(prepared.origin)
    at = next((at for at, step in enumerate(steps) if step.path == prepared.place.path), len(steps))
    again = [step for step in steps[at:] if step.status not in _NOT_DONE]
    cost = total_cost(prepared.kept)
    bounds = rest_bounds(prepared.origin, prepared.place.path, prepared.kept, prepared.pins, runtime.settings)
    return Receipt(prepared, cost, again, len(steps) - at - len(again), bounds)


def rest_bounds(
    view: RunView, path: str, kept: Sequence[EffectRecord], pins: PinnedState, settings: Settings
) -> PlanBounds:
    """Return the bounds of the rest of a run, from the step at a path. Those of a directive are the turns that it has
    left."""
    plan = view.document.runnable()
    foresight = Foresight(settings)
    if plan.thread:
        whole = foresight.bounds(plan)
        limit = view.thread.limits.as_value().get("turns") if view.thread else None
        most = limit if isinstance(limit, int) else whole.model_calls.most
        done = len(_turns(kept))
        return replace(whole, model_calls=Range(1, None if most is None else max(1, most - done)))
    body = rest_of(plan.body, path)
    # Steps before it may have written any name, also that of an input; nothing is known of those values.
    inputs = {name: value for name, value in pins.inputs.items() if name not in plan.written}
    return foresight.bounds(replace(plan, body=body, declared=None), inputs=inputs, is_rest=True)


def _turns(records: Sequence[EffectRecord]) -> set[int]:
    return {int(match[1]) for record in records if (match := _TURN.match(record.path))}
