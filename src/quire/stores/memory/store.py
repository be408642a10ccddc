"""A store in the memory of one process: nothing is written to a disk, and everything ends with the process.

It is made for tests of documents, which start and forget thousands of runs. `Memory` holds the runs; each `MemoryStore`
that is opened on it is like another process with locks of its own, so a process that dies and the one that goes on can
be played in one event loop. Runs have no seals here: only this process can write to its memory.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.engine.records import (
    WAITING,
    Answer,
    Batch,
    EffectRecord,
    Event,
    Lease,
    Letter,
    NewRun,
    Question,
    RunRow,
    Status,
    WriteResult,
)
from quire.errors import StoreError
from quire.stores import contract
from quire.stores.memory.kept_run import KeptRun, encode_batch
from quire.values import clean

if TYPE_CHECKING:
    from quire.stores.contract import History

PLACE = "the memory of this process"


class Memory:
    """The runs, texts and letters that the stores of one process share, and the owner of each run that has one."""

    def __init__(self) -> None:
        self.runs: dict[str, KeptRun] = {}
        self.texts: dict[str, str] = {}
        self.letters: list[Letter] = []
        self.owners: dict[str, MemoryStore] = {}

    def lose_owners(self) -> None:
        """Take the locks from all owners, as if their processes had died. An owner that is still there can write until
        the next one begins."""
        self.owners.clear()


class MemoryStore:
    """A `quire.engine.ports.Store` in memory, for one event loop. No method ever waits."""

    def __init__(self, memory: Memory | None = None, *, now: Callable[[], float] = time.time) -> None:
        self.memory = memory or Memory()
        self._now = now
        self._epochs: dict[str, int] = {}
        """The epochs of the runs that this store has acquired and not released."""
        self._closed = False

    async def create(self, run: NewRun) -> None:
        self._create(run)

    async def restore(self, run: NewRun, history: History) -> None:
        """Implement `quire.stores.contract.Restorer.restore`."""
        ended = Batch(update=history.update)
        encoded = [(batch, encode_batch(batch)) for batch in (*contract.batches(history), ended)]
        kept = self._create(run)
        kept.arrived_at = self._now()
        for batch, rows in encoded:
            kept.write(batch, rows, history.updated_at)
        kept.input_tokens, kept.output_tokens, kept.cost = history.input_tokens, history.output_tokens, history.cost

    async def get(self, run: str) -> RunRow | None:
        kept = self._open().runs.get(run)
        return None if kept is None else kept.row(self._shown(kept))

    async def find(self, prefix: str) -> Sequence[str]:
        return [kept.id for kept in self._newest() if kept.id.startswith(prefix)][:10]

    async def list(self, *, status: Status | None = None, limit: int = 50) -> Sequence[RunRow]:
        shown = ((kept, self._shown(kept)) for kept in self._newest())
        found = [(kept, now) for kept, now in shown if status is None or now is status]
        return [kept.row(now) for kept, now in found[:limit]]

    async def text(self, sha256: str) -> str:
        try:
            return self._open().texts[sha256]
        except KeyError:
            raise StoreError(f"{PLACE} holds no text with the hash {sha256}") from None

    async def effects(self, run: str) -> Sequence[EffectRecord]:
        kept = self._open().runs.get(run)
        return [] if kept is None else kept.effects()

    async def events(self, run: str, after: int = 0) -> Sequence[Event]:
        kept = self._open().runs.get(run)
        return [] if kept is None else kept.events(after)

    async def questions(self, run: str | None = None) -> Sequence[Question]:
        runs = self._open().runs
        looked_at = runs.values() if run is None else (runs[run],) if run in runs else ()
        found = [asked for kept in looked_at if self._asks(kept) for asked in kept.open_questions()]
        return sorted(found, key=lambda asked: (asked.asked_at, asked.run, asked.path))

    async def answers(self, run: str) -> Sequence[Answer]:
        kept = self._open().runs.get(run)
        return [] if kept is None else [one.answer for one in kept.answered() if one.answer is not None]

    async def answer(self, run: str, path: str, hash: str, value: str, by: str = "") -> None:
        kept = self._run(run)
        status, asked = self._status(kept), kept.questions.get(path)
        if status not in contract.ANSWERABLE:
            raise contract.takes_no_answers(run, status)
        if asked is None:
            raise contract.asks_nothing(run, path)
        contract.check_open(run, path, hash, state=asked.state, asked=asked.question.hash)
        asked.state, asked.answer = "answered", Answer(path, hash, clean(value), clean(by))

    async def letters(self, recipient: str | None = None) -> Sequence[Letter]:
        return [one for one in self._open().letters if recipient is None or one.recipient == recipient]

    async def request_cancel(self, run: str) -> bool:
        kept = self._run(run)
        self._check_cancellable(kept)
        if run in self.memory.owners:
            kept.cancel_requested = True
            return False
        self._cancel(kept)
        return True

    async def acquire(self, run: str, *, after: int | None = None) -> Lease:
        kept = self._run(run)
        if run in self.memory.owners:
            raise contract.busy(run)
        if after is not None and kept.epoch != after:
            raise contract.fenced(run)
        status = self._status(kept)
        if status is Status.EXPIRED:
            kept.end(status, self._now())
        if status in (Status.COMPLETED, Status.EXPIRED):
            raise contract.cannot_go_on(run, status)
        self.memory.owners[run] = self
        lease = kept.take()
        self._epochs[run] = lease.epoch
        return lease

    async def check_seal(self, run: str, *, whole: bool = True) -> None:
        self._run(run)

    async def reseal(self, run: str) -> None:
        self._run(run)
        if run in self.memory.owners:
            raise contract.busy(run)

    async def write(self, lease: Lease, batch: Batch) -> WriteResult:
        kept = self._owned(lease)
        self._write(kept, batch)
        return WriteResult(kept.cancel_requested, bool(kept.answered()))

    async def park(self, lease: Lease, batch: Batch) -> bool:
        kept = self._owned(lease)
        if any(one.question.path not in (*batch.consume, *batch.withdraw) for one in kept.answered()):
            return False
        self._write(kept, batch)
        return True

    async def release(self, lease: Lease) -> None:
        if self._epochs.get(lease.run) != lease.epoch:
            return
        kept = self._open().runs[lease.run]
        del self._epochs[lease.run]
        if kept.epoch == lease.epoch and self.memory.owners.get(lease.run) is self:
            del self.memory.owners[lease.run]
            if kept.cancel_requested and self._status(kept) in contract.CANCELLABLE:
                self._cancel(kept)

    async def close(self) -> None:
        for run in [run for run, owner in self.memory.owners.items() if owner is self]:
            del self.memory.owners[run]
        self._epochs.clear()
        self._closed = True

    async def evict(self, run: str, epoch: int) -> bool:
        """Implement `quire.stores.contract.SharedStore.evict`."""
        kept = self._open().runs.get(run)
        if kept is None or kept.epoch != epoch:
            return False
        if self.memory.owners.get(run) is not self:
            self.memory.owners.pop(run, None)
        return True

    async def answered(self) -> Sequence[str]:
        """Implement `quire.stores.contract.SharedStore.answered`."""
        waiting = (kept for kept in self._open().runs.values() if kept.status is Status.AWAITING_INPUT)
        found = [(answered[0].question.asked_at, kept.id) for kept in waiting if (answered := kept.answered())]
        return [run for _, run in sorted(found)]

    async def foreign_writes(self) -> int | None:
        """Implement `quire.stores.contract.Watchable.foreign_writes`."""
        return None

    async def marks(self) -> contract.Marks:
        """Implement `quire.stores.contract.Watchable.marks`."""
        runs = self._open().runs
        asked = [one.asked_at for kept in runs.values() for one in kept.open_questions()]
        return contract.Marks(len(runs), len(asked), max(asked, default=0.0))

    async def written_since(self, at: float) -> Sequence[RunRow]:
        """Implement `quire.stores.contract.Watchable.written_since`."""
        return [
            kept.row(self._shown(kept))
            for kept in self._open().runs.values()
            if max(kept.updated_at, kept.arrived_at) >= at or kept.status is Status.RUNNING
        ]

    def _open(self) -> Memory:
        if self._closed:
            raise StoreError(f"this store in {PLACE} has been closed")
        return self.memory

    def _run(self, run: str) -> KeptRun:
        kept = self._open().runs.get(run)
        if kept is None:
            raise contract.no_such_run(run)
        return kept

    def _owned(self, lease: Lease) -> KeptRun:
        """Return the run of a lease. Raises `Fenced` if the lease has ended."""
        kept = self._open().runs.get(lease.run)
        if kept is None or self._epochs.get(lease.run) != lease.epoch or kept.epoch != lease.epoch:
            raise contract.fenced(lease.run)
        return kept

    def _create(self, new: NewRun) -> KeptRun:
        memory = self._open()
        if new.id in memory.runs:
            raise StoreError(f"{PLACE} has a run {new.id} already")
        for digest, text in new.texts.items():
            # Most runs of one memory pin the same few texts.
            if memory.texts.get(digest) != text and hashlib.sha256(text.encode()).hexdigest() != digest:
                raise ValueError(f"a text pinned by run {new.id} is not the one that {digest} names")
        kept = KeptRun(new, len(memory.runs))
        memory.runs[new.id] = kept
        memory.texts.update(new.texts)
        return kept

    def _write(self, kept: KeptRun, batch: Batch) -> None:
        encoded = encode_batch(batch)
        kept.write(batch, encoded, self._now())
        self.memory.letters += [replace(letter, text=clean(letter.text), sealed=True) for letter in batch.letters]

    def _cancel(self, kept: KeptRun) -> None:
        """Cancel a run without an owner. The new epoch keeps out one that has lost its lock."""
        kept.end(Status.CANCELLED, self._now())
        kept.epoch += 1
        kept.cancel_requested = False

    def _check_cancellable(self, kept: KeptRun) -> None:
        status = self._status(kept)
        if status not in contract.CANCELLABLE:
            raise contract.cannot_be_cancelled(kept.id, status)

    def _status(self, kept: KeptRun) -> Status:
        return contract.status_at(self._now(), kept.status, kept.expires_at)

    def _shown(self, kept: KeptRun) -> Status:
        """Return the status as readers see it."""
        status = self._status(kept)
        return Status.INTERRUPTED if status is Status.RUNNING and kept.id not in self.memory.owners else status

    def _asks(self, kept: KeptRun) -> bool:
        """Tell whether the questions of a run can be answered now."""
        return self._status(kept) in (Status.RUNNING, *WAITING)

    def _newest(self) -> Sequence[KeptRun]:
        return sorted(self._open().runs.values(), key=lambda kept: (kept.created_at, kept.number), reverse=True)
