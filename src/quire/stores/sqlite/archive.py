"""Whole runs in the SQLite file: restoring one, removing old ones, copying the file."""

# Only constants of this package are put together here, never values.
# ruff: noqa: S608

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import sqlite3
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.engine.records import Batch, NewRun, Question
from quire.errors import StoreError
from quire.stores import rows
from quire.stores.contract import History, Pruned, batches
from quire.stores.rows import Encoded, JournalEnd
from quire.stores.seals import seal_answer, seal_pins, seal_question
from quire.stores.sqlite import statements
from quire.stores.sqlite.database import Database, explain
from quire.stores.sqlite.writer import OwnedRun, append
from quire.values import clean, encode

if TYPE_CHECKING:
    from quire.stores.sealed_run import SealedRun
    from quire.trust.seal import Seal

# A hash may occur anywhere in the pins: every string that looks like one counts, so that no text is lost.
_HASH = re.compile(r"[0-9a-f]{64}")

ENDED_BEFORE = """
    SELECT id, n FROM runs
    WHERE (status IN (SELECT value FROM json_each(?)) AND max(updated_at, coalesce(taken_in_at, 0)) < ?)
        OR (? AND status IN ('paused', 'awaiting_input') AND expires_at < ?)
    ORDER BY n
"""
_PINS = "SELECT coalesce(p.value, (SELECT body FROM blobs WHERE sha256 = p.blob)) FROM pins p"
_REFERRED = """
    SELECT blob FROM journal WHERE blob IS NOT NULL
    UNION SELECT events_blob FROM journal WHERE events_blob IS NOT NULL
    UNION SELECT blob FROM pins WHERE blob IS NOT NULL
    UNION SELECT sha256 FROM temp.pinned
"""
# The thread of an existing run counts its letters, so their positions must not change.
_STRAY_LETTERS = "DELETE FROM letters WHERE run = ? AND recipient NOT IN (SELECT id FROM runs)"


def insert_run(
    connection: sqlite3.Connection, path: Path, run: NewRun, pins: rows.Cells, blobs: rows.Blobs, seal: Seal
) -> OwnedRun:
    """Insert the row of a new run, its pins and the texts they name. Raises `StoreError` if the id is taken."""
    columns = (run.id, clean(run.title), run.format, clean(run.document), run.created_at, run.created_at)
    if connection.execute(statements.EPOCH, (run.id,)).fetchone() is not None:
        raise StoreError(f"{path} has a run {run.id} already")
    connection.executemany(statements.PUT_BLOB, blobs.rows)
    number = int(connection.execute(statements.NEW_RUN, columns).lastrowid or 0)
    connection.execute(statements.NEW_PINS, (number, *pins))
    first, pins_seal = rows.first_place(number), str(pins[-1])
    tail = JournalEnd(first, pins_seal=pins_seal, seal=pins_seal)
    connection.execute(statements.SET_ANCHOR, (*tail.sealed(seal, first), run.id))
    return OwnedRun(run.id, 0, number, tail)


def pinned_cells(run: NewRun, seal: Seal) -> tuple[rows.Cells, rows.Blobs]:
    """Return the pins of a new run with their seal, and the texts they name."""
    blobs = rows.Blobs()
    text = encode(run.pins)
    sealed = seal_pins(seal, run.id, clean(run.title), run.format, clean(run.document), run.created_at, text)
    pins = (*blobs.put(text), sealed)
    for digest, text in run.texts.items():
        if hashlib.sha256(text.encode()).hexdigest() != digest:
            raise ValueError(f"a text pinned by run {run.id} is not the one that {digest} names")
        blobs.rows.append((digest, text))
    return pins, blobs


def restore(database: Database, run: NewRun, history: History, now: float, seal: Seal) -> None:
    pins, blobs = pinned_cells(run, seal)
    encoded = [rows.encode_batch(run.id, batch, seal) for batch in batches(history)]
    # The position is in the earlier rows: it does not need one of its own.
    ended = rows.encode_batch(run.id, Batch(update=replace(history.update, position=None)), seal)
    with database.transaction() as connection:
        held = insert_run(connection, database.path, run, pins, blobs, seal)
        connection.execute(statements.TAKEN_IN, (now, held.number))
        totals = (history.input_tokens, history.output_tokens, history.cost)
        held.tail = with_totals(held.tail, history.update.position or "", *totals)
        for batch in encoded:
            connection.executemany(statements.PUT_BLOB, batch.blobs)
            append(connection, held, _unpaid(batch), history.updated_at, seal)
        append(connection, held, ended, history.updated_at, seal)


def reseal(
    connection: sqlite3.Connection,
    sealed: SealedRun,
    number: int,
    asked: Sequence[tuple[Question, str | None]],
    seal: Seal,
) -> None:
    """Seal a run again as it is stored, at the request of its user."""
    run = sealed.stored.id
    pins, journal, state = sealed.resealed(seal)
    connection.execute(statements.SEAL_PINS, (pins, number))
    connection.executemany(statements.SEAL_ROW, journal)
    connection.execute(statements.SET_ANCHOR, (*state, run))
    for question, _ in asked:
        connection.execute(statements.SEAL_QUESTION, (seal_question(seal, question), run, question.path))
    for path, hash, value, by, _ in connection.execute(statements.ANSWERS, (run,)).fetchall():
        mine = seal_answer(seal, run, path, hash, value, by or "")
        connection.execute(statements.SEAL_ANSWER, (mine, run, path))


def with_totals(
    tail: JournalEnd, position: str, input_tokens: int, output_tokens: int, cost: float | None
) -> JournalEnd:
    """Return the tail with the position and the totals that a restored run starts with."""
    return replace(tail, position=clean(position), input_tokens=input_tokens, output_tokens=output_tokens, cost=cost)


def _unpaid(batch: Encoded) -> Encoded:
    batch.used = ()
    return batch


def prune(database: Database, runs: Sequence[tuple[str, int]], *, dry_run: bool) -> Pruned:
    """Remove these runs, given by id and number. A dry run does everything and rolls it back."""
    found = Pruned()
    with contextlib.suppress(_TakeBack), database.transaction() as connection:
        room = _free(connection)
        texts = _count(connection, "SELECT count(*) FROM blobs")
        effects = sum(_remove(connection, run, number) for run, number in runs)
        _drop_texts(connection)
        left = _count(connection, "SELECT count(*) FROM blobs")
        size = _free(connection) - room
        found = Pruned(tuple(run for run, _ in runs), effects, texts - left, size)
        if dry_run:
            raise _TakeBack
    return found


class _TakeBack(Exception):
    """Raised to roll the transaction back."""


def _remove(connection: sqlite3.Connection, run: str, number: int) -> int:
    places = rows.places(number)
    effects = _count(connection, "SELECT count(*) FROM journal WHERE id BETWEEN ? AND ? AND path IS NOT NULL", places)
    connection.execute("DELETE FROM journal WHERE id BETWEEN ? AND ?", places)
    connection.execute("DELETE FROM pins WHERE run = ?", (number,))
    connection.execute("DELETE FROM questions WHERE run = ?", (run,))
    connection.execute("DELETE FROM runs WHERE n = ?", (number,))
    connection.execute("DELETE FROM letters WHERE recipient = ?", (run,))
    connection.execute(_STRAY_LETTERS, (run,))
    return effects


def _drop_texts(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS pinned (sha256 TEXT PRIMARY KEY)")
    connection.execute("DELETE FROM temp.pinned")
    for (pins,) in connection.execute(_PINS).fetchall():
        named = [(digest,) for digest in _HASH.findall(pins)]
        connection.executemany("INSERT OR IGNORE INTO temp.pinned VALUES (?)", named)
    connection.execute(f"DELETE FROM blobs WHERE sha256 NOT IN ({_REFERRED})")
    connection.execute("DELETE FROM temp.pinned")


def _free(connection: sqlite3.Connection) -> int:
    return _count(connection, "PRAGMA freelist_count") * _count(connection, "PRAGMA page_size")


def _count(connection: sqlite3.Connection, sql: str, parameters: Collection[int] = ()) -> int:
    value: int = connection.execute(sql, tuple(parameters)).fetchone()[0]
    return value


def vacuum(database: Database) -> int:
    """Return free space of the file to the disk, and return the number of bytes."""
    connection, path = database.connection(), database.path
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        before = path.stat().st_size
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return before - path.stat().st_size
    except sqlite3.Error as error:
        raise explain(error, path) from error


def backup(database: Database, to: Path) -> int:
    """Copy the file with SQLite's own backup, which sees one moment of it. The name appears when the copy is
    complete."""
    if not database.exists():
        raise StoreError(f"there is nothing to copy: {database.path} is not there")
    if to.exists():
        raise StoreError(f"{to} is there already: name a file that is not")
    source = database.connection()
    beside = to.with_name(f".{to.name}.{secrets.token_hex(4)}")
    try:
        copy = sqlite3.connect(beside, isolation_level=None)
        try:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE").fetchone()
            (sound,) = copy.execute("PRAGMA quick_check(1)").fetchone()
        finally:
            copy.close()
        if sound != "ok":
            raise StoreError(f"the copy of {database.path} is damaged: {sound}")
        _sync(beside)
        with to.open("xb"):  # takes the name, unless another process has taken it meanwhile
            pass
        beside.replace(to)
        return to.stat().st_size
    except sqlite3.Error as error:
        raise explain(error, to) from error
    except FileExistsError:
        raise StoreError(f"{to} is there already: name a file that is not") from None
    except OSError as error:
        raise explain(error, to) from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def _sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
