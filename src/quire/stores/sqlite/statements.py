"""The SQL of the SQLite store. The texts are constant, so sqlite3 prepares each of them once for a connection."""

# Only constants of this package are put together here, never values.
# ruff: noqa: S608

from __future__ import annotations

from quire.stores.row_decoder import EFFECT_COLUMNS, EVENT_COLUMNS, QUESTION_COLUMNS, RUN_COLUMNS
from quire.stores.rows import JOURNAL_COLUMNS, PLACE_BITS

NEW_RUN = "INSERT INTO runs (id, title, format, document, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)"
TAKEN_IN = "UPDATE runs SET taken_in_at = ? WHERE n = ?"
NEW_PINS = "INSERT INTO pins (run, value, blob, seal) VALUES (?, ?, ?, ?)"
NUMBER = "SELECT n FROM runs WHERE id = ?"
NUMBER_AND_EPOCH = "SELECT n, epoch FROM runs WHERE id = ?"
PUT_BLOB = "INSERT OR IGNORE INTO blobs (sha256, body) VALUES (?, ?)"
TEXT = "SELECT body FROM blobs WHERE sha256 = ?"

APPEND = f"INSERT INTO journal ({JOURNAL_COLUMNS}) VALUES ({', '.join('?' * (JOURNAL_COLUMNS.count(',') + 1))})"
# By itself this is a whole transaction. It writes nothing if the owner has something to learn (a cancellation, an
# answer, a new owner): then a longer transaction finds out what it is.
APPEND_ALONE = f"""
    INSERT INTO journal ({JOURNAL_COLUMNS})
    SELECT {", ".join("?" * (JOURNAL_COLUMNS.count(",") + 1))} FROM runs r
    WHERE r.n = ? AND r.epoch = ? AND NOT r.cancel_requested
        AND NOT EXISTS (SELECT 1 FROM questions q WHERE q.run = r.id AND q.state = 'answered')
"""
SET_STATUS = """
    UPDATE runs SET status = ?, failure_kind = ?, failure_message = ?, ended_by = ?, expires_at = ?, updated_at = ?,
        anchor = ?, seal = ?
    WHERE id = ?
"""
SET_ANCHOR = "UPDATE runs SET anchor = ?, seal = ? WHERE id = ?"
# Asking again in the same words changes nothing: an answer that came in between must not be lost.
PUT_QUESTION = """
    INSERT INTO questions (run, path, label, title, kind, prompt, options, preset, hash, asked_at, expires_at, seal)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (run, path) DO UPDATE SET
        label = excluded.label, title = excluded.title, kind = excluded.kind, prompt = excluded.prompt,
        options = excluded.options, preset = excluded.preset, hash = excluded.hash,
        asked_at = excluded.asked_at, expires_at = excluded.expires_at, seal = excluded.seal, state = 'open',
        answer = NULL, answer_seal = NULL, answered_by = NULL
    WHERE hash != excluded.hash OR state NOT IN ('open', 'answered')
"""
CONSUME = "UPDATE questions SET state = 'consumed' WHERE run = ? AND path = ?"
# Also an answered one: its answer will never be consumed, and the run could never park again.
WITHDRAW = "UPDATE questions SET state = 'withdrawn' WHERE run = ? AND path = ? AND state IN ('open', 'answered')"
WITHDRAW_OPEN = "UPDATE questions SET state = 'withdrawn' WHERE run = ? AND state = 'open'"
ANSWER = """
    UPDATE questions SET state = 'answered', answer = ?, answered_by = ?, answer_seal = ?
    WHERE run = ? AND path = ?
"""
LEARN = """
    SELECT epoch, cancel_requested, EXISTS (SELECT 1 FROM questions WHERE run = runs.id AND state = 'answered')
    FROM runs WHERE id = ?
"""

PUT_LETTER = "INSERT INTO letters (recipient, run, text, at, seal) VALUES (?, ?, ?, ?, ?)"
LETTERS = "SELECT recipient, run, text, at, seal FROM letters WHERE recipient = ? ORDER BY n"
ALL_LETTERS = "SELECT recipient, run, text, at, seal FROM letters ORDER BY n"

NEXT_EPOCH = "UPDATE runs SET epoch = epoch + 1, cancel_requested = 0 WHERE id = ?"
ASK_CANCEL = "UPDATE runs SET cancel_requested = 1 WHERE id = ?"
CANCEL_ASKED = "SELECT 1 FROM runs WHERE id = ? AND cancel_requested"
CANCELLED = "UPDATE runs SET epoch = epoch + 1, cancel_requested = 0 WHERE id = ?"
EPOCH = "SELECT epoch FROM runs WHERE id = ?"
# In the order of `seals.StoredRun`.
SEALED_RUN = """
    SELECT r.id, r.title, r.format, r.document, r.created_at,
        coalesce(p.value, (SELECT body FROM blobs WHERE sha256 = p.blob)), p.seal,
        r.status, r.failure_kind, r.failure_message, r.ended_by, r.expires_at, r.anchor, r.seal
    FROM runs r LEFT JOIN pins p ON p.run = r.n WHERE r.id = ?
"""
SEALED_JOURNAL = f"""
    SELECT {JOURNAL_COLUMNS}, (SELECT body FROM blobs WHERE sha256 = blob),
        (SELECT body FROM blobs WHERE sha256 = events_blob)
    FROM journal WHERE id BETWEEN ? AND ? ORDER BY id
"""
STATE_OF_RUN = "SELECT status, expires_at FROM runs WHERE id = ?"
STATE_OF_QUESTION = "SELECT state, hash, seal FROM questions WHERE run = ? AND path = ?"
QUESTION = f"SELECT {QUESTION_COLUMNS} FROM questions q JOIN runs r ON r.id = q.run WHERE q.run = ? AND q.path = ?"
ASKED = f"""
    SELECT {QUESTION_COLUMNS}, q.seal FROM questions q JOIN runs r ON r.id = q.run
    WHERE q.run = ? AND q.state IN ('open', 'answered') ORDER BY q.asked_at, q.path
"""
SEAL_QUESTION = "UPDATE questions SET seal = ? WHERE run = ? AND path = ?"
SEAL_ANSWER = "UPDATE questions SET answer_seal = ? WHERE run = ? AND path = ?"
SEAL_PINS = "UPDATE pins SET seal = ? WHERE run = ?"
SEAL_ROW = "UPDATE journal SET seal = ? WHERE id = ?"

_LAST = f"(SELECT max(id) FROM journal WHERE id BETWEEN r.n << {PLACE_BITS} AND ((r.n + 1) << {PLACE_BITS}) - 1)"
_RUNS = f"""
    SELECT {RUN_COLUMNS} FROM runs r LEFT JOIN pins p ON p.run = r.n LEFT JOIN journal t ON t.id = {_LAST}
"""
_NEWEST = "ORDER BY r.created_at DESC, r.n DESC"
ONE_RUN = f"{_RUNS} WHERE r.id = ?"
LIST = f"{_RUNS} {_NEWEST} LIMIT ?"
LIST_STATUS = f"{_RUNS} WHERE r.status = ? {_NEWEST} LIMIT ?"
LIST_WAITING = f"{_RUNS} WHERE r.status = ? AND (r.expires_at IS NULL OR r.expires_at >= ?) {_NEWEST} LIMIT ?"
LIST_EXPIRED = f"""
    {_RUNS} WHERE r.status = 'expired' OR (r.status IN ('paused', 'awaiting_input') AND r.expires_at < ?)
    {_NEWEST} LIMIT ?
"""
RUNNING = f"SELECT r.id FROM runs r WHERE r.status = 'running' {_NEWEST}"
FIND = f"SELECT r.id FROM runs r WHERE r.id >= ? AND r.id < ? {_NEWEST} LIMIT 10"

EFFECTS = f"SELECT {EFFECT_COLUMNS} FROM journal j WHERE j.id BETWEEN ? AND ? AND j.path IS NOT NULL ORDER BY j.id"
_TOLD = "FROM journal WHERE id BETWEEN ? AND ? AND (events IS NOT NULL OR events_blob IS NOT NULL) ORDER BY id"
EVENTS = f"SELECT {EVENT_COLUMNS} {_TOLD}"

_OPEN = f"""
    SELECT {QUESTION_COLUMNS} FROM questions q CROSS JOIN runs r ON r.id = q.run
    WHERE q.state = 'open' AND (
        r.status = 'running'
        OR (r.status IN ('paused', 'awaiting_input') AND (r.expires_at IS NULL OR r.expires_at >= ?))
    )
"""
QUESTIONS = f"{_OPEN} ORDER BY q.asked_at, q.run, q.path"
QUESTIONS_OF_RUN = f"{_OPEN} AND q.run = ? ORDER BY q.asked_at, q.path"
ANSWERS = """
    SELECT path, hash, answer, answered_by, answer_seal FROM questions
    WHERE run = ? AND state = 'answered' ORDER BY asked_at, path
"""
ANSWERED = "SELECT path FROM questions WHERE run = ? AND state = 'answered'"
RUNS_ANSWERED = """
    SELECT q.run FROM questions q JOIN runs r ON r.id = q.run
    WHERE q.state = 'answered' AND r.status = 'awaiting_input' GROUP BY q.run ORDER BY min(q.asked_at)
"""
