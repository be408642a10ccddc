"""Model replies of an earlier run that a new run takes over, where it asks the same at the same path.

A reply that was taken over becomes an ordinary record of the new run: the earlier run is not needed to resume it. Its
usage is zero, `by` names the earlier run, and `reused` in its value says what the reply had used there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.records import EffectRecord, Usage, has_shape
from quire.engine.request_hashes import request_hash
from quire.engine.requests import Meter

if TYPE_CHECKING:
    from quire.engine.requests import ModelRequest
    from quire.values import Value

REUSED = "reused"
"""The key in the value of a record."""


class ModelNames(Struct, frozen=True):
    """The names of a run's models: its own, and the one that is called in place of every other, if there is one."""

    own: str
    instead: str = ""

    def called_for(self, request: ModelRequest) -> str:
        return self.instead or request.model or self.own

    def has_called(self, model: str, request: ModelRequest) -> bool:
        """Tell whether the run called this model for such requests, at least for a part of its time."""
        return model in (self.instead, request.model or self.own)


def is_cut(record: EffectRecord) -> bool:
    """Tell whether the model stopped in the middle of this reply."""
    return isinstance(record.value, Mapping) and record.value.get("cut") is True


def saved_by(record: EffectRecord) -> Meter:
    """Return the usage of a reply when it was paid for: in this run, or in the run that it was taken from."""
    used = record.value.get(REUSED) if isinstance(record.value, Mapping) else None
    if not isinstance(used, Mapping):
        return Meter.of(record)
    cost = used.get("cost")
    return Meter(
        int(_amount(used.get("input_tokens"))),
        int(_amount(used.get("output_tokens"))),
        None if cost is None else _amount(cost),
        _amount(used.get("elapsed")),
    )


def _amount(value: Value) -> float:
    """Return a number of a record, which may come from a file that others wrote."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 53 else 0


class EarlierReplies:
    """The replies of an earlier run, as one drive takes them."""

    def __init__(
        self,
        run: str,
        records: Iterable[EffectRecord],
        models: tuple[ModelNames, ModelNames],
        own: Iterable[EffectRecord] = (),
    ) -> None:
        """`models` are those of the earlier run and of this one; `own` are the records that this one has already."""
        self.run = run
        self._replies = {record.path: record for record in records if is_reusable(record)}
        self._then, self._now = models
        self._anew = {_thread_of(record.path) for record in own if record.kind == "model" and not record.by}

    def take(self, request: ModelRequest, now: float) -> EffectRecord | None:
        """Return the record of this run for a reply that fits the request; None if the model has to be asked."""
        thread = _thread_of(request.path)
        record = self._found(request, thread)
        if record is None:
            self._anew.add(thread)
            return None
        if not request.known:
            self._anew.discard(thread)
        reply = record.value if isinstance(record.value, Mapping) else {}
        value = {**reply, REUSED: saved_by(record).as_value()}
        return EffectRecord(request.path, "model", "ok", record.request, now, value, usage=Usage(), by=self.run)

    def _found(self, request: ModelRequest, thread: str) -> EffectRecord | None:
        record = self._replies.get(request.path)
        if record is None or (request.bounds is not None and request.bounds.reached is not None):
            return None
        # The hash of such a request leaves out what the thread has said before: that has to be the same as well.
        if request.known and thread in self._anew:
            return None
        if not self._then.has_called(self._now.called_for(request), request):
            return None
        return record if record.request == request_hash(request) else None


def is_reusable(record: EffectRecord) -> bool:
    """Tell whether a record holds a whole reply. One that was cut is asked for again."""
    return record.kind == "model" and record.state == "ok" and has_shape(record) and not is_cut(record)


def _thread_of(path: str) -> str:
    """Return the part of a path that all turns of one thread share."""
    return path.rpartition("/turn[")[0]
