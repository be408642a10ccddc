"""The tables of the PostgreSQL store, and their migrations.

The tables are in the first schema of the connection's `search_path`, and their names begin with `quire_`, so a database
may be shared with other programs. A released migration is never edited: the next one is appended.

The layout is that of the SQLite file (`quire.stores.sqlite.schema`): `quire_journal` is append-only, and the last row
of a run holds its totals. Large texts are stored as bytes, since they may contain characters that PostgreSQL's text
cannot hold. Names that are sorted or searched compare by bytes, whatever the language of the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from psycopg import AsyncConnection

from quire.errors import StoreError

Migration: TypeAlias = tuple[str, ...]
Connection: TypeAlias = AsyncConnection[tuple[Any, ...]]

_LOCK = "SELECT pg_advisory_xact_lock(x'51554952'::bigint << 32 | hashtext(current_schema())::bit(32)::bigint)"
"""Lets one program at a time migrate a schema. The number spells "QUIR", to differ from the locks of other programs."""

# Read from the catalogue's table: `to_regclass` would answer from what this session cached on its first look.
_HAS_TABLES = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'quire_schema'"

_FIRST: Migration = (
    """
    CREATE TABLE quire_runs (
        n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id TEXT COLLATE "C" NOT NULL UNIQUE,
        title TEXT NOT NULL,
        format TEXT NOT NULL,
        document TEXT NOT NULL,
        status TEXT NOT NULL DEFAULT 'pending',
        created_at DOUBLE PRECISION NOT NULL,
        updated_at DOUBLE PRECISION NOT NULL,
        expires_at DOUBLE PRECISION,
        failure_kind TEXT,
        failure_message TEXT,
        ended_by TEXT,
        epoch BIGINT NOT NULL DEFAULT 0,
        cancel_requested BOOLEAN NOT NULL DEFAULT FALSE
    )
    """,
    "CREATE INDEX quire_runs_by_age ON quire_runs (created_at, n)",
    "CREATE INDEX quire_runs_by_status ON quire_runs (status, created_at, n)",
    "CREATE TABLE quire_pins (run BIGINT PRIMARY KEY, value TEXT, blob TEXT)",
    "CREATE TABLE quire_blobs (sha256 TEXT PRIMARY KEY, body BYTEA NOT NULL)",
    """
    CREATE TABLE quire_journal (
        run BIGINT NOT NULL,
        place BIGINT NOT NULL,
        written_at DOUBLE PRECISION NOT NULL,
        position TEXT NOT NULL,
        total_input BIGINT NOT NULL,
        total_output BIGINT NOT NULL,
        total_cost DOUBLE PRECISION,
        path TEXT,
        kind TEXT,
        state TEXT,
        request TEXT,
        at DOUBLE PRECISION,
        value TEXT,
        blob TEXT,
        failure_kind TEXT,
        failure_message TEXT,
        input_tokens BIGINT,
        output_tokens BIGINT,
        cost DOUBLE PRECISION,
        elapsed DOUBLE PRECISION,
        delays TEXT,
        events TEXT,
        events_blob TEXT,
        PRIMARY KEY (run, place)
    )
    """,
    """
    CREATE TABLE quire_questions (
        run TEXT COLLATE "C" NOT NULL,
        path TEXT COLLATE "C" NOT NULL,
        label TEXT NOT NULL,
        title TEXT NOT NULL,
        kind TEXT NOT NULL,
        prompt TEXT NOT NULL,
        options TEXT,
        preset TEXT,
        hash TEXT NOT NULL,
        asked_at DOUBLE PRECISION NOT NULL,
        expires_at DOUBLE PRECISION,
        state TEXT NOT NULL DEFAULT 'open',
        answer TEXT,
        PRIMARY KEY (run, path)
    )
    """,
    "CREATE INDEX quire_questions_open ON quire_questions (asked_at) WHERE state = 'open'",
    "CREATE INDEX quire_questions_answered ON quire_questions (run) WHERE state = 'answered'",
    """
    CREATE TABLE quire_letters (
        n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        recipient TEXT NOT NULL,
        run TEXT NOT NULL,
        text TEXT NOT NULL,
        at DOUBLE PRECISION NOT NULL
    )
    """,
    "CREATE INDEX quire_letters_by_recipient ON quire_letters (recipient)",
)

_TAKEN_IN: Migration = ("ALTER TABLE quire_runs ADD COLUMN taken_in_at DOUBLE PRECISION",)
"""The time at which a run was restored with its history, which may have ended long before."""

_SEALS: Migration = (
    "ALTER TABLE quire_runs ADD COLUMN anchor BIGINT, ADD COLUMN seal TEXT",
    "ALTER TABLE quire_pins ADD COLUMN seal TEXT",
    "ALTER TABLE quire_journal ADD COLUMN seal TEXT",
    "ALTER TABLE quire_questions ADD COLUMN seal TEXT, ADD COLUMN answer_seal TEXT",
    "ALTER TABLE quire_letters ADD COLUMN seal TEXT",
    "UPDATE quire_pins SET seal = '0.1.0'",
    "UPDATE quire_questions SET seal = '0.1.0'",
)
"""See `quire.stores.seals`. Existing runs have no seal: Quire asks their user."""

_ANSWERED_BY: Migration = (
    "ALTER TABLE quire_questions ADD COLUMN answered_by TEXT",
    "ALTER TABLE quire_journal ADD COLUMN answered_by TEXT",
)
"""The name of the person who gave an answer. It is unknown for older answers."""

_HTTP_REPLIES: Migration = (
    """
    CREATE TABLE quire_http_replies (
        key TEXT COLLATE "C" PRIMARY KEY,
        request TEXT NOT NULL,
        claim TEXT NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        reply TEXT
    )
    """,
)
"""Replies of the HTTP API by idempotency key, for a day. A row without a reply is a request under way."""

MIGRATIONS: Sequence[Migration] = (_FIRST, _TAKEN_IN, _SEALS, _ANSWERED_BY, _HTTP_REPLIES)


async def migrate(connection: Connection, place: str, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Migrate the tables to the version of this program. Raises `StoreError` if a newer program has written them."""
    if await _checked_version(connection, place, migrations) == len(migrations):
        return
    async with connection.transaction():
        await connection.execute(_LOCK)
        # Another process may have migrated between the check above and the lock.
        version = await _checked_version(connection, place, migrations)
        if version == len(migrations):
            return
        for migration in migrations[version:]:
            for statement in migration:
                await connection.execute(statement)
        await connection.execute("CREATE TABLE IF NOT EXISTS quire_schema (version INTEGER NOT NULL)")
        await connection.execute("DELETE FROM quire_schema")
        await connection.execute("INSERT INTO quire_schema VALUES (%s)", (len(migrations),))


async def _checked_version(connection: Connection, place: str, migrations: Sequence[Migration]) -> int:
    if await (await connection.execute(_HAS_TABLES)).fetchone() is None:
        return 0
    row = await (await connection.execute("SELECT version FROM quire_schema")).fetchone()
    version = 0 if row is None else int(row[0])
    if version > len(migrations):
        raise StoreError(
            f"{place} was written by a newer Quire (schema {version}, this one knows {len(migrations)}): upgrade Quire"
        )
    return version
