"""What is particular to the SQLite store: the file, its errors, other processes, and the number of commits."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from quire.engine.records import (
    Batch,
    EffectRecord,
    Event,
    Lease,
    NewRun,
    Question,
    RunRow,
    RunUpdate,
    Status,
    Usage,
    WriteResult,
)
from quire.errors import RunBusy, StoreError, StoreFull, StoreLocked
from quire.stores import open_store, row_decoder
from quire.stores.run_pages import RunFilters
from quire.stores.sqlite.database import LOG_PAGES, explain
from quire.stores.sqlite.statements import SqliteStatements
from quire.stores.sqlite.store import SqliteStore


def new_run(id: str = "r1") -> NewRun:
    return NewRun(id, "A title", "playbook", "a.playbook.md", 10.0, {}, {})


def effect(number: int = 1, value: str = "v") -> Batch:
    path = f"{number}/model"
    record = EffectRecord(path, "model", "ok", "hash", 11.0, value, usage=Usage(1, 2, 0.5))
    return Batch(effects=(record,), events=(Event("step_completed", "", 12.0, number, path),))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".quire" / "quire.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, durability="process", busy_timeout=0.05)
    yield store
    await store.close()


async def owned(store: SqliteStore, id: str = "r1") -> Lease:
    await store.create(new_run(id))
    return await store.acquire(id)


def connection_of(store: SqliteStore) -> sqlite3.Connection:
    return store._database.connection()


@pytest.fixture
async def rival(path: Path, store: SqliteStore) -> AsyncIterator[sqlite3.Connection]:
    """Somebody who holds the write lock of the file."""
    await store.create(new_run("before"))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


class TestFile:
    async def test_reading_creates_nothing(self, tmp_path: Path, store: SqliteStore) -> None:
        assert await store.get("r1") is None
        assert list(await store.list(status=Status.INTERRUPTED)) == []
        assert list(await store.questions()) == []
        assert list(tmp_path.iterdir()) == []

    async def test_the_first_write_makes_a_folder_that_git_ignores(self, path: Path, store: SqliteStore) -> None:
        await store.create(new_run())
        assert (path.parent / ".gitignore").read_text() == "*\n"
        assert path.exists()

    async def test_a_folder_of_somebody_else_is_left_alone(self, tmp_path: Path) -> None:
        store = SqliteStore(tmp_path / "runs.db")
        await owned(store)
        assert not (tmp_path / ".gitignore").exists()
        assert {path.name for path in tmp_path.iterdir()} >= {"runs.db", "runs.db.locks"}
        await store.close()

    async def test_no_lock_file_outlives_its_drive(self, path: Path, store: SqliteStore) -> None:
        lease = await owned(store)
        assert [file.name for file in (path.parent / "locks").iterdir()] == ["r1.lock"]
        await store.release(lease)
        await store.request_cancel("r1")
        assert list((path.parent / "locks").iterdir()) == []

    @pytest.mark.parametrize(("durability", "level", "log"), [("power", 2, LOG_PAGES), ("process", 1, 1000)])
    async def test_durability(self, path: Path, durability: str, level: int, log: int) -> None:
        store = SqliteStore(path, durability="power" if durability == "power" else "process")
        await store.create(new_run())
        assert connection_of(store).execute("PRAGMA synchronous").fetchone() == (level,)
        assert connection_of(store).execute("PRAGMA wal_autocheckpoint").fetchone() == (log,)
        assert connection_of(store).execute("PRAGMA journal_mode").fetchone() == ("wal",)
        await store.close()

    async def test_the_log_is_written_over_soon(self, path: Path) -> None:
        """A sync of a file that grows costs twice as much."""
        store = SqliteStore(path)
        await store.create(new_run())
        lease = await store.acquire("r1")
        for number in range(4 * LOG_PAGES):
            await store.write(lease, effect(number + 1))
        log = path.with_name(f"{path.name}-wal").stat().st_size
        await store.close()
        assert log < 2 * LOG_PAGES * 4_200

    async def test_large_values_are_kept_once(self, store: SqliteStore) -> None:
        lease = await owned(store)
        for number in range(3):
            await store.write(lease, effect(number + 1, "x" * 100_000))
        await store.write(lease, effect(4, "x" * 60_000))
        blobs = connection_of(store).execute("SELECT sha256, length(body) FROM blobs").fetchall()
        digest = hashlib.sha256(f'"{"x" * 100_000}"'.encode()).hexdigest()
        assert blobs == [(digest, 100_002)]

    async def test_the_journal_is_durable_when_a_write_returns(self, path: Path, store: SqliteStore) -> None:
        lease = await owned(store)
        await store.write(lease, effect())
        reader = sqlite3.connect(path)
        assert reader.execute("SELECT count(*) FROM journal").fetchone() == (1,)
        reader.close()


class TestUrls:
    @pytest.mark.parametrize(
        ("where", "path"),
        [
            ("sqlite:///runs/x.db", "runs/x.db"),
            ("sqlite:////var/x.db", "/var/x.db"),
            ("x.db", "x.db"),
            (Path("y") / "x.db", "y/x.db"),
        ],
    )
    def test_known(self, where: str | Path, path: str) -> None:
        store = open_store(where)
        assert isinstance(store, SqliteStore) and store.path == Path(path)

    @pytest.mark.parametrize("where", ["mysql://host/db", "sqlite://host/x.db"])
    def test_unknown(self, where: str) -> None:
        with pytest.raises(StoreError, match="sqlite:///PATH"):
            open_store(where)

    def test_importing_the_package_costs_nothing(self) -> None:
        code = "import sys, quire.stores; print({'sqlite3', 'asyncio'} & set(sys.modules))"
        assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


class TestErrors:
    async def test_locked(self, path: Path, store: SqliteStore, rival: sqlite3.Connection) -> None:
        with pytest.raises(StoreError, match="locked by another process") as caught:
            await store.create(new_run())
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)
        rival.execute("ROLLBACK")
        await store.create(new_run())
        assert await store.get("r1") is not None

    async def test_two_who_make_the_file_at_the_same_moment(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """SQLite says "locked" at once when two switch a new file to WAL, whatever the timeout."""
        refused = 0

        class Unlucky(sqlite3.Connection):
            def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                nonlocal refused
                if sql == "PRAGMA journal_mode = WAL" and refused < 3:
                    refused += 1
                    error = sqlite3.OperationalError("database is locked")
                    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
                    raise error
                return super().execute(sql, *parameters)

        really_connect = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: really_connect(*a, **k, factory=Unlucky))
        store = SqliteStore(path, durability="process", busy_timeout=30)
        await store.create(new_run())
        assert refused == 3
        await store.close()

    async def test_a_failed_acquire_lets_the_lock_go(self, store: SqliteStore, rival: sqlite3.Connection) -> None:
        with pytest.raises(StoreError, match="locked"):
            await store.acquire("before")
        rival.execute("ROLLBACK")
        assert (await store.acquire("before")).epoch == 1

    async def test_a_locked_file_is_waited_for_once(self, path: Path, store: SqliteStore) -> None:
        lease = await owned(store)
        rival = sqlite3.connect(path, isolation_level=None)
        rival.execute("BEGIN IMMEDIATE")
        start = time.monotonic()
        results = await asyncio.gather(*(store.write(lease, effect(n + 1)) for n in range(300)), return_exceptions=True)
        assert time.monotonic() - start < 300 * 0.05
        assert {type(result) for result in results} == {StoreLocked}
        rival.execute("ROLLBACK")
        rival.close()
        assert await store.write(lease, effect()) == WriteResult()
        assert len(await store.effects("r1")) == 1

    async def test_readers_do_not_wait_for_a_writer(self, store: SqliteStore, rival: sqlite3.Connection) -> None:
        rival.execute("UPDATE runs SET title = 'half done'")
        row = await store.get("before")
        assert row is not None and row.title == "A title"
        assert len(await store.list()) == 1
        assert list(await store.questions()) == []
        assert list(await store.effects("before")) == []

    @pytest.mark.parametrize(
        "content", [b"this is not a database, it is a letter" * 50, b"SQLite format 3\0" + b"\xff" * 9000]
    )
    async def test_damaged_from_the_start(self, path: Path, store: SqliteStore, content: bytes) -> None:
        path.parent.mkdir()
        path.write_bytes(content)
        for _ in range(2):
            with pytest.raises(StoreError, match=r"quire\.db is (damaged|not a database): restore"):
                await store.list()
        assert path.read_bytes() == content

    async def test_damaged_in_the_middle(self, path: Path) -> None:
        store = SqliteStore(path, durability="process")
        lease = await owned(store)
        for number in range(200):
            await store.write(lease, effect(number + 1, "x" * 500))
        await store.close()
        data = bytearray(path.read_bytes())
        for page in range(12, len(data) // 4096):
            data[page * 4096 : page * 4096 + 64] = b"\xee" * 64
        path.write_bytes(data)
        reader = SqliteStore(path)
        with pytest.raises(StoreError, match="damaged"):
            await reader.effects("r1")
        await reader.close()

    async def test_a_damaged_text_is_damage(self, path: Path) -> None:
        """reliability S3: Python's own words were said, with the text."""
        store = SqliteStore(path, durability="process")
        await store.write(await owned(store), effect(1))
        await store.close()
        path.write_bytes(path.read_bytes().replace(b"1/model", b"1/m\xff\xfeel"))
        reader = SqliteStore(path)
        with pytest.raises(StoreError, match=r"quire\.db is damaged: restore it from a copy"):
            await reader.effects("r1")
        await reader.close()

    async def test_a_full_disk_leaves_nothing_half_written(self, store: SqliteStore) -> None:
        lease = await owned(store)
        await store.write(lease, effect(1))
        connection = connection_of(store)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="no room left"):
            await store.write(lease, effect(2, "x" * 1_000_000))
        assert [record.path for record in await store.effects("r1")] == ["1/model"]
        assert connection.execute("SELECT count(*) FROM blobs").fetchone() == (0,)
        connection.execute("PRAGMA max_page_count = 100000")
        await store.write(lease, effect(2, "x" * 1_000_000))
        assert [kept.seq for kept in await store.events("r1")] == [1, 2]

    async def test_one_write_that_does_not_fit_spares_the_others(self, store: SqliteStore) -> None:
        lease = await owned(store)
        connection = connection_of(store)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 5}")
        batches = [effect(1), effect(2), effect(3, "x" * 1_000_000), effect(4)]
        results = await asyncio.gather(*(store.write(lease, batch) for batch in batches), return_exceptions=True)
        assert [type(result) for result in results] == [WriteResult, WriteResult, StoreFull, WriteResult]
        assert [record.path for record in await store.effects("r1")] == ["1/model", "2/model", "4/model"]
        assert [kept.seq for kept in await store.events("r1")] == [1, 2, 4]
        row = await store.get("r1")
        assert row is not None and (row.input_tokens, row.output_tokens, row.cost) == (3, 6, 1.5)

    @pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
    def test_a_limit_on_file_size_is_told_in_one_line(self, path: Path) -> None:
        result = script(
            """
            import resource
            async def main():
                store = SqliteStore(path)
                await store.create(run("r1"))
                lease = await store.acquire("r1")
                soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
                resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
                try:
                    for number in range(10):
                        await store.write(lease, effect(number + 1, str(number) * 60_000))
                except StoreError as error:
                    print(error)
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
                await store.write(lease, effect(99))
                kept = [record.path for record in await store.effects("r1")]
                assert 1 < len(kept) < 10 and kept[-1] == "99/model", kept
                assert len(await store.events("r1")) == len(kept)
                print("went on")
            """,
            path,
        ).communicate(timeout=60)[0]
        told, after = result.splitlines()
        assert str(path) in told and "check the disk" in told
        assert after == "went on"

    async def test_the_folder_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("not a folder")
        store = SqliteStore(tmp_path / "file" / ".quire" / "quire.db")
        with pytest.raises(StoreError, match="file"):
            await store.create(new_run())

    @pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write everywhere")
    async def test_no_permission(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(StoreError, match="check the permissions"):
                await SqliteStore(tmp_path / ".quire" / "quire.db").create(new_run())
        finally:
            tmp_path.chmod(0o700)

    @pytest.mark.parametrize(
        ("error", "said"),
        [
            (OSError(errno.ENOSPC, "No space left on device"), "no room left on the disk of /x/quire.db"),
            (OSError(errno.EACCES, "Permission denied", "/x/locks/a.lock"), "/x/locks/a.lock may not be used"),
            (OSError(errno.EROFS, "Read-only file system"), "/x/quire.db is read-only"),
            (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
            (sqlite3.ProgrammingError("used in another thread"), "/x/quire.db: used in another thread"),
        ],
    )
    def test_errors_are_explained_in_a_line_that_names_the_file(
        self, error: sqlite3.Error | OSError, said: str
    ) -> None:
        explained = str(explain(error, Path("/x/quire.db")))
        assert said in explained and "\n" not in explained

    async def test_read_only(self, store: SqliteStore) -> None:
        await store.create(new_run())
        connection_of(store).execute("PRAGMA query_only = ON")
        with pytest.raises(StoreError, match="read-only"):
            await store.create(new_run("r2"))
        connection_of(store).execute("PRAGMA query_only = OFF")
        await store.create(new_run("r2"))


class TestCommits:
    async def commits(self, store: SqliteStore, *batches: Batch, lease: Lease) -> int:
        seen: list[str] = []
        connection_of(store).set_trace_callback(seen.append)
        await asyncio.gather(*(store.write(lease, batch) for batch in batches))
        connection_of(store).set_trace_callback(None)
        # Between BEGIN and COMMIT, or a statement that stands on its own.
        alone = sum("INSERT INTO journal" in statement and "FROM runs" in statement for statement in seen)
        return seen.count("COMMIT") + alone

    async def test_a_fan_shares_its_commits(self, store: SqliteStore) -> None:
        lease = await owned(store)
        # The first does not wait for anybody; those that come while it is at work go together.
        assert await self.commits(store, *(effect(n + 1) for n in range(100)), lease=lease) == 2
        assert len(await store.effects("r1")) == 100

    async def test_many_runs_share_their_commits(self, store: SqliteStore) -> None:
        """As many commits as one run makes, and one more each time the first does not wait for the others."""
        seen: list[str] = []

        async def drive(run: str) -> None:
            lease = await owned(store, run)
            await store.write(lease, Batch(update=RunUpdate(Status.RUNNING)))
            for number in range(3):
                await store.write(lease, effect(number + 1))
            await store.write(lease, Batch(update=RunUpdate(Status.COMPLETED)))
            await store.release(lease)

        connection_of(store).set_trace_callback(seen.append)
        await asyncio.gather(*(drive(f"r{number}") for number in range(100)))
        connection_of(store).set_trace_callback(None)
        alone = sum("INSERT INTO journal" in statement and "FROM runs" in statement for statement in seen)
        assert seen.count("COMMIT") + alone <= 2 * 7
        assert len(await store.list(status=Status.COMPLETED, limit=200)) == 100
        assert [len(await store.effects(f"r{number}")) for number in range(100)] == [3] * 100

    async def test_what_is_refused_in_a_group_does_not_hold_up_the_others(self, store: SqliteStore) -> None:
        await store.create(new_run("r3"))
        seen: list[str] = []
        connection_of(store).set_trace_callback(seen.append)
        created = await asyncio.gather(*(store.create(new_run(f"r{n}")) for n in range(6)), return_exceptions=True)
        connection_of(store).set_trace_callback(None)
        assert [str(one) for one in created if one is not None] == [f"{store.path} has a run r3 already"]
        assert (seen.count("COMMIT"), seen.count("ROLLBACK")) == (2, 0)
        assert await store.find("r") == ["r5", "r4", "r2", "r1", "r0", "r3"]

    async def test_what_fails_half_way_in_a_group_is_taken_back_alone(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(4):
            await store.create(new_run(f"r{number}"))
        decode = row_decoder.run_row

        def run_row(row: row_decoder.Row) -> RunRow:
            if row[0] == "r2":  # after its next epoch was written
                raise StoreError("the store is damaged")
            return decode(row)

        monkeypatch.setattr(row_decoder, "run_row", run_row)
        asked = [store.acquire(f"r{number}") for number in range(4)]
        leases = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(lease) for lease in leases] == [Lease, Lease, StoreError, Lease]
        epochs = connection_of(store).execute("SELECT epoch FROM runs ORDER BY n").fetchall()
        assert epochs == [(1,), (1,), (0,), (1,)]
        assert not store._locks.alive("r2")
        for lease in leases:
            if isinstance(lease, Lease):
                assert await store.write(lease, effect(1)) == WriteResult()

    async def test_an_owner_that_is_cancelled_in_the_queue_leaves_no_lock(self, store: SqliteStore) -> None:
        await store.create(new_run("r1"))
        first, second = asyncio.create_task(store.create(new_run("r2"))), asyncio.create_task(store.acquire("r1"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        assert second.cancelled() and not store._locks.alive("r1")
        assert (await store.acquire("r1")).epoch == 2

    async def test_a_single_driver_waits_for_nobody(self, store: SqliteStore) -> None:
        lease = await owned(store)
        ticks = 0

        def tick() -> None:
            nonlocal ticks
            ticks += 1

        asyncio.get_running_loop().call_soon(tick)
        for number in range(5):
            await store.write(lease, effect(number + 1))
        assert ticks == 0

    async def test_every_write_takes_the_lock_before_it_looks(self, store: SqliteStore) -> None:
        """What begins as a reader and goes on as a writer fails when somebody else has written in between."""
        lease = await owned(store)
        seen: list[str] = []
        connection_of(store).set_trace_callback(seen.append)
        await store.create(new_run("r2"))
        await store.acquire("r2")
        asked = Question("r1", "2/ask", "2", "", "confirm", "?", (), None, "h", 1.0)
        await store.write(lease, Batch(questions=(asked,), update=RunUpdate(Status.RUNNING)))
        await store.answer("r1", "2/ask", "h", "yes")
        await store.request_cancel("r1")
        connection_of(store).set_trace_callback(None)
        begun = [statement for statement in seen if statement.startswith("BEGIN")]
        assert begun == ["BEGIN IMMEDIATE"] * 5
        assert not any(one.lstrip().startswith(("INSERT", "UPDATE")) for one in seen[: seen.index("BEGIN IMMEDIATE")])

    async def test_an_empty_batch_writes_nothing(self, store: SqliteStore) -> None:
        lease = await owned(store)
        before = connection_of(store).total_changes
        assert await store.write(lease, Batch()) == WriteResult()
        assert connection_of(store).total_changes == before

    def test_one_event_loop_after_another(self, path: Path) -> None:
        store = SqliteStore(path, durability="process")
        lease = asyncio.run(owned(store))
        for number in range(3):
            assert asyncio.run(store.write(lease, effect(number + 1))) == WriteResult()
        assert len(asyncio.run(store.effects("r1"))) == 3
        asyncio.run(store.close())

    @pytest.mark.parametrize(
        ("statement", "parameters", "index"),
        [
            (SqliteStatements.QUESTIONS, (1.0,), "questions_open"),
            (SqliteStatements.RUNNING, (), "runs_by_status"),
        ],
    )
    async def test_lists_walk_an_index_and_sort_nothing(
        self, store: SqliteStore, statement: str, parameters: tuple[str | float, ...], index: str
    ) -> None:
        await store.create(new_run())
        plan = [row[3] for row in connection_of(store).execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]
        assert any(index in step for step in plan), plan
        assert not any("TEMP B-TREE" in step for step in plan), plan

    @pytest.mark.parametrize(("status", "index"), [(None, "age"), (Status.FAILED, "status"), (Status.PAUSED, "status")])
    async def test_a_page_walks_an_index_and_sorts_only_its_own_rows(
        self, store: SqliteStore, status: Status | None, index: str
    ) -> None:
        await store.create(new_run())
        query, parameters = store._queries.page(RunFilters((status,) if status else ()), None, 50, "started", True)
        rows = connection_of(store).execute(f"EXPLAIN QUERY PLAN {query}", tuple(parameters))
        *plan, last = [row[3] for row in rows]
        assert any(f"r USING INDEX runs_by_{index}" in step for step in plan), plan
        assert "TEMP B-TREE" in last and not any("TEMP B-TREE" in step for step in plan), plan

    async def test_only_runs_that_are_running_are_looked_at_for_life(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(5):
            lease = await owned(store, f"r{number}")
            asked = Question(lease.run, "2/ask", "2", "", "confirm", "?", (), None, "h", 1.0)
            status = Status.RUNNING if number == 3 else Status.AWAITING_INPUT
            await store.write(lease, Batch(questions=(asked,), update=RunUpdate(status)))
            await store.release(lease)
        looked: list[str] = []

        def alive(run: str) -> bool:
            looked.append(run)
            return False

        monkeypatch.setattr(store._locks, "alive", alive)
        assert len(await store.list()) == len(await store.questions()) == 5
        assert looked == ["r3"]


PRELUDE = """
import asyncio, sys
from pathlib import Path
from quire.engine.records import *
from quire.errors import *
from quire.stores.sqlite.store import SqliteStore
path = Path(sys.argv[1])
def run(id):
    return NewRun(id, "A title", "playbook", "a.playbook.md", 10.0, {}, {})
def effect(number, value="v"):
    record = EffectRecord(f"{number}/model", "model", "ok", "hash", 11.0, value)
    return Batch(effects=(record,), events=(Event("step_completed", "", 12.0, number, f"{number}/model"),))
def say(word):
    print(word, flush=True)
def wait():
    sys.stdin.readline()
"""


def script(body: str, path: Path, *arguments: str) -> subprocess.Popen[str]:
    """Another process. It says things on stdout and waits for lines on stdin."""
    indent = len(body) - len(body.lstrip("\n ")) - 1
    lines = [line[indent:] for line in body.strip("\n").splitlines()]
    code = "\n".join((PRELUDE, *lines, "asyncio.run(main())"))
    return subprocess.Popen(
        [sys.executable, "-c", code, str(path), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


OWNER = """
    async def main():
        store = SqliteStore(path, durability="process")
        lease = await store.acquire("r1")
        await store.write(lease, Batch(update=RunUpdate(Status.RUNNING, "1")))
        await store.write(lease, effect(1))
        say("owned")
        wait()
        await store.write(lease, effect(2))
        await store.release(lease)
        say("released")
        wait()
"""


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.fixture
def owner(path: Path) -> Iterator[subprocess.Popen[str]]:
    store = SqliteStore(path, durability="process")
    asyncio.run(_create(store))
    process = script(OWNER, path)
    assert heard(process) == "owned"
    yield process
    process.kill()
    process.communicate()


async def _create(store: SqliteStore) -> None:
    await store.create(new_run())
    await store.close()


class TestProcesses:
    async def test_a_run_is_driven_by_one_process(self, store: SqliteStore, owner: subprocess.Popen[str]) -> None:
        with pytest.raises(RunBusy, match="r1"):
            await store.acquire("r1")
        row = await store.get("r1")
        assert row is not None and (row.status, row.position) == (Status.RUNNING, "1")
        tell(owner)
        assert heard(owner) == "released"
        lease = await store.acquire("r1")
        assert (lease.epoch, lease.last_seq) == (2, 2)

    @pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
    async def test_a_killed_owner_is_seen_at_once(self, store: SqliteStore, owner: subprocess.Popen[str]) -> None:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        row = await store.get("r1")
        assert row is not None and row.status is Status.INTERRUPTED
        assert [found.id for found in await store.list(status=Status.INTERRUPTED)] == ["r1"]
        lease = await store.acquire("r1")
        assert (lease.epoch, lease.last_seq) == (2, 1)
        assert [record.path for record in await store.effects("r1")] == ["1/model"]
        await store.write(lease, effect(2))
        await store.release(lease)

    @pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
    async def test_cancel_asks_the_living_and_settles_the_dead(
        self, store: SqliteStore, owner: subprocess.Popen[str]
    ) -> None:
        assert await store.request_cancel("r1") is False
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        assert await store.request_cancel("r1") is True
        row = await store.get("r1")
        assert row is not None and row.status is Status.CANCELLED

    async def test_a_flag_that_the_owner_never_saw_is_settled_when_it_lets_go(
        self, store: SqliteStore, owner: subprocess.Popen[str]
    ) -> None:
        assert await store.request_cancel("r1") is False
        tell(owner)
        assert heard(owner) == "released"
        row = await store.get("r1")
        assert row is not None and row.status is Status.CANCELLED
        assert [kept.type for kept in await store.events("r1")][-1] == "run_cancelled"

    async def test_an_owner_that_cancels_in_the_moment_it_is_asked(
        self, store: SqliteStore, owner: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        taking = store._take_lock
        tries: list[str] = []

        async def take(run: str) -> bool:
            tries.append(run)
            if len(tries) == 2:  # between the flag and the second look at the lock
                tell(owner)
                assert heard(owner) == "released"
            return await taking(run)

        monkeypatch.setattr(store, "_take_lock", take)
        assert await store.request_cancel("r1") is False
        row = await store.get("r1")
        assert row is not None and row.status is Status.CANCELLED
        assert [kept.type for kept in await store.events("r1")].count("run_cancelled") == 1

    def test_many_processes_make_one_file_and_share_it(self, path: Path) -> None:
        body = """
            async def main():
                wait()
                store = SqliteStore(path, durability="process", busy_timeout=30)
                mine = sys.argv[2]
                await store.create(run(mine))
                lease = await store.acquire(mine)
                for number in range(20):
                    await store.write(lease, effect(number + 1))
                await store.release(lease)
                await store.close()
                say("done")
        """
        processes = [script(body, path, f"p{number}") for number in range(4)]
        for process in processes:
            tell(process)
        assert [process.communicate(timeout=60)[0].strip() for process in processes] == ["done"] * 4
        store = SqliteStore(path)
        for number in range(4):
            assert len(asyncio.run(store.effects(f"p{number}"))) == 20
        asyncio.run(store.close())

    def test_of_many_who_want_a_run_one_gets_it(self, path: Path) -> None:
        asyncio.run(_create(SqliteStore(path, durability="process")))
        body = """
            async def main():
                wait()
                store = SqliteStore(path, durability="process", busy_timeout=30)
                try:
                    await store.acquire("r1")
                except RunBusy:
                    say("busy")
                else:
                    say("mine")
                wait()
        """
        processes = [script(body, path) for _ in range(4)]
        for process in processes:
            tell(process)
        # Nobody lets go before all have tried.
        words = sorted(heard(process) for process in processes)
        for process in processes:
            process.communicate("\n")
        assert words == ["busy", "busy", "busy", "mine"]
