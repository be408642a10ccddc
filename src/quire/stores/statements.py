"""The SQL that stores share, in the form of SQLite. Each store adds the statements that its tables need otherwise.

The texts are constant, so a connection prepares each of them once.
"""

# Only constants of this package are put together here, never values.
# ruff: noqa: S608

from __future__ import annotations

from abc import ABC, abstractmethod

from quire.stores.occurrences import EnabledTrigger, Process, Start
from quire.stores.row_decoder import QUESTION_COLUMNS

_Row = type[Start] | type[EnabledTrigger] | type[Process]
_NEWEST = "ORDER BY r.created_at DESC, r.n DESC"
_OF_OPEN = """
    FROM questions q CROSS JOIN runs r
    WHERE r.id = q.run AND q.state = 'open' AND (
        r.status = 'running'
        OR (r.status IN ('paused', 'awaiting_input') AND (r.expires_at IS NULL OR r.expires_at >= ?))
    )
"""
_OPEN = f"SELECT {QUESTION_COLUMNS} {_OF_OPEN}"
_OF_RUNS = {
    "ONE_RUN": "WHERE r.id = ?",
    # The row of a running run does not change with its journal.
    "WRITTEN_SINCE": "WHERE r.updated_at >= ? OR r.taken_in_at >= ? OR r.status = 'running'",
}


WORDS = " || ' ' || ".join(
    f"coalesce(r.{column}, '')" for column in ("id", "title", "document", "failure_message", "subject", "name", "note")
)
COUNTED = ", ".join(
    f"count(CASE WHEN r.until IS NULL{condition} THEN 1 END)"
    for condition in ("", " AND r.status = 'completed'", " AND r.status = 'failed'")
)
COSTS = """
    coalesce(sum(CASE
        WHEN r.status IN ('completed', 'failed', 'cancelled', 'expired') OR r.expires_at < ?
            THEN CASE WHEN t.written_at IS NULL THEN 0.0 ELSE coalesce(t.total_cost, r.reserved, 0.0) END
        WHEN t.total_cost > coalesce(r.reserved, 0.0) THEN t.total_cost
        ELSE coalesce(r.reserved, 0.0) END), 0.0)
"""
"""The cost of ended runs, and the most that the others may cost. Takes the time as of which waits have expired."""
PERIOD = "WHERE r.created_at >= ? AND (? = '' OR r.source = ?)"


def _select(table: str, row: _Row) -> str:
    return f"SELECT {', '.join(row.__struct_fields__)} FROM {table}"


def _insert(table: str, row: _Row) -> str:
    names = row.__struct_fields__
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def _put(table: str, row: _Row) -> str:
    """Write a row whose key is the first column, also over an earlier one."""
    key, *others = row.__struct_fields__
    changes = ", ".join(f"{name} = excluded.{name}" for name in others)
    return f"{_insert(table, row)} ON CONFLICT ({key}) DO UPDATE SET {changes}"


class Statements(ABC):
    """The statements of a store by name. Those without a text here are written by each store."""

    RUNS: str
    """Selects all runs `r`, in the order of `row_decoder.run_row`."""
    ONE_RUN: str
    WRITTEN_SINCE: str
    MARKS = """
        SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM questions WHERE state = 'open'),
            (SELECT coalesce(max(asked_at), 0.0) FROM questions WHERE state = 'open'),
            (SELECT min(created_at) FROM runs WHERE status = 'pending')
    """
    OWNERS = ""
    """Precedes a query that asks whether owners are alive."""
    # Conditions on a run `r` with its pins `p`. Pins are read as JSON only where the text occurs in them at all.
    FORK_OF: str
    """Takes the id of the origin twice."""
    HAS_WORD: str
    """Takes the pattern of a word, and twice its pattern in JSON."""
    ASKS = """
        (r.status = 'running'
            OR (r.status IN ('paused', 'awaiting_input') AND (r.expires_at IS NULL OR r.expires_at >= ?)))
        AND EXISTS (SELECT 1 FROM questions q WHERE q.run = r.id AND q.state = 'open')
    """
    LAST_COST: str
    """The cost of a run; -1 if it is not known."""
    LAST_AT: str
    """The time of the last row of a run's journal."""
    SPENT: str
    """Selects the sum of the known costs of the runs that were started between two times, the number of those whose
    cost is not known, and the numbers of all, completed and failed ones without tries."""
    SPENDING: str
    """Selects `COSTS` of the runs of `PERIOD`."""
    LOCK_ADMISSION = "SELECT ?"
    """Lets one transaction at a time admit runs by what the name stands for; a transaction of SQLite is alone."""
    WAITED = """
        SELECT q.asked_at, j.at - q.asked_at FROM runs r CROSS JOIN journal j CROSS JOIN questions q
        WHERE r.id IN (SELECT run FROM questions WHERE asked_at >= ?) AND {of_run} AND j.kind = 'ask' AND j.state = 'ok'
            AND q.run = r.id AND q.path = j.path AND q.asked_at >= ? ORDER BY q.asked_at DESC LIMIT ?
    """
    """Selects when the newest answered questions were asked, and the seconds that they have waited."""
    SET_LABEL = "UPDATE runs SET name = ?, note = ?, seen_at = ? WHERE id = ?"
    LABEL_OF_RUN = "SELECT name, note, seen_at FROM runs WHERE id = ?"
    FIND = f"SELECT r.id FROM runs r WHERE r.id >= ? AND r.id < ? {_NEWEST} LIMIT 10"

    NEW_RUN = """
        INSERT INTO runs
            (id, title, format, document, created_at, updated_at, subject, name, note, until, source, reserved)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
    """
    """Inserts a run and answers with its number; with nothing if the id is taken."""
    RECENT_PINS = """
        SELECT p.value FROM runs r JOIN pins p ON p.run = r.n
        WHERE r.document = ? AND p.value IS NOT NULL ORDER BY r.created_at DESC, r.n DESC LIMIT ?
    """
    """Leaves out large pins, which are kept with the large texts."""
    MADE = "SELECT title, format, document, created_at FROM runs WHERE id = ?"
    TAKEN_IN = "UPDATE runs SET taken_in_at = ? WHERE n = ?"
    NEW_PINS = "INSERT INTO pins (run, value, blob, seal) VALUES (?, ?, ?, ?)"
    PUT_BLOB = "INSERT INTO blobs (sha256, body) VALUES (?, ?) ON CONFLICT DO NOTHING"
    TEXT = "SELECT body FROM blobs WHERE sha256 = ?"

    EXPIRING = """
        SELECT id FROM runs WHERE status IN ('paused', 'awaiting_input') AND expires_at >= ? AND expires_at < ?
        ORDER BY expires_at LIMIT ?
    """
    STATE_OF_RUN: str
    """Selects the status of a run, which then does not change until the transaction ends."""
    SET_STATUS = """
        UPDATE runs SET status = ?, failure_kind = ?, failure_message = ?, ended_by = ?, expires_at = ?,
            updated_at = ?, anchor = ?, seal = ?, wake_at = ?, process = CASE WHEN ? = 'running' THEN process END
        WHERE n = ?
    """
    SET_ANCHOR = "UPDATE runs SET anchor = ?, seal = ? WHERE n = ?"
    AT_EPOCH = "SELECT 1 FROM runs WHERE id = ? AND epoch = ?"
    NEXT_EPOCH = "UPDATE runs SET epoch = epoch + 1, cancel_requested = FALSE, process = ? WHERE id = ?"
    ASK_CANCEL = "UPDATE runs SET cancel_requested = TRUE WHERE id = ?"
    CANCEL_ASKED = "SELECT 1 FROM runs WHERE id = ? AND cancel_requested"

    EFFECTS: str
    EFFECT_BRIEFS: str
    """Like `EFFECTS`, with NULL as value, and the size of the value in the end."""
    ONE_EFFECT: str
    """Takes the run and the path; the newest row comes first."""
    EVENTS_FROM: str
    """Takes the run, the least place and a limit. The place, counted from the first one of the run, comes first."""
    EVENTS_BEFORE: str
    """Takes the run, the place before which rows stand, and a limit: the newest row comes first."""
    SEALED_JOURNAL: str
    # In the order of `seals.StoredRun`, after the run's number and epoch.
    SEALED_RUN = """
        SELECT r.n, r.epoch, r.id, r.title, r.format, r.document, r.created_at,
            coalesce(p.value, (SELECT body FROM blobs WHERE sha256 = p.blob)), p.seal,
            r.status, r.failure_kind, r.failure_message, r.ended_by, r.expires_at, r.anchor, r.seal
        FROM runs r LEFT JOIN pins p ON p.run = r.n WHERE r.id = ?
    """
    SEAL_PINS = "UPDATE pins SET seal = ? WHERE run = ?"
    SEAL_ROW: str
    SEAL_QUESTION = "UPDATE questions SET seal = ? WHERE run = ? AND path = ?"
    SEAL_ANSWER = "UPDATE questions SET answer_seal = ? WHERE run = ? AND path = ?"

    # Asking again in the same words changes nothing: an answer that came in between must not be lost.
    PUT_QUESTION = """
        INSERT INTO questions AS q
            (run, path, label, title, kind, prompt, options, preset, hash, asked_at, expires_at, seal)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (run, path) DO UPDATE SET
            label = excluded.label, title = excluded.title, kind = excluded.kind, prompt = excluded.prompt,
            options = excluded.options, preset = excluded.preset, hash = excluded.hash,
            asked_at = excluded.asked_at, expires_at = excluded.expires_at, seal = excluded.seal, state = 'open',
            answer = NULL, answer_seal = NULL, answered_by = NULL
        WHERE q.hash != excluded.hash OR q.state NOT IN ('open', 'answered')
    """
    CONSUME = "UPDATE questions SET state = 'consumed' WHERE run = ? AND path = ?"
    # Also an answered one: its answer will never be consumed, and the run could never park again.
    WITHDRAW = "UPDATE questions SET state = 'withdrawn' WHERE run = ? AND path = ? AND state IN ('open', 'answered')"
    WITHDRAW_OPEN = "UPDATE questions SET state = 'withdrawn' WHERE run = ? AND state = 'open'"
    STATE_OF_QUESTION = "SELECT state, hash, answer, seal FROM questions WHERE run = ? AND path = ?"
    QUESTION = f"SELECT {QUESTION_COLUMNS} FROM questions q JOIN runs r ON r.id = q.run WHERE q.run = ? AND q.path = ?"
    QUESTIONS = f"{_OPEN} ORDER BY q.asked_at, q.run, q.path"
    OLDEST_QUESTIONS = f"""
        {_OPEN} AND q.asked_at >= ? AND (q.asked_at, q.run, q.path) > (?, ?, ?)
        ORDER BY q.asked_at, q.run, q.path LIMIT ?
    """
    COUNT_QUESTIONS = f"SELECT count(*) FROM (SELECT 1 {_OF_OPEN} LIMIT ?) AS counted"
    QUESTIONS_OF_RUN = f"{_OPEN} AND q.run = ? ORDER BY q.asked_at, q.path"
    ASKED = f"""
        SELECT {QUESTION_COLUMNS}, q.seal FROM questions q JOIN runs r ON r.id = q.run
        WHERE q.run = ? AND q.state IN ('open', 'answered') ORDER BY q.asked_at, q.path
    """
    ANSWER = """
        UPDATE questions SET state = 'answered', answer = ?, answered_by = ?, answer_seal = ?
        WHERE run = ? AND path = ?
    """
    ANSWERS = """
        SELECT path, hash, answer, answered_by, answer_seal FROM questions
        WHERE run = ? AND state = 'answered' ORDER BY asked_at, path
    """
    RUNS_ANSWERED = """
        SELECT q.run FROM questions q JOIN runs r ON r.id = q.run
        WHERE q.state = 'answered' AND r.status = 'awaiting_input' GROUP BY q.run ORDER BY min(q.asked_at)
    """

    FORGET_REPLIES = "DELETE FROM http_replies WHERE at < ? OR (reply IS NULL AND at < ?)"
    CLAIM_KEY = "INSERT INTO http_replies (key, request, claim, at) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"
    REPLY_OF_KEY = "SELECT request, claim, reply FROM http_replies WHERE key = ?"
    KEEP_REPLY = "UPDATE http_replies SET reply = ? WHERE key = ? AND claim = ?"
    DROP_KEY = "DELETE FROM http_replies WHERE key = ? AND claim = ?"

    CLAIM = f"{_insert('starts', Start)} ON CONFLICT (source, key) DO NOTHING"
    CLAIMED = f"{_select('starts', Start)} WHERE source = ? AND key = ?"
    SET_CLAIM = "UPDATE starts SET state = ?, reason = ?, run = ? WHERE source = ? AND key = ?"
    STARTS = f"""
        {_select("starts", Start)} WHERE (? = '' OR source = ?) AND (? = '' OR state = ?)
        ORDER BY at DESC, key DESC LIMIT ?
    """
    TRIGGERS = f"{_select('triggers', EnabledTrigger)} ORDER BY name"
    PUT_TRIGGER = _put("triggers", EnabledTrigger)
    DROP_TRIGGER = "DELETE FROM triggers WHERE name = ?"
    HELD_TRIGGER = "SELECT seal, cursor FROM triggers WHERE name = ?"
    """The row does not change until the transaction ends."""
    MOVE_TRIGGER = "UPDATE triggers SET cursor = ? WHERE name = ? AND cursor = ?"
    UNENDED_OF = """
        SELECT id, status FROM runs WHERE source = ? AND (
            status IN ('pending', 'running')
            OR (status IN ('paused', 'awaiting_input') AND (expires_at IS NULL OR expires_at >= ?))
        )
        ORDER BY created_at, n
    """
    UNDER_WAY = """
        SELECT source, id, status FROM runs
        WHERE source >= 'trigger:' AND source < 'trigger;' AND status IN ('pending', 'running')
        ORDER BY source, created_at, n
    """
    PUT_PROCESS = _put("processes", Process)
    PROCESSES = f"{_select('processes', Process)} ORDER BY started_at, id"
    DROP_PROCESSES = "DELETE FROM processes WHERE id = ? OR seen_at < ?"
    RESERVE = "UPDATE runs SET reserved = ? WHERE id = ?"
    DUE = "SELECT id FROM runs WHERE wake_at <= ? AND status = 'paused' ORDER BY wake_at, id"

    PUT_LETTER = "INSERT INTO letters (recipient, run, text, at, seal) VALUES (?, ?, ?, ?, ?)"
    LETTERS = "SELECT recipient, run, text, at, seal FROM letters WHERE recipient = ? ORDER BY n"
    ALL_LETTERS = "SELECT recipient, run, text, at, seal FROM letters ORDER BY n"

    def __init_subclass__(cls) -> None:
        for name, which in _OF_RUNS.items():
            setattr(cls, name, f"{cls.RUNS} {which}")
        for name in [name for name in dir(cls) if name.isupper()]:
            setattr(cls, name, cls.translate(getattr(cls, name)))

    @staticmethod
    def translate(sql: str) -> str:
        """Return a statement in the form of this database."""
        return sql

    @staticmethod
    def body(text: str) -> str | bytes:
        """Return a text as the table of texts keeps it."""
        return text

    @staticmethod
    @abstractmethod
    def first_place(number: int) -> int:
        """Return the key before the first row of a run's journal."""


def operation_tables(
    prefix: str = "", name: str = "TEXT", real: str = "REAL", integer: str = "INTEGER"
) -> tuple[str, ...]:
    """Return the migration that adds claims of occurrences, enabled triggers, live processes, and copies of sealed pins
    for queries, with the names and types of a database."""
    runs = f"{prefix}runs"
    added = f"source {name}", f"wake_at {real}", f"reserved {real}", "process TEXT"
    return (
        f"""
        CREATE TABLE {prefix}starts (
            source {name} NOT NULL, key {name} NOT NULL, request TEXT NOT NULL, due {real} NOT NULL,
            at {real} NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL, run TEXT NOT NULL, PRIMARY KEY (source, key)
        )
        """,
        f"CREATE INDEX {prefix}starts_by_age ON {prefix}starts (source, at)",
        f"""
        CREATE TABLE {prefix}triggers (
            name {name} PRIMARY KEY, digest TEXT NOT NULL, authority TEXT NOT NULL, cursor {real} NOT NULL,
            enabled_at {real} NOT NULL, enabled_by TEXT NOT NULL, seal TEXT NOT NULL
        )
        """,
        f"""
        CREATE TABLE {prefix}processes (
            id {name} PRIMARY KEY, kind TEXT NOT NULL, host TEXT NOT NULL, pid {integer} NOT NULL,
            version TEXT NOT NULL, queue TEXT NOT NULL, started_at {real} NOT NULL, seen_at {real} NOT NULL,
            slots {integer} NOT NULL, driving {integer} NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL
        )
        """,
        *(f"ALTER TABLE {runs} ADD COLUMN {column}" for column in added),
        f"CREATE INDEX {runs}_to_wake ON {runs} (wake_at) WHERE wake_at IS NOT NULL",
        f"CREATE INDEX {runs}_by_source ON {runs} (source, created_at) WHERE source IS NOT NULL",
        f"CREATE INDEX {runs}_that_wait ON {runs} (expires_at) WHERE status IN ('paused', 'awaiting_input')",
    )
