"""Encode records as rows; `quire.stores.row_decoder` decodes them.

Everything is encoded before a transaction begins, so a value that cannot be stored fails only its own writer. A JSON
text over `INLINE_BYTES` goes to the content-addressed table and is stored there once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.records import Batch, EffectRecord, Event, Question, RunUpdate, Status, Usage, add_costs
from quire.stores.seals import LOOSE_ROWS, NO_ANCHOR, seal_letter, seal_question, seal_row, seal_state
from quire.values import InvalidValue, clean, encode, sha256

if TYPE_CHECKING:
    from quire.errors import StoreError
    from quire.trust.seal import Seal

INLINE_BYTES = 64 * 1024
PLACE_BITS, SEQ_BITS = 40, 12

Cells: TypeAlias = "tuple[str | int | float | None, ...]"

JOURNAL_COLUMNS = """
    id, written_at, position, total_input, total_output, total_cost,
    path, kind, state, request, at, value, blob, failure_kind, failure_message,
    input_tokens, output_tokens, cost, elapsed, delays, answered_by, events, events_blob, seal
"""
SUPERSEDED = "superseded"
"""The state of a row that removes the effect at its path from the journal."""

_NO_EFFECT: Cells = (None,) * 15
_NO_EVENTS: Cells = (None, None)
EMPTY_ROW: Cells = _NO_EFFECT + _NO_EVENTS
"""The cells of a row that holds only the totals of its run."""

# The engine makes events from names, numbers and values that have passed the codec before, so the search for values
# that JSON cannot hold is left out: it would cost as much as the rest of the encoding.
_encode_events = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
).encode


def places(number: int, after: int = 0) -> tuple[int, int]:
    """Return the first and last key that the journal rows of a run can have; `after` leaves out rows of older events.

    The key of a row is never below that of its newest event, and keys only grow: see `JournalEnd.then`.
    """
    first = number << PLACE_BITS
    return first + ((after + 1) << SEQ_BITS if after else 0), first + (1 << PLACE_BITS) - 1


PENDING: Cells = (Status.PENDING.value, None, None, None, None)
"""The status columns of a new run."""


def first_place(number: int) -> int:
    """Return the key before the first row of a run's journal."""
    return number << PLACE_BITS


class JournalEnd(Struct):
    """The state of a run after the last row of its journal. See `quire.stores.seals` for the seals."""

    place: int
    """The key of that row."""
    position: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    pins_seal: str = ""
    seal: str = ""
    """The seal of that row."""
    state: Cells = PENDING
    """The columns that are written with the status."""
    loose: int = 0
    """The number of rows after the anchor of the run's seal."""
    started: frozenset[str] = frozenset()
    """The paths of effects that have an intent and whose end is not recorded."""

    def anchors(self, batch: Encoded) -> bool:
        """Tell whether the seal of the run has to be written with a batch."""
        return (
            batch.status is not None
            or bool(batch.started)
            or self.loose >= LOOSE_ROWS
            or (bool(self.started) and not self.started.isdisjoint(batch.ended))
        )

    def then(self, number: int, batch: Encoded, at: float, seal: Seal) -> tuple[JournalEnd, list[Cells]]:
        """Return the tail after a batch, and the journal rows to write for it. One unknown price makes the total cost
        unknown for good."""
        input_tokens, output_tokens, cost = self.input_tokens, self.output_tokens, self.cost
        for usage in batch.used:
            input_tokens += usage.input_tokens
            output_tokens += usage.output_tokens
            cost = add_costs(cost, usage.cost)
        position = self.position if batch.position is None else batch.position
        count, last, rows = len(batch.journal), self.seal, []
        place = max(self.place + 1, (number << PLACE_BITS) + (batch.last_seq << SEQ_BITS)) if count else self.place
        for at_place, cells in enumerate(batch.journal, place):
            row = (at_place, at, position, input_tokens, output_tokens, cost, *cells)
            last = seal_row(seal, last, row)
            rows.append((*row, last))
        started = self.started
        if batch.started or (started and batch.ended):
            started = started.union(batch.started).difference(batch.ended)
        loose = 0 if self.anchors(batch) else self.loose + count
        state = self.state if batch.status is None else batch.status
        place += count - 1 if count else 0
        return (
            JournalEnd(place, position, input_tokens, output_tokens, cost, self.pins_seal, last, state, loose, started),
            rows,
        )

    def sealed(self, seal: Seal, first: int) -> tuple[int, str]:
        """Return the anchor and the seal of the run in its current state; `first` is the key before its first row."""
        anchor = NO_ANCHOR if self.place == first else self.place
        return anchor, seal_state(seal, self.pins_seal, self.state, anchor, self.seal)


class OwnedRun(Struct, eq=False):
    """A run that a store drives: its number in the database, and the end of its journal."""

    run: str
    epoch: int
    number: int
    tail: JournalEnd
    failure: StoreError | None = None
    """The reason why nothing more can be written: the server was away for too long during a commit."""

    def takes_alone(self, batch: Encoded) -> bool:
        """Tell whether a batch is one journal row that leaves the seal of the run as it is, as nearly all do."""
        return len(batch.journal) == 1 and batch.only_journal and not self.tail.anchors(batch)


class Encoded(Struct):
    """A batch encoded as rows."""

    journal: Sequence[Cells]
    blobs: Sequence[Cells]
    questions: Sequence[Cells]
    consume: Sequence[Cells]
    withdraw: Sequence[Cells]
    letters: Sequence[Cells]
    status: Cells | None
    """The columns of the run that are written with the status."""
    last_seq: int
    position: str | None
    used: Sequence[Usage]
    started: Sequence[str] = ()
    """The paths of effects that the batch begins with an intent."""
    ended: Sequence[str] = ()
    """The paths of all its other effects, superseded ones included."""
    wake_at: float | None = None
    """Written with the status, and outside the seal: waking a run early or late decides nothing."""

    @property
    def rest(self) -> Cells:
        """The cells of `SET_STATUS` after the seal: a run that rests has no process."""
        return self.wake_at, self.status[0] if self.status else None

    @property
    def only_journal(self) -> bool:
        """True if the batch has nothing beside its journal rows."""
        return not (self.status or self.blobs or self.questions or self.consume or self.withdraw or self.letters)

    @property
    def closed(self) -> set[str]:
        """The paths of the questions that it closes."""
        return {str(path) for _, path in (*self.consume, *self.withdraw)}


class Blobs:
    """The large texts of one write, with their hashes."""

    def __init__(self) -> None:
        self.rows: list[Cells] = []

    def put(self, text: str) -> tuple[str | None, str | None]:
        """Return the text as (inline, blob): one of the two is None."""
        if len(text) * 4 <= INLINE_BYTES:
            return text, None
        data = text.encode()
        if len(data) <= INLINE_BYTES:
            return text, None
        digest = sha256(data)
        self.rows.append((digest, text))
        return None, digest


def encode_batch(run: str, batch: Batch, seal: Seal) -> Encoded:
    blobs, update = Blobs(), batch.update
    # Events without a number are only for observers and are not stored.
    events = [event for event in batch.events if event.seq]
    position = None if update is None or update.position is None else clean(update.position)
    return Encoded(
        journal=_journal_cells(batch, events, position is not None, blobs),
        blobs=blobs.rows,
        questions=[_question_cells(run, question, seal) for question in batch.questions] if batch.questions else (),
        consume=[(run, path) for path in batch.consume] if batch.consume else (),
        withdraw=[(run, path) for path in batch.withdraw] if batch.withdraw else (),
        letters=[
            (letter.recipient, letter.run, clean(letter.text), letter.at, seal_letter(seal, letter))
            for letter in batch.letters
        ],
        status=None if update is None or update.status is None else _status_cells(update.status, update),
        last_seq=events[-1].seq if events else 0,
        position=position,
        used=[effect.usage for effect in batch.effects if effect.usage is not None],
        started=[effect.path for effect in batch.effects if effect.state == "intent"],
        ended=[*batch.supersede, *(effect.path for effect in batch.effects if effect.state != "intent")],
        wake_at=None if update is None else update.wake_at,
    )


def _journal_cells(batch: Batch, events: Sequence[Event], moved: bool, blobs: Blobs) -> list[Cells]:
    """Return a row for each effect and for each superseded path. The events go into the last row, or into one of their
    own."""
    heads: list[Cells] = [(path, None, SUPERSEDED, *_NO_EFFECT[3:]) for path in batch.supersede]
    heads += [_effect_cells(effect, blobs) for effect in batch.effects]
    if not heads:
        if not events and not moved:
            return []
        heads = [_NO_EFFECT]
    beside = batch.effects[-1] if batch.effects else None
    last = heads.pop() + (_events_cells(events, beside, blobs) if events else _NO_EVENTS)
    return [*(head + _NO_EVENTS for head in heads), last] if heads else [last]


def _status_cells(status: Status, update: RunUpdate) -> Cells:
    failure = update.failure
    return (
        status.value,
        None if failure is None else clean(failure.kind),
        None if failure is None else clean(failure.message),
        encode(update.ended_by) if update.ended_by else None,
        update.expires_at,
    )


def _effect_cells(record: EffectRecord, blobs: Blobs) -> Cells:
    value, blob = (None, None) if record.value is None else blobs.put(encode(record.value))
    failure, usage = record.failure, record.usage
    return (
        record.path,
        record.kind,
        record.state,
        record.request,
        record.at,
        value,
        blob,
        None if failure is None else clean(failure.kind),
        None if failure is None else clean(failure.message),
        None if usage is None else usage.input_tokens,
        None if usage is None else usage.output_tokens,
        None if usage is None else usage.cost,
        record.elapsed,
        encode(record.delays) if record.delays else None,
        clean(record.by) if record.by else None,
    )


def _events_cells(events: Sequence[Event], beside: EffectRecord | None, blobs: Blobs) -> Cells:
    """Encode events. The event that describes the effect in the same row is kept as number and label only: the row has
    the rest."""
    heads = [
        (event.seq, event.way)
        if event.record is beside and beside is not None
        else (event.seq, event.type, event.at, event.path, event.way, event.data)
        for event in events
    ]
    try:
        return blobs.put(clean(_encode_events(heads)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"an event cannot be kept: {error}") from None


def _question_cells(run: str, question: Question, seal: Seal) -> Cells:
    return (
        run,
        question.path,
        clean(question.way),
        clean(question.title),
        question.kind,
        clean(question.prompt),
        encode(question.options) if question.options else None,
        None if question.default is None else clean(question.default),
        question.hash,
        question.asked_at,
        question.expires_at,
        seal_question(seal, replace(question, run=run)),
    )
