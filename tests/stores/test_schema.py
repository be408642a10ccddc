"""Files of older versions are brought up to date, and those of newer ones left alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from quire.engine.records import Batch, EffectRecord, Event, NewRun, Question, RunUpdate, Status, Usage
from quire.engine.requests import Failure
from quire.errors import BrokenSeal, StoreError, StoreFull
from quire.stores.run_pages import RunFilters
from quire.stores.sqlite.statements import APPLICATION_ID, MIGRATIONS, migrate
from quire.stores.sqlite.store import SqliteStore

VERSION_1 = (Path(__file__).parent / "version_1.sql").read_text(encoding="utf-8")


def pragma(path: Path, name: str) -> int:
    connection = sqlite3.connect(path)
    try:
        value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
        return value
    finally:
        connection.close()


async def test_a_file_of_version_1_is_read_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "quire.db"
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_1)
    connection.close()
    store = SqliteStore(path, now=lambda: 2_000.0)
    row = await store.get("old-1")
    assert row is not None
    assert (row.status, row.position, row.expires_at) == (Status.AWAITING_INPUT, "3", 5_000.0)
    assert (row.input_tokens, row.output_tokens, row.cost, row.epoch) == (12, 3, 0.25, 1)
    assert row.pins["inputs"] == {"topic": "Rust"}
    assert await store.text(str(row.pins["document"])) == "# Old\n\n## STEP 1: Ask\n"
    usage = Usage(12, 3, 0.25)
    assert list(await store.effects("old-1")) == [
        EffectRecord(
            "1/model", "model", "ok", "a" * 64, 1_010.0, {"text": "hello"}, usage=usage, elapsed=1.5, delays=(0.5,)
        ),
        EffectRecord("2/tool", "tool", "failed", "b" * 64, 1_020.0, failure=Failure("tool", "no such file")),
    ]
    assert list(await store.events("old-1", 1)) == [
        Event("step_completed", "old-1", 1_010.0, 2, "1", "1", {"title": "Think"}),
        Event("run_waiting", "old-1", 1_030.0, 3, "3/ask", "3"),
    ]
    (asked,) = await store.questions()
    assert asked == Question(
        "old-1", "3/ask", "3", "Approve", "select", "Ship it?", ("yes", "no"), "no", "c" * 64, 1_030.0, 5_000.0
    )
    for attempt in (store.answer("old-1", "3/ask", "c" * 64, "yes"), store.acquire("old-1")):
        with pytest.raises(BrokenSeal, match=r"from Quire 0\.1\.0, which did not seal runs") as refused:
            await attempt
        assert refused.value.old
    await store.reseal("old-1")
    await store.answer("old-1", "3/ask", "c" * 64, "yes")
    lease = await store.acquire("old-1")
    assert lease.records == tuple(await store.effects("old-1"))
    assert (lease.epoch, lease.last_seq) == (2, 3)
    written = await store.write(lease, Batch(consume=("3/ask",), update=RunUpdate(Status.COMPLETED)))
    assert not written.answer_waiting
    await store.close()
    assert pragma(path, "user_version") == len(MIGRATIONS)


def old_file(path: Path, version: int) -> sqlite3.Connection:
    """Return a connection to a file of a version, in WAL mode as Quire leaves it, with the runs of version 1."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(VERSION_1)
    for migration in MIGRATIONS[1:version]:
        for statement in migration:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute("PRAGMA journal_mode = WAL")
    return connection


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS) + 1))
async def test_looking_leaves_the_bytes_as_they_are(tmp_path: Path, version: int) -> None:
    """reliability M6."""
    path = tmp_path / "quire.db"
    old_file(path, version).close()
    before = path.read_bytes()
    store = SqliteStore(path, now=lambda: 2_000.0)
    assert [(row.id, row.label, row.name, row.until) for row in await store.list()] == [("old-1", "Rust", None, None)]
    for sort in ("started", "took", "cost", "subject"):
        assert [row.id for row in (await store.page(RunFilters(), sort=sort)).rows] == ["old-1"]
    assert (await store.spent(0.0)).runs == 1
    assert [question.path for question in await store.questions()] == ["3/ask"]
    assert len(await store.effects("old-1")) == 2 and (await store.marks()).runs == 1
    await store.backup(tmp_path / "copy.db")
    await store.close()
    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy.db", "quire.db"]
    assert pragma(tmp_path / "copy.db", "user_version") == version


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
async def test_the_first_write_migrates_and_keeps_a_copy(
    tmp_path: Path, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "quire.db"
    old = old_file(path, version)
    rows = old.execute("SELECT * FROM journal").fetchall()
    old.close()
    store = SqliteStore(path, now=lambda: 2_000.0)
    assert [row.id for row in await store.list()] == ["old-1"]
    await store.create(NewRun("r2", "T", "playbook", "d.md", 0.0, {}, {}))
    assert {row.id for row in await store.list()} == {"old-1", "r2"}
    await store.close()
    kept = tmp_path / f"quire.db.schema{version}"
    assert (pragma(path, "user_version"), pragma(kept, "user_version")) == (len(MIGRATIONS), version)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert [record.getMessage() for record in caplog.records] == [
        f"{path} is of an older Quire and is migrated now; a copy is kept: {kept}"
    ]
    copy = sqlite3.connect(kept)
    assert copy.execute("SELECT * FROM journal").fetchall() == rows
    copy.close()


async def test_what_an_older_process_writes_meanwhile_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "quire.db"
    old = old_file(path, 3)
    store = SqliteStore(path, now=lambda: 2_000.0)
    assert (await store.list())[0].title != "another"
    before = await store.foreign_writes()
    old.execute("UPDATE runs SET title = 'another'")
    assert (await store.list())[0].title == "another" and await store.foreign_writes() != before
    await store.close()
    # A second process has migrated it; the header of the file says so only after a checkpoint.
    old.execute("PRAGMA wal_autocheckpoint = 0")
    migrate(old, path)
    reader = SqliteStore(path, now=lambda: 2_000.0)
    assert (await reader.list())[0].title == "another"
    await reader.close()
    old.close()


async def test_no_room_for_the_copy_leaves_the_file_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "quire.db"
    old_file(path, 3).close()

    def full(*arguments: object, **options: object) -> int:
        raise StoreFull("no room left")

    monkeypatch.setattr("quire.stores.sqlite.archive.copy_file", full)
    store = SqliteStore(path)
    with pytest.raises(StoreFull):
        await store.create(NewRun("r2", "T", "playbook", "d.md", 0.0, {}, {}))
    await store.close()
    assert pragma(path, "user_version") == 3


def test_the_schema_of_version_1_has_not_been_edited(tmp_path: Path) -> None:
    """A released migration is history: whoever needs another table adds another migration."""
    old, new = sqlite3.connect(tmp_path / "old.db"), sqlite3.connect(tmp_path / "new.db", isolation_level=None)
    old.executescript(VERSION_1)
    migrate(new, tmp_path / "new.db", MIGRATIONS[:1])
    layouts = []
    for connection in (old, new):
        tables = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
        ).fetchall()
        layouts.append({name: " ".join(sql.split()) for name, sql in tables})
        connection.close()
    assert layouts[0] == layouts[1]


def test_only_what_is_missing_is_applied(tmp_path: Path) -> None:
    path = tmp_path / "quire.db"
    steps = [("CREATE TABLE a (x)",), ("CREATE TABLE b (x)", "INSERT INTO b VALUES (1)")]
    connection = sqlite3.connect(path, isolation_level=None)
    for known in (steps[:1], steps, steps):
        migrate(connection, path, known)
    assert connection.execute("SELECT x FROM b").fetchall() == [(1,)]
    connection.close()
    assert pragma(path, "user_version") == 2
    assert pragma(path, "application_id") == APPLICATION_ID


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "quire.db"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, path, [("CREATE TABLE a (x)",)])
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, path, [("CREATE TABLE a (x)",), ("CREATE TABLE b (x)", "CREATE TABLE a (x)")])
    assert not connection.in_transaction
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("a",)]
    connection.close()
    assert pragma(path, "user_version") == 1


async def test_a_newer_file_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "quire.db"
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_1 + "PRAGMA user_version = 99;")
    connection.close()
    store = SqliteStore(path)
    with pytest.raises(StoreError, match=rf"newer Quire \(schema 99, this one knows {len(MIGRATIONS)}\): upgrade"):
        await store.list()
    assert pragma(path, "user_version") == 99


async def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "quire.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url)")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="another program"):
        await SqliteStore(path).list()


@pytest.mark.parametrize("moment", ["PRAGMA application_id", "SELECT type, name, sql FROM sqlite_master"])
def test_a_file_that_another_process_makes_at_this_moment_is_not_foreign(tmp_path: Path, moment: str) -> None:
    path = tmp_path / "quire.db"
    tried = 0

    def migrate_elsewhere(statement: str) -> None:
        nonlocal tried
        if statement != moment or tried:
            return
        tried += 1
        other = sqlite3.connect(path, isolation_level=None, timeout=0)
        try:
            migrate(other, path)
        except sqlite3.OperationalError as locked:
            assert "locked" in str(locked)
        finally:
            other.close()

    connection = sqlite3.connect(path, isolation_level=None)
    connection.set_trace_callback(migrate_elsewhere)
    try:
        migrate(connection, path)
    finally:
        connection.close()
    assert tried == 1
    assert pragma(path, "user_version") == len(MIGRATIONS)
