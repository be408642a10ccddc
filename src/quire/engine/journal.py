"""The recorded effects of a run, as one drive sees them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from quire.engine.pure_work import PureWork
from quire.engine.record_shapes import has_shape
from quire.engine.records import EffectRecord
from quire.engine.requests import (
    KINDS,
    Fan,
    Halt,
    HumanRequest,
    Meter,
    Metering,
    Recorded,
    hashed_request,
    request_hash,
)
from quire.errors import JournalMismatch

REFUSED = "too_many_calls"
"""The kind of the failure of a model call that the run was not allowed to make."""


class Journal:
    """Looks up what was recorded, by path, and notices a request that is not the one that was recorded.

    `work` is what the walk that reads this journal has to count in."""

    def __init__(self, records: Iterable[EffectRecord]) -> None:
        self._records = {record.path: record for record in records}
        self._claimed: set[str] = set()
        self.work = PureWork(path for path, record in self._records.items() if record.kind == "work")

    def __len__(self) -> int:
        return len(self._records)

    def claim(self, path: str) -> None:
        """A walk names each path once; twice is a bug of the interpreter, not of the document."""
        if path in self._claimed:
            raise AssertionError(f"the walk asked for {path} twice")
        self._claimed.add(path)

    def find(self, request: Recorded) -> EffectRecord | None:
        record = self._records.get(request.path)
        if record is None:
            return None
        if record.kind != KINDS[type(request)] or not has_shape(record):
            raise JournalMismatch(request.path)
        found, characters = hashed_request(request)
        self.work.add_text(characters)
        if record.request != found and not _halted_by_0_1_0(request, record) and not _asked_by_0_1_0(request, record):
            raise JournalMismatch(request.path)
        return record

    def holds_more(self) -> bool:
        """Whether effects are recorded that the walk has not come to yet."""
        return any(
            record.kind not in _UNCLAIMED and record.path not in self._claimed for record in self._records.values()
        )

    def add(self, record: EffectRecord) -> None:
        self._records[record.path] = record

    def ended_by(self, fan: Fan) -> int | None:
        """The number of the child whose failure ended a fan for all of them; None where nobody has written that."""
        record = self._records.get(abort_path(fan))
        return record.value if record is not None and isinstance(record.value, int) else None

    def aborts(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those of the paths at which it stands what ended a fan."""
        found = ((path, self._records.get(path)) for path in paths)
        return tuple(path for path, record in found if record is not None and record.kind == "abort")

    def metered(self, asked: Metering) -> list[Meter]:
        """What these effects have used; nothing where there is no record."""
        return [_meter(self._records.get(path)) for path in asked.paths] + [self._below(path) for path in asked.below]

    def _below(self, path: str) -> Meter:
        """A price that nobody knows is not counted."""
        meters = [_meter(record) for at, record in self._records.items() if at.startswith(f"{path}/")]
        return Meter(
            sum(meter.input_tokens for meter in meters),
            sum(meter.output_tokens for meter in meters),
            sum(meter.cost or 0.0 for meter in meters),
            sum(meter.elapsed for meter in meters),
        )

    def dearest(self) -> float | None:
        """What the dearest model call has cost so far; None where none is known."""
        costs = (record.usage.cost for record in self._records.values() if record.usage is not None)
        return max((cost for cost in costs if cost is not None), default=None)

    def model_calls(self) -> int:
        """How many were performed: one that was refused was not."""
        return sum(
            record.kind == "model" and (record.failure is None or record.failure.kind != REFUSED)
            for record in self._records.values()
        )


_UNCLAIMED = frozenset({"abort", "terms", "work"})
"""Kinds of records that no walk asks for by claiming their path."""


def _halted_by_0_1_0(request: Recorded, record: EffectRecord) -> bool:
    """Whether this is the halt of a run that 0.1.0 has driven. Which children it named at the end of a thread depended
    on their timing, and it kept no answer, so none can be wrong."""
    return isinstance(request, Halt) and record.kind == "halt" and record.value is None


def _asked_by_0_1_0(request: Recorded, record: EffectRecord) -> bool:
    """Whether this is a question of the tool `ask` as 0.1.0 recorded it: without the default that it was given."""
    if not isinstance(request, HumanRequest) or not request.explicit or request.default is None:
        return False
    return record.request == request_hash(replace(request, default=None))


def abort_path(fan: Fan) -> str:
    return f"{fan.path}/abort"


def _meter(record: EffectRecord | None) -> Meter:
    if record is None:
        return Meter()
    if record.usage is None:
        return Meter(elapsed=record.elapsed)
    return Meter(record.usage.input_tokens, record.usage.output_tokens, record.usage.cost, record.elapsed)
