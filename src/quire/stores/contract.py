"""Rules that all stores share: which statuses allow answering, cancelling and resuming, and the errors raised
otherwise. Also the values that a `Store` takes and returns beside those of the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.records import WAITING, Batch, EffectRecord, Event, Question, RunUpdate, Status
from quire.engine.requests import TINY
from quire.errors import BrokenSeal, Fenced, NoSuchRun, RunBusy, RunState, StoreError
from quire.stores.seals import OLD, OLD_RUN, seal_question
from quire.values import sha256 as _sha256

if TYPE_CHECKING:
    from quire.stores.statements import Statements
    from quire.stores.transactions import Admit, Reads, Steps
    from quire.trust.seal import Seal

ANSWERABLE = (Status.RUNNING, *WAITING)
CANCELLABLE = (Status.PENDING, Status.RUNNING, *WAITING)
RESUMABLE = (Status.PENDING, Status.PAUSED, Status.INTERRUPTED, Status.FAILED, Status.CANCELLED)
"""The statuses of runs that continue when they are resumed. One that waits for an answer continues with the answer."""


def status_at(now: float, status: Status, expires_at: float | None) -> Status:
    """Return the status as of `now`. Stores never write down that a wait has expired; it is computed each time the
    status is read."""
    expired = status in WAITING and expires_at is not None and expires_at < now
    return Status.EXPIRED if expired else status


def checked_text(text: str, sha256: str, place: str) -> str:
    """Return the text after checking it against its hash. Raises `StoreError` if they differ."""
    if _sha256(text.encode()) != sha256:
        raise StoreError(f"{place} holds another text under the hash {sha256}: it was changed")
    return text


def check_question(seal: Seal, question: Question, sealed: str | None) -> None:
    """Raise `BrokenSeal` if no run of this user has asked the question in these words."""
    if sealed != seal_question(seal, question):
        if sealed == OLD:
            raise BrokenSeal(question.run, OLD_RUN, old=True)
        raise BrokenSeal(question.run, f"its question at {question.path} was not asked by a run of yours")


def no_such_run(run: str) -> NoSuchRun:
    return NoSuchRun(f"unknown run {run}: `quire runs` lists them")


def busy(run: str) -> RunBusy:
    return RunBusy(f"run {run} is being driven by another process")


def fenced(run: str) -> Fenced:
    return Fenced(f"run {run} has been taken over: nothing more can be written from here")


def check_open(run: str, path: str, hash: str, *, state: str, current: str) -> None:
    """Raise `RunState` unless a question in this state, with the hash `current`, takes an answer to the hash `hash`."""
    if state == "withdrawn":
        raise RunState(f"the question of run {run} at {path} has been taken back")
    if state != "open":
        raise RunState(f"the question of run {run} at {path} has been answered already")
    if current != hash:
        raise RunState(f"the question of run {run} at {path} is worded differently now: look at it again")


ENDED = (Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.EXPIRED)
"""The statuses of runs that may be removed: they do not wait for an answer and are not being driven."""


class History(Struct, frozen=True):
    """The state a new run starts with when it was not driven in this store (a fork or an import). The totals are stated
    and not summed from the effects, because the effects that a fork takes over were paid for by the original run."""

    update: RunUpdate
    effects: Sequence[EffectRecord]
    events: Sequence[Event]
    updated_at: float
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0


class Pruned(Struct, frozen=True):
    """The runs and texts that were removed, or would be in a dry run."""

    runs: tuple[str, ...] = ()
    effects: int = 0
    texts: int = 0
    size: int = 0
    """Bytes that became free. They stay in the file for later rows; on a server (`in_file` is false) they become free
    when it vacuums its tables."""
    given_back: int = 0
    in_file: bool = True


MOST_NAME, MOST_NOTE = 80, 2000
"""The longest name and the longest note of a run."""
MOST_QUESTIONS = 1_000
"""Counts of open questions end here: a larger number is reported as one more than this."""
REPLY_SECONDS = 24 * 3600.0
"""The time for which a reply is kept under its idempotency key."""
PROCESS_SECONDS = 3600.0
"""The time after which a process that was not seen is forgotten."""
UNDER_WAY_SECONDS = 900.0
"""The time after which a request without a reply counts as lost with its server."""


class KeptReply(Struct, frozen=True):
    """The reply to an earlier request with the same idempotency key."""

    request: str
    """The hash of the earlier request."""
    reply: str | None
    """The reply as text; None while the earlier request is under way."""


def batches(history: History) -> Iterator[Batch]:
    """Yield each effect with the events up to its own, as a drive would have written them.

    An effect that was performed again has two events but one record; the record goes with the last of them.
    """
    records = {record.path: record for record in history.effects}
    last = {event.path: event.seq for event in history.events if event.type == "effect"}
    waiting: list[Event] = []
    for event in sorted(history.events, key=lambda event: event.seq):
        record = records.get(event.path) if event.type == "effect" and last[event.path] == event.seq else None
        if record is None:
            waiting.append(event)
            continue
        del records[event.path]
        last_event = replace(event, at=record.ended_at, data=record.told(), live={}, replayed=False, record=record)
        yield Batch((record,), (*waiting, last_event))
        waiting.clear()
    if waiting:
        yield Batch(events=tuple(waiting))
    for record in records.values():
        yield Batch((record,))


class Marks(Struct, frozen=True):
    """A few numbers about a store: two looks that differ in none of them saw the same runs and open questions."""

    runs: int = 0
    questions: int = 0
    last_asked: float = 0.0
    """The time of the newest open question."""
    oldest_pending: float | None = None
    """The time at which the oldest pending run was created."""


class Spent(Struct, frozen=True):
    """The cost of several runs together."""

    runs: int = 0
    """Without tries, like the next two numbers; the cost is that of all."""
    cost: float = 0.0
    """In US dollars, of the runs whose price is known."""
    unknown: int = 0
    """The runs whose price is not known."""
    completed: int = 0
    failed: int = 0


class PeriodBudget(Struct, frozen=True):
    """The most, in dollars, for the runs that are started from a time on: those of a source, or all."""

    name: str
    """The name of its setting, for messages."""
    most: float
    since: float
    source: str = ""


def spending(sql: type[Statements], since: float, now: float, source: str = "") -> Reads[float]:
    """Return what the runs that were started from a time on have cost, and what those that continue may still cost."""
    ((dollars,),) = yield sql.SPENDING, (now, since, source, source)
    return float(dollars)


def within(budgets: Sequence[PeriodBudget], cost: float, now: float) -> Admit:
    """Admit a run that may cost this much at most, if it fits into each of the budgets."""

    def admit(sql: type[Statements]) -> Steps[str]:
        if budgets:
            yield sql.LOCK_ADMISSION, ("money",)
        for budget in budgets:
            spent = yield from spending(sql, budget.since, now, budget.source)
            if spent + cost > budget.most + TINY:
                return (
                    f"{budget.name} = ${budget.most:g} has no room: runs of this period have cost or set aside "
                    f"${spent:.2f}, and this one may cost ${cost:.2f}"
                )
        return ""

    return admit
