"""Records that a store keeps of a run: its row, its effects, its events and its questions.

Records are never changed after they are created. The types that every step creates are not frozen all the same: a
frozen value costs five times as much to create, and a journaled step should cost little more than its commit. None of
them can be part of a circle, so the collector of garbage does not look at them (`gc=False`).

`has_shape` checks the value of a recorded effect against the shape that its kind requires. A journal may come from a
file or a store that other people wrote, and the interpreter trusts its records to hold what the effects returned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec import field as struct_field

from quire.errors import LimitReached
from quire.plan.vocabulary import last_label, typed_way

if TYPE_CHECKING:
    from quire.engine.requests import Failure
    from quire.values import Value


class Status(StrEnum):
    """Status of a run. `completed` and `expired` are final; `failed` and `cancelled` runs can be resumed.

    `interrupted` is never stored: readers see it in place of `running` when the run has no live owner.
    """

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
        """Return the status as it reads in a sentence for people: "a run is …"."""
        return "waiting for an answer" if self is Status.AWAITING_INPUT else self.value


WAITING = (Status.PAUSED, Status.AWAITING_INPUT)
FINAL = (Status.COMPLETED, Status.EXPIRED)
REFUSED = "too_many_calls"
"""Failure kind of a run at the first model call beyond its limit. To 0.1.0 it was an ordinary failure of the step: its
journals have records of it that a policy survived."""


PARKED = "parked"
"""Failure kind under which the row of a paused run stores why it continues later; it is not a failure."""


def call_limit(most: int, path: str, label: str = "") -> LimitReached:
    """Return the error that ends a run at the first model call beyond its limit."""
    message = f"the run has made the {most} model calls that it may make (max_pipeline_spawns; --limit calls=N)"
    return LimitReached(message, REFUSED, path, label)


class Usage(Struct, frozen=True, gc=False):
    """Tokens and money that one effect used."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    """In US dollars. None means that the price is unknown, never that the effect was free."""


def add_costs(cost: float | None, more: float | None) -> float | None:
    """Return the sum of two costs; None if one of them is not known."""
    return None if cost is None or more is None else cost + more


class EffectRecord(Struct, gc=False):
    """The journal's entry for one path. The state `intent` says that a tool which changes the world was started."""

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
    """The author of the answer that this record holds, or the run from which a model's reply was taken. Empty for all
    other effects, and for answers that 0.1.0 recorded."""

    @property
    def ended_at(self) -> float:
        return self.at + self.elapsed

    @property
    def reused_from(self) -> str:
        """The run from which a reply was taken; empty for all other records."""
        return self.by if self.kind == "model" else ""

    @property
    def is_model_call(self) -> bool:
        """True for a model call that was made: it was not refused, and its reply not taken from another run."""
        return self.kind == "model" and not self.by and (self.failure is None or self.failure.kind != REFUSED)

    def told(self) -> dict[str, Value]:
        """Return the data of the `effect` event.

        All of it comes from the record, so a store does not have to keep it twice.
        """
        data: dict[str, Value] = {"kind": self.kind, "state": self.state, "elapsed": round(self.elapsed, 3)}
        if self.usage:
            data["input_tokens"] = self.usage.input_tokens
            data["output_tokens"] = self.usage.output_tokens
            data["cost"] = self.usage.cost
        if self.failure:
            data["message"] = self.failure.message
        if self.by:
            data["reused" if self.reused_from else "by"] = self.by
        return data


def total_cost(records: Iterable[EffectRecord]) -> float | None:
    """Return the cost of effects together; None if the price of one is not known."""
    costs = [record.usage.cost for record in records if record.usage]
    return None if None in costs else sum(cost for cost in costs if cost is not None)


class Event(Struct, gc=False):
    """One entry of a run's feed.

    An event with a `record` carries `record.told()` as data and `record.ended_at` as time, so a store that has the
    record rebuilds the event from it. `live` and `record` are for listeners and are never stored with the event.
    """

    type: str
    run: str
    at: float
    seq: int = 0
    """0 for events that are not kept (deltas, replayed steps)."""
    path: str = ""
    way: str = ""
    """The step of the event: its label, preceded in a called document by the labels of the steps that lead to it."""
    data: Mapping[str, Value] = struct_field(default_factory=dict)
    live: Mapping[str, Value] = struct_field(default_factory=dict)
    replayed: bool = False
    record: EffectRecord | None = None
    """The effect that an `effect` event reports."""

    @property
    def label(self) -> str:
        """Return the label of the step in its own document."""
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
    """A question that waits for a person."""

    run: str
    path: str
    way: str
    """As in `Event`."""
    title: str
    kind: Literal["input", "confirm", "select"]
    prompt: str
    options: tuple[str, ...]
    default: str | None
    hash: str
    """Hash of the request: an answer is valid for this wording only."""
    asked_at: float
    expires_at: float | None = None
    explicit: bool = False
    """As in the request. Not stored: only the process that drives the run needs it."""

    @property
    def label(self) -> str:
        """Return the label of the step in its own document."""
        return last_label(self.way)

    def is_named(self, name: str) -> bool:
        """Tell whether a typed name means this question: its path, the way to its step, or the step's label."""
        return name == self.path or typed_way(name) in (self.way, self.label)


class Answer(Struct, frozen=True):
    """An answer to a question, not yet turned into an effect."""

    path: str
    hash: str
    value: str
    by: str = ""
    """The author: the user's account, `mcp:CLIENT`, `python`, `--answer` or `unattended`; empty for an answer that
    0.1.0 stored."""


class NewRun(Struct, frozen=True):
    """A run to be created."""

    id: str
    title: str
    format: str
    document: str
    created_at: float
    pins: Mapping[str, Value]
    """Everything that the run keeps fixed from its start."""
    texts: Mapping[str, str]
    """The pinned documents, by the sha256 of their UTF-8."""
    subject: str = ""
    name: str | None = None
    note: str | None = None
    source: str = ""
    """Its origin, unless a person started it at a terminal: `id`, `trigger:NAME`, `token:NAME` or `person:NAME`. A
    copy of a pin, which is sealed."""
    reserved: float | None = None
    """The most that it may cost, counted against budgets until it has cost more or has ended."""


class RunRow(Struct, frozen=True):
    """A run as the store lists it."""

    id: str
    title: str
    format: str
    document: str
    status: Status
    position: str
    """The way to the step that the run has reached."""
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
    subject: str = ""
    """The inputs that tell the run from others of its document, in one line; see `quire.subject`."""
    name: str | None = None
    """The name that people gave it."""
    note: str | None = None
    seen_at: float | None = None
    """The time at which a person marked it as seen."""
    source: str = ""
    """As in `NewRun`."""
    wake_at: float | None = None
    """The time at which a paused run continues by itself, and what it waits for."""
    parked: str = ""
    process: str = ""
    """The process that drives it."""

    @property
    def label(self) -> str:
        """Return the text by which people tell the run from others."""
        return self.name or self.subject or self.title or self.id

    @property
    def waits(self) -> str:
        """Return when the run continues by itself: `until Thu 14:05: openai asks for 40 min`; empty for others."""
        until = time.strftime("%a %H:%M", time.localtime(self.wake_at))
        return f"until {until}: {self.parked or 'its process was stopped'}" if self.wake_at is not None else ""

    @property
    def until(self) -> str | None:
        """Return the path of the step after which a try ends; None for other runs."""
        until = self.pins.get("until")
        return until if isinstance(until, str) and until else None

    @property
    def failed_at(self) -> str:
        """The path of the effect or step at which a pipeline failed; empty in other formats, which `position` is
        enough for."""
        return self.ended_by[0] if self.format == "pipeline" and self.failure and self.ended_by else ""


class RunUpdate(Struct, gc=False):
    """The columns of the run's row that change with a write.

    `status` and `position` stay as they are if they are None. Each time `status` is given, `failure`, `ended_by`,
    `expires_at` and `wake_at` are written with the values given here, so continuing a run clears them.
    """

    status: Status | None = None
    position: str | None = None
    failure: Failure | None = None
    ended_by: tuple[str, ...] = ()
    expires_at: float | None = None
    wake_at: float | None = None


class Letter(Struct, frozen=True):
    """A message to the launcher of a run."""

    recipient: str
    run: str
    text: str
    at: float
    sealed: bool = True
    """False for a letter that was not sent by a run of this user."""


class Batch(Struct, gc=False):
    """Everything that one transaction writes.

    The usage of the effects is added to the run's totals in the same transaction.
    """

    effects: tuple[EffectRecord, ...] = ()
    events: tuple[Event, ...] = ()
    questions: tuple[Question, ...] = ()
    consume: tuple[str, ...] = ()
    """Questions to close because their answer has become an effect."""
    withdraw: tuple[str, ...] = ()
    """Open questions to take back."""
    supersede: tuple[str, ...] = ()
    """Effects to remove from the journal before `effects` are added: a failure that ended the run is performed
    again."""
    letters: tuple[Letter, ...] = ()
    """Delivered with this write, or not at all."""
    update: RunUpdate | None = None


class WriteResult(Struct, gc=False):
    """Notices that a writer receives with a write: the run is to be cancelled, or an answer waits to be taken."""

    cancel_requested: bool = False
    answer_waiting: bool = False


class Lease(Struct, frozen=True, eq=False):
    """The right to write a run, held by one process at a time.

    `row` and `records` are the run at the moment when it is acquired, checked against its seals.
    """

    run: str
    epoch: int
    last_seq: int
    seen: frozenset[tuple[str, str]]
    """The (type, path) of every kept event."""
    cost: float | None = 0.0
    """Cost of all effects so far, superseded ones included: that money is spent."""
    row: RunRow | None = None
    records: tuple[EffectRecord, ...] = ()

    def __eq__(self, other: object) -> bool:
        """Compare the rights, not the run."""
        return isinstance(other, Lease) and self._compared == other._compared

    __ne__ = object.__ne__  # follows `==`; that of a Struct compares identities

    def __hash__(self) -> int:
        return hash(self._compared)

    @property
    def _compared(self) -> tuple[object, ...]:
        return self.run, self.epoch, self.last_seq, self.seen, self.cost


def has_shape(record: EffectRecord) -> bool:
    """Return True if the walk can continue with this record.

    The value of a failed effect is never read, so it is not checked.
    """
    shape = _SHAPES.get(record.kind)
    if record.state == "failed" and record.failure is None:
        return False
    return record.state != "ok" or shape is None or shape(record.value)


def _is_reply(value: Value) -> bool:
    if not isinstance(value, Mapping) or not isinstance(value.get("text"), str):
        return False
    uses = value.get("uses")
    return uses is None or _are_tools(uses)


def _are_tools(value: Value) -> bool:
    """Check a list of calls or offers of tools: two texts, a map, and perhaps one more text each."""
    return isinstance(value, list | tuple) and all(isinstance(tool, list | tuple) and _is_tool(tool) for tool in value)


def _is_tool(cells: list[Value] | tuple[Value, ...]) -> bool:
    texts = (*cells[:2], *cells[3:])
    return len(cells) in (3, 4) and isinstance(cells[2], Mapping) and all(isinstance(text, str) for text in texts)


def _are_states(value: Value) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(state, Mapping) and isinstance(state.get("state"), str) for state in value
    )


_SHAPES: Mapping[str, Callable[[Value], bool]] = {
    "model": _is_reply,
    "ask": lambda value: isinstance(value, str),
    "load": lambda value: value is None or isinstance(value, str),
    "offer": _are_tools,
    "break": lambda value: isinstance(value, Mapping),
    "join": _are_states,
    "abort": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "spent": lambda value: isinstance(value, str),
    "terms": lambda value: isinstance(value, Mapping) and isinstance(value.get("limits"), Mapping),
}
