"""The transactions of stores, as generators without I/O, and a stored run that they read whole (`SealedRun`).

A transaction yields statements with their parameters and receives the rows of each; a store drives it inside a
transaction of its database: SQLite with plain calls, PostgreSQL with `await`. Errors of the database pass by the
generator. Transactions that take `again` may follow an attempt whose outcome never arrived, and find out.

Writing a batch is left to the writer of each store, which does it all day: a transaction yields an `Append` for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import astuple, replace

from quire.engine.records import Batch, EffectRecord, Event, Lease, NewRun, Question, Status
from quire.errors import BrokenSeal, LimitReached, RunState, StoreError
from quire.stores import contract, row_decoder, rows
from quire.stores.occurrences import Start
from quire.stores.row_decoder import Row
from quire.stores.rows import Blobs, Cells, Encoded, JournalEnd, OwnedRun, encode_batch
from quire.stores.seals import (
    NO_ANCHOR,
    StoredRun,
    check_pins,
    check_run,
    seal_answer,
    seal_pins,
    seal_question,
    seal_row,
    seal_state,
)
from quire.values import clean, encode, sha256

if TYPE_CHECKING:
    from quire.stores.contract import History, KeptReply
    from quire.stores.occurrences import Process
    from quire.stores.statements import Statements
    from quire.trust.seal import Seal


T = TypeVar("T")
S = TypeVar("S")


class Append(Struct):
    """The rows of a batch, written to the end of a run's journal. The store moves `held.tail`."""

    held: OwnedRun
    batch: Encoded
    at: float


Query: TypeAlias = "tuple[str, Sequence[object]]"
Step: TypeAlias = "Query | Append"
Steps: TypeAlias = Generator[Step, Sequence[Row], T]
Reads: TypeAlias = Generator[Query, Sequence[Row], T]
"""A transaction that only reads."""


def drive(steps: Generator[S, Sequence[Row], T], perform: Callable[[S], Sequence[Row]]) -> T:
    """Perform all steps, and return the result of the transaction."""
    try:
        step = next(steps)
        while True:
            step = steps.send(perform(step))
    except StopIteration as end:
        result: T = end.value
        return result


async def drive_async(steps: Generator[S, Sequence[Row], T], perform: Callable[[S], Awaitable[Sequence[Row]]]) -> T:
    try:
        step = next(steps)
        while True:
            step = steps.send(await perform(step))
    except StopIteration as end:
        result: T = end.value
        return result


Admit: TypeAlias = "Callable[[type[Statements]], Steps[str]]"
"""Decides inside the transaction of a claim, with the statements of its store, whether the run may be created: returns
the reason against it, or an empty text. An error that it raises takes the claim back."""


class EncodedRun(Struct):
    """A new run as rows, encoded before its transaction begins."""

    columns: Cells
    pins: Cells
    blobs: Sequence[Cells]
    history: History | None
    batches: Sequence[Encoded]


def encode_run(run: NewRun, seal: Seal, history: History | None = None) -> EncodedRun:
    blobs = Blobs()
    text, title, document = encode(run.pins), clean(run.title), clean(run.document)
    pins = (*blobs.put(text), seal_pins(seal, run.id, title, run.format, document, run.created_at, text))
    for digest, text in run.texts.items():
        if sha256(text.encode()) != digest:
            raise ValueError(f"a text pinned by run {run.id} is not the one that {digest} names")
        blobs.rows.append((digest, text))
    labels = [None if text is None else clean(text) for text in (run.subject or None, run.name, run.note)]
    until = str(run.pins.get("until") or "") or None
    copies = (until, clean(run.source) or None, run.reserved)
    columns = (run.id, title, run.format, document, run.created_at, run.created_at, *labels, *copies)
    return EncodedRun(columns, pins, blobs.rows, history, _encode_history(run.id, history, seal))


def _encode_history(run: str, history: History | None, seal: Seal) -> Sequence[Encoded]:
    if history is None:
        return ()
    # The position is in the earlier rows: it does not need one of its own.
    ended = Batch(update=replace(history.update, position=None))
    # The totals of the history are stated, not summed.
    return [replace(encode_batch(run, batch, seal), used=()) for batch in (*contract.batches(history), ended)]


class Transactions:
    """The transactions of one store, in its SQL. `place` names the database in messages."""

    def __init__(self, sql: type[Statements], place: str, seal: Seal, now: Callable[[], float]) -> None:
        self._sql = sql
        self._place = place
        self._seal = seal
        self._now = now

    def start_once(
        self, new: EncodedRun | None, claim: Start, admit: Admit | None, *, again: bool
    ) -> Steps[tuple[Start, bool]]:
        """Claim an occurrence and create its run; if it is claimed already, return the earlier claim and False.

        `admit` may refuse: then the claim is kept as skipped, with its reason, and nothing is created.
        """
        sql, place = self._sql, (claim.source, claim.key)
        if not (yield sql.CLAIM, astuple(claim)):
            (earlier,) = yield sql.CLAIMED, place
            start = row_decoder.of_struct(Start, earlier)
            return start, again and start.at == claim.at and start.run in (claim.run, "")
        reason = (yield from admit(sql)) if admit is not None else ""
        if reason and claim.source == "id":
            raise LimitReached(f"not started: {reason}")  # the caller learns it, and may use the key again
        if reason:
            claim = replace(claim, state="skipped", reason=clean(reason), run="")
            yield sql.SET_CLAIM, (claim.state, claim.reason, claim.run, *place)
        elif new is not None:
            yield from self.create(new, again=again)
        return claim, True

    def create(self, new: EncodedRun, admit: Admit | None = None, *, again: bool) -> Steps[None]:
        """Create a run, with its history if there is one. Raises `StoreError` if the id is taken, and `LimitReached`
        with the reason of `admit`."""
        sql, seal, id = self._sql, self._seal, str(new.columns[0])
        # A run that an attempt before has created must not count against itself.
        if admit is not None and not (again and (yield sql.MADE, (id,))) and (reason := (yield from admit(sql))):
            raise LimitReached(f"not started: {reason}")
        made = yield sql.NEW_RUN, new.columns
        if not made:
            if again and (yield sql.MADE, (id,)) == [new.columns[1:5]]:
                return
            raise StoreError(f"{self._place} has a run {id} already")
        number = made[0][0]
        # In the order of their hashes, so that two writers with the same texts never deadlock.
        for digest, text in sorted(new.blobs):
            yield sql.PUT_BLOB, (digest, sql.body(str(text)))
        yield sql.NEW_PINS, (number, *new.pins)
        first, pins_seal = sql.first_place(number), str(new.pins[-1])
        tail = JournalEnd(first, pins_seal=pins_seal, seal=pins_seal)
        yield sql.SET_ANCHOR, (*tail.sealed(seal, first), number)
        if new.history is not None:
            yield from self._restore(OwnedRun(id, 0, number, tail), new.history, new.batches)

    def _restore(self, held: OwnedRun, history: History, batches: Sequence[Encoded]) -> Steps[None]:
        yield self._sql.TAKEN_IN, (self._now(), held.number)
        held.tail = replace(
            held.tail,
            position=clean(history.update.position or ""),
            input_tokens=history.input_tokens,
            output_tokens=history.output_tokens,
            cost=history.cost,
        )
        for batch in batches:
            yield Append(held, batch, history.updated_at)

    def reserve(self, run: str, most: float | None, admit: Admit) -> Steps[None]:
        """Set the most that a run may cost. Raises `LimitReached` with the reason of `admit`."""
        yield self._sql.RESERVE, (None, run)
        if reason := (yield from admit(self._sql)):
            raise LimitReached(f"not continued: {reason}")
        yield self._sql.RESERVE, (most, run)

    def change(self, statement: str, parameters: Sequence[object]) -> Steps[None]:
        """Perform a statement by its name."""
        yield getattr(self._sql, statement), parameters

    def beat(self, process: Process) -> Steps[None]:
        """Report a process, and forget those that were not seen for an hour."""
        yield self._sql.PUT_PROCESS, astuple(process)
        yield self._sql.DROP_PROCESSES, ("", process.seen_at - contract.PROCESS_SECONDS)

    def acquire(
        self, run: str, after: int | None, process: str = ""
    ) -> Steps[tuple[Status, Lease | None, OwnedRun | None]]:
        """Take the next epoch. Without a lease the run has ended, perhaps just now: its wait had expired."""
        sql = self._sql
        status = yield from self._status(run)
        if after is not None and not (yield sql.AT_EPOCH, (run, after)):
            raise contract.fenced(run)
        if status is Status.COMPLETED:
            return status, None, None
        sealed, number, epoch = yield from self._read_whole(run)
        sealed.check(self._seal)
        held = OwnedRun(run, epoch + 1, number, sealed.tail())
        if status is Status.EXPIRED:
            yield from self._end(held, sealed.state_as(status))
            return status, None, None
        yield sql.NEXT_EPOCH, (process or None, run)
        (row,) = yield sql.ONE_RUN, (run,)
        marks, cost = sealed.marks(), held.tail.cost
        return status, Lease(run, held.epoch, *marks, cost, row_decoder.run_row(row), sealed.records()), held

    def answer(self, run: str, path: str, hash: str, value: str, by: str, *, again: bool) -> Steps[None]:
        sql = self._sql
        status = yield from self._status(run)
        questions = yield sql.STATE_OF_QUESTION, (run, path)
        if again and questions and questions[0][0] in ("answered", "consumed") and questions[0][1:3] == (hash, value):
            return
        if status not in contract.ANSWERABLE:
            raise RunState(f"run {run} is {status.words} and takes no answers")
        if not questions:
            raise RunState(f"run {run} asks nothing at {path}")
        state, current, _, sealed = questions[0]
        contract.check_open(run, path, hash, state=state, current=current)
        (row,) = yield sql.QUESTION, (run, path)
        contract.check_question(self._seal, row_decoder.question(row), sealed)
        mine = seal_answer(self._seal, run, path, hash, value, by)
        yield sql.ANSWER, (value, by or None, mine, run, path)

    def ask_cancel(self, run: str) -> Steps[None]:
        """Leave a request to cancel for the owner of the run."""
        yield from self._check_cancellable(run)
        yield self._sql.ASK_CANCEL, (run,)

    def cancel(self, run: str, *, requested: bool, again: bool) -> Steps[bool]:
        """Cancel a run whose lock this store has taken. The new epoch keeps out an owner that has lost its lock.

        Return False if its owner, of whom that was `requested`, has cancelled the run itself.
        """
        if (again or requested) and (yield from self._status(run)) is Status.CANCELLED:
            return again
        yield from self._check_cancellable(run)
        sealed, number, epoch = yield from self._read_whole(run)
        held = OwnedRun(run, epoch, number, sealed.tail())
        cancelled = Event("run_cancelled", run, self._now(), sealed.marks()[0] + 1)
        yield from self._end(held, sealed.state_as(Status.CANCELLED), [cancelled])
        if not sealed.holds(self._seal):
            yield self._sql.SET_ANCHOR, (sealed.stored.anchor, sealed.stored.seal, number)
        yield self._sql.NEXT_EPOCH, (None, run)
        return True

    def check_seal(self, run: str, *, whole: bool) -> Reads[None]:
        """Check the seals of a run and of its questions; without `whole` only that of its pins."""
        if not whole:
            stored, _, _ = yield from self._read(run)
            return check_pins(self._seal, stored)
        sealed, _, _ = yield from self._read_whole(run)
        sealed.check(self._seal)
        for question, question_seal in (yield from self._asked(run)):
            contract.check_question(self._seal, question, question_seal)

    def reseal(self, run: str) -> Steps[None]:
        """Seal a run again as it is stored, at the request of its user."""
        sql, seal = self._sql, self._seal
        sealed, number, _ = yield from self._read_whole(run)
        pins, journal, state = sealed.resealed(seal)
        yield sql.SEAL_PINS, (pins, number)
        for row_seal, place in journal:
            yield sql.SEAL_ROW, (row_seal, number, place)
        yield sql.SET_ANCHOR, (*state, number)
        for question, _ in (yield from self._asked(run)):
            yield sql.SEAL_QUESTION, (seal_question(seal, question), run, question.path)
        for path, hash, value, by, _ in (yield sql.ANSWERS, (run,)):
            yield sql.SEAL_ANSWER, (seal_answer(seal, run, path, hash, value, by or ""), run, path)

    def claim_key(self, key: str, request: str, claim: str) -> Steps[KeptReply | str]:
        """Claim an idempotency key, and forget the old ones. Return the reply if the key was claimed before."""
        sql, now = self._sql, self._now()
        yield sql.FORGET_REPLIES, (now - contract.REPLY_SECONDS, now - contract.UNDER_WAY_SECONDS)
        yield sql.CLAIM_KEY, (key, request, claim, now)
        ((claimed, by, reply),) = yield sql.REPLY_OF_KEY, (key,)
        return claim if by == claim else contract.KeptReply(claimed, reply)

    def label(self, run: str, changes: Mapping[str, str | float | None]) -> Steps[None]:
        """Set the name, the note or the time at which a run was seen."""
        labels = yield self._sql.LABEL_OF_RUN, (run,)
        if not labels:
            raise contract.no_such_run(run)
        kept = dict(zip(("name", "note", "seen_at"), labels[0], strict=True))
        yield self._sql.SET_LABEL, (*{**kept, **changes}.values(), run)

    def keep_reply(self, key: str, claim: str, reply: str | None) -> Steps[None]:
        if reply is None:
            yield self._sql.DROP_KEY, (key, claim)
        else:
            yield self._sql.KEEP_REPLY, (reply, key, claim)

    def _status(self, run: str) -> Reads[Status]:
        states = yield self._sql.STATE_OF_RUN, (run,)
        if not states:
            raise contract.no_such_run(run)
        status, expires_at = states[0]
        return contract.status_at(self._now(), Status(status), expires_at)

    def _check_cancellable(self, run: str) -> Reads[None]:
        status = yield from self._status(run)
        if status not in contract.CANCELLABLE:
            raise RunState(f"run {run} is {status.words} already: nothing is left to cancel")

    def _read(self, run: str) -> Reads[tuple[StoredRun, int, int]]:
        """Return a run as stored, its number and its epoch. Raises `NoSuchRun`."""
        runs = yield self._sql.SEALED_RUN, (run,)
        if not runs:
            raise contract.no_such_run(run)
        number, epoch, *stored = runs[0]
        return StoredRun(*stored), number, epoch

    def _read_whole(self, run: str) -> Reads[tuple[SealedRun, int, int]]:
        stored, number, epoch = yield from self._read(run)
        journal = yield self._sql.SEALED_JOURNAL, (number,)
        return SealedRun(stored, journal, self._sql.first_place(number)), number, epoch

    def _asked(self, run: str) -> Reads[Sequence[tuple[Question, str | None]]]:
        """Return the questions that are open or answered but not yet consumed, each with its seal."""
        questions = yield self._sql.ASKED, (run,)
        return [(row_decoder.question(row[:-1]), row[-1]) for row in questions]

    def _end(self, held: OwnedRun, state: Cells, events: Sequence[Event] = ()) -> Steps[None]:
        """End a run that is not being driven, and withdraw its open questions."""
        ended = replace(encode_batch(held.run, Batch(events=tuple(events)), self._seal), status=state)
        yield Append(held, ended, self._now())
        yield self._sql.WITHDRAW_OPEN, (held.run,)


# Indexes into a row: the cells of the journal, its seal, and the texts that `blob` and `events_blob` name.
_PLACE, _POSITION, _INPUT, _OUTPUT, _COST, _PATH, _STATE = 0, 2, 3, 4, 5, 6, 8
_VALUE, _USAGE, _EVENTS = 11, slice(15, 21), 21
_SEAL, _BODY, _EVENTS_BODY = 23, 24, 25


class SealedRun(Struct, frozen=True):
    """A stored run with its whole journal."""

    stored: StoredRun
    journal: Sequence[Row]
    """All rows, in order."""
    first: int
    """The key before the first row."""

    def check(self, seal: Seal) -> None:
        """Raise `BrokenSeal` unless the whole run is as this user wrote it."""
        check_run(seal, self.stored, self.journal)

    def holds(self, seal: Seal) -> bool:
        try:
            self.check(seal)
        except BrokenSeal:
            return False
        return True

    def resealed(self, seal: Seal) -> tuple[str, list[tuple[str, int]], tuple[int, str]]:
        """Return new seals for the run as stored: of the pins, of each row with its place, and the anchor with the
        run's seal."""
        run = self.stored
        last = pins = seal_pins(seal, run.id, run.title, run.format, run.document, run.created_at, run.pins)
        made: list[tuple[str, int]] = []
        for row in self.journal:
            last = seal_row(seal, last, row[:_SEAL])
            made.append((last, row[_PLACE]))
        anchor = self.journal[-1][_PLACE] if self.journal else NO_ANCHOR
        return pins, made, (anchor, seal_state(seal, pins, run.state, anchor, last))

    def tail(self) -> JournalEnd:
        run = self.stored
        seal = run.pins_seal or ""
        if not self.journal:
            return JournalEnd(self.first, pins_seal=seal, seal=seal, state=run.state)
        last = self.journal[-1]
        return JournalEnd(
            last[_PLACE],
            last[_POSITION],
            last[_INPUT],
            last[_OUTPUT],
            last[_COST],
            seal,
            last[_SEAL] or "",
            run.state,
            sum(row[_PLACE] > (run.anchor or NO_ANCHOR) for row in self.journal),
            frozenset(path for path, state in self._states().items() if state == "intent"),
        )

    def _states(self) -> dict[str, str]:
        return {row[_PATH]: row[_STATE] for row in self.journal if row[_PATH] is not None}

    def records(self) -> tuple[EffectRecord, ...]:
        """Return the records in the order in which their paths first appeared."""
        latest = {row[_PATH]: row for row in self.journal if row[_PATH] is not None}.values()
        return tuple(_record(row) for row in latest if row[_STATE] != rows.SUPERSEDED)

    def marks(self) -> tuple[int, frozenset[tuple[str, str]]]:
        """Return the highest number and the (type, path) of all kept events."""
        events = [(row[_EVENTS] or row[_EVENTS_BODY], row[_PATH]) for row in self.journal]
        return row_decoder.marks([(text, path) for text, path in events if text is not None])

    def state_as(self, status: Status) -> Cells:
        """Return the status columns for ending the run, which is not being driven, with this status."""
        _, kind, message, ended_by, expires_at = self.stored.state
        if status is Status.CANCELLED:
            return status.value, None, None, ended_by, None
        return status.value, kind, message, ended_by, expires_at


def _record(row: Row) -> EffectRecord:
    path, kind, state, request, at, value, _, failure, message = row[_PATH : _PATH + 9]
    return row_decoder.effect_record(
        (path, kind, state, request, at, row[_BODY] if value is None else value, failure, message, *row[_USAGE])
    )
