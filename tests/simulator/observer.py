"""Who sees every write and every effect of every process, and says when one of them should not have been.

What is legal is modelled, not ignored: an effect in flight when its process dies may happen again, a process that was
taken over may still start one; but what is recorded is never performed again by whoever owns the run.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from tests.simulator.process import Process

from quire.engine.records import Batch, EffectRecord, Lease, Question

_ITEM = re.compile(r"/for_each\[(\d+)\]")


@dataclass(slots=True)
class Witness:
    """`expected_answer` is what a person says to a question; `max_parallel` bounds the items of each loop.

    `live` is the journal as it is now, `results` how often a result was written for each path. `stale` is true while a
    writer was cut off in the middle, so that only the file knows.
    """

    expected_answer: Callable[[Question], str] | None = None
    max_parallel: int = 0
    live: dict[str, EffectRecord] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    results: Counter[str] = field(default_factory=Counter)
    intents: Counter[str] = field(default_factory=Counter)
    superseded: Counter[str] = field(default_factory=Counter)
    tool_calls: Counter[str] = field(default_factory=Counter)
    """By path, which stands for the effect's id: that is made of the run and the path."""
    model_calls: Counter[str] = field(default_factory=Counter)
    writing: set[str] = field(default_factory=set)
    ids: dict[str, str] = field(default_factory=dict)
    lost: Counter[str] = field(default_factory=Counter)
    """Calls that were stopped while they were under way: by a sibling's failure, a parent, a person."""

    other_effects: int = 0
    asked: dict[str, Question] = field(default_factory=dict)
    stale: bool = False
    epoch: int = 0
    drives: int = 0
    _answered: dict[str, str] = field(default_factory=dict)
    _under_way: dict[tuple[int, str], Counter[int]] = field(default_factory=dict)

    def blame(self, problem: str) -> None:
        self.problems.append(problem)

    def acquired(self, process: Process, lease: Lease) -> None:
        if lease.epoch <= self.epoch:
            self.blame(f"epoch {lease.epoch} was given after {self.epoch}")
        self.epoch = lease.epoch
        self.drives += 1

    def sync(self, records: Iterable[EffectRecord]) -> None:
        """After a writer was cut off: the journal as the file has it."""
        self.live = {record.path: record for record in records}
        self._answered.clear()
        self.stale = False

    def owns(self, process: Process) -> bool:
        return process.epoch == self.epoch

    def wrote(self, process: Process, batch: Batch) -> None:
        written = batch.effects or batch.questions or batch.supersede or batch.consume
        if not self.owns(process) and written:
            self.blame(f"process {process.number} wrote {_what(batch)} after it had been taken over")
        for path in batch.supersede:
            if self.live.pop(path, None) is not None:
                self.superseded[path] += 1
            self._answered.pop(path, None)
        for record in batch.effects:
            self._recorded(record)
        for question in batch.questions:
            self._asked(question)
        for path in batch.withdraw:
            self._answered.pop(path, None)

    def _recorded(self, record: EffectRecord) -> None:
        before = self.live.get(record.path)
        if before is not None and before.state != "intent" and not self.stale:
            self.blame(f"{record.path} was recorded twice: {before.state}, then {record.state}")
        self.live[record.path] = record
        if record.state == "intent":
            # One that has a cost is not new: a call that was stopped, or died with its process, is counted.
            self.intents[record.path] += record.usage is None
            return
        self.results[record.path] += 1
        question = self.asked.get(record.path)
        if record.kind == "ask" and question is not None and self.expected_answer is not None:
            wanted = self.expected_answer(question)
            if record.value != wanted:
                self.blame(f"{record.path} was answered {wanted!r} and recorded as {record.value!r}")

    def _asked(self, question: Question) -> None:
        self.asked[question.path] = question
        # Putting the same question again changes nothing in a store that has an answer to it.
        if self._answered.get(question.path, question.hash) != question.hash and not self.stale:
            self.blame(f"{question.path} was asked again in other words after it had been answered")
        if question.path in self.live and not self.stale:
            self.blame(f"{question.path} was asked again after its answer had been recorded")

    def answered(self, path: str, hash: str) -> None:
        if path in self._answered and not self.stale:
            self.blame(f"{path} was answered twice")
        self._answered[path] = hash

    def cancelled(self) -> None:
        """Everything that was asked is taken back, in the store's own transaction."""
        self._answered.clear()

    def tool_begins(self, process: Process, path: str, effect_id: str, *, writes: bool) -> None:
        if writes:
            self.writing.add(path)
        if self.ids.setdefault(path, effect_id) != effect_id:
            self.blame(f"{path} was called under two effect ids")
        self.tool_calls[path] += 1
        self._not_recorded(process, path)
        for item in _ITEM.finditer(path):
            counts = self._under_way.setdefault((process.number, path[: item.start()]), Counter())
            counts[int(item[1])] += 1
            if self.max_parallel and len(counts) > self.max_parallel:
                self.blame(f"{len(counts)} items of {path[: item.start()]} at once, {self.max_parallel} are allowed")

    def tool_ends(self, process: Process, path: str) -> None:
        for item in _ITEM.finditer(path):
            counts = self._under_way[process.number, path[: item.start()]]
            counts[int(item[1])] -= 1
            if not counts[int(item[1])]:
                del counts[int(item[1])]

    async def unless_stopped(self, path: str, work: Awaitable[None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            self.lost[path] += 1
            raise

    def other_begins(self, process: Process, path: str) -> None:
        self.other_effects += 1
        self._not_recorded(process, path)

    def _not_recorded(self, process: Process, path: str) -> None:
        record = self.live.get(path)
        if record is not None and record.state != "intent" and self.owns(process) and not self.stale:
            self.blame(f"{path} was performed again although its result ({record.state}) is recorded")

    def model_begins(self, process: Process, path: str) -> None:
        self.model_calls[path] += 1
        self._not_recorded(process, path)

    @property
    def performed(self) -> int:
        return self.tool_calls.total() + self.model_calls.total() + self.other_effects


def _what(batch: Batch) -> str:
    return ", ".join([one.path for one in batch.effects] + [one.path for one in batch.questions]) or "a change"
