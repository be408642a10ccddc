"""The SQL that only the PostgreSQL store runs, the form in which it runs the shared statements, and its tables.

A writer locks the row of its run in one statement and reads in the next, because a statement sees the database as it
was before it began to wait. Each row of the journal is appended on two conditions: the epoch is still the writer's, and
the journal still ends where the writer left it. So a write with an unknown outcome may be sent again: it is stored
once, or found to be stored already.

The tables are in the first schema of the connection's `search_path`, and their names begin with `quire_`, so a database
may be shared with other programs. Their layout is that of the SQLite file (`quire.stores.sqlite.statements`), but large
texts are stored as bytes, since they may contain characters that PostgreSQL's text cannot hold, and names that are
sorted or searched compare by bytes, in any language of the database.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from quire.errors import StoreError
from quire.stores.row_decoder import BRIEF_COLUMNS, EFFECT_COLUMNS, EVENT_COLUMNS, PINS, RUN_COLUMNS
from quire.stores.rows import JOURNAL_COLUMNS
from quire.stores.statements import COSTS, COUNTED, PERIOD, WORDS, Statements, operation_tables

if TYPE_CHECKING:
    from psycopg import AsyncConnection

# Only constants of this package are put together here, never values.
# ruff: noqa: S608


_TABLE = re.compile(
    r"\b(FROM|JOIN|INTO|UPDATE) (runs|pins|blobs|journal|questions|letters|http_replies|starts|triggers|processes)\b"
)
_COLUMNS = ["place", *re.findall(r"\w+", JOURNAL_COLUMNS)[1:]]
_NAMES = ", ".join(_COLUMNS)
_TYPES = {
    **dict.fromkeys(("place", "total_input", "total_output", "input_tokens", "output_tokens"), "bigint"),
    **dict.fromkeys(("written_at", "total_cost", "at", "cost", "elapsed"), "float8"),
}
# An untyped NULL would be taken for text where a statement selects it.
_TYPED = ", ".join(f"?::{_TYPES.get(name, 'text')}" for name in _COLUMNS)

# The key of an owner's lock is the table's oid and the run's number, so schemas of one database do not collide.
_KEY = "('quire_runs'::regclass::oid::bigint << 32) | n"
_LOCKS = """
    locktype = 'advisory' AND granted AND objsubid = 1 AND classid = 'quire_runs'::regclass::oid
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
# Takes the owner's lock for the transaction: a process that drives a run holds it already, and one that is about to
# drive it is refused.
_ENDED = f"""
    SELECT id, n, pg_try_advisory_xact_lock({_KEY}) FROM (
        SELECT id, n FROM runs WHERE {{}} ORDER BY n FOR UPDATE SKIP LOCKED
    ) ended
"""
_LAST_ROW = "FROM journal j WHERE j.run = r.n ORDER BY place DESC LIMIT 1"
OWNER_ALIVE = "CASE WHEN r.status = 'running' THEN r.n IN (SELECT objid FROM owners) ELSE FALSE END"


class PostgresStatements(Statements):
    # All locks are looked through once, and only where a run is running. The last column: the owner is alive.
    OWNERS = f"WITH owners AS MATERIALIZED (SELECT objid::bigint FROM pg_locks WHERE {_LOCKS})"
    RUNS = f"""
        {OWNERS}
        SELECT {RUN_COLUMNS}, {OWNER_ALIVE}
        FROM runs r LEFT JOIN pins p ON p.run = r.n
            LEFT JOIN LATERAL (SELECT * FROM journal j WHERE j.run = r.n ORDER BY place DESC LIMIT 1) t ON TRUE
    """
    LAST_COST = f"coalesce((SELECT coalesce(total_cost, -1.0) {_LAST_ROW}), 0.0)"
    LAST_AT = f"(SELECT written_at {_LAST_ROW})"
    SPENT = f"""
        SELECT coalesce(sum(t.total_cost), 0.0),
            count(CASE WHEN t.place IS NOT NULL AND t.total_cost IS NULL THEN 1 END), {COUNTED}
        FROM runs r LEFT JOIN LATERAL (SELECT place, total_cost {_LAST_ROW}) t ON TRUE
        WHERE r.created_at >= ? AND r.created_at < ?
    """
    SPENDING = (
        f"SELECT {COSTS} FROM runs r LEFT JOIN LATERAL (SELECT written_at, total_cost {_LAST_ROW}) t ON TRUE {PERIOD}"
    )
    LOCK_ADMISSION = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' quire ' || ?, 0))"
    WAITED = Statements.WAITED.format(of_run="j.run = r.n")
    FORK_OF = f"""
        CASE WHEN strpos({PINS}, ?) > 0 THEN {PINS}::json #>> '{{origin,run}}' = ? ELSE FALSE END
    """
    HAS_WORD = f"""
        CASE WHEN {WORDS} ILIKE ? ESCAPE '\\' THEN TRUE
            WHEN {PINS} ILIKE ? ESCAPE '\\' THEN ({PINS}::json -> 'inputs')::text ILIKE ? ESCAPE '\\'
            ELSE FALSE END
    """
    NEW_RUN = f"{Statements.NEW_RUN} RETURNING n"
    CLAIM = f"{Statements.CLAIM} RETURNING 1"
    HELD_TRIGGER = f"{Statements.HELD_TRIGGER} FOR UPDATE"
    STATE_OF_RUN = "SELECT status, expires_at FROM runs WHERE id = ? FOR NO KEY UPDATE"

    APPEND = f"INSERT INTO journal (run, {_NAMES}) VALUES (?, {', '.join('?' * len(_COLUMNS))})"
    # By itself this is a whole transaction. It writes nothing if the owner has something to learn (a cancellation, an
    # answer, a new owner): then a longer transaction finds out what it is.
    APPEND_ALONE = f"""
        WITH mine AS (
            SELECT n, id FROM runs WHERE n = ? AND epoch = ? AND NOT cancel_requested FOR NO KEY UPDATE
        )
        INSERT INTO journal (run, {_NAMES})
        SELECT mine.n, {_TYPED} FROM mine
        WHERE coalesce((SELECT max(place) FROM journal j WHERE j.run = mine.n), 0) = ?
            AND NOT EXISTS (SELECT 1 FROM questions q WHERE q.run = mine.id AND q.state = 'answered')
    """
    # In order, so that two writers that lock several rows never deadlock.
    LOCK_ROWS = "SELECT n FROM runs WHERE n = ANY(?) ORDER BY n FOR NO KEY UPDATE"
    LEARN = """
        SELECT r.n, r.epoch, r.cancel_requested,
            ARRAY(SELECT path FROM questions q WHERE q.run = r.id AND q.state = 'answered'),
            coalesce((SELECT max(place) FROM journal j WHERE j.run = r.n), 0)
        FROM runs r WHERE r.n = ANY(?)
    """

    TAKE = f"SELECT n, pg_try_advisory_lock({_KEY}) FROM runs WHERE id = ?"
    TAKE_BACK = f"SELECT n, pg_try_advisory_lock({_KEY}) FROM unnest(?::bigint[]) AS n"
    DROP = f"SELECT pg_advisory_unlock({_KEY}) FROM unnest(?::bigint[]) AS n"
    # The server may consider a connection alive that this process gave up; then it still holds the locks.
    END_PREDECESSORS = """
        SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity
        WHERE application_name = ? AND usename = current_user AND pid != pg_backend_pid()
    """
    EVICT = f"""
        SELECT pg_terminate_backend(pid, 2000) FROM runs r JOIN pg_locks l ON l.objid::bigint = r.n
        WHERE r.id = ? AND r.epoch = ? AND {_LOCKS}
    """

    EFFECTS = f"""
        SELECT {EFFECT_COLUMNS} FROM journal j JOIN runs r ON r.n = j.run
        WHERE r.id = ? AND j.path IS NOT NULL ORDER BY j.place
    """
    EFFECT_BRIEFS = f"""
        SELECT {BRIEF_COLUMNS}, coalesce(octet_length(j.value),
            (SELECT octet_length(b.body) FROM blobs b WHERE b.sha256 = j.blob))
        FROM journal j JOIN runs r ON r.n = j.run WHERE r.id = ? AND j.path IS NOT NULL ORDER BY j.place
    """
    ONE_EFFECT = f"""
        SELECT {EFFECT_COLUMNS} FROM journal j JOIN runs r ON r.n = j.run
        WHERE r.id = ? AND j.path = ? ORDER BY j.place DESC LIMIT 1
    """
    EVENTS_FROM = f"""
        SELECT j.place, {EVENT_COLUMNS} FROM journal j JOIN runs r ON r.n = j.run
        WHERE r.id = ? AND j.place >= ? AND (j.events IS NOT NULL OR j.events_blob IS NOT NULL)
        ORDER BY j.place LIMIT ?
    """
    EVENTS_BEFORE = f"""
        SELECT j.place, {EVENT_COLUMNS} FROM journal j JOIN runs r ON r.n = j.run
        WHERE r.id = ? AND j.place < ? AND (j.events IS NOT NULL OR j.events_blob IS NOT NULL)
        ORDER BY j.place DESC LIMIT ?
    """
    SEALED_JOURNAL = f"""
        SELECT {_NAMES}, (SELECT body FROM blobs WHERE sha256 = j.blob),
            (SELECT body FROM blobs WHERE sha256 = j.events_blob)
        FROM journal j WHERE j.run = ? ORDER BY j.place
    """
    SEAL_ROW = "UPDATE journal SET seal = ? WHERE run = ? AND place = ?"

    # Readers and writers without texts continue; a transaction that has added a text is waited for.
    KEEP_TEXTS = "LOCK TABLE quire_blobs IN SHARE ROW EXCLUSIVE MODE"
    ENDED_BEFORE = _ENDED.format("""
        (status = ANY(?) AND greatest(updated_at, taken_in_at) < ?)
        OR (? AND status IN ('paused', 'awaiting_input') AND expires_at < ?)
    """)
    ENDED_RUNS = _ENDED.format("""
        id = ANY(?) AND (status = ANY(?) OR (status IN ('paused', 'awaiting_input') AND expires_at < ?))
    """)
    REMOVE_JOURNAL = """
        WITH removed AS (DELETE FROM journal j WHERE run = ANY(?) RETURNING path, pg_column_size(j.*) AS size)
        SELECT count(path), coalesce(sum(size), 0) FROM removed
    """
    REMOVE_PINS = "DELETE FROM pins WHERE run = ANY(?)"
    REMOVE_RUNS = "DELETE FROM runs WHERE n = ANY(?)"
    REMOVE_QUESTIONS = "DELETE FROM questions WHERE run = ANY(?)"
    REMOVE_LETTERS = "DELETE FROM letters WHERE recipient = ANY(?)"
    # The thread of an existing run counts its letters, so their positions must not change.
    REMOVE_STRAY_LETTERS = "DELETE FROM letters WHERE run = ANY(?) AND recipient NOT IN (SELECT id FROM runs)"
    # A hash may occur anywhere in the pins: every string that looks like one counts, so that no text is lost.
    REMOVE_TEXTS = """
        WITH referred AS (
            SELECT blob AS sha256 FROM journal WHERE blob IS NOT NULL
            UNION SELECT events_blob FROM journal WHERE events_blob IS NOT NULL
            UNION SELECT blob FROM pins WHERE blob IS NOT NULL
            UNION SELECT hash[1] FROM pins p,
                LATERAL regexp_matches(
                    coalesce(p.value, (SELECT body FROM blobs WHERE sha256 = p.blob)), '[0-9a-f]{64}', 'g'
                ) AS hash
        ), removed AS (
            DELETE FROM blobs b WHERE NOT EXISTS (SELECT 1 FROM referred r WHERE r.sha256 = b.sha256)
            RETURNING octet_length(body) AS size
        )
        SELECT count(*), coalesce(sum(size), 0) FROM removed
    """

    @staticmethod
    def translate(sql: str) -> str:
        """Return a statement with psycopg's marks and Quire's tables. A text inside another query is JSON, which never
        holds the NUL that PostgreSQL's text cannot."""
        sql = sql.replace("(SELECT body FROM", "(SELECT convert_from(body, 'UTF8') FROM")
        return _TABLE.sub(r"\1 quire_\2", sql).replace("?", "%s")

    @staticmethod
    def of_schema_before(sql: str) -> str:
        """Return a query for tables that lack the columns of the last migration."""
        added = re.findall(r"ADD COLUMN (\w+) (.+)", "\n".join(MIGRATIONS[-1]))
        missing = ", ".join(f"NULL::{type} AS {name}" for name, type in added)
        runs = f"WITH quire_runs AS NOT MATERIALIZED (SELECT *, {missing} FROM quire_runs)"
        return f"{runs}, {sql.lstrip()[5:]}" if sql.lstrip().startswith("WITH ") else f"{runs} {sql}"

    @staticmethod
    def body(text: str) -> bytes:
        return text.encode()

    @staticmethod
    def first_place(number: int) -> int:
        return 0


Migration: TypeAlias = tuple[str, ...]
Connection: TypeAlias = "AsyncConnection[tuple[Any, ...]]"

_LOCK = "SELECT pg_advisory_xact_lock(x'51554952'::bigint << 32 | hashtext(current_schema())::bit(32)::bigint)"
"""Lets one program at a time migrate a schema. The number spells "QUIR", to differ from the locks of other programs."""

# Read from the catalogue's table: `to_regclass` would answer from what this session cached on its first look.
HAS_TABLES = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'quire_schema'"

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

_LABELS: Migration = (
    """
    ALTER TABLE quire_runs ADD COLUMN subject TEXT COLLATE "C", ADD COLUMN name TEXT COLLATE "C", ADD COLUMN note TEXT,
        ADD COLUMN seen_at DOUBLE PRECISION, ADD COLUMN until TEXT
    """,
)
"""Outside the seals: nothing is decided by them. `until` repeats a pin, which is sealed, for lists."""

_OPERATION = operation_tables("quire_", 'TEXT COLLATE "C"', "DOUBLE PRECISION", "BIGINT")

MIGRATIONS: Sequence[Migration] = (_FIRST, _TAKEN_IN, _SEALS, _ANSWERED_BY, _HTTP_REPLIES, _LABELS, _OPERATION)
"""A released migration is never edited: the next one is appended."""


async def migrate(connection: Connection, place: str, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Migrate the tables to the version of this program. Raises `StoreError` if a newer program has written them."""
    if await checked_version(connection, place, migrations) == len(migrations):
        return
    async with connection.transaction():
        await connection.execute(_LOCK)
        # Another process may have migrated between the check above and the lock.
        version = await checked_version(connection, place, migrations)
        if version == len(migrations):
            return
        for migration in migrations[version:]:
            for statement in migration:
                await connection.execute(statement)
        await connection.execute("CREATE TABLE IF NOT EXISTS quire_schema (version INTEGER NOT NULL)")
        await connection.execute("DELETE FROM quire_schema")
        await connection.execute("INSERT INTO quire_schema VALUES (%s)", (len(migrations),))


async def checked_version(connection: Connection, place: str, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Return the version of the tables; 0 without any. Raises `StoreError` if a newer program has written them."""
    if await (await connection.execute(HAS_TABLES)).fetchone() is None:
        return 0
    row = await (await connection.execute("SELECT version FROM quire_schema")).fetchone()
    version = 0 if row is None else int(row[0])
    if version > len(migrations):
        raise StoreError(
            f"{place} was written by a newer Quire (schema {version}, this one knows {len(migrations)}): upgrade Quire"
        )
    return version
