"""The seals of a stored run, for both stores: the data that each covers, and the check of a run against them.

    pins       the run's id, its document and everything it was started with; never changes
    journal    each row, together with the seal of the row before it: a chain that begins at the pins
    run        its status, and the anchor: the last row that the journal must at least contain
    questions, answers, letters    each by itself

The anchor moves each time the status is written, with every row of a tool that changes the world, and after
`LOOSE_ROWS` rows at the latest: moving it costs a second disk page. So rows at the very end of an interrupted run's
journal can be removed without detection, with the same result as a crash a moment earlier; the record of a tool that
changes the world cannot.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from quire.errors import BrokenSeal
from quire.trust.seal import Seal, same
from quire.values import clean, encode, sha256

if TYPE_CHECKING:
    from quire.engine.records import Letter, Question
    from quire.stores.rows import Cells

LOOSE_ROWS = 32
OLD = "0.1.0"
"""Stands in place of a seal in runs that are older than seals. Anyone can write it, so it proves nothing."""

OLD_RUN = "it is from Quire 0.1.0, which did not seal runs"

NO_ANCHOR = 0
JournalRow: TypeAlias = tuple[Any, ...]
"""A row from the database, whose columns have no static type."""

_ROW_CELLS = 23
_numbers = struct.Struct("<q?9d12i").pack


class StoredRun(Struct, frozen=True):
    """The row of a run and its pins as stored, in the order in which the stores select them."""

    id: str
    title: str
    format: str
    document: str
    created_at: float
    pins: str
    pins_seal: str | None
    status: str
    failure_kind: str | None
    failure_message: str | None
    ended_by: str | None
    expires_at: float | None
    anchor: int | None
    seal: str | None

    @property
    def state(self) -> Cells:
        """The columns that are written with the status."""
        return self.status, self.failure_kind, self.failure_message, self.ended_by, self.expires_at


def seal_pins(seal: Seal, id: str, title: str, format: str, document: str, created_at: float, pins: str) -> str:
    mac = seal.facts("pins", id, title, format, document, float(created_at), pins)
    return f"{seal.key_id}:{mac}"


def seal_state(seal: Seal, pins_seal: str, state: Cells, anchor: int, anchor_seal: str) -> str:
    status, kind, message, ended_by, expires_at = state
    moment = None if expires_at is None else float(expires_at)
    return seal.facts("run", pins_seal, status, kind, message, ended_by, moment, anchor, anchor_seal)


def seal_row(seal: Seal, before: str, row: JournalRow) -> str:
    """Return the seal of a journal row that follows a row with the seal `before`."""
    (
        place, written_at, position, total_input, total_output, total_cost,
        path, kind, state, request, at, value, blob, failure_kind, failure_message,
        input_tokens, output_tokens, cost, elapsed, delays, answered_by, events, events_blob,
    ) = row  # fmt: skip
    texts = (
        position, path or "", kind or "", state or "", request or "", value or "", blob or "",
        failure_kind or "", failure_message or "", delays or "", events or "", events_blob or "",
    )  # fmt: skip
    # Packed as binary: this runs for every step, and writing a float as text costs as much as the hash.
    numbers = _numbers(
        place,
        path is None,
        written_at,
        total_input,
        total_output,
        nan if total_cost is None else total_cost,
        nan if at is None else at,
        nan if input_tokens is None else input_tokens,
        nan if output_tokens is None else output_tokens,
        nan if cost is None else cost,
        nan if elapsed is None else elapsed,
        *map(len, texts),
    )
    # After the texts, whose lengths are known: rows from before `answered_by` existed keep their seals.
    by = f"\0{answered_by}" if answered_by else ""
    return seal.row(numbers + f"{before}{''.join(texts)}{by}".encode())


def seal_question(seal: Seal, question: Question) -> str:
    options = encode(list(question.options))
    return seal.facts(
        "question",
        question.run,
        question.path,
        clean(question.way),
        clean(question.title),
        question.kind,
        clean(question.prompt),
        clean(options),
        None if question.default is None else clean(question.default),
        question.hash,
    )


def seal_answer(seal: Seal, run: str, path: str, hash: str, value: str, by: str) -> str:
    """Seal an answer. Without a name the seal is the same as before answers had names."""
    return seal.facts("answer", run, path, hash, value, *([by] if by else []))


def seal_letter(seal: Seal, letter: Letter) -> str:
    return seal.facts("letter", letter.recipient, letter.run, clean(letter.text), float(letter.at))


def check_pins(seal: Seal, run: StoredRun) -> None:
    """Raise `BrokenSeal` unless this user started the run and its pins are unchanged."""
    key, colon, _ = (run.pins_seal or "").partition(":")
    if run.pins_seal == OLD:
        raise BrokenSeal(run.id, OLD_RUN, old=True)
    if not colon:
        raise BrokenSeal(run.id, "it has no seal, so it was not started by you")
    if not seal.exists():
        raise BrokenSeal(run.id, "it was not started by you: you have not sealed a run yet")
    if key != seal.key_id:
        raise BrokenSeal(run.id, f"it is sealed with another key than yours (its key is {key}, yours {seal.key_id})")
    try:
        made = seal_pins(seal, run.id, run.title, run.format, run.document, run.created_at, run.pins)
    except (TypeError, ValueError):
        made = ""
    if not same(run.pins_seal or "", made):
        raise BrokenSeal(run.id, "its document, inputs or grants were changed after it was sealed")


def check_run(seal: Seal, run: StoredRun, journal: Sequence[JournalRow]) -> None:
    """Raise `BrokenSeal` unless the whole run is as it was sealed.

    `journal` holds the rows in order, each followed by its seal and the texts that its `blob` and its `events_blob`
    name.
    """
    check_pins(seal, run)
    before = anchored = str(run.pins_seal)
    for row in journal:
        path = row[6]
        where = f"the record at {path}" if isinstance(path, str) else "a row of its journal"
        try:
            made = seal_row(seal, before, row[:_ROW_CELLS])
        except (TypeError, ValueError, struct.error):
            made = ""
        if not made or row[_ROW_CELLS] != made:
            raise BrokenSeal(run.id, f"{where} was changed, or one before it was taken away or put there")
        for digest, body in ((row[12], row[_ROW_CELLS + 1]), (row[_ROW_CELLS - 1], row[_ROW_CELLS + 2])):
            if digest is not None and (body is None or sha256(str(body).encode()) != digest):
                raise BrokenSeal(run.id, f"{where} was changed: its value is not the one that was recorded")
        before = made
        if row[0] == run.anchor:
            anchored = made
    if run.anchor != NO_ANCHOR and all(row[0] != run.anchor for row in journal):
        raise BrokenSeal(run.id, "records were taken away from the end of its journal")
    try:
        made = seal_state(seal, str(run.pins_seal), run.state, int(run.anchor or NO_ANCHOR), anchored)
    except (TypeError, ValueError):
        made = ""
    if run.seal is None or not same(str(run.seal), made):
        raise BrokenSeal(run.id, "its status was changed after it was sealed")
