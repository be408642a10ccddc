"""One run in memory: its row, its journal and its questions.

Values are kept so that neither the writer nor a reader can change them: texts and numbers as they are, and everything
else as JSON, which also refuses the values that the other stores refuse. A batch is encoded before anything of it is
kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.records import Answer, Batch, EffectRecord, Event, Lease, NewRun, Question, RunRow, RunUpdate, Status
from quire.engine.requests import Failure
from quire.values import clean, decode, encode

if TYPE_CHECKING:
    from quire.values import Value

_UNCHANGING = frozenset({str, int, bool, NoneType})


class KeptEffect(Struct, gc=False):
    """A record. `json` is its value if the value has parts that could be changed; then the record has none."""

    record: EffectRecord
    json: str | None = None

    def read(self) -> EffectRecord:
        return self.record if self.json is None else replace(self.record, value=decode(self.json))


class KeptEvent(Struct, gc=False):
    """An event without what is not kept of it. The data of one that reports an effect comes from the record."""

    seq: int
    type: str
    at: float
    path: str
    way: str
    data: Mapping[str, Value] | str | EffectRecord
    """As JSON if a part of it could be changed."""

    def read(self, run: str) -> Event:
        match self.data:
            case EffectRecord() as record:
                data: Mapping[str, Value] = record.told()
            case str(json):
                data = cast("Mapping[str, Value]", decode(json))
            case flat:
                data = dict(flat)
        return Event(self.type, run, self.at, self.seq, self.path, self.way, data)


class KeptQuestion(Struct):
    question: Question
    state: Literal["open", "answered", "consumed", "withdrawn"] = "open"
    answer: Answer | None = None


class EncodedBatch(Struct):
    """The effects and events of a batch, ready to be kept."""

    effects: list[KeptEffect]
    events: list[KeptEvent]


def encode_batch(batch: Batch) -> EncodedBatch:
    """Encode a batch. Raises `InvalidValue` for a value that is not JSON."""
    effects = [_encode_effect(record) for record in batch.effects]
    events = [_encode_event(event, batch, effects) for event in batch.events if event.seq]
    return EncodedBatch(effects, events)


def _encode_effect(record: EffectRecord) -> KeptEffect:
    value, json = record.value, None
    if type(value) not in _UNCHANGING:
        value, json = None, encode(value)
    elif isinstance(value, str):
        value = clean(value)
    failure, by = _clean_failure(record.failure), clean(record.by)
    if value is not record.value or failure is not record.failure or by is not record.by:
        record = replace(record, value=value, failure=failure, by=by)
    return KeptEffect(record, json)


def _encode_event(event: Event, batch: Batch, effects: list[KeptEffect]) -> KeptEvent:
    head = (event.seq, event.type, event.at, event.path, clean(event.way))
    if event.record is not None:
        for written, kept in zip(batch.effects, effects, strict=True):
            if written is event.record:
                return KeptEvent(*head, kept.record)
    if all(type(value) in _UNCHANGING and (type(value) is not str or value.isascii()) for value in event.data.values()):
        return KeptEvent(*head, dict(event.data))
    return KeptEvent(*head, encode(event.data))


def _clean_failure(failure: Failure | None) -> Failure | None:
    if failure is None or (failure.kind.isascii() and failure.message.isascii()):
        return failure
    return Failure(clean(failure.kind), clean(failure.message))


def _clean_question(run: str, asked: Question) -> Question:
    return replace(
        asked,
        run=run,
        way=clean(asked.way),
        title=clean(asked.title),
        prompt=clean(asked.prompt),
        options=tuple(map(clean, asked.options)),
        default=None if asked.default is None else clean(asked.default),
        explicit=False,
    )


class KeptRun:
    """A run with everything that is stored of it. `number` counts the runs of the store."""

    def __init__(self, new: NewRun, number: int) -> None:
        self.id = new.id
        self.number = number
        self.created_at = float(new.created_at)
        self.updated_at = self.created_at
        self.arrived_at = self.created_at
        """The time at which a run with a history came into the store."""
        self.status = Status.PENDING
        self.expires_at: float | None = None
        self.epoch = 0
        self.cancel_requested = False
        self.questions: dict[str, KeptQuestion] = {}
        self.input_tokens = 0
        self.output_tokens = 0
        self.cost: float | None = 0.0
        self._title, self._format, self._document = clean(new.title), new.format, clean(new.document)
        # A copy that all readers share: like all values, it is never changed in place.
        self._pins = cast("Mapping[str, Value]", decode(encode(new.pins)))
        self._failure: Failure | None = None
        self._ended_by: tuple[str, ...] = ()
        self._position = ""
        self._effects: dict[str, KeptEffect | None] = {}
        """By path, in the order in which the paths first appeared; None for a superseded one."""
        self._events: list[KeptEvent] = []
        self._seen: set[tuple[str, str]] = set()
        self._last_seq = 0

    def row(self, status: Status) -> RunRow:
        """Return the row with the status that the run has now."""
        return RunRow(
            self.id,
            self._title,
            self._format,
            self._document,
            status,
            self._position,
            self.created_at,
            self.updated_at,
            self.expires_at,
            self.input_tokens,
            self.output_tokens,
            self.cost,
            self._failure,
            self._ended_by,
            self.epoch,
            self._pins,
        )

    def effects(self) -> list[EffectRecord]:
        return [kept.read() for kept in self._effects.values() if kept is not None]

    def events(self, after: int) -> list[Event]:
        kept = sorted((one for one in self._events if one.seq > after), key=lambda one: one.seq)
        return [one.read(self.id) for one in kept]

    def open_questions(self) -> Iterator[Question]:
        """Yield the open questions; the run's own time limit comes before that of a question."""
        for kept in self.questions.values():
            if kept.state == "open":
                limit = self.expires_at if self.expires_at is not None else kept.question.expires_at
                asked = kept.question
                yield asked if limit == asked.expires_at else replace(asked, expires_at=limit)

    def answered(self) -> list[KeptQuestion]:
        """Return the questions whose answers wait to be taken, oldest first."""
        found = [kept for kept in self.questions.values() if kept.state == "answered"]
        return sorted(found, key=lambda kept: (kept.question.asked_at, kept.question.path)) if found else found

    def take(self) -> Lease:
        """Begin the next epoch, and return the right to write in it."""
        self.epoch += 1
        self.cancel_requested = False
        marks = (self._last_seq, frozenset(self._seen))
        return Lease(self.id, self.epoch, *marks, self.cost, self.row(self.status), tuple(self.effects()))

    def write(self, batch: Batch, encoded: EncodedBatch, at: float) -> None:
        """Keep an encoded batch, all parts of it but the letters."""
        update = batch.update
        for path in batch.supersede:
            self._effects[path] = None
        for effect in encoded.effects:
            self._effects[effect.record.path] = effect
            if (usage := effect.record.usage) is not None:
                self.input_tokens += usage.input_tokens
                self.output_tokens += usage.output_tokens
                self.cost = None if self.cost is None or usage.cost is None else self.cost + usage.cost
        for event in encoded.events:
            self._events.append(event)
            self._seen.add((event.type, event.path))
            self._last_seq = max(self._last_seq, event.seq)
        if batch.supersede or encoded.effects or encoded.events or update is not None:
            self.updated_at = max(self.updated_at, at)
        for asked in batch.questions:
            self._ask(asked)
        for path in batch.consume:
            if (kept := self.questions.get(path)) is not None:
                kept.state = "consumed"
        for path in batch.withdraw:
            # Also an answered one: its answer will never be consumed, and the run could never park again.
            if (kept := self.questions.get(path)) is not None and kept.state in ("open", "answered"):
                kept.state = "withdrawn"
        if update is not None:
            self._update(update)

    def end(self, status: Status, at: float) -> None:
        """End a run that is not being driven, and withdraw its open questions."""
        if status is Status.CANCELLED:
            event = Event("run_cancelled", self.id, at, self._last_seq + 1)
            batch = Batch(events=(event,), update=RunUpdate(status, ended_by=self._ended_by))
        else:
            batch = Batch(update=RunUpdate(status, None, self._failure, self._ended_by, self.expires_at))
        self.write(batch, encode_batch(batch), at)
        for kept in self.questions.values():
            if kept.state == "open":
                kept.state = "withdrawn"

    def _ask(self, asked: Question) -> None:
        kept = self.questions.get(asked.path)
        # Asking again in the same words changes nothing: an answer that came in between must not be lost.
        if kept is None or kept.question.hash != asked.hash or kept.state not in ("open", "answered"):
            self.questions[asked.path] = KeptQuestion(_clean_question(self.id, asked))

    def _update(self, update: RunUpdate) -> None:
        if update.position is not None:
            self._position = clean(update.position)
        if update.status is not None:
            self.status = update.status
            self._failure = _clean_failure(update.failure)
            self._ended_by = tuple(map(clean, update.ended_by))
            self.expires_at = update.expires_at
