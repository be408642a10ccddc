"""Drive one run: take it over, connect it to its model, tools and people, and continue until it ends or waits.

The first write removes the records of the effects that ended the run, so that they are performed again; or, if the run
stopped at a breakpoint, it records that the breakpoint was passed, with the values that a person set there. Names of
such values must occur in the document, and inputs are checked as at the start.

On resume the user may change budget, limits, model, answers, breakpoints, and `unattended`. Pins never change, so the
change is an effect at the path `terms`, valid until the next one, in any process that continues the run. It never
invalidates recorded effects; limits apply only to effects still to be performed.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec import Struct, field
from msgspec.structs import replace

from quire.engine.driver.drive import Drive, DriveResult
from quire.engine.driver.journal import Journal
from quire.engine.driver.perform import effect_id
from quire.engine.driver.replay import Begin, expanded, to_perform_again
from quire.engine.driver.tasks import WAITS
from quire.engine.driver.walker import DriveLimits
from quire.engine.inputs import input_value
from quire.engine.ports import Model, People, Ports, Tools
from quire.engine.records import Batch, EffectRecord, Lease, Letter, RunRow, RunUpdate, Status, has_shape
from quire.engine.request_hashes import request_hash
from quire.engine.requests import BREAK, Boundary
from quire.errors import BadInputs, BrokenSeal, CannotStart, ModelFailed, RunState
from quire.models.redaction import Redacted
from quire.plan.uses import has_threads
from quire.plan.vocabulary import CALLS, JOINT, typed_way
from quire.runs.adapters import GivenAnswers, Nobody, Unattended, named_model
from quire.runs.options import RunOptions, call_limit, check_step_labels, checked_budget
from quire.runs.outcome import bounds_that_hold, letter_text
from quire.runs.pins import SHAPES, PinnedState
from quire.runs.spending import readmit
from quire.runs.start import all_models
from quire.runs.static_failures import call_cap
from quire.runs.workspace_gate import redactor_of
from quire.telemetry import endpoint_of
from quire.tools.gate import Gate
from quire.trust.capabilities import Grants
from quire.values import InvalidValue, Value, copy
from quire.wording import did_you_mean, nearest
from quire.workspace.grants import default_grants, reach_of

if TYPE_CHECKING:
    from quire.engine.events import Listener
    from quire.library.document import Document
    from quire.library.texts import ItemLoader
    from quire.plan.nodes import Plan
    from quire.runs.pins import PinnedRun
    from quire.runs.runtime import Runtime


class Given(Struct, frozen=True):
    """Changes that the user makes when a run continues. `unlimited` removes its budget; `model` is called in place of
    every other."""

    limits: Mapping[str, Value] = field(default_factory=dict)
    budget: float | None = None
    unlimited: bool = False
    model: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)
    unattended: bool = False
    says_yes: bool = False
    breakpoints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        call_limit(self.limits)


NOTHING_GIVEN = Given()


async def drive_run(
    runtime: Runtime,
    run: str,
    *,
    people: People | None = None,
    listen: Listener = lambda event: None,
    overrides: Mapping[str, Value] | None = None,
    began: Callable[[Drive], None] = lambda drive: None,
    attached: bool = False,
    given: Given = NOTHING_GIVEN,
    after: int | None = None,
) -> DriveResult:
    """Take the run over and drive it until it ends or waits. `began` receives the drive, to stop it.

    An `attached` caller learns of the end from this call, so no letter is sent. The changes in `given` hold for the
    rest of the run. `after` is the epoch at which the caller saw that the run is due: `Fenced` is raised if another
    process has taken the run since.
    """
    row = await runtime.row(run)
    await runtime.store.check_seal(run, whole=False)
    held = await runtime.stored(row)
    if held.pins.imported:
        raise RunState(f"run {run} is imported and read-only: `quire runs fork {run} --from STEP` continues it")
    pins = held.pins
    check_step_labels(held.plan, given.breakpoints, given.answers, held.setting.documents)
    if given.model:
        runtime.check_model(given.model)
    if held.setting.bundles:
        runtime.directives.verify_again(held.setting.bundles.values())
    notifies, questions = runtime.settings.notify is not None, frozenset[tuple[str, str]]()
    if notifies:
        from quire.runs.notify import announce, asked_before

        questions = await asked_before(runtime, row)
    async with contextlib.AsyncExitStack() as stack:
        gate = runtime.gate(held.plans, _grants(runtime, held), run)
        if isinstance(gate, Gate):
            await stack.enter_async_context(gate)
        loader = runtime.loader(run, pins, gate)
        warnings = await _look_here(runtime, row, held, gate) if row.status is Status.PENDING else ()
        lease = await runtime.store.acquire(run, after=after)
        stack.push_async_callback(runtime.store.release, lease)
        row, records = _taken(lease, row), list(lease.records)
        before = apply_amendments(pins, records)
        if given.unattended and not given.says_yes and not before.unattended:
            from quire.runs.static_failures import check_unattended

            answers = {**before.answers, **given.answers}
            check_unattended(held.plan, held.setting.documents, answers, [record.path for record in records])
        held = replace(held, pins=amend(before, given))
        if held.pins.budget != before.budget or row.failure or row.status is Status.CANCELLED:
            await readmit(runtime, row, held.pins)
        limits = {name: value for name, value in held.pins.limits.items() if name == CALLS}
        inherited = RunOptions(unattended=held.pins.unattended, limits=limits, allow=pins.allow, source=pins.source)
        runtime.driven[run] = people, inherited
        stack.callback(runtime.driven.pop, run, None)
        ports = _ports(runtime, held.pins, gate, loader, people, launches=has_threads(held.plans))
        if held.pins.reuse:
            from quire.runs.reuse import earlier_replies

            earlier, warning = await earlier_replies(runtime, held.pins, records)
            ports, warnings = replace(ports, earlier=earlier), (*warnings, *filter(None, [warning]))
        most = runtime.settings.runs.pure_work
        first = await first_batch(row, records, held.walk, overrides or {}, runtime.clock.now(), pure_work=most)
        if held.pins != before:
            first = replace(first, effects=(*first.effects, amendment_record(held.pins, pins, runtime.clock.now())))
        gone = set(first.supersede)
        records = [record for record in records if record.path not in gone]
        journal = Journal([*records, *first.effects])

        async def report(ended: DriveResult) -> tuple[Letter, ...]:
            return () if attached else await letters_about(runtime, row, ended)

        drive = Drive(
            lease,
            journal,
            ports,
            _terms(runtime, held),
            listen,
            await runtime.store.answers(run),
            report,
            warnings,
            bounds_that_hold(held.plan, pins, held.pins, journal.records),
        )
        if endpoint_of(runtime.settings, runtime.environ) is not None:
            from quire.runs.traces import trace_drive

            await trace_drive(runtime, row, drive, stack)
        began(drive)
        ended = await drive.until_rest(held.walk(journal.work), first)
    if notifies:
        await announce(runtime, row, held.pins, ended, questions)
    return ended


async def _look_here(runtime: Runtime, row: RunRow, held: PinnedRun, gate: Tools) -> tuple[str, ...]:
    """Return the warnings of a run that begins. For a run that was handed to a cluster the check is completed here,
    with the keys, servers and modules of the worker."""
    pins = held.pins
    if not pins.queue:
        return pins.warnings
    from quire.runs.preflight import Start, look_ahead
    from quire.runs.static_failures import check_prices

    folder = Path(pins.folder) if pins.folder else None
    documents, bundles = held.setting.documents, held.setting.bundles
    grants, reuses, calls = _grants(runtime, held), bool(pins.reuse), _cap(runtime, held)
    start = Start(
        held.plan, documents, bundles, grants, folder, pins.model, pins.limits, reuses, pins.shelf, pins.inputs, calls
    )
    library, find = runtime.library_of(shelf=pins.shelf), runtime.callees(shelf=pins.shelf).find
    findings = await look_ahead(library, start, gate, runtime.models, find)
    findings.raise_if_any()
    check_prices(runtime.models, _models(runtime, held), pins.budget)
    return tuple(dict.fromkeys((*pins.warnings, *findings.warnings)))


def _ports(
    runtime: Runtime, pins: PinnedState, gate: Tools, loader: ItemLoader, people: People | None, *, launches: bool
) -> Ports:
    others: People = Unattended() if pins.unattended else people or Nobody()
    redactor = redactor_of(runtime.settings, runtime.environ, reach_of(Grants.of(pins.grants)).variables)
    spec = pins.instead or pins.model
    model: Model = Redacted(runtime.models.open(spec, pins.settings_of(spec)), redactor)
    models: dict[str, Model] = {}

    def other(spec: str) -> Model:
        if pins.instead:
            return model
        if spec not in models:
            name = spec if ":" in spec else _named(runtime, spec, pins.model)
            models[spec] = Redacted(runtime.models.open(name), redactor) if name else model
        return models[spec]

    answering = GivenAnswers(pins.answers, others)
    ports = Ports(runtime.store, model, gate, loader, answering, runtime.clock, other_model=other)
    if not launches:
        return ports
    from quire.runs.connections import Allotments

    return replace(ports, launched_runs=Allotments(runtime))


def _named(runtime: Runtime, name: str, own: str) -> str:
    try:
        return named_model(name, runtime.settings.models, own)
    except CannotStart as error:
        raise ModelFailed(str(error), kind="no_model") from None


def _taken(lease: Lease, before: RunRow) -> RunRow:
    """Return the row of a run that was just acquired. Raises `BrokenSeal` if it differs from the row that was read
    before."""
    row = lease.row
    if row is None or (row.pins, row.format, row.document) != (before.pins, before.format, before.document):
        raise BrokenSeal(lease.run, "it was changed while it was being taken")
    return row


def _models(runtime: Runtime, held: PinnedRun) -> list[str]:
    pins = held.pins
    if pins.instead:
        return [pins.instead]
    return all_models(runtime, pins.model, held.plans, held.setting.bundles, one_model=pins.one_model)


def _cap(runtime: Runtime, held: PinnedRun) -> int:
    return call_cap(runtime, held.plan, held.pins.limits, held.pins.budget, lambda: _models(runtime, held))


def _terms(runtime: Runtime, held: PinnedRun) -> DriveLimits:
    runs, pins, calls = runtime.settings.runs, held.pins, _cap(runtime, held)
    stops = frozenset(map(typed_way, pins.breakpoints))
    longest = runtime.settings.models.longest_timeout
    return DriveLimits(
        stops, runs.expiry, pins.budget, runs.on_uncertain, calls or None, runs.pure_work, pins.reply_tokens, longest,
        pins.until,
    )  # fmt: skip


async def letters_about(runtime: Runtime, row: RunRow, ended: DriveResult) -> tuple[Letter, ...]:
    """Return the letter about the end of a run to its launcher, if it has one that does not learn of the end itself.

    A run that was launched by a call which waits may be resumed by itself, after its launcher has died. While that call
    is open, it takes the result when the launcher is resumed.
    """
    launcher = PinnedState.of(row.pins).reply_to
    if not launcher:
        return ()
    from quire.runs.connections import launched_id

    for record in await runtime.store.effects(launcher):
        waits = record.state == "intent" and isinstance(record.value, Mapping) and record.value.get(WAITS)
        if waits and launched_id(effect_id(launcher, record.path)) == row.id:
            return ()
    return (Letter(launcher, row.id, letter_text(row, ended), runtime.clock.now()),)


def _grants(runtime: Runtime, held: PinnedRun) -> Grants:
    """Return the grants of the start that are still granted."""
    pins, now = held.pins, default_grants(runtime.settings, held.pins.allow)
    if held.plan.thread:
        return runtime.directives.granted_now(pins.grants, pins.keys, now)
    return now.narrow(Grants.of(pins.grants))


async def first_batch(
    row: RunRow,
    records: Sequence[EffectRecord],
    begin: Begin,
    overrides: Mapping[str, Value],
    now: float,
    *,
    pure_work: int,
) -> Batch:
    """Return the first write of a drive. Raises `RunState` for `overrides` if the run is not stopped at a boundary."""
    update = RunUpdate(status=Status.RUNNING)
    if row.ended_by and row.ended_by[0].endswith(BREAK):
        return Batch(effects=(boundary_record(row.ended_by[0], row.position, overrides, now),), update=update)
    if overrides:
        raise RunState(
            f"run {row.id} is {row.status.words} and does not stand at the end of a step: values can be set only there"
        )
    again = tuple(expanded(row.ended_by, [record.path for record in records]))
    if row.status in (Status.FAILED, Status.CANCELLED, Status.PAUSED):
        rest = [record for record in records if record.path not in set(again)]
        again += await to_perform_again(begin, rest, pure_work=pure_work)
    return Batch(supersede=again, update=update)


def boundary_record(path: str, label: str, values: Mapping[str, Value], now: float) -> EffectRecord:
    """Return the record of a boundary that a run has passed; `values` are those that a person set there."""
    # Copied as a replay will read it: a terminal may pass text with characters that cannot be stored.
    return EffectRecord(path, "break", "ok", request_hash(Boundary(path, label)), now, copy(dict(values)))


PATH = "terms"
"""The path of the record. No step has this path, and no walk requests it."""

_FURTHER = ("instead", "answers", "unattended", "breakpoints")
"""Pins that are recorded only if they were changed: 0.1.0 recorded limits and the budget alone."""


def apply_amendments(pins: PinnedState, records: Iterable[EffectRecord]) -> PinnedState:
    """Return the pins of a run with the latest recorded changes."""
    record = next((record for record in records if record.path == PATH), None)
    if record is None or not has_shape(record):
        return pins
    changes = cast("Mapping[str, Value]", record.value)
    limits = cast("Mapping[str, Value]", changes["limits"])
    pins = replace(pins, limits=limits, budget=cast("float | None", changes.get("budget")))
    further = {name: changes[name] for name in _FURTHER if name in changes and SHAPES[name](changes[name])}
    if "breakpoints" in further:
        further["breakpoints"] = tuple(cast("list[str]", further["breakpoints"]))
    return replace(pins, **further)  # of the shapes that the pins have


def amend(pins: PinnedState, changes: Given) -> PinnedState:
    """Return the pins with new changes. Raises `CannotStart` for a budget that is not an amount."""
    budget = pins.budget if checked_budget(changes.budget) is None else changes.budget
    return replace(
        pins,
        limits={**pins.limits, **changes.limits},
        budget=None if changes.unlimited else budget,
        instead=changes.model or pins.instead,
        answers={**pins.answers, **changes.answers},
        unattended=pins.unattended or changes.unattended,
        breakpoints=tuple(dict.fromkeys((*pins.breakpoints, *changes.breakpoints))),
    )


def amendment_record(pins: PinnedState, start: PinnedState, now: float) -> EffectRecord:
    """Return the record of the current changes; `start` are the pins of the start. It answers no request, so its
    request hash is empty."""
    value: dict[str, Value] = {"limits": dict(pins.limits), "budget": pins.budget}
    now_and_then = ((name, pins.as_json()[name], start.as_json()[name]) for name in _FURTHER)
    value |= {name: as_now for name, as_now, as_then in now_and_then if as_now != as_then}
    return EffectRecord(PATH, "terms", "ok", "", now, value)


def checked_overrides(document: Document, given: Mapping[str, Value], *, way: str = "") -> dict[str, Value]:
    """Return the values as the run gets them. Raises `BadInputs` with all problems at once. `way` is the position of
    the run: inside a called document the names belong to another document, and are not looked up in this one.

    An input is checked as at the start, and a blank one becomes its default. A kept result may be any text.
    """
    plan, text = document.runnable(), document.source.text
    inside = JOINT in way
    declared = {} if inside or plan.thread else {own.name: own for own in plan.inputs}
    from quire.engine.declared_inputs import problem_of, unwritten_inputs

    fields = {} if inside else unwritten_inputs(plan)
    words = None if inside or reads_any(plan, text) else mentioned(text)
    values: dict[str, Value] = {}
    problems: list[str] = []
    for name, value in given.items():
        if words is not None and name not in words:
            problems.append(unknown(name, words, "the document never mentions"))
            continue
        try:
            values[name] = copy(input_value(declared[name], value) if name in declared else value)
            if name in fields and (problem := problem_of(plan, fields[name], value)):
                problems.append(f"--set {problem}")
        except InvalidValue as error:
            problems.append(f"--set {name}: no JSON value: {error}")
        except ValueError as error:
            problems.append(f"--set {name}: {error}")
    if problems:
        raise BadInputs(problems)
    return values


def unknown(name: str, names: Sequence[str], problem: str) -> str:
    return f"--set {name}: {problem} {name}" + did_you_mean(nearest(name, names), lead=" (")


def reads_any(plan: Plan, text: str) -> bool:
    """Tell whether a value of any name has an effect: a model is told of it, or a pipeline reads all variables."""
    return bool(plan.thread) or (plan.format == "pipeline" and re.search(r"\bctx\b(?!\s*\.)", text) is not None)


def mentioned(text: str) -> list[str]:
    """Return all words of a document that may be names; those of pipelines may contain hyphens."""
    return sorted({*re.findall(r"\w+", text), *re.findall(r"[\w-]+", text)})
