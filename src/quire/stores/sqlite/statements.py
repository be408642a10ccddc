"""The SQL that only the SQLite store runs. The key of a journal row holds the number of its run: see `rows.places`."""

# Only constants of this package are put together here, never values.
# ruff: noqa: S608

from __future__ import annotations

from quire.stores import rows
from quire.stores.row_decoder import BRIEF_COLUMNS, EFFECT_COLUMNS, EVENT_COLUMNS, RUN_COLUMNS
from quire.stores.rows import JOURNAL_COLUMNS, PLACE_BITS
from quire.stores.statements import Statements

_CELLS = ", ".join("?" * (JOURNAL_COLUMNS.count(",") + 1))
_PINS = "coalesce(p.value, (SELECT body FROM blobs WHERE sha256 = p.blob))"
_FIRST, _LAST = f"r.n << {PLACE_BITS}", f"((r.n + 1) << {PLACE_BITS}) - 1"


class SqliteStatements(Statements):
    RUNS = f"""
        SELECT {RUN_COLUMNS} FROM runs r LEFT JOIN pins p ON p.run = r.n LEFT JOIN journal t
            ON t.id = (SELECT max(id) FROM journal WHERE id BETWEEN {_FIRST} AND {_LAST})
    """
    # A file from elsewhere may hold pins that are not JSON.
    FORK_OF = f"""
        CASE WHEN instr({_PINS}, ?) AND json_valid({_PINS})
            THEN json_extract({_PINS}, '$.origin.run') = ? ELSE FALSE END
    """
    HAS_WORD = f"""
        CASE WHEN r.id || ' ' || r.title || ' ' || r.document || ' ' || coalesce(r.failure_message, '')
                LIKE ? ESCAPE '\\' THEN TRUE
            WHEN {_PINS} LIKE ? ESCAPE '\\' AND json_valid({_PINS})
                THEN json_extract({_PINS}, '$.inputs') LIKE ? ESCAPE '\\'
            ELSE FALSE END
    """
    SPENT = f"""
        SELECT count(*), coalesce(sum(t.total_cost), 0.0),
            count(*) - count(CASE WHEN t.id AND t.total_cost IS NULL THEN 1 END)
        FROM runs r LEFT JOIN journal t ON t.id = (SELECT max(id) FROM journal WHERE id BETWEEN {_FIRST} AND {_LAST})
        WHERE r.created_at >= ?
    """
    RUNNING = "SELECT r.id FROM runs r WHERE r.status = 'running' ORDER BY r.created_at DESC, r.n DESC"
    NEW_RUN = """
        INSERT INTO runs (id, title, format, document, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (id) DO NOTHING
    """
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
    EVENTS = f"""
        SELECT {EVENT_COLUMNS} FROM runs r CROSS JOIN journal j
        WHERE r.id = ? AND j.id BETWEEN ({_FIRST}) + ? AND {_LAST}
            AND (j.events IS NOT NULL OR j.events_blob IS NOT NULL) ORDER BY j.id
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
