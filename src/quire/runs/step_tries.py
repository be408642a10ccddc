"""Try one model call of a run again, with another prompt, model, temperature or other values.

A try is a fork with the edited document that ends after its step: the pin `until` says where. All that the run recorded
before is kept, also where a request would be another one now, so only this step asks its model. A try changes nothing:
its tools only read, questions take their defaults, and the turn of a directive ends before its tools.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.driver.journal import Journal, is_lost_call
from quire.engine.driver.perform import of_name
from quire.engine.driver.replay import replay
from quire.engine.interpreter.until import is_within
from quire.engine.progress import Progress, place_in_plan
from quire.engine.records import EffectRecord, NewRun, RunUpdate, Status
from quire.engine.request_hashes import KINDS, request_hash
from quire.engine.requests import ModelRequest
from quire.errors import CannotStart, NotTried, RunState
from quire.library.verify import require_accepted
from quire.patterns import late_pattern
from quire.plan.built_in_tools import ASK
from quire.plan.nodes import Think
from quire.plan.pipeline_work import Agent
from quire.plan.thread import THREAD_PATH
from quire.runs.drives import PATH as TERMS
from quire.runs.drives import checked_overrides
from quire.runs.edited_document import document_in_place
from quire.runs.fork import Changes, find_place, pinned_texts, pins_of_fork, retold, view_to_fork, with_boundary
from quire.runs.prompt_edit import with_prompt
from quire.runs.start import new_run_id, require_meant, written_directives
from quire.runs.static_failures import check_prices
from quire.source import Source
from quire.stores.contract import History
from quire.stores.run_pages import RunFilters
from quire.tools.gate import Gate
from quire.trust.capabilities import Grants
from quire.trust.signature_line import without_signatures

if TYPE_CHECKING:
    from quire.engine.requests import Recorded
    from quire.runs.outcome import RunView
    from quire.runs.pins import PinnedState
    from quire.runs.runtime import Runtime
    from quire.values import Value

MOST_TRIES = 20
KEPT_SECONDS = 7 * 86400.0
"""Older tries are removed when the next ones are made."""


class TryChanges(Changes, frozen=True):
    """The differences between a try and its run. The budget is that of each try."""

    prompt: str | None = None
    """None for the prompt of the run's document."""
    temperature: float | None = None


class TryPlace(Struct, frozen=True):
    """A model call that can be tried."""

    call: str
    """The path of the call."""
    until: str
    """The path of the step, or of the call of a turn, after which a try ends."""
    step: str
    """The path of its step in the plan."""
    fork: str
    """The step at whose beginning values can be set."""


class PreparedTry(Struct, frozen=True):
    """A try that has passed all checks and is not stored yet."""

    view: RunView
    place: TryPlace
    request: ModelRequest
    """The first call that it makes."""
    pins: PinnedState
    texts: Mapping[str, str]
    kept: Sequence[EffectRecord]


class _Kept(Journal):
    """A journal whose records answer also where the request is another one now."""

    def __init__(self, records: Sequence[EffectRecord]) -> None:
        super().__init__(records)
        self.used: dict[str, EffectRecord] = {}

    def find(self, request: Recorded) -> EffectRecord | None:
        record = self._records.get(request.path)
        if record is not None and record.kind == KINDS[type(request)]:
            self._records[request.path] = self.used[request.path] = replace(record, request=request_hash(request))
        return super().find(request)


_TURN = late_pattern(rf"({THREAD_PATH}/turn\[(\d+)\])/model(?:/|$)")
_TRIED = late_pattern(r"/try\[\d+\]$")
_BESIDE = late_pattern(r"(/(?:for_each|parallel)\[)[^\]]*\]")


def find_call(view: RunView, named: str) -> TryPlace:
    """Find the model call that a path or a label names. Raises `CannotStart` and `NotTried`."""
    asked = {path: request for path, request in view.replay.asked.items() if isinstance(request, ModelRequest)}
    turn = f"{THREAD_PATH}/turn[{named.strip().removeprefix('turn ')}]"
    below = [path for path in asked if is_within(path, named)]
    labelled = [path for path, request in asked.items() if request.label == named]
    call = next((path for path in (named, *below, f"{turn}/model", *labelled) if path in asked), "")
    if not call:
        raise CannotStart(f"no model was asked at {named} in run {view.row.id}")
    if match := _TURN.match(call):
        return TryPlace(call, f"{match[1]}/model", THREAD_PATH, f"turn {match[2]}")
    plan = view.document.runnable()
    steps, at = dict(plan.steps()), call
    while at := at.rpartition("/")[0]:
        until = _TRIED.sub("", at)
        step = steps.get(place_in_plan(until))
        if step is not None and isinstance(step.work, Think | Agent):
            stops = [path for path in plan.stops() if is_within(place_in_plan(until), path)]
            return TryPlace(call, until, place_in_plan(until), max(stops, key=len))
    raise NotTried(f"{call} belongs to a document that this one calls: try it in a run of that document")


async def prepare_try(runtime: Runtime, run: str, named: str, changes: TryChanges) -> PreparedTry:
    """Check a try and return it; nothing is stored. Raises `Refused`, `CannotStart` and `RunState`."""
    view = await view_to_fork(runtime, run)
    place = find_call(view, named)
    fork = find_place(view.document.runnable(), place.fork)
    sets = dict(changes.sets)
    if sets and not fork.first:
        sets = checked_overrides(view.document, sets)
    pins, _ = pins_of_fork(runtime, view, fork, replace(changes, sets=sets))
    origin: dict[str, Value] = {"run": run, "step": fork.label, "path": place.call}
    if changes.temperature is not None:
        origin["temperature"] = changes.temperature
    pins = replace(pins, until=place.until, origin=origin, unattended=True, breakpoints=())
    check_prices(runtime.models, [pins.instead or pins.model], pins.budget)
    edited: dict[str, str] = {}
    if changes.prompt is not None:
        pins, edited = _with_prompt(runtime, view, place.step, changes.prompt, pins)
    texts = {digest: edited.get(digest) or await runtime.store.text(digest) for digest in pinned_texts(pins)}
    await _require_reading(runtime, view, pins, place)

    async def text(digest: str) -> str:
        return texts[digest]

    held = await runtime.pinned(replace(view.row, pins=pins.as_json()), text)
    records = list(_before(view.effects, place.until))
    journal = _Kept(with_boundary(records, fork, {} if fork.first else sets, pins, runtime.clock.now()))
    most = runtime.settings.runs.pure_work
    ended = await replay(held.walk, (), Progress({}), lambda boundary: False, pure_work=most, journal=journal)
    request = next((asked for asked in ended.open if is_within(asked.path, place.until)), None)
    if not isinstance(request, ModelRequest):
        raise RunState(f"run {run} does not come to {named} with these values")
    return PreparedTry(view, place, request, pins, texts, list(journal.used.values()))


def _before(records: Sequence[EffectRecord], until: str) -> Iterator[EffectRecord]:
    """Yield the records that lead to a step: not its own, apart from what it was offered, and not those of other items
    of the loops and branches around it."""
    beside = [(until[: match.end(1)], until[: match.end()]) for match in _BESIDE.finditer(until)]
    for record in records:
        own = is_within(record.path, until) and record.kind not in ("offer", "load")
        other = any(record.path.startswith(fan) and not is_within(record.path, item) for fan, item in beside)
        if not (own or other or record.path == TERMS or record.kind == "abort" or is_lost_call(record)):
            yield record


def _with_prompt(
    runtime: Runtime, view: RunView, step: str, prompt: str, pins: PinnedState
) -> tuple[PinnedState, dict[str, str]]:
    """Return pins with the edited document, and its texts. It is not signed, so the settings decide whether it may
    run."""
    source = with_prompt(view.document, step, prompt, pins.semantics_version)
    if source is view.document.source:
        return pins, {}
    text = without_signatures(source.text, "yaml" if view.row.format == "pipeline" else "markdown")
    document = document_in_place(Source.of(text, source.name), view.row, pins, pins.semantics_version)
    require_accepted(runtime.settings, document)
    bundle, edited = view.bundle, {document.sha256: text}
    pins = replace(pins, document=document.sha256)
    if bundle is not None:
        bundle = replace(bundle, directives={**bundle.directives, bundle.item_id: text})
        runtime.directives.verify_again([bundle])
        composed = Source.of(bundle.encoded(), "bundle")
        pins, edited = replace(pins, bundle=composed.sha256), {**edited, composed.sha256: composed.text}
    written = [(document.source, document.format, document.declared), *written_directives(bundle)]
    require_meant(written, force=False, accepted=(*runtime.accepted, *view.pins.forced))
    return pins, edited


async def _require_reading(runtime: Runtime, view: RunView, pins: PinnedState, place: TryPlace) -> None:
    """Raise `NotTried` if a tool of the step may change the world."""
    offer = next((record.value for record in view.effects if record.path == f"{place.until}/offer"), None)
    names = [str(tool[0]) for tool in cast("list[list[Value]]", offer or []) if tool[0] != ASK]
    if not names:
        return
    gate = runtime.gate((view.document.runnable(), *view.documents.values()), Grants.of(pins.grants))
    async with gate if isinstance(gate, Gate) else contextlib.nullcontext():
        await gate.offers(names)
        writing = [name for name in names if gate.effect_class(of_name(name)) != "read"]
    if writing:
        raise NotTried(f"its tools change the world ({', '.join(writing)}): such a step is not tried")


async def make_tries(runtime: Runtime, prepared: PreparedTry, count: int) -> list[str]:
    """Store the runs of some tries; none of them is driven yet. Old tries are removed."""
    if not 1 <= count <= MOST_TRIES:
        raise NotTried(f"1 to {MOST_TRIES} tries are made at once, not {count}")
    store, view, now = runtime.store, prepared.view, runtime.clock.now()
    old = await store.page(RunFilters(tries_before=now - KEPT_SECONDS), None, 500)
    if old.rows:
        await store.remove([row.id for row in old.rows], dry_run=False)
    row, runs = view.row, [new_run_id(now) for _ in range(count)]
    for number, run in enumerate(runs, 1):
        pins = replace(prepared.pins, origin={**prepared.pins.origin, "try": number})
        events = retold(run, now, [], str(pins.origin["step"]), {"origin": row.id, "from": prepared.place.call})
        made = NewRun(run, row.title, row.format, row.document, now, pins.as_json(), prepared.texts)
        await runtime.restore(made, pins, History(RunUpdate(Status.PENDING), prepared.kept, events, now))
    return runs
