"""Ask the recorded prompts of stored runs of another model: call by call, or following it along its own replies.

Call by call, the old reply continues being used for everything that follows, so each call is compared by itself: the
reply, and the captures and branches that come of it in its place. A model that is followed gets tools, texts and people
from the records of the run. A call or a question that the run does not have ends the branch that makes it: nothing is
performed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.driver.perform import Performer
from quire.engine.driver.replay import Replay, replay
from quire.engine.driver.shadow import InPlaceJournal, Recording, follow
from quire.engine.events import Feed
from quire.engine.ports import Ports
from quire.engine.premises import REPLY_TOKENS
from quire.engine.progress import Progress
from quire.engine.records import EffectRecord, Lease, has_shape
from quire.engine.request_hashes import KINDS
from quire.engine.requests import HumanRequest, ModelRequest, ToolRequest
from quire.engine.requests import Meter as EffectMeter
from quire.engine.reused_replies import is_cut, saved_by
from quire.errors import JournalMismatch, LimitReached
from quire.runs.diff import Change
from quire.runs.drives import apply_amendments
from quire.runs.shadow import Replayed, judge
from quire.testing.live.schedule import BUDGET, Meter, Metered, Purse
from quire.testing.live.tries import total_cost

if TYPE_CHECKING:
    from quire.engine.ports import Clock, Loader, Model, People, Store, Tools
    from quire.engine.requests import Effect
    from quire.runs.outcome import RunView
    from quire.runs.pins import PinnedRun
    from quire.runs.runtime import Runtime
    from quire.values import Value

PARALLEL = 4
"""Calls that are made side by side."""

Kind = Literal["same", "words", "changed", "failed"]


class RecordedCall(Struct, frozen=True):
    """One call of a model in a stored run, with the whole reply that it got."""

    run: str
    request: ModelRequest
    record: EffectRecord

    @property
    def spent(self) -> EffectMeter:
        return saved_by(self.record)


class RecordedRun(Struct, frozen=True):
    """A stored run whose prompts can be asked again."""

    view: RunView
    held: PinnedRun
    calls: Sequence[RecordedCall]
    left_out: int
    """Calls that failed or were cut off, and are not asked again."""


class AskedCall(Struct, frozen=True):
    """A recorded call with the reply of another model; `after` is None if it was not asked."""

    call: RecordedCall
    after: EffectRecord | None = None
    changes: Sequence[Change] = ()
    """Captures, branches and requests that would be others with the new reply."""

    @property
    def kind(self) -> Kind | None:
        """Say how much the new reply changes; None if it was not asked for."""
        after, before = self.after, self.call.record
        if after is None:
            return None
        if after.state != "ok":
            return "failed"
        if self.changes:
            return "changed"
        return "same" if reply_text(after) == reply_text(before) else "words"


def reply_text(record: EffectRecord) -> str:
    value = record.value
    return str(value.get("text", "")).strip() if isinstance(value, dict) else ""


def tool_uses(record: EffectRecord) -> list[Value]:
    """Return the tools that a reply calls, with their arguments; the ids of the calls do not count."""
    uses = record.value.get("uses") if isinstance(record.value, dict) else None
    listed = uses if isinstance(uses, list | tuple) else []
    return [[use[1], use[2]] for use in listed if isinstance(use, list | tuple)]


async def recorded_run(runtime: Runtime, run: str) -> RecordedRun:
    """Return a stored run with its calls. Raises `RunState` and `JournalMismatch` for one that cannot be read."""
    view = await runtime.view(run)
    held = await runtime.stored(view.row)
    held = replace(held, pins=apply_amendments(held.pins, view.effects))
    records = {record.path: record for record in view.effects if record.kind == "model"}
    requests = [request for request in view.replay.asked.values() if isinstance(request, ModelRequest)]
    calls = [(request, records.get(request.path)) for request in requests]
    whole = [
        RecordedCall(run, request, record)
        for request, record in calls
        if record is not None and record.state == "ok" and has_shape(record) and not is_cut(record)
    ]
    return RecordedRun(view, held, whole, sum(record is not None for _, record in calls) - len(whole))


def performer(view: RunView, model: Model, clock: Clock) -> Performer:
    """Return a performer that only asks a model, as a run would: its other ports are empty."""
    store, tools, loader, people = cast("tuple[Store, Tools, Loader, People]", (None,) * 4)
    run, usual = view.row.id, view.pins.reply_tokens or REPLY_TOKENS
    feed = Feed(run, Lease(run, 0, 0, frozenset()), clock, lambda event: None)
    return Performer(run, Ports(store, model, tools, loader, people, clock), feed, usual)


def most_cost(runs: Sequence[RecordedRun], model: Model, clock: Clock) -> float | None:
    """Return the most that asking all calls again may cost, in dollars; None if the price is not known."""
    asking = [(performer(run.view, model, clock), run.calls) for run in runs]
    return total_cost(performing.estimate(call.request) for performing, calls in asking for call in calls)


def side_by_side(most: float | None, purse: Purse) -> asyncio.Semaphore:
    """Return the room for calls. If the budget may not suffice, they are made one after the other: a call that costs
    less than it may leaves the rest for the next."""
    enough = purse.left is None or (most is not None and most <= purse.left)
    return asyncio.Semaphore(PARALLEL if enough else 1)


async def ask_again(
    runs: Sequence[RecordedRun], model: Model, purse: Purse, clock: Clock, asked_calls: list[AskedCall]
) -> None:
    """Ask every call of these runs of a model, side by side, and compare each reply in its place.

    `asked_calls` gets a place for each call, which is filled when its reply arrives. So a user who interrupts the work
    still has the replies that were paid for.
    """
    room = side_by_side(most_cost(runs, model, clock), purse)
    calls = [(run, call) for run in runs for call in run.calls]
    asked_calls += [AskedCall(call) for _, call in calls]

    async def one(at: int, run: RecordedRun, call: RecordedCall) -> None:
        async with room:
            paid = Metered(model, purse, Meter())
            after = await performer(run.view, paid, clock).perform(call.request)
        if after.failure is None:
            asked_calls[at] = AskedCall(call, after, list(await _in_place(run, call, after)))
        elif after.failure.kind != BUDGET:
            asked_calls[at] = AskedCall(call, after)

    await asyncio.gather(*(one(at, run, call) for at, (run, call) in enumerate(calls)))


async def _in_place(run: RecordedRun, call: RecordedCall, after: EffectRecord) -> Sequence[Change]:
    """Walk the run once more with one other reply, and return what comes of it."""
    before = call.record
    if reply_text(after) == reply_text(before) and tool_uses(after) == tool_uses(before):
        return ()
    journal = InPlaceJournal(run.view.effects, after)
    changes: list[Change] = []
    if tool_uses(after) != tool_uses(before):
        changes.append(Change("calls", call.request.label, tool_uses(before), tool_uses(after)))
    try:
        again = await replay(run.held.walk, (), Progress.of(run.held.plan), lambda boundary: False, journal=journal)
    except JournalMismatch:
        return changes  # another item of a fan fails first
    texts = {reply_text(before), reply_text(after)}
    return [*changes, *(difference for difference in _differences(run.view, again) if not _is_reply(difference, texts))]


def _is_reply(change: Change, texts: set[str]) -> bool:
    """Tell whether a value is the whole reply: that is other words, not another capture."""
    values = (str(value).strip() for value in (change.a, change.b))
    return change.what in ("named", "store") and all(value in texts for value in values)


def _differences(old: RunView, again: Replay) -> Iterator[Change]:
    then, now = old.replay.progress, again.progress
    for what, a, b in (("named", then.named, now.named), ("store", then.stores, now.stores)):
        for name in b:
            if not name.startswith("__") and name in a and a[name] != b[name]:
                yield Change(what, name, a[name], b[name])
    for path, step in now.steps.items():
        before = then.steps[path].status if path in then.steps else ""
        if not step.thread and "skipped" in (before, step.status) and step.status not in (before, "pending"):
            yield Change("step", step.way, _told(before), _told(step.status))
    waiting = {request.path for request in old.replay.open}
    for request in again.open:
        is_asked = isinstance(request, ModelRequest | ToolRequest | HumanRequest)
        if is_asked and request.path not in waiting and not _was_skipped(old, again, request):
            yield _new_request(old, request)
    messages = {message for _, message in then.warnings}
    yield from (Change("warning", way, None, message) for way, message in now.warnings if message not in messages)
    if again.failure is not None and old.replay.failure is None:
        yield Change("error", again.failure.path, None, again.failure.message)


def _new_request(old: RunView, request: Effect) -> Change:
    before = old.replay.asked.get(request.path)
    if isinstance(request, ToolRequest) and isinstance(before, ToolRequest) and before.tool == request.tool:
        return Change("arguments", f"of {request.tool} at {request.label}", before.arguments, request.arguments)
    return Change("asks", request.label, None, KINDS[type(request)])


def _told(status: str) -> str:
    return "reached" if status in ("running", "completed", "failed") else status


def _was_skipped(old: RunView, again: Replay, request: Effect) -> bool:
    """Tell whether a request is of a step that the run had skipped, which the change of that step tells already."""
    step = again.progress.step_of(request.path)
    before = old.replay.progress.steps.get(step.path) if step else None
    return before is not None and before.status == "skipped"


_MORE_CALLS = 3
_AT_LEAST = 20
"""A run may make three times the calls of the stored one, and at least this many, before it is given up."""


class FollowedRun(Struct, frozen=True):
    """A stored run as another model would have answered it."""

    replayed: Replayed
    calls: tuple[int, int]
    """The calls of models in the stored run, and now."""
    spent: tuple[EffectMeter, EffectMeter]


async def follow_run(run: RecordedRun, model: Model, purse: Purse, clock: Clock, *, pure_work: int) -> FollowedRun:
    """Walk a run with the replies of another model until it ends or needs something that is not recorded."""
    view = run.view
    asking = performer(view, Metered(model, purse, Meter()), clock)
    recording = Recording.of(view.replay, view.effects)
    replies: dict[str, EffectRecord] = {}
    # Replies that the ended run did not wait for, because a limit in time was reached: none of them would be used.
    ended = view.replay.finished or view.replay.failure is not None
    cut_off = {request.path for request in view.replay.open} if ended else set()
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
        walked.journal.waits |= cut_off
        requests = [
            request
            for request in walked.replay.open
            if isinstance(request, ModelRequest) and request.path not in cut_off
        ]
        if walked.replay.finished or walked.replay.failure is not None or not requests:
            break
        if len(replies) + len(requests) > most:
            stopped = f"it made {len(replies)} calls, and the stored run made {len(run.calls)}"
            break
        new = await _asked(asking, requests, purse)
        replies |= {record.path: record for record in new if not _is_unpaid(record)}
        if any(map(_is_unpaid, new)):
            stopped = "the budget is used up"
    if stopped:
        replayed = Replayed(view.row.id, view.row.title, "unreadable", problem=stopped)
    else:
        replayed = judge(view, walked, view.row)
    before = [record for record in view.effects if record.kind == "model"]
    refused = [reply for reply in replies.values() if reply.state == "failed" and not (reply.usage or reply.elapsed)]
    counts = len(before), len(replies) - len(refused)
    return FollowedRun(
        replayed, counts, (total_spent(map(saved_by, before)), total_spent(map(saved_by, replies.values())))
    )


async def _asked(asking: Performer, requests: Sequence[ModelRequest], purse: Purse) -> list[EffectRecord]:
    room = side_by_side(total_cost(map(asking.estimate, requests)), purse)

    async def one(request: ModelRequest) -> EffectRecord:
        if refused := asking.out_of_bounds(request, asking.estimate(request)):
            return refused
        async with room:
            return await asking.perform(request)

    return list(await asyncio.gather(*map(one, requests)))


def _is_unpaid(record: EffectRecord) -> bool:
    return record.failure is not None and record.failure.kind == BUDGET


def total_spent(parts: Iterable[EffectMeter]) -> EffectMeter:
    """Return the sum of what several calls used."""
    return reduce(EffectMeter.plus, parts, EffectMeter())
