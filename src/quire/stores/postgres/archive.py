"""The tables of a PostgreSQL store as a whole: removing old runs, giving space back.

Removing texts locks out all transactions that add texts. Otherwise a new run could find its text in the table, skip
writing it, and lose it to a cleanup that has not seen the run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from quire.engine.records import Status
from quire.stores.contract import Pruned
from quire.stores.postgres.statements import PostgresStatements

if TYPE_CHECKING:
    from quire.stores.postgres.connection import Server
    from quire.stores.postgres.schema import Connection

_TABLES = "quire_runs, quire_pins, quire_journal, quire_questions, quire_letters, quire_blobs"
_SIZE = "SELECT sum(pg_total_relation_size(t::regclass))::bigint FROM unnest(string_to_array(%s, ', ')) AS t"


class _TakeBack(Exception):
    """Raised to roll the transaction back."""

    def __init__(self, pruned: Pruned) -> None:
        self.pruned = pruned


async def prune(server: Server, before: float, statuses: Collection[Status], *, dry_run: bool) -> Pruned:
    """Remove ended runs and unused texts. A dry run does everything and rolls it back. Runs that are being driven, or
    are about to be, stay."""
    sql = PostgresStatements
    wanted = ([status.value for status in statuses], before, Status.EXPIRED in statuses, before)

    async def work(connection: Connection, again: bool) -> Pruned:
        await connection.execute(sql.KEEP_TEXTS)
        found = await (await connection.execute(sql.ENDED_BEFORE, wanted)).fetchall()
        runs, numbers = [run for run, _, free in found if free], [number for _, number, free in found if free]
        effects, size = await _count(connection, sql.REMOVE_JOURNAL, (numbers,))
        for statement in (sql.REMOVE_PINS, sql.REMOVE_RUNS):
            await connection.execute(statement, (numbers,))
        for statement in (sql.REMOVE_QUESTIONS, sql.REMOVE_LETTERS, sql.REMOVE_STRAY_LETTERS):
            await connection.execute(statement, (runs,))
        texts, more = await _count(connection, sql.REMOVE_TEXTS, ())
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


async def _count(connection: Connection, sql: str, parameters: Sequence[object]) -> tuple[int, int]:
    """Run a statement that removes rows; return their number and size."""
    found = await (await connection.execute(sql, parameters)).fetchone()
    return (0, 0) if found is None else (int(found[0]), int(found[1]))
