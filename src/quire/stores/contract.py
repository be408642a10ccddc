"""Rules that all stores share, and the optional abilities that only some have.

The rules: which statuses allow answering, cancelling and resuming, and the errors raised otherwise. The abilities are
protocols beside the engine's `Store` port, because driving a run does not need them: restoring a run with its history
(`Restorer`), removing runs and copying the store (`Keeper`), keeping replies of the HTTP API (`ReplyKeeper`), sharing
runs in a cluster (`SharedStore`), noticing what other processes change (`Watchable`), adding up what runs have cost
(`Ledger`), reading the oldest questions (`QuestionPages`). Listing runs in pages is in `quire.stores.run_pages`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.records import WAITING, Batch, EffectRecord, Event, NewRun, Question, RunRow, RunUpdate, Status
from quire.errors import BrokenSeal, Fenced, NoSuchRun, RunBusy, RunState, StoreError
from quire.stores.seals import OLD, OLD_RUN, seal_question
from quire.values import sha256 as _sha256

if TYPE_CHECKING:
    from quire.engine.ports import Store
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


def takes_no_answers(run: str, status: Status) -> RunState:
    return RunState(f"run {run} is {status.words} and takes no answers")


def asks_nothing(run: str, path: str) -> RunState:
    return RunState(f"run {run} asks nothing at {path}")


def check_open(run: str, path: str, hash: str, *, state: str, current: str) -> None:
    """Raise `RunState` unless a question in this state, with the hash `current`, takes an answer to the hash `hash`."""
    if state == "withdrawn":
        raise RunState(f"the question of run {run} at {path} has been taken back")
    if state != "open":
        raise RunState(f"the question of run {run} at {path} has been answered already")
    if current != hash:
        raise RunState(f"the question of run {run} at {path} is worded differently now: look at it again")


def cannot_go_on(run: str, status: Status) -> RunState:
    return RunState(f"run {run} is {status.words} and cannot continue: fork it instead")


def cannot_be_cancelled(run: str, status: Status) -> RunState:
    return RunState(f"run {run} is {status.words} already: nothing is left to cancel")


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


@runtime_checkable
class Restorer(Protocol):
    async def restore(self, run: NewRun, history: History) -> None:
        """Create a run with all of its history in one transaction. Raises `StoreError` if the id is taken."""
        ...


@runtime_checkable
class Keeper(Protocol):
    async def prune(self, before: float, statuses: Collection[Status], *, dry_run: bool, vacuum: bool) -> Pruned:
        """Remove runs that ended before a moment, and the texts that no run refers to any more. For a run that came
        with its history, the moment of its arrival counts if that is later than its end."""
        ...

    async def remove(self, runs: Sequence[str], *, dry_run: bool) -> Pruned:
        """Remove these runs, as far as they have ended and no process is about to drive them, and the texts that no
        run refers to any more."""
        ...

    async def backup(self, to: Path) -> int:
        """Write a complete and consistent copy while other processes continue writing, and return its size in bytes.
        Never overwrites a file."""
        ...


MOST_NAME, MOST_NOTE = 80, 2000
"""The longest name and the longest note of a run."""
REPLY_SECONDS = 24 * 3600.0
"""The time for which a reply is kept under its idempotency key."""
UNDER_WAY_SECONDS = 900.0
"""The time after which a request without a reply counts as lost with its server."""


class KeptReply(Struct, frozen=True):
    """The reply to an earlier request with the same idempotency key."""

    request: str
    """The hash of the earlier request."""
    reply: str | None
    """The reply as text; None while the earlier request is under way."""


@runtime_checkable
class ReplyKeeper(Protocol):
    """A store that keeps replies of the HTTP API. They hold no authority: a reply only repeats what was said."""

    async def claim_key(self, key: str, request: str) -> KeptReply | str:
        """Claim an idempotency key for a request with this hash. Return the mark of the claim, or the reply to the
        request that has claimed the key before."""
        ...

    async def keep_reply(self, key: str, claim: str, reply: str | None) -> None:
        """Keep the reply of a claimed key; without a reply, give the key back."""
        ...


def keeper(store: Store) -> Keeper:
    """Return the store as a `Keeper`. Raises `StoreError` if the store cannot remove runs or copy itself."""
    if not isinstance(store, Keeper):
        raise StoreError("this store is a server's: its own tools remove old runs and make copies")
    return store


async def restore(store: Store, run: NewRun, history: History) -> None:
    """Create a run with its history in any store. A store that is not a `Restorer` is written to as a drive would do
    it, and so computes its own totals."""
    if isinstance(store, Restorer):
        await store.restore(run, history)
        return
    await store.create(run)
    lease = await store.acquire(run.id)
    try:
        for batch in batches(history):
            await store.write(lease, batch)
        await store.write(lease, Batch(update=history.update))
    finally:
        await store.release(lease)


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


@runtime_checkable
class SharedStore(Protocol):
    async def evict(self, run: str, epoch: int) -> bool:
        """Take the lock from an owner that is considered dead, if the run is still at that epoch. Return False if it is
        at another epoch.

        A stopped process, or one behind a broken network, still holds its lock. The epoch prevents it from writing once
        the next owner has begun.
        """
        ...

    async def answered(self) -> Sequence[str]:
        """Return the runs that are waiting although an answer is stored that no process has taken yet, oldest first."""
        ...


class Marks(Struct, frozen=True):
    """A few numbers about a store: two looks that differ in none of them saw the same runs and open questions."""

    runs: int = 0
    questions: int = 0
    last_asked: float = 0.0
    """The time of the newest open question."""


@runtime_checkable
class Watchable(Protocol):
    async def foreign_writes(self) -> int | None:
        """Return a number that changes when another process has written; None if only a look at the rows can tell."""
        ...

    async def marks(self) -> Marks: ...

    async def written_since(self, at: float) -> Sequence[RunRow]:
        """Return the runs that were changed at or after a time, and all that are running."""
        ...


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


@runtime_checkable
class Ledger(Protocol):
    async def spent(self, since: float, until: float = inf) -> Spent:
        """Add up the costs of the runs that were started from a time on, before another, without reading the runs."""
        ...

    async def waited(self, since: float) -> Sequence[float]:
        """Return the seconds that answered questions have waited, of the newest that were asked since a time."""
        ...


@runtime_checkable
class QuestionPages(Protocol):
    async def oldest_questions(self, limit: int) -> tuple[Sequence[Question], int]:
        """Return the open questions that were asked first, and the number of all open ones, without reading the
        others."""
        ...


async def changed_rows(store: Store, since: float, most: int) -> Sequence[RunRow]:
    """Return the rows that were written since a time; the newest ones of a store that cannot tell."""
    return await store.written_since(since) if isinstance(store, Watchable) else await store.list(limit=most)


async def oldest_questions(store: Store, limit: int) -> tuple[Sequence[Question], int]:
    """Return the oldest open questions of a store and the number of all, in the best way that the store has."""
    if isinstance(store, QuestionPages):
        return await store.oldest_questions(limit)
    questions = await store.questions()
    return questions[:limit], len(questions)
