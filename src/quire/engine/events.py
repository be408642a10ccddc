"""The feed of a run: events go to listeners at once, and kept events to the store with the next write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from quire.engine.records import EffectRecord, Event, Lease

if TYPE_CHECKING:
    from quire.engine.ports import Clock
    from quire.engine.requests import Emit
    from quire.values import Value

REPEATABLE = frozenset({"step_failed"})
"""Events that are kept again when they happen again: a resumed step may fail once more."""

Listener = Callable[[Event], None]


def replayed_event(emit: Emit) -> Event:
    """Return an event as a replay has it: without a time and a number."""
    return Event(emit.type, "", 0.0, 0, emit.path, emit.label, emit.data, emit.live, True)


class Feed:
    """Number the kept events of one drive and hold them until they are written.

    A replayed walk emits its events again; `Lease.seen` tells which of them are already kept.
    """

    def __init__(self, run: str, lease: Lease, clock: Clock, listen: Listener) -> None:
        self._run = run
        self._seen = set(lease.seen)
        self._seq = lease.last_seq
        self._clock = clock
        self._listen = listen
        self._pending: list[Event] = []

    def emit(self, emit: Emit, *, live: bool) -> None:
        """Take an event from the interpreter. `live` is false while its walk only replays."""
        key = (emit.type, emit.path)
        if emit.kept and (key not in self._seen or (live and emit.type in REPEATABLE)):
            self._seen.add(key)
            self._keep(emit.type, emit.path, emit.label, emit.data, emit.live)
        else:
            self._tell(emit.type, emit.path, emit.label, emit.data, emit.live, replayed=not live)

    def say(
        self,
        type: str,
        *,
        path: str = "",
        label: str = "",
        data: Mapping[str, Value] | None = None,
        live: Mapping[str, Value] | None = None,
    ) -> None:
        """Emit an event of the driver, which is kept every time it happens."""
        self._keep(type, path, label, data or {}, live or {})

    def delta(self, path: str, label: str, text: str) -> None:
        self._tell("delta", path, label, {}, {"text": text})

    def reading(self, path: str, label: str, processed: int, total: int) -> None:
        """Report that a model reads its prompt. At the end of it, both numbers are the same."""
        self._tell("reading", path, label, {}, {"processed": processed, "total": total})

    def waiting(self, path: str, label: str, seconds: float, reason: str) -> None:
        """Report that a failed model call will be made again."""
        self._tell("retry", path, label, {}, {"seconds": seconds, "reason": reason})

    def queued(self, path: str, label: str, reason: str) -> None:
        """Report that a model call waits for others because of a limit."""
        self._tell("queued", path, label, {}, {"reason": reason})

    def held_up(self, reason: str) -> None:
        """Report that the pending events cannot be written yet; the write will be tried again."""
        self._tell("store_locked", "", "", {}, {"reason": reason})

    def recorded(self, record: EffectRecord, label: str) -> None:
        self._seq += 1
        at, data = record.ended_at, record.told()
        self._add(Event("effect", self._run, at, self._seq, record.path, label, data, {}, False, record))

    def take(self) -> tuple[Event, ...]:
        """Return and clear all pending events; the caller must write them."""
        pending, self._pending = tuple(self._pending), []
        return pending

    def put_back(self, events: tuple[Event, ...]) -> None:
        self._pending[:0] = events

    def _keep(self, type: str, path: str, label: str, data: Mapping[str, Value], live: Mapping[str, Value]) -> None:
        self._seq += 1
        self._add(Event(type, self._run, self._clock.now(), self._seq, path, label, data, live))

    def _add(self, event: Event) -> None:
        self._pending.append(event)
        self._listen(event)

    def _tell(
        self,
        type: str,
        path: str,
        label: str,
        data: Mapping[str, Value],
        live: Mapping[str, Value],
        replayed: bool = False,
    ) -> None:
        self._listen(Event(type, self._run, self._clock.now(), 0, path, label, data, live, replayed))
