"""Let another model answer stored runs, and follow it wherever its replies lead.

Tools, texts and people answer from the records of the run. A call or a question that the run does not have ends the
branch that makes it: nothing is performed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.driver.shadow import Recording, follow
from quire.engine.progress import Progress
from quire.engine.requests import ModelRequest
from quire.engine.reused_replies import Saved, saved_by
from quire.errors import LimitReached
from quire.runs.shadow import Replayed, judge
from quire.testing.live.purse import BUDGET, Meter, Metered, Purse
from quire.testing.live.recorded_prompts import RecordedRun, performer, side_by_side

if TYPE_CHECKING:
    from quire.engine.driver.perform import Performer
    from quire.engine.ports import Clock, Model
    from quire.engine.records import EffectRecord

_MORE_CALLS = 3
_AT_LEAST = 20
"""A run may make three times the calls of the stored one, and at least this many, before it is given up."""


class FollowedRun(Struct, frozen=True):
    """A stored run as another model would have answered it."""

    replayed: Replayed
    calls: tuple[int, int]
    """The calls of models in the stored run, and now."""
    spent: tuple[Saved, Saved]


async def follow_run(run: RecordedRun, model: Model, purse: Purse, clock: Clock, *, pure_work: int) -> FollowedRun:
    """Walk a run with the replies of another model until it ends or needs something that is not recorded."""
    view = run.view
    asking = performer(view, Metered(model, purse, Meter()), clock)
    recording = Recording.of(view.replay, view.effects)
    replies: dict[str, EffectRecord] = {}
    cut_off = _cut_off(run)
    most = max(_MORE_CALLS * len(run.calls), _AT_LEAST)
    stopped = ""
    while not stopped:
        try:
            walked = await follow(
                run.held.walk, recording, replies, lambda: Progress.of(run.held.plan), pure_work=pure_work
            )
        except LimitReached as error:
            stopped = str(error)
            break
        walked.waits |= cut_off
        wanted = [one for one in walked.replay.open if isinstance(one, ModelRequest) and one.path not in cut_off]
        if walked.replay.finished or walked.replay.failure is not None or not wanted:
            break
        if len(replies) + len(wanted) > most:
            stopped = f"it made {len(replies)} calls, and the stored run made {len(run.calls)}"
            break
        new = await _asked(asking, wanted, purse)
        replies |= {record.path: record for record in new if not _is_unpaid(record)}
        if any(map(_is_unpaid, new)):
            stopped = "the budget is used up"
    if stopped:
        replayed = Replayed(view.row.id, view.row.title, "unreadable", problem=stopped)
    else:
        replayed = judge(view, walked, view.row)
    before = [record for record in view.effects if record.kind == "model"]
    counts = len(before), sum(not _was_refused(record) for record in replies.values())
    return FollowedRun(replayed, counts, (_total(before), _total(list(replies.values()))))


def _cut_off(run: RecordedRun) -> set[str]:
    """Return the calls whose reply a run that has ended did not wait for, because a limit in time was reached. The
    record of that stands, so no reply would be used."""
    again = run.view.replay
    return {one.path for one in again.open} if again.finished or again.failure is not None else set()


async def _asked(asking: Performer, wanted: Sequence[ModelRequest], purse: Purse) -> list[EffectRecord]:
    estimates = [asking.estimate(request) for request in wanted]
    most = None if None in estimates else sum(one for one in estimates if one is not None)
    room = side_by_side(most, purse)

    async def one(request: ModelRequest) -> EffectRecord:
        if refused := asking.out_of_bounds(request, asking.estimate(request)):
            return refused
        async with room:
            return await asking.perform(request)

    return list(await asyncio.gather(*map(one, wanted)))


def _is_unpaid(record: EffectRecord) -> bool:
    return record.failure is not None and record.failure.kind == BUDGET


def _was_refused(record: EffectRecord) -> bool:
    return record.state == "failed" and record.usage is None and not record.elapsed


def _total(records: Sequence[EffectRecord]) -> Saved:
    total = Saved()
    for record in records:
        total = total.plus(saved_by(record))
    return total
