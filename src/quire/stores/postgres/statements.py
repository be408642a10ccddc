"""The SQL of the PostgreSQL store.

A writer locks the row of its run in one statement and reads in the next, because a statement sees the database as it
was before it began to wait. Each row of the journal is appended on two conditions: the epoch is still the writer's, and
the journal still ends where the writer left it. So a write with an unknown outcome may be sent again: it is stored
once, or found to be stored already.
"""

# Only constants of this package are put together here, never values.
# ruff: noqa: S608

from __future__ import annotations

_CELLS: tuple[tuple[str, str], ...] = (
    ("place", "bigint"),
    ("written_at", "float8"),
    ("position", "text"),
    ("total_input", "bigint"),
    ("total_output", "bigint"),
    ("total_cost", "float8"),
    ("path", "text"),
    ("kind", "text"),
    ("state", "text"),
    ("request", "text"),
    ("at", "float8"),
    ("value", "text"),
    ("blob", "text"),
    ("failure_kind", "text"),
    ("failure_message", "text"),
    ("input_tokens", "bigint"),
    ("output_tokens", "bigint"),
    ("cost", "float8"),
    ("elapsed", "float8"),
    ("delays", "text"),
    ("answered_by", "text"),
    ("events", "text"),
    ("events_blob", "text"),
    ("seal", "text"),
)
_COLUMNS = ", ".join(name for name, _ in _CELLS)
_PLACES = ", ".join(["%s"] * len(_CELLS))
# An untyped NULL would be taken for text where a statement selects it.
_TYPED = ", ".join(f"%s::{type}" for _, type in _CELLS)

NEW_RUN = """
    INSERT INTO quire_runs (id, title, format, document, created_at, updated_at) VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT (id) DO NOTHING RETURNING n
"""
TAKEN_IN = "UPDATE quire_runs SET taken_in_at = %s WHERE n = %s"
NEW_PINS = "INSERT INTO quire_pins (run, value, blob, seal) VALUES (%s, %s, %s, %s)"
MADE = "SELECT title, format, document, created_at FROM quire_runs WHERE id = %s"
NUMBER = "SELECT n FROM quire_runs WHERE id = %s"
PUT_BLOB = "INSERT INTO quire_blobs (sha256, body) VALUES (%s, %s) ON CONFLICT DO NOTHING"
TEXT = "SELECT body FROM quire_blobs WHERE sha256 = %s"

APPEND = f"INSERT INTO quire_journal (run, {_COLUMNS}) VALUES (%s, {_PLACES})"
# By itself this is a whole transaction. It writes nothing if the owner has something to learn (a cancellation, an
# answer, a new owner): then a longer transaction finds out what it is.
APPEND_ALONE = f"""
    WITH mine AS (
        SELECT n, id FROM quire_runs WHERE n = %s AND epoch = %s AND NOT cancel_requested FOR NO KEY UPDATE
    )
    INSERT INTO quire_journal (run, {_COLUMNS})
    SELECT mine.n, {_TYPED} FROM mine
    WHERE coalesce((SELECT max(place) FROM quire_journal j WHERE j.run = mine.n), 0) = %s
        AND NOT EXISTS (SELECT 1 FROM quire_questions q WHERE q.run = mine.id AND q.state = 'answered')
"""
# In order, so that two writers that lock several rows never deadlock.
LOCK_ROWS = "SELECT n FROM quire_runs WHERE n = ANY(%s) ORDER BY n FOR NO KEY UPDATE"
LEARN = """
    SELECT r.n, r.epoch, r.cancel_requested,
        ARRAY(SELECT path FROM quire_questions q WHERE q.run = r.id AND q.state = 'answered'),
        coalesce((SELECT max(place) FROM quire_journal j WHERE j.run = r.n), 0)
    FROM quire_runs r WHERE r.n = ANY(%s)
"""
SET_STATUS = """
    UPDATE quire_runs SET status = %s, failure_kind = %s, failure_message = %s, ended_by = %s, expires_at = %s,
        updated_at = %s, anchor = %s, seal = %s
    WHERE n = %s
"""
SET_ANCHOR = "UPDATE quire_runs SET anchor = %s, seal = %s WHERE n = %s"
# Asking again in the same words changes nothing: an answer that came in between must not be lost.
PUT_QUESTION = """
    INSERT INTO quire_questions AS q
        (run, path, label, title, kind, prompt, options, preset, hash, asked_at, expires_at, seal)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (run, path) DO UPDATE SET
        label = excluded.label, title = excluded.title, kind = excluded.kind, prompt = excluded.prompt,
        options = excluded.options, preset = excluded.preset, hash = excluded.hash,
        asked_at = excluded.asked_at, expires_at = excluded.expires_at, seal = excluded.seal, state = 'open',
        answer = NULL, answer_seal = NULL, answered_by = NULL
    WHERE q.hash != excluded.hash OR q.state NOT IN ('open', 'answered')
"""
CONSUME = "UPDATE quire_questions SET state = 'consumed' WHERE run = %s AND path = %s"
# Also an answered one: its answer will never be consumed, and the run could never park again.
WITHDRAW = """
    UPDATE quire_questions SET state = 'withdrawn' WHERE run = %s AND path = %s AND state IN ('open', 'answered')
"""
WITHDRAW_OPEN = "UPDATE quire_questions SET state = 'withdrawn' WHERE run = %s AND state = 'open'"
ANSWER = """
    UPDATE quire_questions SET state = 'answered', answer = %s, answered_by = %s, answer_seal = %s
    WHERE run = %s AND path = %s
"""
PUT_LETTER = "INSERT INTO quire_letters (recipient, run, text, at, seal) VALUES (%s, %s, %s, %s, %s)"
LETTERS = "SELECT recipient, run, text, at, seal FROM quire_letters WHERE recipient = %s ORDER BY n"
ALL_LETTERS = "SELECT recipient, run, text, at, seal FROM quire_letters ORDER BY n"

# The key of an owner's lock is the table's oid and the run's number, so schemas of one database do not collide.
_KEY = "('quire_runs'::regclass::oid::bigint << 32) | n"
TAKE = f"SELECT n, pg_try_advisory_lock({_KEY}) FROM quire_runs WHERE id = %s"
TAKE_BACK = f"SELECT n, pg_try_advisory_lock({_KEY}) FROM unnest(%s::bigint[]) AS n"
DROP = f"SELECT pg_advisory_unlock({_KEY}) FROM unnest(%s::bigint[]) AS n"
# The server may consider a connection alive that this process gave up; then it still holds the locks.
END_PREDECESSORS = """
    SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity
    WHERE application_name = %s AND usename = current_user AND pid != pg_backend_pid()
"""
EVICT = """
    SELECT pg_terminate_backend(l.pid, 2000) FROM quire_runs r JOIN pg_locks l ON l.objid::bigint = r.n
    WHERE r.id = %s AND r.epoch = %s AND l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
        AND l.classid = 'quire_runs'::regclass::oid
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
AT_EPOCH = "SELECT 1 FROM quire_runs WHERE id = %s AND epoch = %s"
RUNS_ANSWERED = """
    SELECT q.run FROM quire_questions q JOIN quire_runs r ON r.id = q.run
    WHERE q.state = 'answered' AND r.status = 'awaiting_input' GROUP BY q.run ORDER BY min(q.asked_at)
"""

NEXT_EPOCH = "UPDATE quire_runs SET epoch = epoch + 1, cancel_requested = FALSE WHERE id = %s"
ASK_CANCEL = "UPDATE quire_runs SET cancel_requested = TRUE WHERE id = %s"
CANCEL_ASKED = "SELECT 1 FROM quire_runs WHERE id = %s AND cancel_requested"
CANCELLED = "UPDATE quire_runs SET epoch = epoch + 1, cancel_requested = FALSE WHERE id = %s"
STATE_OF_RUN = "SELECT status, expires_at FROM quire_runs WHERE id = %s FOR NO KEY UPDATE"
STATE_OF_QUESTION = "SELECT state, hash, answer, seal FROM quire_questions WHERE run = %s AND path = %s"

_TAIL = "LEFT JOIN LATERAL (SELECT * FROM quire_journal j WHERE j.run = r.n ORDER BY place DESC LIMIT 1) t ON TRUE"
# All locks are looked through once, and only where a run is running.
_OWNERS = """
    WITH owners AS MATERIALIZED (
        SELECT objid::bigint FROM pg_locks
        WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND classid = 'quire_runs'::regclass::oid
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    )
"""
_ALIVE = "CASE WHEN r.status = 'running' THEN r.n IN (SELECT objid FROM owners) ELSE FALSE END"
_JSON = "(SELECT convert_from(body, 'UTF8') FROM quire_blobs WHERE sha256 = {})"
# In the order of `row_decoder.run_row`, then a boolean: the owner is alive.
_RUNS = f"""
    {_OWNERS}
    SELECT r.id, r.title, r.format, r.document, r.status, coalesce(t.position, ''), r.created_at,
        greatest(r.updated_at, t.written_at), r.expires_at, coalesce(t.total_input, 0), coalesce(t.total_output, 0),
        CASE WHEN t.place IS NULL THEN 0.0 ELSE t.total_cost END, r.failure_kind, r.failure_message, r.ended_by,
        r.epoch, coalesce(p.value, {_JSON.format("p.blob")}), {_ALIVE}
    FROM quire_runs r LEFT JOIN quire_pins p ON p.run = r.n {_TAIL}
"""
_NEWEST = "ORDER BY r.created_at DESC, r.n DESC"
ONE_RUN = f"{_RUNS} WHERE r.id = %s"
LIST = f"{_RUNS} {_NEWEST} LIMIT %s"
LIST_STATUS = f"{_RUNS} WHERE r.status = %s {_NEWEST} LIMIT %s"
LIST_RUNNING = f"{_RUNS} WHERE r.status = 'running' AND {_ALIVE} = %s {_NEWEST} LIMIT %s"
LIST_WAITING = f"{_RUNS} WHERE r.status = %s AND (r.expires_at IS NULL OR r.expires_at >= %s) {_NEWEST} LIMIT %s"
LIST_EXPIRED = f"""
    {_RUNS} WHERE r.status = 'expired' OR (r.status IN ('paused', 'awaiting_input') AND r.expires_at < %s)
    {_NEWEST} LIMIT %s
"""
FIND = f"SELECT r.id FROM quire_runs r WHERE r.id >= %s AND r.id < %s {_NEWEST} LIMIT 10"

# In the order of `row_decoder.effect_record`.
EFFECTS = f"""
    SELECT j.path, j.kind, j.state, j.request, j.at, coalesce(j.value, {_JSON.format("j.blob")}),
        j.failure_kind, j.failure_message, j.input_tokens, j.output_tokens, j.cost, j.elapsed, j.delays, j.answered_by
    FROM quire_journal j JOIN quire_runs r ON r.n = j.run
    WHERE r.id = %s AND j.path IS NOT NULL ORDER BY j.place
"""
_TOLD = """
    FROM quire_journal j JOIN quire_runs r ON r.n = j.run
    WHERE r.id = %s AND j.place >= %s AND (j.events IS NOT NULL OR j.events_blob IS NOT NULL) ORDER BY j.place
"""
_EVENTS = f"coalesce(j.events, {_JSON.format('j.events_blob')})"
# In the order of `row_decoder.events`.
EVENTS = f"""
    SELECT {_EVENTS}, j.path, j.kind, j.state, j.at, j.elapsed, j.input_tokens, j.output_tokens, j.cost,
        j.failure_kind, j.failure_message, j.answered_by
    {_TOLD}
"""
# In the order of `seals.StoredRun`, after the run's number and epoch.
SEALED_RUN = f"""
    SELECT r.n, r.epoch, r.id, r.title, r.format, r.document, r.created_at,
        coalesce(p.value, {_JSON.format("p.blob")}), p.seal,
        r.status, r.failure_kind, r.failure_message, r.ended_by, r.expires_at, r.anchor, r.seal
    FROM quire_runs r LEFT JOIN quire_pins p ON p.run = r.n WHERE r.id = %s
"""
SEALED_JOURNAL = f"""
    SELECT {_COLUMNS}, {_JSON.format("j.blob")}, {_JSON.format("j.events_blob")}
    FROM quire_journal j WHERE j.run = %s ORDER BY j.place
"""
SEAL_PINS = "UPDATE quire_pins SET seal = %s WHERE run = %s"
SEAL_ROW = "UPDATE quire_journal SET seal = %s WHERE run = %s AND place = %s"
SEAL_QUESTION = "UPDATE quire_questions SET seal = %s WHERE run = %s AND path = %s"
SEAL_ANSWER = "UPDATE quire_questions SET answer_seal = %s WHERE run = %s AND path = %s"

# In the order of `row_decoder.question` and of `row_decoder.answer`.
_QUESTION = """
    q.run, q.path, q.label, q.title, q.kind, q.prompt, q.options, q.preset, q.hash, q.asked_at,
    coalesce(r.expires_at, q.expires_at)
"""
QUESTION = f"""
    SELECT {_QUESTION} FROM quire_questions q JOIN quire_runs r ON r.id = q.run WHERE q.run = %s AND q.path = %s
"""
ASKED = f"""
    SELECT {_QUESTION}, q.seal FROM quire_questions q JOIN quire_runs r ON r.id = q.run
    WHERE q.run = %s AND q.state IN ('open', 'answered') ORDER BY q.asked_at, q.path
"""
_OPEN = f"""
    SELECT {_QUESTION} FROM quire_questions q JOIN quire_runs r ON r.id = q.run
    WHERE q.state = 'open' AND (
        r.status = 'running'
        OR (r.status IN ('paused', 'awaiting_input') AND (r.expires_at IS NULL OR r.expires_at >= %s))
    )
"""
QUESTIONS = f"{_OPEN} ORDER BY q.asked_at, q.run, q.path"
QUESTIONS_OF_RUN = f"{_OPEN} AND q.run = %s ORDER BY q.asked_at, q.path"
ANSWERS = """
    SELECT path, hash, answer, answered_by, answer_seal FROM quire_questions
    WHERE run = %s AND state = 'answered' ORDER BY asked_at, path
"""

# Readers and writers without texts go on; a transaction that has added a text is waited for.
KEEP_TEXTS = "LOCK TABLE quire_blobs IN SHARE ROW EXCLUSIVE MODE"
# Takes the owner's lock for the transaction: a process that drives a run holds it already, and one that is about to
# drive it is refused.
ENDED_BEFORE = f"""
    SELECT id, n, pg_try_advisory_xact_lock({_KEY}) FROM (
        SELECT id, n FROM quire_runs
        WHERE (status = ANY(%s) AND greatest(updated_at, taken_in_at) < %s)
            OR (%s AND status IN ('paused', 'awaiting_input') AND expires_at < %s)
        ORDER BY n FOR UPDATE SKIP LOCKED
    ) ended
"""
REMOVE_JOURNAL = """
    WITH removed AS (DELETE FROM quire_journal j WHERE run = ANY(%s) RETURNING path, pg_column_size(j.*) AS size)
    SELECT count(path), coalesce(sum(size), 0) FROM removed
"""
REMOVE_PINS = "DELETE FROM quire_pins WHERE run = ANY(%s)"
REMOVE_RUNS = "DELETE FROM quire_runs WHERE n = ANY(%s)"
REMOVE_QUESTIONS = "DELETE FROM quire_questions WHERE run = ANY(%s)"
REMOVE_LETTERS = "DELETE FROM quire_letters WHERE recipient = ANY(%s)"
# The thread of an existing run counts its letters, so their positions must not change.
REMOVE_STRAY_LETTERS = """
    DELETE FROM quire_letters WHERE run = ANY(%s) AND recipient NOT IN (SELECT id FROM quire_runs)
"""
# A hash may occur anywhere in the pins: every string that looks like one counts, so that no text is lost.
REMOVE_TEXTS = f"""
    WITH referred AS (
        SELECT blob AS sha256 FROM quire_journal WHERE blob IS NOT NULL
        UNION SELECT events_blob FROM quire_journal WHERE events_blob IS NOT NULL
        UNION SELECT blob FROM quire_pins WHERE blob IS NOT NULL
        UNION SELECT hash[1] FROM quire_pins p,
            LATERAL regexp_matches(coalesce(p.value, {_JSON.format("p.blob")}), '[0-9a-f]{{64}}', 'g') AS hash
    ), removed AS (
        DELETE FROM quire_blobs b WHERE NOT EXISTS (SELECT 1 FROM referred r WHERE r.sha256 = b.sha256)
        RETURNING octet_length(body) AS size
    )
    SELECT count(*), coalesce(sum(size), 0) FROM removed
"""
