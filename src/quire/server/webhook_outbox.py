"""The outbox of webhooks: messages that are to be sent, kept in a file of the user folder until they have arrived.

The file is beside the server's token, so it is the same for both stores, and no workspace can bring one. A message is
written before it is sent and removed after it has arrived: a server that is killed in between sends it again.

Messages are signed as Standard Webhooks describes it: HMAC-SHA256 over id, time and body.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import astuple

from quire.errors import CannotStart
from quire.trust.private_files import make_folder
from quire.values import encode


def signed_headers(secret: bytes, id: str, at: int | str, body: bytes) -> dict[str, str]:
    """Return the headers of a message that is sent at a time, in seconds since 1970."""
    signature = hmac.new(secret, f"{id}.{at}.".encode() + body, hashlib.sha256).digest()
    return {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }


DELAYS = (5, 30, 120, 600, 1800, 3600, 7200, 14_400, 28_800, 57_600, 86_400)
"""Seconds before each further try; the last one is used again and again."""
KEPT_SECONDS = 7 * 86_400
"""A message that has not arrived after so long is given up."""
SEEN_SECONDS = 60 * 86_400
LEASE_SECONDS = 60
"""A message that a server has taken is not taken by another one for so long."""

_VERSION = 1
_TABLES = (
    """
    CREATE TABLE messages (
        id TEXT PRIMARY KEY, hook TEXT NOT NULL, type TEXT NOT NULL, body TEXT NOT NULL, at REAL NOT NULL,
        due REAL NOT NULL, tries INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT ''
    ) WITHOUT ROWID
    """,
    "CREATE INDEX messages_by_due ON messages (due)",
    "CREATE TABLE seen (key TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE asked (run TEXT, path TEXT, hash TEXT, PRIMARY KEY (run, path)) WITHOUT ROWID",
    "CREATE TABLE marks (name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE outcomes (hook TEXT PRIMARY KEY, arrived INTEGER, lost INTEGER, at REAL, error TEXT) WITHOUT ROWID",
)


class OutMessage(Struct, frozen=True):
    """A message to one address. `id` stays the same for every try, so that a receiver can drop what it has."""

    id: str
    hook: str
    type: str
    body: str
    at: float
    due: float
    tries: int = 0
    error: str = ""


class Outbox:
    """One file. All calls are blocking; any number of processes may share the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def open(self) -> None:
        """Open the file, or make it. Raises `CannotStart`."""
        if self._connection is not None:
            return
        make_folder(self._path.parent)
        try:
            self._path.touch(0o600)
            self._connection = sqlite3.connect(self._path, timeout=5, check_same_thread=False, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            with self._transaction() as connection:
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                if version == 0:
                    for statement in _TABLES:
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {_VERSION}")
        except (OSError, sqlite3.Error) as error:
            raise CannotStart(f"the outbox of webhooks {self._path} cannot be used: {error}") from None
        if version > _VERSION:
            raise CannotStart(f"the outbox of webhooks {self._path} was written by a newer Quire")

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def mark(self, name: str) -> float | None:
        with self._transaction() as connection:
            row = connection.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def add(self, events: Iterable[tuple[str, Sequence[OutMessage]]], marks: Iterable[tuple[str, float]]) -> int:
        """Write events, each with its key and its messages, and how far was looked; all of it or nothing.

        An event whose key was seen before is left out. Returns the number of new messages.
        """
        count = 0
        with self._transaction() as connection:
            for key, messages in events:
                at = messages[0].at if messages else 0.0
                if not connection.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (key, at)).rowcount:
                    continue
                connection.executemany("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", map(astuple, messages))
                count += len(messages)
            connection.executemany("INSERT OR REPLACE INTO marks VALUES (?, ?)", list(marks))
        return count

    def asked(self, runs: Collection[str] | None) -> dict[tuple[str, str], str]:
        """Return the questions, of all runs or of some, that were open at the last look, with their hashes."""
        query = "SELECT run, path, hash FROM asked WHERE ?1 IS NULL OR run IN (SELECT value FROM json_each(?1))"
        with self._transaction() as connection:
            rows = connection.execute(query, (None if runs is None else encode([*runs]),))
            return {(run, path): hash for run, path, hash in rows}

    def note_asked(self, opened: Iterable[tuple[str, str, str]], closed: Iterable[tuple[str, str]]) -> None:
        with self._transaction() as connection:
            connection.executemany("DELETE FROM asked WHERE run = ? AND path = ?", list(closed))
            connection.executemany("INSERT OR REPLACE INTO asked VALUES (?, ?, ?)", list(opened))

    def take(self, now: float, limit: int) -> list[OutMessage]:
        """Return the messages that are due, and keep other servers from sending them for a while."""
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT id, hook, type, body, at, due, tries, error FROM messages WHERE due <= ? ORDER BY due LIMIT ?",
                (now, limit),
            ).fetchall()
            connection.executemany(
                "UPDATE messages SET due = ? WHERE id = ?", [(now + LEASE_SECONDS, row[0]) for row in rows]
            )
        return [OutMessage(*row) for row in rows]

    def give_back(self, message: OutMessage, now: float) -> None:
        """Let another server send a message that was taken, because this one stops."""
        with self._transaction() as connection:
            connection.execute("UPDATE messages SET due = ? WHERE id = ?", (now, message.id))

    def arrived(self, message: OutMessage, now: float) -> None:
        with self._transaction() as connection:
            connection.execute("DELETE FROM messages WHERE id = ?", (message.id,))
            self._count(connection, message.hook, 1, 0, now, "")
            connection.execute("DELETE FROM seen WHERE at < ?", (now - SEEN_SECONDS,))

    def failed(self, message: OutMessage, now: float, error: str, *, wait: float = 0.0, final: bool = False) -> bool:
        """Note a try that failed. Return False if the message is given up. `wait` are seconds that the receiver asks
        for."""
        delay = max(DELAYS[min(message.tries, len(DELAYS) - 1)], min(wait, DELAYS[-1]))
        over = final or now + delay > message.at + KEPT_SECONDS
        with self._transaction() as connection:
            if over:
                connection.execute("DELETE FROM messages WHERE id = ?", (message.id,))
            else:
                sql = "UPDATE messages SET due = ?, tries = tries + 1, error = ? WHERE id = ?"
                connection.execute(sql, (now + delay, error, message.id))
            self._count(connection, message.hook, 0, int(over), now, error)
        return not over

    def drop(self, hook: str) -> int:
        """Remove all messages to an address, and return their number."""
        with self._transaction() as connection:
            return connection.execute("DELETE FROM messages WHERE hook = ?", (hook,)).rowcount

    def state(self, hook: str) -> tuple[int, int, int, float | None, str]:
        """Return the messages of an address that wait, have arrived and were given up, the last try, and its error."""
        with self._transaction() as connection:
            waiting = connection.execute("SELECT count(*) FROM messages WHERE hook = ?", (hook,)).fetchone()[0]
            row = connection.execute("SELECT arrived, lost, at, error FROM outcomes WHERE hook = ?", (hook,)).fetchone()
        return (waiting, *(row or (0, 0, None, "")))

    @staticmethod
    def _count(connection: sqlite3.Connection, hook: str, arrived: int, lost: int, now: float, error: str) -> None:
        connection.execute("INSERT OR IGNORE INTO outcomes VALUES (?, 0, 0, ?, '')", (hook, now))
        connection.execute(
            "UPDATE outcomes SET arrived = arrived + ?, lost = lost + ?, at = ?, error = ? WHERE hook = ?",
            (arrived, lost, now, error, hook),
        )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            connection = self._connection
            if connection is None:
                raise CannotStart("the outbox of webhooks is closed")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
