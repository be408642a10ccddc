"""Repair a run: continue it with an edited document, as a new run with new pins and the records that still fit.

Pins never change, so the old run stays as it is. The user starts the new one with the user's own grants and key:
additional permissions of the edited document have to be granted, as for any new run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.driver.replay import Refit, expanded, refit
from quire.engine.inputs import kept_inputs
from quire.engine.records import EffectRecord, Event, NewRun, RunRow, RunUpdate, Status
from quire.errors import BadInputs, CannotStart, RunState
from quire.models.choose import Choice
from quire.runs.drives import PATH as TERMS
from quire.runs.drives import apply_amendments, checked_overrides
from quire.runs.edited_document import document_in_place
from quire.runs.fork import Changes, Place, find_place, retold, with_boundary
from quire.runs.options import RunOptions, check_step_labels
from quire.runs.pins import PinnedState
from quire.runs.start import new_run_id, prepare
from quire.source import read_source
from quire.stores.contract import History
from quire.trust.capabilities import Grants
from quire.workspace.grants import default_grants

if TYPE_CHECKING:
    from quire.plan.nodes import Plan
    from quire.runs.runtime import Runtime


class Repaired(Struct, frozen=True):
    """A repaired run that was created."""

    run: str
    kept: int
    """The number of `recorded` effects that still fit."""
    recorded: int
    misfit: tuple[str, str]
    """The label and path of the first effect that does not fit; empty if all fit."""
    next: tuple[str, str]
    """The label and path of the effect with which the run continues; empty if there is none."""
    reason: str
    """The reason for the choice of its model."""


class _Old(Struct, frozen=True):
    """The run that is repaired. `trusted` is false for one from elsewhere: its records are used, but not its grants."""

    row: RunRow
    pins: PinnedState
    records: Sequence[EffectRecord]
    trusted: bool


async def repair(
    runtime: Runtime, run: str, file: str, changes: Changes, step: str = "", *, instead: bool = False
) -> Repaired:
    """Create the new run; none of its own effects is performed yet. Raises `CannotStart`, `Refused` and `RunState`.

    `file` is the edited document; empty for the file of the old run. `step` limits the kept records to those before it.
    With `instead`, the new run replaces the old one: it takes over the recipient of the letter at the end, and the
    output.
    """
    old = await _old(runtime, run)
    if instead and old.row.status is Status.RUNNING:
        raise RunState(f"run {run} is being driven: stop it first (quire runs cancel {run})")
    document = document_in_place(read_source(Path(file) if file else _came_from(old)), old.row, old.pins)
    plan = document.runnable()
    place = find_place(plan, step) if step else None
    sets = dict(changes.sets)
    inputs = {**kept_inputs(plan, old.pins.inputs), **(sets if place is None or place.first else {})}
    options = _options(runtime, old, plan, changes)
    pins, texts = await prepare(runtime, document, inputs, options, _choice(old, changes))
    pins = _as_before(runtime, old, pins, changes, instead)
    now = runtime.clock.now()
    new = new_run_id(now)
    row = replace(old.row, id=new, title=plan.title, document=document.name, pins=pins.as_json())

    async def text(digest: str) -> str:
        return texts[digest] if digest in texts else await runtime.store.text(digest)

    held = await runtime.pinned(row, text)
    fit = await refit(held.walk, _candidates(old, place), pure_work=runtime.settings.runs.pure_work)
    records = list(fit.kept)
    if place is not None and not place.first:
        records = with_boundary(records, place, checked_overrides(document, sets), pins, now)
    label, path = _where(fit.next)
    pins = replace(pins, origin={"run": run, "step": label, "path": path, "document": True})
    made = NewRun(new, plan.title, document.format, document.name, now, pins.as_json(), texts)
    events = _events(new, now, run, fit, await runtime.store.events(run))
    await runtime.restore(made, pins, History(RunUpdate(Status.PENDING), records, events, now))
    recorded = sum(record.path != TERMS for record in old.records)
    reason = "--model" if changes.model else f"as run {run} was started"
    return Repaired(new, len(fit.kept), recorded, _where(fit.misfit), (label, path), reason)


async def _old(runtime: Runtime, run: str) -> _Old:
    row = await runtime.row(run)
    records = await runtime.store.effects(run)
    pins = apply_amendments(PinnedState.of(row.pins), records)
    trusted = not pins.imported and await runtime.is_sealed(run)
    return _Old(row, pins, records, trusted)


async def source_file(runtime: Runtime, run: str) -> Path:
    """Return the file that a run came from. Raises `CannotStart` if there is none."""
    return _came_from(await _old(runtime, run))


async def edited_file(runtime: Runtime, run: str) -> Path | None:
    """Return the file that a run came from if it has another text now; None if it has the same, or is missing."""
    try:
        path = await source_file(runtime, run)
        return path if read_source(path).text != (await runtime.view(run)).document.source.text else None
    except CannotStart:
        return None


def _came_from(old: _Old) -> Path:
    written = Path(old.row.document)
    if old.pins.folder is None:
        raise CannotStart(f"run {old.row.id} did not come from a file: say --document FILE")
    path = Path(old.pins.folder) / written.name
    if not path.is_file():
        raise CannotStart(f"{path}, which run {old.row.id} came from, does not exist: add --document FILE")
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _options(runtime: Runtime, old: _Old, plan: Plan, changes: Changes) -> RunOptions:
    pins = old.pins
    new = RunOptions(
        model=changes.model,
        allow=changes.allow,
        budget=None if changes.unlimited else pins.budget if changes.budget is None else changes.budget,
        limits=changes.limits,
        out=changes.out,
        answers=changes.answers,
        unattended=changes.unattended,
        says_yes=changes.says_yes,
        force=changes.force,
    )
    if not old.trusted:
        return new
    usual, more = (default_grants(runtime.settings, allow).patterns for allow in ((), changes.allow))
    bounded = not plan.thread or bool(pins.reply_to)
    callees = runtime.callees(one_model=pins.one_model, allow=changes.allow, shelf=pins.shelf)
    called = callees.reachable(plan) if pins.callees else {}
    documents = {name: callee.plan for name, callee in called.items()}
    return replace(
        new,
        model=changes.model or (pins.model if pins.one_model else None),
        breakpoints=tuple(label for label in pins.breakpoints if _means(plan, documents, (label,), {})),
        answers={
            **{label: text for label, text in pins.answers.items() if _means(plan, documents, (), {label: text})},
            **changes.answers,
        },
        unattended=pins.unattended or changes.unattended,
        says_yes=pins.unattended or changes.says_yes,
        allow=tuple(dict.fromkeys((*pins.allow, *changes.allow))),
        limits={**pins.limits, **changes.limits},
        # Never more than the old run had, except for new grants by the user.
        within=Grants(frozenset(pins.grants) | (more - usual)) if bounded else None,
        accepted=pins.forced,
    )


def _means(plan: Plan, documents: Mapping[str, Plan], breakpoints: tuple[str, ...], answers: Mapping[str, str]) -> bool:
    try:
        check_step_labels(plan, breakpoints, answers, documents)
    except BadInputs:
        return False
    return True


def _choice(old: _Old, changes: Changes) -> Choice | None:
    if changes.model or not old.trusted or not old.pins.model:
        return None
    return Choice(old.pins.model, f"as run {old.row.id} was started", old.pins.settings_of(old.pins.model))


def _as_before(runtime: Runtime, old: _Old, pins: PinnedState, changes: Changes, instead: bool) -> PinnedState:
    """Keep the pins that requests depend on, besides the document, as they were: otherwise no record would fit."""
    before = old.pins
    pins = replace(
        pins,
        identity=before.identity,
        profiles={**pins.profiles, **before.profiles},
        context_budget=before.context_budget,
        one_model=before.one_model,
        queue=runtime.queue,
    )
    if changes.model:
        pins = replace(pins, instead=pins.model)
    elif old.trusted:
        pins = replace(pins, instead=before.instead)
    return replace(pins, reply_to=before.reply_to, out=changes.out or before.out) if instead else pins


def _candidates(old: _Old, place: Place | None) -> list[EffectRecord]:
    """Return the records that may be kept: not those that ended the run, nor those after the given place."""
    failed = set(expanded(old.row.ended_by, [record.path for record in old.records]))
    return [
        record
        for record in old.records
        if record.path != TERMS and record.path not in failed and (place is None or place.keeps(record.path))
    ]


def _where(request: object) -> tuple[str, str]:
    return (str(getattr(request, "label", "")), str(getattr(request, "path", ""))) if request is not None else ("", "")


def _events(run: str, now: float, origin: str, fit: Refit, events: Sequence[Event]) -> list[Event]:
    """Return the events of the effects that are taken over, with the new run's id and numbers."""
    paths = {record.path for record in fit.kept}
    story = [event for event in events if event.type == "effect" and event.path in paths]
    label, path = _where(fit.next)
    return retold(run, now, story, label, {"origin": origin, "from": path, "misfit": _where(fit.misfit)[1]})
