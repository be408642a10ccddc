"""The SQL that only the PostgreSQL store runs, and the form in which it runs the shared statements.

A writer locks the row of its run in one statement and reads in the next, because a statement sees the database as it
was before it began to wait. Each row of the journal is appended on two conditions: the epoch is still the writer's, and
the journal still ends where the writer left it. So a write with an unknown outcome may be sent again: it is stored
once, or found to be stored already.
"""

# Only constants of this package are put together here, never values.
# ruff: noqa: S608

from __future__ import annotations

import re

from quire.stores.row_decoder import BRIEF_COLUMNS, EFFECT_COLUMNS, EVENT_COLUMNS, RUN_COLUMNS
from quire.stores.rows import JOURNAL_COLUMNS
from quire.stores.statements import Statements

_TABLE = re.compile(r"\b(FROM|JOIN|INTO|UPDATE) (runs|pins|blobs|journal|questions|letters|http_replies)\b")
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
_PINS = "coalesce(p.value, (SELECT body FROM blobs WHERE sha256 = p.blob))"
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
    SPENT = """
        SELECT count(*), coalesce(sum(t.total_cost), 0.0),
            count(*) - count(CASE WHEN t.place IS NOT NULL AND t.total_cost IS NULL THEN 1 END)
        FROM runs r LEFT JOIN LATERAL
            (SELECT place, total_cost FROM journal j WHERE j.run = r.n ORDER BY place DESC LIMIT 1) t ON TRUE
        WHERE r.created_at >= ?
    """
    LIST_RUNNING = f"""
        {RUNS} WHERE r.status = 'running' AND {OWNER_ALIVE} = ? ORDER BY r.created_at DESC, r.n DESC LIMIT ?
    """
    FORK_OF = f"""
        CASE WHEN strpos({_PINS}, ?) > 0 THEN {_PINS}::json #>> '{{origin,run}}' = ? ELSE FALSE END
    """
    HAS_WORD = f"""
        CASE WHEN r.id || ' ' || r.title || ' ' || r.document || ' ' || coalesce(r.failure_message, '')
                ILIKE ? ESCAPE '\\' THEN TRUE
            WHEN {_PINS} ILIKE ? ESCAPE '\\' THEN ({_PINS}::json -> 'inputs')::text ILIKE ? ESCAPE '\\'
            ELSE FALSE END
    """
    NEW_RUN = """
        INSERT INTO runs (id, title, format, document, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (id) DO NOTHING RETURNING n
    """
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
    EVENTS = f"""
        SELECT {EVENT_COLUMNS} FROM journal j JOIN runs r ON r.n = j.run
        WHERE r.id = ? AND j.place >= ? AND (j.events IS NOT NULL OR j.events_blob IS NOT NULL) ORDER BY j.place
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

    # Readers and writers without texts go on; a transaction that has added a text is waited for.
    KEEP_TEXTS = "LOCK TABLE quire_blobs IN SHARE ROW EXCLUSIVE MODE"
    # Takes the owner's lock for the transaction: a process that drives a run holds it already, and one that is about
    # to drive it is refused.
    ENDED_BEFORE = f"""
        SELECT id, n, pg_try_advisory_xact_lock({_KEY}) FROM (
            SELECT id, n FROM runs
            WHERE (status = ANY(?) AND greatest(updated_at, taken_in_at) < ?)
                OR (? AND status IN ('paused', 'awaiting_input') AND expires_at < ?)
            ORDER BY n FOR UPDATE SKIP LOCKED
        ) ended
    """
    ENDED_RUNS = f"""
        SELECT id, n, pg_try_advisory_xact_lock({_KEY}) FROM (
            SELECT id, n FROM runs
            WHERE id = ANY(?)
                AND (status = ANY(?) OR (status IN ('paused', 'awaiting_input') AND expires_at < ?))
            ORDER BY n FOR UPDATE SKIP LOCKED
        ) ended
    """
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
    def body(text: str) -> bytes:
        return text.encode()

    @staticmethod
    def first_place(number: int) -> int:
        return 0
