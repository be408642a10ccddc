"""The index of runs: the texts that they sent, got and were told, for search, and their artifacts, for the gallery.

It is a cache in a SQLite file of the user folder, made from journals, and may be deleted at any time. A workspace
cannot bring one: a database that others wrote can hold programs. A file that is damaged, or of another version, is
replaced by an empty one.

It is filled a little at each request: the newest runs first, each when it has ended or comes to rest. A request waits a
fraction of a second at most; the rest continues behind it. A run is replayed for its prompts and its artifact, unless
its journal is long: then its replies and answers are found, and its prompts are not.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import astuple

from quire.display.transcript import prompt_text
from quire.engine.records import Status
from quire.engine.requests import HumanRequest, ModelRequest
from quire.errors import QuireError
from quire.operations.shelf import pinned_file
from quire.server.address import file_of
from quire.stores.run_pages import RunFilters, newest_runs
from quire.trust.private_files import make_folder
from quire.values import clean, encode

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord, RunRow
    from quire.runs.outcome import RunView
    from quire.runs.runtime import Runtime

SECONDS_TO_WAIT = 0.4
"""The longest that a request waits for the index."""
SECONDS_OF_LIST = 0.1
SECONDS_BETWEEN = 1.0
OVERLAP_SECONDS = 10.0
MOST_RUNS = 5000
"""The newest runs that are indexed."""
MOST_REPLAYED = 500
"""Effects of a run up to which it is replayed for its prompts."""
MOST_OF_RUN = 400_000
"""Characters of one run that are indexed."""


class RunIndexer:
    """The index of one workspace, and the task that fills it. All calls belong to one event loop."""

    def __init__(self, runtime: Runtime) -> None:
        self.index = RunIndex(file_of(runtime.settings, ".index.db"))
        self._runtime = runtime
        self._task: asyncio.Task[None] | None = None
        self._stamps: dict[str, str] | None = None
        self._filled_at = 0.0
        self._looked_at = 0.0
        self.problem = ""
        """Says why the index cannot be used; empty if it can."""

    @property
    def runs(self) -> int:
        """The number of runs in the index."""
        return len(self._stamps or ())

    @property
    def whole(self) -> bool:
        """Tell whether all runs that the index is to hold are in it."""
        return self._task is None or self._task.done()

    async def heads(self, runs: Sequence[str]) -> dict[str, str]:
        """Return the beginnings of the artifacts of completed runs. A list waits for them only if one is not in the
        index as such."""
        stamps = self._stamps or {}
        is_known = all(stamps.get(run, "").startswith(Status.COMPLETED) for run in runs)
        await self.ready(0 if is_known else SECONDS_OF_LIST)
        try:
            return await asyncio.to_thread(self.index.heads, runs) if runs else {}
        except (sqlite3.Error, OSError):
            return {}  # `problem` has the reason

    async def ready(self, seconds: float = SECONDS_TO_WAIT) -> None:
        """Bring the index up to date, as far as a request can wait for it."""
        if self.whole and time.monotonic() > self._filled_at + SECONDS_BETWEEN:
            self._task = asyncio.create_task(self._fill())
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=seconds)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.index.close()

    async def forget(self, run: str) -> None:
        """Remove a run that no longer exists."""
        (self._stamps or {}).pop(run, None)
        with contextlib.suppress(sqlite3.Error):
            await asyncio.to_thread(self.index.remove, run)

    async def _fill(self) -> None:
        try:
            if self._stamps is None:
                self._stamps = await asyncio.to_thread(self.index.stamps)
                self._looked_at = time.time()
                async for row in newest_runs(self._runtime.store, RunFilters(), MOST_RUNS):
                    await self._take(row)
            else:
                store = self._runtime.store
                since, self._looked_at = self._looked_at - OVERLAP_SECONDS, time.time()
                for row in await store.written_since(since):
                    await self._take(row)
            self.problem = ""
        except (sqlite3.Error, OSError, QuireError) as error:
            self._stamps = None
            self.problem = f"the index of texts cannot be used: {error}"
        self._filled_at = time.monotonic()

    async def _take(self, row: RunRow) -> None:
        stamp = f"{row.status} {row.updated_at!r}"
        if self._stamps is None or self._stamps.get(row.id) == stamp or row.status is Status.RUNNING:
            return
        effects = await self._runtime.store.effects(row.id)
        view = None
        if len(effects) <= MOST_REPLAYED or row.status is Status.COMPLETED:
            with contextlib.suppress(QuireError):  # A run of another version: its replies are found all the same.
                view = await self._runtime.view(row.id)
        texts = list(_bounded(_texts(row, effects, view if len(effects) <= MOST_REPLAYED else None)))
        await asyncio.to_thread(
            self.index.put, row.id, stamp, texts, _artifact(row, view, self._runtime.settings.workspace.folder)
        )
        self._stamps[row.id] = stamp


def _texts(row: RunRow, effects: Sequence[EffectRecord], view: RunView | None) -> Iterator[RunText]:
    if inputs := row.pins.get("inputs"):
        yield RunText("input", "", encode(inputs))
    if row.failure:
        yield RunText("error", row.ended_by[0] if row.ended_by else "", row.failure.message)
    for record in effects:
        value = record.value
        if record.kind == "model" and isinstance(value, dict):
            yield RunText("reply", record.path, str(value.get("text", "")))
        elif record.kind == "ask" and isinstance(value, str):
            yield RunText("answer", record.path, value)
    for path, request in view.replay.asked.items() if view else ():
        if isinstance(request, ModelRequest):
            yield RunText("prompt", path, prompt_text(request))
        elif isinstance(request, HumanRequest):
            yield RunText("question", path, request.prompt)


def _bounded(texts: Iterator[RunText]) -> Iterator[RunText]:
    left = MOST_OF_RUN
    for text in texts:
        left -= min(len(text.body), LONGEST_TEXT)
        if left < 0:
            return
        yield text


def _artifact(row: RunRow, view: RunView | None, folder: Path) -> Artifact | None:
    if view is None or not view.replay.finished or not view.artifact:
        return None
    text = view.artifact
    kind = view.file_type or "text"
    file = pinned_file(folder, row)
    document = file.id if file else row.document
    return Artifact(row.id, row.title, document, kind, len(text), text[:HEAD], row.updated_at)


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
            rows = [(_plain(text.body), run, text.path, text.kind) for text in texts if text.body.strip()]
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

        Every character is a character: a query language does not exist.
        """
        query = match_of(text)
        if not query:
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
                    rows = connection.execute(sql.format(order="ORDER BY rank"), (query, query, limit)).fetchall()
            except sqlite3.OperationalError:
                whole, rows = False, []
                with contextlib.suppress(sqlite3.OperationalError), _in_time(connection):
                    rows = connection.execute(sql.format(order=""), (query, query, limit)).fetchall()
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

    def heads(self, runs: Sequence[str]) -> dict[str, str]:
        """Return the beginnings of the artifacts of runs, by run."""
        marks = ", ".join("?" * len(runs))
        with self._opened() as connection:
            sql = f"SELECT run, head FROM artifacts WHERE run IN ({marks})"  # noqa: S608  # marks
            return dict(connection.execute(sql, runs))

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
