"""The SQL that only the SQLite store runs, its tables, and their migrations.

The cost of a commit depends on the number of pages, so the layout keeps it low. An effect, its events and the run's
totals after it are one row of `journal`, which is append-only: of several rows with the same path the last one counts,
and the last row of a run holds its totals. The key is (run, place) in one integer (`rows.places`) and needs no index of
its own. So a journaled effect touches one page, and `runs` changes only with the status.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from quire.errors import StoreError
from quire.patterns import late_pattern
from quire.stores import rows
from quire.stores.row_decoder import BRIEF_COLUMNS, EFFECT_COLUMNS, EVENT_COLUMNS, PINS, RUN_COLUMNS
from quire.stores.rows import JOURNAL_COLUMNS, PLACE_BITS
from quire.stores.statements import COSTS, COUNTED, PERIOD, WORDS, Statements, operation_tables

# Only constants of this package are put together here, never values.
# ruff: noqa: S608


_CELLS = ", ".join("?" * (JOURNAL_COLUMNS.count(",") + 1))
_FIRST, _LAST = f"r.n << {PLACE_BITS}", f"((r.n + 1) << {PLACE_BITS}) - 1"
_LAST_ROW = f"(SELECT max(id) FROM journal WHERE id BETWEEN {_FIRST} AND {_LAST})"


class SqliteStatements(Statements):
    RUNS = f"""
        SELECT {RUN_COLUMNS} FROM runs r LEFT JOIN pins p ON p.run = r.n LEFT JOIN journal t ON t.id = {_LAST_ROW}
    """
    # A file from elsewhere may hold pins that are not JSON.
    FORK_OF = f"""
        CASE WHEN instr({PINS}, ?) AND json_valid({PINS})
            THEN json_extract({PINS}, '$.origin.run') = ? ELSE FALSE END
    """
    HAS_WORD = f"""
        CASE WHEN {WORDS} LIKE ? ESCAPE '\\' THEN TRUE
            WHEN {PINS} LIKE ? ESCAPE '\\' AND json_valid({PINS})
                THEN json_extract({PINS}, '$.inputs') LIKE ? ESCAPE '\\'
            ELSE FALSE END
    """
    LAST_COST = f"coalesce((SELECT coalesce(total_cost, -1.0) FROM journal WHERE id = {_LAST_ROW}), 0.0)"
    LAST_AT = f"(SELECT written_at FROM journal WHERE id = {_LAST_ROW})"
    SPENT = f"""
        SELECT coalesce(sum(t.total_cost), 0.0), count(CASE WHEN t.id AND t.total_cost IS NULL THEN 1 END), {COUNTED}
        FROM runs r LEFT JOIN journal t ON t.id = {_LAST_ROW} WHERE r.created_at >= ? AND r.created_at < ?
    """
    SPENDING = f"SELECT {COSTS} FROM runs r LEFT JOIN journal t ON t.id = {_LAST_ROW} {PERIOD}"
    WAITED = Statements.WAITED.format(of_run=f"j.id BETWEEN {_FIRST} AND {_LAST}")
    RUNNING = "SELECT r.id FROM runs r WHERE r.status = 'running' ORDER BY r.created_at DESC, r.n DESC"
    STATE_OF_RUN = "SELECT status, expires_at FROM runs WHERE id = ?"

    APPEND = f"INSERT INTO journal ({JOURNAL_COLUMNS}) VALUES ({_CELLS})"
    # By itself this is a whole transaction. It writes nothing if the owner has something to learn (a cancellation, an
    # answer, a new owner): then a longer transaction finds out what it is.
    APPEND_ALONE = f"""
        INSERT INTO journal ({JOURNAL_COLUMNS})
        SELECT {_CELLS} FROM runs r
        WHERE r.n = ? AND r.epoch = ? AND NOT r.cancel_requested
            AND NOT EXISTS (SELECT 1 FROM questions q WHERE q.run = r.id AND q.state = 'answered')
    """
    LEARN = """
        SELECT epoch, cancel_requested, EXISTS (SELECT 1 FROM questions WHERE run = runs.id AND state = 'answered')
        FROM runs WHERE id = ?
    """
    ANSWERED = "SELECT path FROM questions WHERE run = ? AND state = 'answered'"

    # CROSS JOIN keeps SQLite from beginning with the journal.
    EFFECTS = f"""
        SELECT {EFFECT_COLUMNS} FROM runs r CROSS JOIN journal j
        WHERE r.id = ? AND j.id BETWEEN {_FIRST} AND {_LAST} AND j.path IS NOT NULL ORDER BY j.id
    """
    EFFECT_BRIEFS = f"""
        SELECT {BRIEF_COLUMNS}, coalesce(length(CAST(j.value AS BLOB)),
            (SELECT length(CAST(b.body AS BLOB)) FROM blobs b WHERE b.sha256 = j.blob))
        FROM runs r CROSS JOIN journal j
        WHERE r.id = ? AND j.id BETWEEN {_FIRST} AND {_LAST} AND j.path IS NOT NULL ORDER BY j.id
    """
    ONE_EFFECT = f"""
        SELECT {EFFECT_COLUMNS} FROM runs r CROSS JOIN journal j
        WHERE r.id = ? AND j.id BETWEEN {_FIRST} AND {_LAST} AND j.path = ? ORDER BY j.id DESC LIMIT 1
    """
    EVENTS_FROM = f"""
        SELECT j.id - ({_FIRST}), {EVENT_COLUMNS} FROM runs r CROSS JOIN journal j
        WHERE r.id = ? AND j.id BETWEEN ({_FIRST}) + ? AND {_LAST}
            AND (j.events IS NOT NULL OR j.events_blob IS NOT NULL) ORDER BY j.id LIMIT ?
    """
    EVENTS_BEFORE = f"""
        SELECT j.id - ({_FIRST}), {EVENT_COLUMNS} FROM runs r CROSS JOIN journal j
        WHERE r.id = ? AND j.id BETWEEN {_FIRST} AND ({_FIRST}) + ? - 1
            AND (j.events IS NOT NULL OR j.events_blob IS NOT NULL) ORDER BY j.id DESC LIMIT ?
    """
    SEALED_JOURNAL = f"""
        WITH given (run) AS (SELECT ?)
        SELECT {JOURNAL_COLUMNS}, (SELECT body FROM blobs WHERE sha256 = blob),
            (SELECT body FROM blobs WHERE sha256 = events_blob)
        FROM journal WHERE id BETWEEN (SELECT run << {PLACE_BITS} FROM given)
            AND (SELECT ((run + 1) << {PLACE_BITS}) - 1 FROM given) ORDER BY id
    """
    SEAL_ROW = f"UPDATE journal SET seal = ? WHERE id >> {PLACE_BITS} = ? AND id = ?"

    first_place = staticmethod(rows.first_place)


APPLICATION_ID = 0x51554952
"""Stored in the file's header ("QUIR"): tells a database of Quire from one of another program."""

Migration: TypeAlias = tuple[str, ...]

_FIRST_TABLES: Migration = (
    """
    CREATE TABLE runs (
        n INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        title TEXT NOT NULL,
        format TEXT NOT NULL,
        document TEXT NOT NULL,
        status TEXT NOT NULL DEFAULT 'pending',
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        expires_at REAL,
        failure_kind TEXT,
        failure_message TEXT,
        ended_by TEXT,
        epoch INTEGER NOT NULL DEFAULT 0,
        cancel_requested INTEGER NOT NULL DEFAULT 0
    )
    """,
    "CREATE INDEX runs_by_age ON runs (created_at)",
    "CREATE INDEX runs_by_status ON runs (status, created_at)",
    "CREATE TABLE pins (run INTEGER PRIMARY KEY, value TEXT, blob TEXT)",
    "CREATE TABLE blobs (sha256 TEXT PRIMARY KEY, body TEXT NOT NULL)",
    """
    CREATE TABLE journal (
        id INTEGER PRIMARY KEY,
        written_at REAL NOT NULL,
        position TEXT NOT NULL,
        total_input INTEGER NOT NULL,
        total_output INTEGER NOT NULL,
        total_cost REAL,
        path TEXT,
        kind TEXT,
        state TEXT,
        request TEXT,
        at REAL,
        value TEXT,
        blob TEXT,
        failure_kind TEXT,
        failure_message TEXT,
        input_tokens INTEGER,
        output_tokens INTEGER,
        cost REAL,
        elapsed REAL,
        delays TEXT,
        events TEXT,
        events_blob TEXT
    )
    """,
    """
    CREATE TABLE questions (
        run TEXT NOT NULL,
        path TEXT NOT NULL,
        label TEXT NOT NULL,
        title TEXT NOT NULL,
        kind TEXT NOT NULL,
        prompt TEXT NOT NULL,
        options TEXT,
        preset TEXT,
        hash TEXT NOT NULL,
        asked_at REAL NOT NULL,
        expires_at REAL,
        state TEXT NOT NULL DEFAULT 'open',
        answer TEXT,
        PRIMARY KEY (run, path)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX questions_open ON questions (asked_at) WHERE state = 'open'",
    "CREATE INDEX questions_answered ON questions (run) WHERE state = 'answered'",
)

_LETTERS: Migration = (
    """
    CREATE TABLE letters (
        n INTEGER PRIMARY KEY,
        recipient TEXT NOT NULL,
        run TEXT NOT NULL,
        text TEXT NOT NULL,
        at REAL NOT NULL
    )
    """,
    "CREATE INDEX letters_by_recipient ON letters (recipient)",
)

_TAKEN_IN: Migration = ("ALTER TABLE runs ADD COLUMN taken_in_at REAL",)
"""The time at which a run was restored with its history, which may have ended long before."""

_SEALS: Migration = (
    "ALTER TABLE runs ADD COLUMN anchor INTEGER",
    "ALTER TABLE runs ADD COLUMN seal TEXT",
    "ALTER TABLE pins ADD COLUMN seal TEXT",
    "ALTER TABLE journal ADD COLUMN seal TEXT",
    "ALTER TABLE questions ADD COLUMN seal TEXT",
    "ALTER TABLE questions ADD COLUMN answer_seal TEXT",
    "ALTER TABLE letters ADD COLUMN seal TEXT",
    "UPDATE pins SET seal = '0.1.0'",
    "UPDATE questions SET seal = '0.1.0'",
)
"""See `quire.stores.seals`. Existing runs have no seal: Quire asks their user."""

_ANSWERED_BY: Migration = (
    "ALTER TABLE questions ADD COLUMN answered_by TEXT",
    "ALTER TABLE journal ADD COLUMN answered_by TEXT",
)
"""The name of the person who gave an answer. It is unknown for older answers."""

_HTTP_REPLIES: Migration = (
    """
    CREATE TABLE http_replies (
        key TEXT PRIMARY KEY,
        request TEXT NOT NULL,
        claim TEXT NOT NULL,
        at REAL NOT NULL,
        reply TEXT
    ) WITHOUT ROWID
    """,
)
"""Replies of the HTTP API by idempotency key, for a day. A row without a reply is a request under way."""

_LABELS: Migration = tuple(
    f"ALTER TABLE runs ADD COLUMN {column}"
    for column in ("subject TEXT", "name TEXT", "note TEXT", "seen_at REAL", "until TEXT")
)
"""Outside the seals: nothing is decided by them. `until` repeats a pin, which is sealed, for lists."""

MIGRATIONS = (_FIRST_TABLES, _LETTERS, _TAKEN_IN, _SEALS, _ANSWERED_BY, _HTTP_REPLIES, _LABELS, operation_tables())
"""`PRAGMA user_version` counts those that a file has had. A released one is never edited: the next one is appended."""


_CREATED = late_pattern(r"\s*CREATE (TABLE|INDEX) (\w+)")
_OF_SQLITE = late_pattern(r"sqlite_(autoindex_|stat\d|sequence)")
_COMPUTED = late_pattern(r"\b(CHECK|GENERATED|AS)\b", re.IGNORECASE)


def migrate(
    connection: sqlite3.Connection,
    path: Path,
    migrations: Sequence[Migration] = MIGRATIONS,
    keep: Callable[[int], object] = lambda version: None,
) -> None:
    """Migrate the file to the version of this program. `keep` copies a file of an older version before it is changed.
    Raises `StoreError` if a newer Quire or another program has written it."""
    if checked_version(connection, path, migrations) == len(migrations):
        return
    with _transaction(connection, "BEGIN EXCLUSIVE"):
        # Another process may have migrated between the check above and the lock.
        version = _checked_version(connection, path, migrations)
        if 0 < version < len(migrations):
            keep(version)
        for migration in migrations[version:]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")


def checked_version(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Return the version of a file that this program can use; 0 for an empty one. Raises `StoreError`."""
    # Version and tables are read in one transaction: another process may be migrating at this moment.
    with _transaction(connection, "BEGIN"):
        return _checked_version(connection, path, migrations)


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _check_layout(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    """Refuse a file that holds other objects than Quire's tables and indexes, or different ones under the same names.

    Views, triggers and computed columns are programs: one that came with a file would run on every read.
    """
    ours = {
        match[2]: (match[1].lower(), sql)
        for migration in migrations
        for sql in migration
        if (match := _CREATED.match(sql))
    }
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        own = ours.get(name)
        if own is None or own[0] != kind:
            foreign = not _OF_SQLITE.match(name)
        elif kind == "index":
            foreign = " ".join(sql.split()) != " ".join(own[1].split())
        else:
            foreign = not sql.upper().startswith("CREATE TABLE") or _COMPUTED.search(sql) is not None
        if foreign:
            raise StoreError(
                f"{path} holds the {kind} {name!r}, which no Quire has made: it did not come from a run of yours; "
                "move it away to start with a new one"
            )


def _checked_version(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    owner: int = connection.execute("PRAGMA application_id").fetchone()[0]
    if owner != APPLICATION_ID and connection.execute("SELECT EXISTS (SELECT 1 FROM sqlite_master)").fetchone()[0]:
        raise StoreError(f"{path} is a database of another program: name another file for Quire's runs")
    if version > len(migrations):
        raise StoreError(
            f"{path} was written by a newer Quire (schema {version}, this one knows {len(migrations)}): upgrade Quire"
        )
    _check_layout(connection, path, migrations[:version])
    return version
