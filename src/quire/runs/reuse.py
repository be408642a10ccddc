"""Take model replies of an earlier run of the same document, and report the money and tokens saved.

The path of a call and the hash of its request decide, and the model has to be the same. Nothing but replies is taken:
tools are called again, and people are asked again. A reply that was cut off, or a call that failed, is made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.engine.requests import Meter
from quire.engine.reused_replies import EarlierReplies, ModelNames, is_cut, saved_by
from quire.errors import BrokenSeal, CannotStart, NoSuchRun, Refused
from quire.runs.drives import apply_amendments
from quire.values import encode

if TYPE_CHECKING:
    from quire.engine.progress import Progress
    from quire.engine.records import EffectRecord, RunRow
    from quire.library.document import Document
    from quire.runs.pins import PinnedState
    from quire.runs.runtime import Runtime
    from quire.values import Value

LAST = "last"
_LOOKED_AT = 1000
"""Runs among which the last one of a document is looked for."""


async def find_earlier(runtime: Runtime, named: str, document: Document, folder: str | None) -> str:
    """Return the id of the run whose replies a new run of a document may take. `last` is the last run of the document.

    Raises `NoSuchRun`, `CannotStart` for a run of another document, and `Refused` for one that others wrote or changed.
    """
    if named == LAST:
        rows = await runtime.store.list(limit=_LOOKED_AT)
        own = (row for row in rows if not row.pins.get("imported") and is_run_of(row, document, folder))
        row = next(own, None)
        if row is None:
            raise NoSuchRun(f"no run of {document.name} is stored here, so no reply can be reused")
    else:
        row = await runtime.row(await runtime.find(named))
    if row.format != document.format:
        raise CannotStart(f"run {row.id} is of a {row.format}, and {document.name} is a {document.format}: {_NOTHING}")
    if not is_run_of(row, document, folder):
        raise CannotStart(f"run {row.id} is of {row.document}, which is not {document.name}: {_NOTHING}")
    if row.pins.get("imported"):
        raise Refused(f"run {row.id} is imported, and its replies came from elsewhere: {_NOTHING}")
    await _check_seal(runtime, row.id)
    return row.id


_NOTHING = "nothing of it can be reused"


async def _check_seal(runtime: Runtime, run: str) -> None:
    try:
        await runtime.store.check_seal(run)
    except BrokenSeal as broken:
        remedy = f" (`quire runs seal {run}` seals it, if it is yours)" if broken.old else ""
        raise Refused(f"run {run} is not as you left it, {broken.reason}: {_NOTHING}{remedy}") from None


def is_run_of(row: RunRow, document: Document, folder: str | None) -> bool:
    """Tell whether a run is of this document, which may have been edited, renamed or moved since: its file, its title
    or its text is the same."""
    if row.format != document.format or row.pins.get("declared", "") != document.declared:
        return False
    at = row.pins.get("folder")
    same_file = folder is not None and at == folder and Path(row.document).name == Path(document.name).name
    title = document.plan.title if document.plan else ""
    return same_file or row.pins.get("document") == document.sha256 or (bool(title) and row.title == title)


async def earlier_replies(
    runtime: Runtime, pins: PinnedState, own: Sequence[EffectRecord]
) -> tuple[EarlierReplies | None, str]:
    """Return the replies that a drive may take, and a warning if they no longer exist. The run continues without
    them: those that it has taken are its own."""
    try:
        row = await runtime.row(pins.reuse)
        await _check_seal(runtime, row.id)
        records = await runtime.store.effects(row.id)
    except (NoSuchRun, Refused) as error:
        return None, f"no more replies are reused: {error}"
    from quire.runs.pins import PinnedState

    before = apply_amendments(PinnedState.of(row.pins), records)
    return EarlierReplies(row.id, records, (_names(before), _names(pins)), own), ""


def _names(pins: PinnedState) -> ModelNames:
    """Return the names of a run's models, with the settings of the tier: at another temperature, another model."""
    settings = {name: value for name, value in pins.model_settings.items() if name != "timeout"}
    own = f"{pins.model} {encode(settings)}" if settings else pins.model
    return ModelNames(own, own if pins.instead == pins.model else pins.instead)


class ReusedStep(Struct):
    """The replies of one step that were taken over."""

    way: str
    calls: int = 0
    saved: Meter = Meter()


class Reuse(Struct):
    """The replies that a run has taken from another one."""

    run: str
    steps: dict[str, ReusedStep] = field(default_factory=dict)
    """By the paths of the steps."""
    asked: int = 0
    """The number of calls that were made all the same."""
    reasons: dict[str, int] = field(default_factory=dict)
    """Why they were made, as far as the other run is known."""

    @property
    def calls(self) -> int:
        return sum(step.calls for step in self.steps.values())

    @property
    def saved(self) -> Meter:
        total = Meter()
        for step in self.steps.values():
            total = total.plus(step.saved)
        return total


def reuse_of(
    run: str, records: Iterable[EffectRecord], progress: Progress, earlier: Iterable[EffectRecord] = ()
) -> Reuse:
    """Return what a run has taken from the run `run`. With the records of that run, also why other calls were made."""
    reuse, then = Reuse(run), {record.path: record for record in earlier if record.kind == "model"}
    for record in records:
        if record.kind != "model":
            continue
        if not record.reused_from:
            reuse.asked += 1
            if then:
                reason = _reason(record, then)
                reuse.reasons[reason] = reuse.reasons.get(reason, 0) + 1
            continue
        step = progress.step_of(record.path)
        path, way = (step.path, step.way) if step else (record.path, record.path)
        reused = reuse.steps.setdefault(path, ReusedStep(way))
        reused.calls += 1
        reused.saved = reused.saved.plus(saved_by(record))
    return reuse


def _reason(record: EffectRecord, then: Mapping[str, EffectRecord]) -> str:
    before = then.get(record.path)
    if before is None:
        return "new"
    if before.state != "ok":
        return "failed before"
    if is_cut(before):
        return "cut off before"
    if before.request != record.request:
        return "changed"
    return "of another model" if _model_of(before) != _model_of(record) else "changed before it"


def _model_of(record: EffectRecord) -> Value:
    return record.value.get("model") if isinstance(record.value, Mapping) else None
