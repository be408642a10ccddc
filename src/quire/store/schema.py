"""The tables of the SQLite store, and the way from one version of them to the next.

`PRAGMA user_version` counts the migrations that a file has seen. A migration that has been released is never
edited: the next one is added behind it.

A commit costs by the page, so the layout is made for few of them. An effect, the events that came with it and the
run's totals as they are after it are one row of `journal`, which is only ever appended to: of rows with the same path
the last one counts, and the last row of a run has its totals. The key is (run, place) in one integer and needs no
index of its own. So a journaled effect touches one page, and `runs` only changes with the status.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from quire.errors import StoreError

APPLICATION_ID = 0x51554952
"""Stands in the file's header ("QUIR"): tells our database from somebody else's."""

Migration: TypeAlias = tuple[str, ...]

_FIRST: Migration = (
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
"""When a run came with its history, which may have ended long before."""

MIGRATIONS: Sequence[Migration] = (_FIRST, _LETTERS, _TAKEN_IN)


def migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Brings the file to the version of this program. Refuses what a newer one, or another one, has written."""
    if _checked_version(connection, path, migrations) == len(migrations):
        return
    connection.execute("BEGIN EXCLUSIVE")
    try:
        # Somebody else may have done it between the look above and the lock.
        for migration in migrations[_checked_version(connection, path, migrations) :]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _checked_version(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    owner: int = connection.execute("PRAGMA application_id").fetchone()[0]
    if owner != APPLICATION_ID and connection.execute("SELECT EXISTS (SELECT 1 FROM sqlite_master)").fetchone()[0]:
        raise StoreError(f"{path} is a database of another program: name another file for Quire's runs")
    if version > len(migrations):
        raise StoreError(
            f"{path} was written by a newer Quire (schema {version}, this one knows {len(migrations)}): upgrade Quire"
        )
    return version
