"""Decode rows of a store into records: runs, effects, events, questions, answers and letters.

Each `COLUMNS` constant lists the columns that the function below it reads. SQLite keeps any type in any column, and
another program may have written the store, so types and sizes are checked: a row with values that Quire does not write
raises `StoreError`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, cast

from msgspec import Struct, convert
from msgspec.structs import replace

from quire.engine.records import PARKED, Answer, EffectRecord, Event, Letter, Question, RunRow, Status, Usage
from quire.errors import BrokenSeal, StoreError
from quire.stores.seals import seal_answer, seal_letter
from quire.subject import subject_of
from quire.values import decode

if TYPE_CHECKING:
    from quire.engine.requests import Failure
    from quire.trust.seal import Seal
    from quire.values import Value

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound=Struct)
Row: TypeAlias = tuple[Any, ...]
"""A row from the database, whose columns have no static type. Rows do not leave this folder."""

_BESIDE = 2
"""The length of an event entry that describes the effect in its own row."""

_MOST = 253_402_300_799
"""The last second of the year 9999. No valid time, count or price is larger."""

_TEXT = frozenset({str})
_NUMBERS = frozenset({int, float, type(None)})


def _checked(read: Callable[P, T]) -> Callable[P, T]:
    """Make a reader of rows raise `StoreError` if a row does not hold the expected values."""

    @functools.wraps(read)
    def reading(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return read(*args, **kwargs)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise StoreError("the store is damaged: a row of it does not hold what it should") from None

    return reading


def _check_texts(*values: object) -> None:
    """Raise `TypeError` if one of the values is not text."""
    if not _TEXT.issuperset(map(type, values)):
        raise TypeError(values)


def _check_numbers(*values: object) -> None:
    """Raise `TypeError` if one of the values is neither a number nor None, `ValueError` if one is too large."""
    if not _NUMBERS.issuperset(map(type, values)):
        raise TypeError(values)
    for value in values:
        if value is not None and not -_MOST <= value <= _MOST:  # type: ignore[operator]  # of a type that is compared
            raise ValueError(value)


PINS = "coalesce(p.value, (SELECT body FROM blobs WHERE sha256 = p.blob))"
RUN_COLUMNS = f"""
    r.id, r.title, r.format, r.document, r.status, coalesce(t.position, ''), r.created_at,
    CASE WHEN t.written_at > r.updated_at THEN t.written_at ELSE r.updated_at END, r.expires_at,
    coalesce(t.total_input, 0), coalesce(t.total_output, 0),
    CASE WHEN t.written_at IS NULL THEN 0.0 ELSE t.total_cost END,
    r.failure_kind, r.failure_message, r.ended_by, r.epoch,
    {PINS}, r.subject, r.name, r.note, r.seen_at, r.source, r.wake_at, r.process
"""


_pins = functools.lru_cache(maxsize=8)(decode)
"""Decodes the pins of a run, which never change and are read again with each of its rows."""


@_checked
def run_row(row: Row) -> RunRow:
    """Decode a run as stored. The store derives the current status from time and locks."""
    _check_texts(*row[:6])
    _check_texts(*(text or "" for text in (*row[17:20], row[21], row[23])))
    _check_numbers(*row[6:12], row[15], row[20], row[22])
    pins = _pins(row[16])
    if not isinstance(pins, dict):
        raise TypeError(pins)
    return RunRow(
        id=readable_id(row[0]),
        title=row[1],
        format=row[2],
        document=row[3],
        status=Status(row[4]),
        position=row[5],
        created_at=float(row[6]),
        updated_at=float(row[7]),
        expires_at=None if row[8] is None else float(row[8]),
        input_tokens=row[9],
        output_tokens=row[10],
        cost=row[11],
        failure=None if row[12] == PARKED else _failure(row[12], row[13]),
        ended_by=_texts(row[14]),
        epoch=row[15],
        pins=pins,
        # Runs of 0.1.0 have no subject: it is made at each read.
        subject=row[17] or subject_of(pins.get("inputs"), row[1], float(row[6])),
        name=row[18],
        note=row[19],
        seen_at=row[20],
        source=row[21] or "",
        wake_at=row[22],
        process=row[23] or "",
        parked=row[13] or "" if row[12] == PARKED else "",
    )


@_checked
def of_struct(kind: type[S], row: Row) -> S:
    """Decode a row whose columns are the fields of a struct."""
    _check_numbers(*(value for value in row if not isinstance(value, str)))
    return convert(dict(zip(kind.__struct_fields__, row, strict=True)), kind)


@_checked
def inputs(row: Row) -> Mapping[str, Value]:
    """Decode the inputs of a run from its pins."""
    pins = cast("dict[str, Value]", decode(row[0]))
    return cast("Mapping[str, Value]", pins.get("inputs") or {})


EFFECT_COLUMNS = """
    j.path, j.kind, j.state, j.request, j.at, coalesce(j.value, (SELECT body FROM blobs WHERE sha256 = j.blob)),
    j.failure_kind, j.failure_message, j.input_tokens, j.output_tokens, j.cost, j.elapsed, j.delays, j.answered_by
"""


BRIEF_COLUMNS = """
    j.path, j.kind, j.state, j.request, j.at, NULL, j.failure_kind, j.failure_message, j.input_tokens, j.output_tokens,
    j.cost, j.elapsed, j.delays, j.answered_by
"""
"""The same without the value."""


@_checked
def effect_record(row: Row) -> EffectRecord:
    path, kind, state, request, at, value, failure, message, *used, delays, by = row
    input_tokens, output_tokens, cost, elapsed = used
    _check_texts(path, kind, state, request, by or "")
    _check_numbers(at, input_tokens, output_tokens, cost, elapsed)
    return EffectRecord(
        path,
        kind,
        state,
        request,
        at,
        None if value is None else decode(value),
        _failure(failure, message),
        None if input_tokens is None else Usage(input_tokens, output_tokens, cost),
        elapsed,
        () if delays is None else tuple(cast("Sequence[float]", decode(delays))),
        by or "",
    )


EVENT_COLUMNS = """
    coalesce(j.events, (SELECT body FROM blobs WHERE sha256 = j.events_blob)), j.path, j.kind, j.state, j.at, j.elapsed,
    j.input_tokens, j.output_tokens, j.cost, j.failure_kind, j.failure_message, j.answered_by
"""


@_checked
def events(run: str, row: Row) -> Sequence[Event]:
    text, *beside = row
    return [_event(run, entry, beside) for entry in json.loads(text)]


def _event(run: str, entry: list[Any], beside: list[Any]) -> Event:
    if len(entry) == _BESIDE:
        seq, label = entry
        path, kind, state, at, elapsed, input_tokens, output_tokens, cost, failure, message, by = beside
        usage = None if input_tokens is None else Usage(input_tokens, output_tokens, cost)
        record = EffectRecord(path, kind, state, "", at, None, _failure(failure, message), usage, elapsed, by=by or "")
        return Event("effect", run, record.ended_at, seq, path, label, record.told())
    seq, type, at, path, label, data = entry
    _check_texts(type, path, label)
    _check_numbers(seq, at)
    return Event(type, run, at, seq, path, label, data)


@_checked
def marks(rows: Sequence[Row]) -> tuple[int, frozenset[tuple[str, str]]]:
    """Return the highest seq and the (type, path) of all kept events. Taking over a long run spends most of its time
    here."""
    last, events = 0, set()
    for text, beside in rows:
        for entry in json.loads(text):
            events.add(("effect", beside) if len(entry) == _BESIDE else (entry[1], entry[3]))
            last = max(last, entry[0])
    return last, frozenset(events)


QUESTION_COLUMNS = """
    q.run, q.path, q.label, q.title, q.kind, q.prompt, q.options, q.preset, q.hash, q.asked_at,
    coalesce(r.expires_at, q.expires_at)
"""


@_checked
def question(row: Row) -> Question:
    run, path, way, title, kind, prompt, options, default, hash, asked_at, expires_at = row
    _check_texts(run, path, way, title, kind, prompt, hash, default or "")
    _check_numbers(asked_at, expires_at)
    choices = _texts(options)
    return Question(readable_id(run), path, way, title, kind, prompt, choices, default, hash, asked_at, expires_at)


@_checked
def letter(row: Row, seal: Seal) -> Letter:
    recipient, run, text, at, sealed = row
    _check_texts(recipient, run, text)
    _check_numbers(at)
    letter = Letter(recipient, run, text, at)
    return replace(letter, run=readable_id(run), sealed=sealed == seal_letter(seal, letter))


def readable_id(run: str) -> str:
    """Return the id as it is printed everywhere. Runs of Quire never have control characters in their ids; if the store
    was edited to contain such a run, it is listed under an escaped id and cannot be found by either."""
    return run if run.isprintable() else run.encode("unicode_escape").decode("ascii")


@_checked
def answer(run: str, row: Row, seal: Seal) -> Answer:
    """Decode an answer. Raises `BrokenSeal` if this user did not give it."""
    path, hash, value, by, sealed = row
    _check_texts(path, hash, value, by or "")
    if sealed != seal_answer(seal, run, path, hash, value, by or ""):
        raise BrokenSeal(run, f"the answer at {path} was not given by you")
    return Answer(path, hash, value, by or "")


def _failure(kind: str | None, message: str | None) -> Failure | None:
    if kind is None:
        return None
    from quire.engine.requests import Failure  # the requests, which a list of runs does not need

    return Failure(kind, message or "")


@functools.lru_cache(maxsize=256)  # most open questions come from a few documents
def _texts(text: str | None) -> tuple[str, ...]:
    texts = () if text is None else tuple(cast("Sequence[str]", decode(text)))
    _check_texts(*texts)
    return texts
