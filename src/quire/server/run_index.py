"""The index of runs: the texts that they sent, got and were told, for search, and their artifacts, for the gallery.

It is a cache in a SQLite file of the user's space, made from journals, and may be deleted at any time. A workspace
cannot bring one: a database that others wrote can hold programs. A file that is damaged, or of another version, is
replaced by an empty one.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import astuple

from quire.trust.private_files import make_folder
from quire.values import clean

VERSION = 1
SECONDS = 0.3
"""The longest that one query may take."""
LONGEST_TEXT = 20_000
"""Characters of one text that are found again."""
HEAD = 700
"""Characters of an artifact that the gallery shows."""
MOST_WORDS = 8
FROM, TO = "\x02", "\x03"
"""Marks around the words that were found; no text holds them."""
_STEPS_BETWEEN_LOOKS = 20_000
_TABLES = (
    "CREATE TABLE runs (run TEXT PRIMARY KEY, stamp TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL)",
    "CREATE VIRTUAL TABLE texts USING fts5 (body, run UNINDEXED, path UNINDEXED, kind UNINDEXED)",
    """
    CREATE TABLE artifacts (
        run TEXT PRIMARY KEY, title TEXT NOT NULL, document TEXT NOT NULL, type TEXT NOT NULL, size INTEGER NOT NULL,
        head TEXT NOT NULL, at REAL NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX artifacts_by_age ON artifacts (at, run)",
)


class RunText(Struct, frozen=True):
    """One text of a run. `kind` is `prompt`, `reply`, `question`, `answer`, `input` or `error`."""

    kind: str
    path: str
    body: str


class Artifact(Struct, frozen=True):
    run: str
    title: str
    document: str
    type: str
    size: int
    head: str
    """The beginning of the text."""
    at: float
    """The time at which its run ended."""


class Hit(Struct, frozen=True):
    """A text that holds all words. `parts` are pieces of it, the found words every other one, from the second on."""

    run: str
    path: str
    kind: str
    parts: tuple[str, ...]


class RunIndex:
    """One file. All calls are blocking and may come from any thread, one at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def stamps(self) -> dict[str, str]:
        """Return the known runs, each with the stamp of the state that is known."""
        with self._opened() as connection:
            return dict(connection.execute("SELECT run, stamp FROM runs"))

    def put(self, run: str, stamp: str, texts: Sequence[RunText], artifact: Artifact | None) -> None:
        """Replace everything that is known of a run."""
        with self._opened() as connection, connection:
            self._drop(connection, run)
            # The texts of a run have numbers in a row, because a column of the index cannot be searched for the run.
            first = connection.execute("SELECT coalesce(max(last), 0) + 1 FROM runs").fetchone()[0]
            rows = [(_plain(one.body), run, one.path, one.kind) for one in texts if one.body.strip()]
            connection.executemany(
                "INSERT INTO texts (rowid, body, run, path, kind) VALUES (?, ?, ?, ?, ?)",
                [(first + at, *row) for at, row in enumerate(rows)],
            )
            connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?)", (run, stamp, first, first + len(rows) - 1))
            if artifact is not None:
                connection.execute("INSERT INTO artifacts VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(artifact))

    def remove(self, run: str) -> None:
        with self._opened() as connection, connection:
            self._drop(connection, run)

    def find(self, text: str, limit: int) -> tuple[list[Hit], bool]:
        """Return the texts with all words of a text, and False if there was not enough time to find the best of them.

        Every character is a character: there is no query language.
        """
        wanted = match_of(text)
        if not wanted:
            return [], True
        # The pieces around the words are cut from the chosen texts only.
        chosen = "SELECT rowid FROM texts WHERE texts MATCH ? {order} LIMIT ?"
        sql = f"""
            SELECT run, path, kind, snippet(texts, 0, '{FROM}', '{TO}', '…', 24) FROM texts
            WHERE texts MATCH ? AND rowid IN ({chosen}) {{order}}
        """  # noqa: S608  # constants of this module
        with self._opened() as connection:
            whole = True
            try:
                with _in_time(connection):
                    rows = connection.execute(sql.format(order="ORDER BY rank"), (wanted, wanted, limit)).fetchall()
            except sqlite3.OperationalError:
                whole, rows = False, []
                with contextlib.suppress(sqlite3.OperationalError), _in_time(connection):
                    rows = connection.execute(sql.format(order=""), (wanted, wanted, limit)).fetchall()
        return [Hit(run, path, kind, tuple(re.split(f"[{FROM}{TO}]", part))) for run, path, kind, part in rows], whole

    def artifacts(
        self, *, type: str = "", document: str = "", before: tuple[float, str] | None = None, limit: int = 24
    ) -> list[Artifact]:
        """Return artifacts, the newest first."""
        conditions, values = ["1"], list[object]()
        if type:
            conditions.append("type = ?")
            values.append(type)
        if document:
            conditions.append("document = ?")
            values.append(document)
        if before is not None:
            conditions.append("(at, run) < (?, ?)")
            values += before
        sql = f"""
            SELECT run, title, document, type, size, head, at FROM artifacts WHERE {" AND ".join(conditions)}
            ORDER BY at DESC, run DESC LIMIT ?
        """  # noqa: S608  # constants of this method
        with self._opened() as connection:
            return [Artifact(*row) for row in connection.execute(sql, (*values, limit))]

    def artifact_counts(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the number of artifacts by type, and by document."""
        with self._opened() as connection:
            types = dict(connection.execute("SELECT type, count(*) FROM artifacts GROUP BY type ORDER BY 2 DESC"))
            documents = "SELECT document, count(*) FROM artifacts GROUP BY document ORDER BY 2 DESC LIMIT 200"
            return types, dict(connection.execute(documents))

    @staticmethod
    def _drop(connection: sqlite3.Connection, run: str) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for first, last in connection.execute("SELECT first, last FROM runs WHERE run = ?", (run,)).fetchall():
            connection.execute("DELETE FROM texts WHERE rowid BETWEEN ? AND ?", (first, last))
            connection.execute("DELETE FROM runs WHERE run = ?", (run,))
            connection.execute("DELETE FROM artifacts WHERE run = ?", (run,))

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._connection is None:
                try:
                    self._connection = self._open()
                except sqlite3.DatabaseError:
                    for file in self._path.parent.glob(f"{self._path.name}*"):
                        file.unlink()
                    self._connection = self._open()
            try:
                yield self._connection
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:  # The file is damaged: the next call begins anew.
                self._connection.close()
                self._connection = None
                self._path.unlink(missing_ok=True)
                raise

    def _open(self) -> sqlite3.Connection:
        make_folder(self._path.parent)
        self._path.touch(0o600)
        connection = sqlite3.connect(self._path, check_same_thread=False, timeout=2, isolation_level="IMMEDIATE")
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")
            if connection.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                _empty(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _empty(connection: sqlite3.Connection) -> None:
    """Make the tables, in place of others of an older version."""
    with connection:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise sqlite3.DatabaseError("another version")
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")


@contextlib.contextmanager
def _in_time(connection: sqlite3.Connection) -> Iterator[None]:
    """Interrupt a query that takes too long: it raises `sqlite3.OperationalError`."""
    end = time.monotonic() + SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS_BETWEEN_LOOKS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def match_of(text: str) -> str:
    """Return the words of a text as a query of FTS5: each in quotes, the last one as the beginning of a word."""
    words = [word for word in _plain(text).split()[:MOST_WORDS] if any(letter.isalnum() for letter in word)]
    quoted = ['"' + word[:80].replace('"', '""') + '"' for word in words]
    return " ".join([*quoted[:-1], f"{quoted[-1]}*"]) if quoted else ""


def _plain(text: str) -> str:
    return clean(text[:LONGEST_TEXT]).replace(FROM, " ").replace(TO, " ").replace("\0", " ")
