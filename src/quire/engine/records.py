"""What a store keeps of a run: its row, its effects, its events, its questions.

Nobody changes one of these once it is made. Those that every step makes are not frozen all the same: that costs
five times as much to make, and a journaled step is to cost little more than its commit.

The shape that the value of a recorded effect must have, by its kind. A journal may come from a file or a store that
others wrote, and the interpreter takes its records for what an effect gave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec import field as struct_field

from quire.plan.ways import last_label, typed_way

if TYPE_CHECKING:
    from quire.engine.requests import Failure
    from quire.values import Value


class Status(StrEnum):
    """`completed` and `expired` are final; `failed` and `cancelled` go on with `resume`.

    `interrupted` is never stored: it is how a reader sees `running` without a live owner."""

    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    AWAITING_INPUT = "awaiting_input"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    INTERRUPTED = "interrupted"

    @property
    def words(self) -> str:
        """As it stands in a sentence for people: a run is …"""
        return "waiting for an answer" if self is Status.AWAITING_INPUT else self.value


WAITING = (Status.PAUSED, Status.AWAITING_INPUT)
FINAL = (Status.COMPLETED, Status.EXPIRED)


class Usage(Struct, frozen=True):
    """What one effect used. `cost` is in US dollars; None means that nobody knows the price, never that it is free."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0


class EffectRecord(Struct):
    """The journal's entry for one path. An `intent` says that a tool which changes the world was started."""

    path: str
    kind: str
    state: Literal["intent", "ok", "failed"]
    request: str
    at: float
    value: Value = None
    failure: Failure | None = None
    usage: Usage | None = None
    elapsed: float = 0.0
    delays: tuple[float, ...] = ()
    by: str = ""
    """Who gave the answer that this is the record of; empty for all else, and where 0.1.0 recorded it."""

    @property
    def ended_at(self) -> float:
        return self.at + self.elapsed

    def told(self) -> dict[str, Value]:
        """What the `effect` event says of it: nothing that is not in the record, so no store has to keep it twice."""
        data: dict[str, Value] = {"kind": self.kind, "state": self.state, "elapsed": round(self.elapsed, 3)}
        if self.usage:
            data["input_tokens"] = self.usage.input_tokens
            data["output_tokens"] = self.usage.output_tokens
            data["cost"] = self.usage.cost
        if self.failure:
            data["message"] = self.failure.message
        if self.by:
            data["by"] = self.by
        return data


class Event(Struct):
    """One entry of a run's feed. `seq` is 0 for what is not kept (deltas, replayed steps). `way` says which step it is
    about: its label, and in a callee the labels of the steps that lead to it before that.

    `live` and `record` (the effect that an `effect` event tells of) are for those who watch, never kept here. One that
    has a `record` says `record.told()` at `record.ended_at`: a store that has the record makes the event from that."""

    type: str
    run: str
    at: float
    seq: int = 0
    path: str = ""
    way: str = ""
    data: Mapping[str, Value] = struct_field(default_factory=dict)
    live: Mapping[str, Value] = struct_field(default_factory=dict)
    replayed: bool = False
    record: EffectRecord | None = None

    @property
    def label(self) -> str:
        """That of the step in its own document."""
        return last_label(self.way)

    def as_json(self) -> dict[str, Value]:
        head: dict[str, Value] = {"type": self.type, "run": self.run, "at": round(self.at, 3)}
        if self.seq:
            head["seq"] = self.seq
        if self.path:
            head["path"] = self.path
        if self.way:
            head["step"] = self.label
            if self.way != self.label:
                head["way"] = self.way
        return {**head, **self.data, **self.live}


class Question(Struct, frozen=True):
    """A question that waits for a person. `hash` is that of the request: an answer is for this wording only. `way` is
    as in `Event`.

    `explicit` is that of the request. It is not stored: only the process that drives the run needs it."""

    run: str
    path: str
    way: str
    title: str
    kind: Literal["input", "confirm", "select"]
    prompt: str
    options: tuple[str, ...]
    default: str | None
    hash: str
    asked_at: float
    expires_at: float | None = None
    explicit: bool = False

    @property
    def label(self) -> str:
        """That of the step in its own document."""
        return last_label(self.way)

    def is_named(self, name: str) -> bool:
        """Whether a person who types that means this question: by its path, the way to its step, or its label."""
        return name == self.path or typed_way(name) in (self.way, self.label)


class Answer(Struct, frozen=True):
    """`by` is who gave it: the user's account, `mcp:CLIENT`, `python`, `--answer` or `unattended`; empty for one that
    0.1.0 stored."""

    path: str
    hash: str
    value: str
    by: str = ""


class NewRun(Struct, frozen=True):
    """`pins` is all that the run holds on to; `texts` are the pinned documents by the sha256 of their UTF-8."""

    id: str
    title: str
    format: str
    document: str
    created_at: float
    pins: Mapping[str, Value]
    texts: Mapping[str, str]


class RunRow(Struct, frozen=True):
    """`position` is the way to the step where the run stands."""

    id: str
    title: str
    format: str
    document: str
    status: Status
    position: str
    created_at: float
    updated_at: float
    expires_at: float | None
    input_tokens: int
    output_tokens: int
    cost: float | None
    failure: Failure | None
    ended_by: tuple[str, ...]
    epoch: int
    pins: Mapping[str, Value]


class RunUpdate(Struct):
    """The list columns that change with a write.

    None leaves `status` and `position` as they are; whenever `status` is given, `failure`, `ended_by` and
    `expires_at` are written as they stand here (so going on clears them)."""

    status: Status | None = None
    position: str | None = None
    failure: Failure | None = None
    ended_by: tuple[str, ...] = ()
    expires_at: float | None = None


class Letter(Struct, frozen=True):
    """A message to whoever launched a run. `sealed` is false for one that no run of this user has sent."""

    recipient: str
    run: str
    text: str
    at: float
    sealed: bool = True


class Batch(Struct):
    """All that one transaction writes. Usage of the effects is added to the run's totals in the same transaction.

    `consume` closes questions whose answer has become an effect; `withdraw` takes open ones back. `supersede` takes
    effects out of the journal, before `effects` go in: a failure that ended the run is performed again. `letters` are
    delivered with the write, or not at all.
    """

    effects: tuple[EffectRecord, ...] = ()
    events: tuple[Event, ...] = ()
    questions: tuple[Question, ...] = ()
    consume: tuple[str, ...] = ()
    withdraw: tuple[str, ...] = ()
    supersede: tuple[str, ...] = ()
    letters: tuple[Letter, ...] = ()
    update: RunUpdate | None = None


class Written(Struct):
    """What a writer learns in passing: somebody wants the run cancelled; an answer waits to be taken."""

    cancel_requested: bool = False
    answer_waiting: bool = False


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write a run, held by one process at a time. `seen` are the (type, path) of its kept events.

    `cost` is what its effects have cost so far, those included that were superseded: the money is gone. `row` and
    `records` are the run as it stands when it is taken, checked against its seals."""

    run: str
    epoch: int
    last_seq: int
    seen: frozenset[tuple[str, str]]
    cost: float | None = 0.0
    row: RunRow | None = field(default=None, compare=False)
    records: tuple[EffectRecord, ...] = field(default=(), compare=False)


def has_shape(record: EffectRecord) -> bool:
    """Whether the walk can go on with this record. A failed effect has no value that anybody reads."""
    shape = _SHAPES.get(record.kind)
    if record.state == "failed" and record.failure is None:
        return False
    return record.state != "ok" or shape is None or shape(record.value)


def _is_reply(value: Value) -> bool:
    if not isinstance(value, Mapping) or not isinstance(value.get("text"), str):
        return False
    uses = value.get("uses")
    return uses is None or (isinstance(uses, list | tuple) and all(_is_use(one) for one in uses))


def _is_use(value: Value) -> bool:
    if not isinstance(value, list | tuple) or len(value) not in (3, 4):
        return False
    return _texts_and_map(value) and all(isinstance(part, str) for part in value[3:])


def _are_offers(value: Value) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(one, list | tuple)
        and len(one) in (3, 4)
        and _texts_and_map(one)
        and all(isinstance(part, str) for part in one[3:])
        for one in value
    )


def _texts_and_map(value: list[Value] | tuple[Value, ...]) -> bool:
    first, second, third = value[:3]
    return isinstance(first, str) and isinstance(second, str) and isinstance(third, Mapping)


def _are_states(value: Value) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(one, Mapping) and isinstance(one.get("state"), str) for one in value
    )


_SHAPES: Mapping[str, Callable[[Value], bool]] = {
    "model": _is_reply,
    "ask": lambda value: isinstance(value, str),
    "load": lambda value: value is None or isinstance(value, str),
    "offer": _are_offers,
    "break": lambda value: isinstance(value, Mapping),
    "join": _are_states,
    "abort": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "terms": lambda value: isinstance(value, Mapping) and isinstance(value.get("limits"), Mapping),
}
