"""Whole runs in PostgreSQL: creating one, restoring one with its history, removing old ones.

Removing texts locks out all transactions that add texts. Otherwise a new run could find its text in the table, skip
writing it, and lose it to a cleanup that has not seen the run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from quire.engine.records import Batch, NewRun, Question, Status
from quire.errors import StoreError
from quire.stores import row_decoder, rows
from quire.stores.contract import History, Pruned, batches, no_such_run
from quire.stores.postgres import statements
from quire.stores.postgres.writer import FIRST_PLACE, append, put_blobs
from quire.stores.rows import JournalEnd
from quire.stores.sealed_run import SealedRun
from quire.stores.seals import StoredRun, seal_answer, seal_question
from quire.stores.sqlite.archive import pinned_cells, with_totals
from quire.values import clean

if TYPE_CHECKING:
    from quire.stores.postgres.connection import Server
    from quire.stores.postgres.schema import Connection
    from quire.trust.seal import Seal

_TABLES = "quire_runs, quire_pins, quire_journal, quire_questions, quire_letters, quire_blobs"
_SIZE = "SELECT sum(pg_total_relation_size(t::regclass))::bigint FROM unnest(string_to_array(%s, ', ')) AS t"


async def create(server: Server, run: NewRun, seal: Seal, history: History | None = None, now: float = 0.0) -> None:
    """Create a run, with its history if one is given; `now` is then the time of the restore. Raises `StoreError` if the
    id is taken."""
    pins, blobs = pinned_cells(run, seal)
    columns = (run.id, clean(run.title), run.format, clean(run.document), run.created_at, run.created_at)
    begun = JournalEnd(FIRST_PLACE, pins_seal=str(pins[-1]), seal=str(pins[-1]))
    encoded: list[rows.Encoded] = []
    if history is not None:
        # The position is in the earlier rows: it does not need one of its own.
        ended = Batch(update=replace(history.update, position=None))
        encoded = [rows.encode_batch(run.id, batch, seal) for batch in (*batches(history), ended)]

    async def work(connection: Connection, again: bool) -> None:
        made = await one(connection, statements.NEW_RUN, columns)
        if made is None:
            if again and await one(connection, statements.MADE, (run.id,)) == columns[1:5]:
                return  # by the previous attempt, whose outcome never arrived
            raise StoreError(f"{server.place} has a run {run.id} already")
        await put_blobs(connection, blobs.rows)
        await connection.execute(statements.NEW_PINS, (made[0], *pins))
        await connection.execute(statements.SET_ANCHOR, (*begun.sealed(seal, FIRST_PLACE), made[0]))
        if history is None:
            return
        await connection.execute(statements.TAKEN_IN, (now, made[0]))
        totals = (history.input_tokens, history.output_tokens, history.cost)
        tail = with_totals(begun, history.update.position or "", *totals)
        for batch in encoded:
            batch.used = ()
            tail = await append(connection, made[0], tail, batch, history.updated_at, seal)

    await server.transaction(work)


async def read_whole(connection: Connection, run: str) -> tuple[SealedRun, int, int]:
    """Return a run as stored, its number and its epoch. Raises `NoSuchRun`."""
    found = await one(connection, statements.SEALED_RUN, (run,))
    if found is None:
        raise no_such_run(run)
    number, epoch, *stored = found
    journal = await (await connection.execute(statements.SEALED_JOURNAL, (number,))).fetchall()
    return SealedRun(StoredRun(*stored), journal, FIRST_PLACE), number, epoch


async def asked(connection: Connection, run: str) -> list[tuple[Question, str | None]]:
    """Return the questions that are open or answered but not yet consumed, each with its seal."""
    found = await (await connection.execute(statements.ASKED, (run,))).fetchall()
    return [(row_decoder.question(row[:-1]), row[-1]) for row in found]


async def reseal(connection: Connection, run: str, seal: Seal) -> None:
    """Seal a run again as it is stored, at the request of its user."""
    sealed, number, _ = await read_whole(connection, run)
    pins, journal, state = sealed.resealed(seal)
    await connection.execute(statements.SEAL_PINS, (pins, number))
    for row_seal, place in journal:
        await connection.execute(statements.SEAL_ROW, (row_seal, number, place))
    await connection.execute(statements.SET_ANCHOR, (*state, number))
    for question, _ in await asked(connection, run):
        await connection.execute(statements.SEAL_QUESTION, (seal_question(seal, question), run, question.path))
    for path, hash, value, by, _ in await (await connection.execute(statements.ANSWERS, (run,))).fetchall():
        mine = seal_answer(seal, run, path, hash, value, by or "")
        await connection.execute(statements.SEAL_ANSWER, (mine, run, path))


class _TakeBack(Exception):
    """Raised to roll the transaction back."""

    def __init__(self, pruned: Pruned) -> None:
        self.pruned = pruned


async def prune(server: Server, before: float, statuses: Collection[Status], *, dry_run: bool) -> Pruned:
    """Remove ended runs and unused texts. A dry run does everything and rolls it back. Runs that are being driven, or
    are about to be, stay."""
    wanted = ([status.value for status in statuses], before, Status.EXPIRED in statuses, before)

    async def work(connection: Connection, again: bool) -> Pruned:
        await connection.execute(statements.KEEP_TEXTS)
        found = await (await connection.execute(statements.ENDED_BEFORE, wanted)).fetchall()
        runs, numbers = [run for run, _, free in found if free], [number for _, number, free in found if free]
        effects, size = await _whole(connection, statements.REMOVE_JOURNAL, (numbers,))
        for statement in (statements.REMOVE_PINS, statements.REMOVE_RUNS):
            await connection.execute(statement, (numbers,))
        for statement in (statements.REMOVE_QUESTIONS, statements.REMOVE_LETTERS, statements.REMOVE_STRAY_LETTERS):
            await connection.execute(statement, (runs,))
        texts, more = await _whole(connection, statements.REMOVE_TEXTS, ())
        pruned = Pruned(tuple(runs), effects, texts, size + more, in_file=False)
        if dry_run:
            raise _TakeBack(pruned)
        return pruned

    try:
        return await server.transaction(work)
    except _TakeBack as back:
        return back.pruned


async def vacuum(server: Server) -> int:
    """Make free space reusable, return the ends of tables to the disk, and return the number of bytes given back."""
    before = (await server.rows(_SIZE, (_TABLES,)))[0][0]
    await server.rows(f"VACUUM {_TABLES}")
    return max(0, int(before) - int((await server.rows(_SIZE, (_TABLES,)))[0][0]))


async def one(connection: Connection, sql: str, parameters: Sequence[object]) -> tuple[Any, ...] | None:
    return await (await connection.execute(sql, parameters)).fetchone()


async def _whole(connection: Connection, sql: str, parameters: Sequence[object]) -> tuple[int, int]:
    found = await one(connection, sql, parameters)
    return (0, 0) if found is None else (int(found[0]), int(found[1]))
