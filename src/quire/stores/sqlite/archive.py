"""The SQLite file as a whole: removing old runs, giving space back, copying the file."""

# Only constants of this package are put together here, never values.
# ruff: noqa: S608

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import sqlite3
from collections.abc import Collection, Sequence
from pathlib import Path

from quire.engine.records import Status
from quire.errors import StoreError
from quire.stores import rows
from quire.stores.contract import ENDED, Pruned
from quire.stores.sqlite.database import Database, explain
from quire.stores.sqlite.statements import MIGRATIONS, checked_version, migrate
from quire.values import encode

# A hash may occur anywhere in the pins: every string that looks like one counts, so that no text is lost.
_HASH = re.compile(r"[0-9a-f]{64}")

_ENDED_BEFORE = """
    SELECT id, n FROM runs
    WHERE (status IN (SELECT value FROM json_each(?)) AND max(updated_at, coalesce(taken_in_at, 0)) < ?)
        OR (? AND status IN ('paused', 'awaiting_input') AND expires_at < ?)
    ORDER BY n
"""
_ENDED = """
    SELECT id, n FROM runs
    WHERE id IN (SELECT value FROM json_each(?)) AND (
        status IN (SELECT value FROM json_each(?)) OR (status IN ('paused', 'awaiting_input') AND expires_at < ?)
    )
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


def ended_before(database: Database, before: float, statuses: Collection[Status]) -> list[tuple[str, int]]:
    """Return the ids and numbers of the runs that ended with these statuses before a moment."""
    parameters = (encode([status.value for status in statuses]), before, Status.EXPIRED in statuses, before)
    return [(run, number) for run, number in database.rows(_ENDED_BEFORE, parameters)]


def ended(database: Database, runs: Sequence[str], now: float) -> list[tuple[str, int]]:
    """Return the ids and numbers of those of the runs that have ended."""
    parameters = (encode(list(runs)), encode([status.value for status in ENDED]), now)
    return [(run, number) for run, number in database.rows(_ENDED, parameters)]


def prune(database: Database, runs: Sequence[tuple[str, int]], *, dry_run: bool) -> Pruned:
    """Remove these runs, given by id and number. A dry run does everything and rolls it back."""
    pruned = Pruned()
    with contextlib.suppress(_TakeBack), database.transaction() as connection:
        room = _free(connection)
        texts = _count(connection, "SELECT count(*) FROM blobs")
        effects = sum(_remove(connection, run, number) for run, number in runs)
        _drop_texts(connection)
        left = _count(connection, "SELECT count(*) FROM blobs")
        size = _free(connection) - room
        pruned = Pruned(tuple(run for run, _ in runs), effects, texts - left, size)
        if dry_run:
            raise _TakeBack
    return pruned


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
    """Copy the file as it is, with any schema, to a new name."""
    if not database.exists():
        raise StoreError(f"nothing to copy: {database.path} does not exist")
    if to.exists():
        raise StoreError(f"{to} exists already: name a new file")
    with database.to_copy() as source:
        return copy_file(source, database.path, to)


def copy_file(source: sqlite3.Connection, path: Path, to: Path, *, replaces: bool = False) -> int:
    """Copy a file with SQLite's own backup, which sees one moment of it. The name appears when the copy is complete.
    Return the number of bytes."""
    beside = to.with_name(f".{to.name}.{secrets.token_hex(4)}")
    try:
        os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        copy = sqlite3.connect(beside, isolation_level=None)
        try:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE").fetchone()
            (sound,) = copy.execute("PRAGMA quick_check(1)").fetchone()
        finally:
            copy.close()
        if sound != "ok":
            raise StoreError(f"the copy of {path} is damaged: {sound}")
        _sync(beside)
        if not replaces:
            with to.open("xb"):  # takes the name, unless another process has taken it meanwhile
                pass
        beside.replace(to)
        return to.stat().st_size
    except sqlite3.Error as error:
        raise explain(error, to) from error
    except FileExistsError:
        raise StoreError(f"{to} exists already: name a new file") from None
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


def keep_older(path: Path, version: int) -> None:
    """Copy a file beside itself before it is migrated: the program that wrote it cannot read it afterwards. The
    connection that holds the lock for the migration could not copy it."""
    with contextlib.closing(sqlite3.connect(path)) as source:
        kept = path.with_name(f"{path.name}.schema{version}")
        copy_file(source, path, kept, replaces=True)
    logging.getLogger("quire").warning("%s is of an older Quire and is migrated now; a copy is kept: %s", path, kept)


class OlderCopy:
    """A private copy of a file of an older schema, migrated, for commands that only look."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: sqlite3.Connection | None = None
        self._copied: list[tuple[int, int]] = []
        self.made = 0

    def connection(self) -> sqlite3.Connection | None:
        """Return a copy of the file as it is now; None if a migration of the file stands in its log."""
        path = self._database.path
        now = [_written(file) for file in (path, path.with_name(f"{path.name}-wal"))]
        if self._connection is None or now != self._copied:
            self.drop()
            with self._database.to_copy() as source:
                if checked_version(source, path) == len(MIGRATIONS):
                    return None
                copy = sqlite3.connect("", isolation_level=None)  # a file without a name, if it is large
                source.backup(copy)
            migrate(copy, path)
            self._connection, self._copied, self.made = copy, now, self.made + 1
        return self._connection

    def drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _written(path: Path) -> tuple[int, int]:
    """Return when a file was written and its size; zeros if it does not exist."""
    try:
        stat = path.stat()
    except OSError:
        return (0, 0)
    return (stat.st_mtime_ns, stat.st_size)
