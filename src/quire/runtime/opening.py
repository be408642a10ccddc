"""The first write of a drive: what ended the run is done again, and a boundary where it stopped is passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quire.engine.records import Batch, EffectRecord, RunRow, RunUpdate, Status
from quire.engine.replay import Begin, expanded, to_perform_again
from quire.engine.requests import BREAK, Boundary, request_hash
from quire.errors import RunState
from quire.values import Value, copy


async def opening(
    row: RunRow,
    records: Sequence[EffectRecord],
    begin: Begin,
    overrides: Mapping[str, Value],
    now: float,
    *,
    pure_work: int,
) -> Batch:
    """Raises `RunState` for `overrides` where the run does not stand at a boundary."""
    update = RunUpdate(status=Status.RUNNING)
    if row.ended_by and row.ended_by[0].endswith(BREAK):
        return Batch(effects=(passed(row.ended_by[0], row.position, overrides, now),), update=update)
    if overrides:
        raise RunState(
            f"run {row.id} is {row.status.words} and does not stand at the end of a step: values can be set only there"
        )
    again = tuple(expanded(row.ended_by, [record.path for record in records]))
    if row.status in (Status.FAILED, Status.CANCELLED, Status.PAUSED):
        rest = [record for record in records if record.path not in set(again)]
        again += await to_perform_again(begin, rest, pure_work=pure_work)
    return Batch(supersede=again, update=update)


def passed(path: str, label: str, values: Mapping[str, Value], now: float) -> EffectRecord:
    """The record of a boundary behind which a run goes on; `values` are what a person set there."""
    # As a replay will read it: a terminal may give what is no text.
    return EffectRecord(path, "break", "ok", request_hash(Boundary(path, label)), now, copy(dict(values)))
