"""What every store holds to whatever it is made of, and what it says to who wants something else.

What a store can do with whole runs: take one in with its history, remove old ones, copy itself.

Driving needs none of this, so it stands beside the engine's `Store` port and not in it.

What a cluster needs of a store beside `quire.engine.ports.Store`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

from quire.engine.records import WAITING, Batch, EffectRecord, Event, NewRun, Question, RunUpdate, Status
from quire.errors import BrokenSeal, Fenced, NoSuchRun, RunBusy, RunState, StoreError
from quire.stores.seals import OLD, OLD_RUN, seal_question

if TYPE_CHECKING:
    from quire.engine.ports import Store
    from quire.trust.seal import Seal

ANSWERABLE = (Status.RUNNING, *WAITING)
CANCELLABLE = (Status.PENDING, Status.RUNNING, *WAITING)


def status_at(now: float, status: Status, expires_at: float | None) -> Status:
    """Nobody writes down that a wait has lasted too long: whoever looks finds it expired."""
    expired = status in WAITING and expires_at is not None and expires_at < now
    return Status.EXPIRED if expired else status


def checked_text(text: str, sha256: str, place: str) -> str:
    """A text that is the one its hash names. Raises `StoreError`."""
    if hashlib.sha256(text.encode()).hexdigest() != sha256:
        raise StoreError(f"{place} holds another text under the hash {sha256}: it was changed")
    return text


def check_question(seal: Seal, question: Question, sealed: str | None) -> None:
    """Raises `BrokenSeal` for a question that no run of this user has asked in these words."""
    if sealed != seal_question(seal, question):
        if sealed == OLD:
            raise BrokenSeal(question.run, OLD_RUN, old=True)
        raise BrokenSeal(question.run, f"its question at {question.path} was not asked by a run of yours")


def no_such_run(run: str) -> NoSuchRun:
    return NoSuchRun(f"there is no run {run}: `quire runs` lists them")


def busy(run: str) -> RunBusy:
    return RunBusy(f"run {run} is being driven by another process")


def fenced(run: str) -> Fenced:
    return Fenced(f"run {run} has been taken over: nothing more can be written from here")


def takes_no_answers(run: str, status: Status) -> RunState:
    return RunState(f"run {run} is {status.words} and takes no answers")


def cannot_go_on(run: str, status: Status) -> RunState:
    return RunState(f"run {run} is {status.words} and cannot go on: fork it instead")


def cannot_be_cancelled(run: str, status: Status) -> RunState:
    return RunState(f"run {run} is {status.words} already: there is nothing to cancel")


ENDED = (Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.EXPIRED)
"""The states of runs that may be removed: nobody waits for them and nobody drives them."""


class History(Struct, frozen=True):
    """What a run begins with that was not driven here. Its totals are told, not added up from the effects: what a
    fork takes over was paid for by the run that it comes from."""

    update: RunUpdate
    effects: Sequence[EffectRecord]
    events: Sequence[Event]
    updated_at: float
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0


class Pruned(Struct, frozen=True):
    """What was removed, or would be. `size` is in bytes of the file, which stay free in it for what comes next; where a
    server keeps the runs (not `in_file`), they are free when it has vacuumed its tables."""

    runs: tuple[str, ...] = ()
    effects: int = 0
    texts: int = 0
    size: int = 0
    given_back: int = 0
    in_file: bool = True


@runtime_checkable
class Restorer(Protocol):
    async def restore(self, run: NewRun, history: History) -> None:
        """Makes a run with all of its history in one transaction. Raises `StoreError` where the id is taken."""
        ...


@runtime_checkable
class Keeper(Protocol):
    async def prune(self, before: float, statuses: Collection[Status], *, dry_run: bool, vacuum: bool) -> Pruned:
        """Removes runs that ended before a moment, and the texts that nobody refers to any more. A run that came with
        its history has been here since then, however long ago it ended."""
        ...

    async def backup(self, to: Path) -> int:
        """A whole and consistent copy, while others go on writing; its size in bytes. Never overwrites."""
        ...


def keeper(store: Store) -> Keeper:
    """The same store as one that looks after its own file. Raises `StoreError` where somebody else does."""
    if not isinstance(store, Keeper):
        raise StoreError("this store is a server's: its own tools remove old runs and make copies")
    return store


async def restore(store: Store, run: NewRun, history: History) -> None:
    """Into any store. One that cannot do it in one go is written to as a drive would, totals included."""
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
    """Each effect with the events up to its own, as a drive would have written them.

    One that was performed again has two events and one record, which goes with the last of them."""
    records = {record.path: record for record in history.effects}
    last = {event.path: event.seq for event in history.events if event.type == "effect"}
    waiting: list[Event] = []
    for event in sorted(history.events, key=lambda one: one.seq):
        record = records.get(event.path) if event.type == "effect" and last[event.path] == event.seq else None
        if record is None:
            waiting.append(event)
            continue
        del records[event.path]
        yield Batch((record,), (*waiting, _told_by(event, record)))
        waiting.clear()
    if waiting:
        yield Batch(events=tuple(waiting))
    for record in records.values():
        yield Batch((record,))


def _told_by(event: Event, record: EffectRecord) -> Event:
    return Event(
        event.type, event.run, record.ended_at, event.seq, event.path, event.way, record.told(), {}, False, record
    )


@runtime_checkable
class SharedStore(Protocol):
    async def evict(self, run: str, epoch: int) -> bool:
        """Takes the lock from an owner that counts as dead, if the run is still at that epoch.

        A stopped process, or one behind a broken network, holds its lock all the same. The epoch keeps it from
        writing once the next owner has begun. False where the run is at another epoch."""
        ...

    async def answered(self) -> Sequence[str]:
        """The runs that wait although an answer is there that nobody has taken, oldest first."""
        ...
