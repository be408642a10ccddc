"""Drive one run: take it over, connect it to its model, tools and people, and go on until it ends or waits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.engine.driver.drive import Drive, DriveResult
from quire.engine.driver.journal import Journal
from quire.engine.driver.walker import DriveLimits
from quire.engine.ports import Model, People, Ports, Tools
from quire.engine.records import Lease, Letter, RunRow, Status
from quire.errors import BrokenSeal, CannotStart, ModelFailed, RunState
from quire.models.redaction import Redacted
from quire.plan.uses import has_threads
from quire.plan.vocabulary import CALLS
from quire.plan.ways import typed_way
from quire.runs.adapters import GivenAnswers, Nobody, Unattended
from quire.runs.gate import redactor_of
from quire.runs.options import RunOptions
from quire.runs.outcome import bounds_that_hold, letter_text
from quire.runs.resume import Given, amend, amendment_record, apply_amendments, first_batch
from quire.runs.start import all_models
from quire.runs.static_failures import call_cap
from quire.runs.step_names import check_step_labels
from quire.tools.gate import Gate
from quire.trust.capabilities import Grants
from quire.workspace.grants import default_grants, reach_of

if TYPE_CHECKING:
    from quire.engine.events import Listener
    from quire.library.texts import ItemLoader
    from quire.plan.nodes import Plan
    from quire.runs.pins import PinnedRun, PinnedState
    from quire.runs.runtime import Runtime
    from quire.values import Value


async def drive_run(
    runtime: Runtime,
    run: str,
    *,
    people: People | None,
    listen: Listener,
    overrides: Mapping[str, Value],
    began: Callable[[Drive], None],
    attached: bool,
    given: Given,
    after: int | None,
) -> DriveResult:
    """Take the run over and drive it until it ends or waits. See `Runtime.drive` for the parameters."""
    row = await runtime.row(run)
    await runtime.store.check_seal(run, whole=False)
    held = await runtime.stored(row)
    if held.pins.imported:
        raise RunState(f"run {run} is imported and only to be looked at: `quire fork {run} --from STEP` goes on")
    pins = held.pins
    check_step_labels(held.plan, given.breakpoints, given.answers, held.setting.documents)
    if given.model:
        runtime.check_model(given.model)
    if held.setting.bundles:
        runtime.directives.verify_again(held.setting.bundles.values())
    notifies, asked = runtime.settings.notify is not None, frozenset[tuple[str, str]]()
    if notifies:
        from quire.runs.notify import announce, asked_before

        asked = await asked_before(runtime, row)
    async with contextlib.AsyncExitStack() as stack:
        gate = runtime.gate(held.plans, _grants(runtime, held.plan, pins), run)
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
        limits = {name: value for name, value in held.pins.limits.items() if name == CALLS}
        inherited = RunOptions(unattended=held.pins.unattended, limits=limits, allow=pins.allow)
        runtime.driven[run] = people, inherited
        stack.callback(runtime.driven.pop, run, None)
        ports = _ports(runtime, held.pins, gate, loader, people, launches=has_threads(held.plans))
        if held.pins.reuse:
            from quire.runs.reuse import earlier_replies

            earlier, warning = await earlier_replies(runtime, held.pins, records)
            ports, warnings = replace(ports, earlier=earlier), (*warnings, *filter(None, [warning]))
        most = runtime.settings.runs.pure_work
        first = await first_batch(row, records, held.walk, overrides, runtime.clock.now(), pure_work=most)
        if held.pins != before:
            first = replace(first, effects=(*first.effects, amendment_record(held.pins, pins, runtime.clock.now())))
        gone = set(first.supersede)
        records = [record for record in records if record.path not in gone]
        journal = Journal([*records, *first.effects])
        drive = Drive(
            lease,
            journal,
            ports,
            _terms(runtime, held, held.pins),
            listen,
            await runtime.store.answers(run),
            lambda ended: () if attached else _letters(runtime, row, pins, ended),
            warnings,
            bounds_that_hold(row.format, pins, held.pins, journal.records),
        )
        began(drive)
        ended = await drive.until_rest(held.walk(journal.work), first)
    if notifies:
        await announce(runtime, row, held.pins, ended, asked)
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
    grants = _grants(runtime, held.plan, pins)
    reuses = bool(pins.reuse)
    calls = _cap(runtime, held, pins)
    start = Start(
        held.plan, documents, bundles, grants, folder, pins.model, pins.limits, reuses, pins.shelf, pins.inputs, calls
    )
    library, find = runtime.library_of(shelf=pins.shelf), runtime.callees(shelf=pins.shelf).find
    found = await look_ahead(library, start, gate, runtime.models, find)
    found.raise_if_any()
    check_prices(runtime.models, _models(runtime, held, pins), pins.budget)
    return tuple(dict.fromkeys((*pins.warnings, *found.warnings)))


def _ports(
    runtime: Runtime, pins: PinnedState, gate: Tools, loader: ItemLoader, people: People | None, *, launches: bool
) -> Ports:
    somebody: People = Unattended() if pins.unattended else people or Nobody()
    redactor = redactor_of(runtime.settings, runtime.environ, reach_of(Grants.of(pins.grants)).variables)
    spec = pins.instead or pins.model
    model: Model = Redacted(runtime.models.open(spec, pins.settings_of(spec)), redactor)
    others: dict[str, Model] = {}

    def other(spec: str) -> Model:
        if pins.instead:
            return model
        if spec not in others:
            name = spec if ":" in spec else _named(runtime, spec, pins.model)
            others[spec] = Redacted(runtime.models.open(name), redactor) if name else model
        return others[spec]

    answering = GivenAnswers(pins.answers, somebody)
    ports = Ports(runtime.store, model, gate, loader, answering, runtime.clock, other_model=other)
    if not launches:
        return ports
    from quire.runs.launch_connection import Allotments

    return replace(ports, launched_runs=Allotments(runtime))


def _named(runtime: Runtime, name: str, own: str) -> str:
    from quire.runs.agent_models import named_model

    try:
        return named_model(name, runtime.settings.models, own)
    except CannotStart as error:
        raise ModelFailed(str(error), kind="no_model") from None


def _taken(lease: Lease, seen: RunRow) -> RunRow:
    """Return the row of a run that was just acquired. Raises `BrokenSeal` if it differs from the row that was read
    before."""
    row = lease.row
    if row is None or (row.pins, row.format, row.document) != (seen.pins, seen.format, seen.document):
        raise BrokenSeal(lease.run, "it was changed while it was being taken")
    return row


def _models(runtime: Runtime, held: PinnedRun, pins: PinnedState) -> list[str]:
    if pins.instead:
        return [pins.instead]
    return all_models(runtime, pins.model, held.plans, held.setting.bundles, one_model=pins.one_model)


def _cap(runtime: Runtime, held: PinnedRun, pins: PinnedState) -> int:
    return call_cap(runtime, held.plan.format, pins.limits, pins.budget, lambda: _models(runtime, held, pins))


def _terms(runtime: Runtime, held: PinnedRun, pins: PinnedState) -> DriveLimits:
    runs, calls = runtime.settings.runs, _cap(runtime, held, pins)
    stops = frozenset(map(typed_way, pins.breakpoints))
    longest = runtime.settings.models.longest_timeout
    return DriveLimits(
        stops, runs.expiry, pins.budget, runs.on_uncertain, calls or None, runs.pure_work, pins.reply_tokens, longest
    )


def _letters(runtime: Runtime, row: RunRow, pins: PinnedState, ended: DriveResult) -> tuple[Letter, ...]:
    if not pins.reply_to:
        return ()
    return (Letter(pins.reply_to, row.id, letter_text(row, ended), runtime.clock.now()),)


def _grants(runtime: Runtime, plan: Plan, pins: PinnedState) -> Grants:
    """Return the grants of the start that are still granted."""
    now = default_grants(runtime.settings, pins.allow)
    if plan.thread:
        return runtime.directives.granted_now(pins.grants, pins.keys, now)
    return now.narrow(Grants.of(pins.grants))
