"""What is particular to the PostgreSQL store: its address, its errors, its locks, and writes of unknown fate."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace
from tests.stores.postgres_server import PostgresServer, shared_server
from tests.stores.test_sqlite import effect, new_run

from quire.engine.records import (
    Batch,
    Lease,
    Letter,
    Question,
    RunRow,
    RunUpdate,
    Status,
    WriteResult,
)
from quire.errors import Fenced, RunBusy, StoreError
from quire.stores import open_store, row_decoder
from quire.stores.contract import ENDED, Pruned
from quire.stores.occurrences import Process
from quire.stores.postgres.database import Address, explain, is_away
from quire.stores.postgres.statements import MIGRATIONS, migrate
from quire.stores.postgres.store import PostgresStore
from quire.stores.run_pages import RunFilters, Sort


def asked(run: str = "r1") -> Question:
    return Question(run, "2/ask", "2", "", "confirm", "?", (), None, "h", 1.0)


async def owned(store: PostgresStore, id: str = "r1") -> Lease:
    await store.create(new_run(id))
    return await store.acquire(id)


@pytest.fixture
def server() -> PostgresServer:
    return shared_server()


@pytest.fixture
def schema(server: PostgresServer) -> str:
    return server.new_schema()


@pytest.fixture
async def store(server: PostgresServer, schema: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(server.url(schema=schema), durability="process")
    yield store
    await store.close()


class TestAddress:
    @pytest.mark.parametrize(
        ("url", "place"),
        [
            ("postgresql://me:secret@db.example:5433/runs", "postgresql://db.example:5433/runs"),
            ("postgres://me:secret@db.example/runs?sslmode=require", "postgresql://db.example/runs"),
            ("postgresql://me:secret@/runs?host=/var/run", "postgresql://localhost/runs"),
            ("postgresql://me:s%40%2Fcret@one:1,two:2/runs", "postgresql://one,two:1,2/runs"),
            ("postgresql://me:secret@db.example", "postgresql://db.example/me"),
        ],
    )
    def test_messages_name_the_database_without_its_password(self, url: str, place: str) -> None:
        assert Address(url).place == place

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://me:se%zzcret@db.example/runs",
            "postgresql://me:se@cret@db.example/runs",
            "postgresql://me:se/cret@db.example/runs",
            "postgresql://me:secret@db.example/runs?nonsense=secret",
        ],
    )
    def test_a_url_that_cannot_be_read_is_not_repeated(self, url: str) -> None:
        with pytest.raises(StoreError, match="write postgresql://USER:PASSWORD@HOST") as caught:
            open_store(url)
        assert "cret" not in str(caught.value) and "\n" not in str(caught.value)

    def test_what_a_url_says_of_time_outs_stands(self) -> None:
        assert "connect_timeout=3" in Address("postgresql://db.example/runs?connect_timeout=3").conninfo
        assert "connect_timeout=10" in Address("postgresql://db.example/runs").conninfo

    def test_importing_the_package_costs_nothing(self) -> None:
        code = "import sys, quire.stores; print({'psycopg', 'asyncio', 'sqlite3'} & set(sys.modules))"
        assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"

    def test_without_psycopg(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "psycopg", None)
        for name in [name for name in sys.modules if name.startswith("quire.stores.postgres.")]:
            monkeypatch.delitem(sys.modules, name)
        with pytest.raises(StoreError, match="needs psycopg: make setup"):
            open_store("postgresql://db.example/runs")


class TestErrors:
    async def test_nobody_there(self) -> None:
        """At once: who has never seen the server does not wait for it."""
        store = PostgresStore("postgresql://me:s3cret@127.0.0.1:1/runs")
        with pytest.raises(StoreError, match=r"^postgresql://127\.0\.0\.1:1/runs does not answer: .*refused") as caught:
            await store.list()
        assert "s3cret" not in str(caught.value) and "\n" not in str(caught.value)
        await store.close()

    async def test_no_such_database(self, server: PostgresServer) -> None:
        store = PostgresStore(server.url(database="nothing"))
        with pytest.raises(StoreError, match="/nothing does not exist: create the database"):
            await store.create(new_run())

    async def test_no_such_user(self, server: PostgresServer) -> None:
        store = PostgresStore(server.url(user="nobody"))
        with pytest.raises(StoreError, match="does not know this user"):
            await store.list()

    async def test_no_such_schema(self, server: PostgresServer) -> None:
        store = PostgresStore(server.url(schema="nothing"))
        with pytest.raises(StoreError, match="has no schema to put tables into"):
            await store.list()

    async def test_a_user_who_may_not_make_tables(self, server: PostgresServer, schema: str) -> None:
        server.do(f"CREATE ROLE guest_{schema} LOGIN")
        server.do(f"GRANT USAGE ON SCHEMA {schema} TO guest_{schema}")
        store = PostgresStore(server.url(user=f"guest_{schema}", schema=schema))
        with pytest.raises(StoreError, match="grant it CREATE on the schema"):
            await store.list()

    async def test_a_server_that_takes_no_writes(
        self, server: PostgresServer, schema: str, store: PostgresStore
    ) -> None:
        await store.create(new_run())
        url = server.url(schema=schema).replace("search_path", "default_transaction_read_only%3Don%20-csearch_path")
        reader = PostgresStore(url)
        assert await reader.get("r1") is not None
        with pytest.raises(StoreError, match="is read-only"):
            await reader.create(new_run("r2"))
        await reader.close()

    async def test_lost_tables(self, server: PostgresServer, schema: str, store: PostgresStore) -> None:
        await store.create(new_run())
        server.do(f"DROP TABLE {schema}.quire_questions")
        with pytest.raises(StoreError, match="has lost tables of Quire"):
            await store.questions()

    @pytest.mark.parametrize(
        ("error", "said", "away"),
        [
            (psycopg.errors.DiskFull("could not extend file"), "no room left on the disk of pg", False),
            (psycopg.errors.TooManyConnections("sorry"), "pg has no connection left", True),
            (psycopg.errors.OutOfMemory("out"), "has run out of memory", False),
            (psycopg.errors.AdminShutdown("terminating"), "does not answer", True),
            (psycopg.errors.DeadlockDetected("deadlock"), "40P01: deadlock", True),
            (psycopg.errors.UniqueViolation("twice"), "contradicts what it holds", False),
            (psycopg.OperationalError("server closed the connection\nunexpectedly"), "server closed", True),
            (psycopg.OperationalError('x failed: FATAL:  role "a" does not exist'), "does not know this user", False),
            (
                psycopg.OperationalError("x failed: FATAL:  the database system is starting up"),
                "(the database system is starting up)",
                True,
            ),
            (psycopg.ProgrammingError("no records"), "pg cannot be used: no records", False),
        ],
    )
    def test_errors_are_explained_in_a_line(self, error: psycopg.Error, said: str, away: bool) -> None:
        explained = str(explain(error, "pg"))
        assert said in explained and "\n" not in explained
        assert is_away(error) is away


class TestSchema:
    async def connect(self, server: PostgresServer, schema: str) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        return await psycopg.AsyncConnection.connect(server.url(schema=schema), autocommit=True)

    async def test_only_what_is_missing_is_applied(self, server: PostgresServer, schema: str) -> None:
        steps = [("CREATE TABLE a (x INT)",), ("CREATE TABLE b (x INT)", "INSERT INTO b VALUES (1)")]
        connection = await self.connect(server, schema)
        for known in (steps[:1], steps, steps):
            await migrate(connection, "pg", known)
        await connection.close()
        assert server.do(f"SELECT x FROM {schema}.b") == [(1,)]
        assert server.do(f"SELECT version FROM {schema}.quire_schema") == [(2,)]

    async def test_a_migration_that_fails_leaves_the_tables_as_they_were(
        self, server: PostgresServer, schema: str
    ) -> None:
        connection = await self.connect(server, schema)
        await migrate(connection, "pg", [("CREATE TABLE a (x INT)",)])
        with pytest.raises(psycopg.Error):
            await migrate(
                connection, "pg", [("CREATE TABLE a (x INT)",), ("CREATE TABLE b (x INT)", "CREATE TABLE a (x INT)")]
            )
        await connection.close()
        assert server.do(f"SELECT version, to_regclass('{schema}.b') FROM {schema}.quire_schema") == [(1, None)]

    async def test_tables_of_version_1_are_brought_up_to_date(self, server: PostgresServer, schema: str) -> None:
        connection = await self.connect(server, schema)
        await migrate(connection, "pg", MIGRATIONS[:1])
        await connection.execute(
            "INSERT INTO quire_runs (id, title, format, document, status, created_at, updated_at) "
            "VALUES ('old', 'Old', 'playbook', 'a.md', 'completed', 1, 2)"
        )
        await connection.execute("INSERT INTO quire_pins SELECT n, '{}' FROM quire_runs")
        await connection.close()
        store = PostgresStore(server.url(schema=schema))
        assert [(row.id, row.updated_at) for row in await store.list()] == [("old", 2.0)]
        assert (await store.prune(3.0, (Status.COMPLETED,), dry_run=False, vacuum=False)).runs == ("old",)
        await store.close()
        assert server.do(f"SELECT version FROM {schema}.quire_schema") == [(len(MIGRATIONS),)]

    async def test_looking_leaves_the_schema_before_as_it_is_and_its_processes_go_on(
        self, server: PostgresServer, schema: str
    ) -> None:
        """reliability M6, for a database: workers are upgraded one by one."""
        old = await self.connect(server, schema)
        await migrate(old, "pg", MIGRATIONS[:-1])

        async def write_as_before(run: str) -> None:
            for statement, parameters in (
                (
                    "INSERT INTO quire_runs (id, title, format, document, created_at, updated_at, subject, name, note, "
                    "until) VALUES (%s, 'Old', 'playbook', 'a.md', 1, 2, NULL, NULL, NULL, NULL) "
                    "ON CONFLICT (id) DO NOTHING RETURNING n",
                    (run,),
                ),
                ("INSERT INTO quire_pins SELECT n, '{}' FROM quire_runs WHERE id = %s", (run,)),
                ("UPDATE quire_runs SET epoch = epoch + 1, cancel_requested = FALSE WHERE id = %s", (run,)),
                ("UPDATE quire_runs SET status = 'failed', expires_at = NULL WHERE id = %s", (run,)),
            ):
                await old.execute(statement.encode(), parameters, prepare=True)

        await write_as_before("old")
        columns = f"SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = '{schema}'"
        before = server.do(f"{columns} ORDER BY 1, 2")
        store = PostgresStore(server.url(schema=schema), durability="process")
        sorts: tuple[Sort, ...] = ("started", "took", "cost", "subject")
        for sort in sorts:
            assert [row.id for row in (await store.page(RunFilters(), sort=sort)).rows] == ["old"]
        row = await store.get("old")
        assert row is not None and (row.source, row.wake_at, row.process) == ("", None, "")
        assert await store.find("ol") == ["old"] and (await store.spent(0.0)).failed == 1
        assert [*await store.questions(), *(await store.oldest_questions(5))[0], *await store.effects("old")] == []
        assert [*await store.triggers(), *await store.starts(), *await store.processes(), *await store.due(9.0)] == []
        assert (await store.marks()).runs == 1
        await store.beat(Process("p", "serve", "h", 1, "9", "", 1.0, 1.0, 1, 0))
        assert server.do(f"{columns} ORDER BY 1, 2") == before
        await store.create(new_run())
        await store.beat(Process("p", "serve", "h", 1, "9", "", 1.0, 1.0, 1, 0))
        assert len(await store.processes()) == 1
        await write_as_before("old 2")
        await old.close()
        assert {row.id for row in await store.list()} == {"old", "old 2", "r1"}
        await store.close()

    async def test_a_newer_schema_is_refused(self, server: PostgresServer, schema: str, store: PostgresStore) -> None:
        await store.create(new_run())
        server.do(f"UPDATE {schema}.quire_schema SET version = 99")
        late = PostgresStore(server.url(schema=schema))
        said = rf"newer Quire \(schema 99, this one knows {len(MIGRATIONS)}\): upgrade"
        with pytest.raises(StoreError, match=said):
            await late.list()
        assert server.do(f"SELECT version FROM {schema}.quire_schema") == [(99,)]

    async def test_many_who_make_the_tables_at_the_same_moment(self, server: PostgresServer, schema: str) -> None:
        stores = [PostgresStore(server.url(schema=schema)) for _ in range(8)]
        await asyncio.gather(*(store.create(new_run(f"r{number}")) for number, store in enumerate(stores)))
        assert len(await stores[0].list()) == 8
        for store in stores:
            await store.close()

    async def test_two_schemas_of_a_database_do_not_meet(self, server: PostgresServer, store: PostgresStore) -> None:
        other = PostgresStore(server.url(schema=server.new_schema()))
        for one in (store, other):
            lease = await owned(one)
            await one.write(lease, Batch(update=RunUpdate(Status.RUNNING)))
        await store.release(Lease("r1", 1, 0, frozenset()))
        states = [(await one.list())[0].status for one in (store, other)]
        assert states == [Status.INTERRUPTED, Status.RUNNING]
        await other.close()


class TestCommits:
    def commits(self, server: PostgresServer, schema: str, table: str = "journal") -> int:
        """Each transaction marks its rows with its number."""
        return int(server.do(f"SELECT count(DISTINCT xmin::text) FROM {schema}.quire_{table}")[0][0])

    async def test_a_fan_shares_its_commits(self, server: PostgresServer, schema: str, store: PostgresStore) -> None:
        lease, other = await owned(store), await owned(store, "r2")
        batches = [(one, effect(n + 1)) for n in range(50) for one in (lease, other)]
        await asyncio.gather(*(store.write(one, batch) for one, batch in batches))
        assert self.commits(server, schema) <= 2
        assert len(await store.effects("r1")) == len(await store.effects("r2")) == 50

    async def test_many_runs_share_their_commits(
        self, server: PostgresServer, schema: str, store: PostgresStore
    ) -> None:
        ids = [f"r{number}" for number in range(60)]
        await asyncio.gather(*(store.create(new_run(id)) for id in ids))
        assert self.commits(server, schema, "pins") <= 2
        leases = await asyncio.gather(*(store.acquire(id) for id in ids))
        assert self.commits(server, schema, "runs") <= 5
        await asyncio.gather(*(store.write(lease, effect(1)) for lease in leases))
        assert self.commits(server, schema) <= 2
        assert [lease.run for lease in leases] == ids and {lease.epoch for lease in leases} == {1}
        assert [len(await store.effects(id)) for id in ids] == [1] * 60

    async def test_what_is_refused_in_a_group_does_not_hold_up_the_others(
        self, server: PostgresServer, schema: str, store: PostgresStore
    ) -> None:
        await store.create(new_run("r3"))
        created = await asyncio.gather(*(store.create(new_run(f"r{n}")) for n in range(6)), return_exceptions=True)
        assert [str(one) for one in created if one is not None] == [f"{store.place} has a run r3 already"]
        assert self.commits(server, schema, "pins") <= 3
        assert await store.find("r") == ["r5", "r4", "r2", "r1", "r0", "r3"]

    async def test_what_fails_half_way_in_a_group_is_taken_back_alone(
        self, server: PostgresServer, schema: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(5):
            await store.create(new_run(f"r{number}"))
        decode = row_decoder.run_row

        def run_row(row: row_decoder.Row) -> RunRow:
            if row[0] == "r2":  # after its next epoch was written
                raise StoreError("the store is damaged")
            return decode(row)

        monkeypatch.setattr(row_decoder, "run_row", run_row)
        asked = [store.acquire(f"r{number}") for number in range(5)]
        leases = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(lease) for lease in leases] == [Lease, Lease, StoreError, Lease, Lease]
        assert "r2" not in store._locked
        assert server.do(f"SELECT epoch FROM {schema}.quire_runs ORDER BY n") == [(1,), (1,), (0,), (1,), (1,)]
        for lease in leases:
            if isinstance(lease, Lease):
                assert await store.write(lease, effect(1)) == WriteResult()

    async def test_a_group_that_the_server_refuses_is_tried_one_by_one(
        self, server: PostgresServer, schema: str, store: PostgresStore
    ) -> None:
        await store.find("r")
        server.do(f"ALTER TABLE {schema}.quire_runs ADD CHECK (id != 'r2')")
        created = await asyncio.gather(*(store.create(new_run(f"r{n}")) for n in range(5)), return_exceptions=True)
        assert [one is None for one in created] == [True, True, False, True, True]
        assert "contradicts what it holds" in str(created[2])
        assert await store.find("r") == ["r4", "r3", "r1", "r0"]

    async def test_a_step_is_one_statement(self, store: PostgresStore) -> None:
        lease = await owned(store)
        seen: list[str] = []
        watch(store, lambda sql: seen.append(sql))
        for number in range(3):
            await store.write(lease, effect(number + 1))
        assert len(seen) == 3 and all("WITH mine" in sql for sql in seen)

    async def test_one_write_that_is_refused_spares_the_others(
        self, server: PostgresServer, schema: str, store: PostgresStore
    ) -> None:
        lease = await owned(store)
        server.do(f"ALTER TABLE {schema}.quire_journal ADD CHECK (value != '\"bad\"')")
        batches = [effect(1), effect(2), effect(3, "bad"), effect(4)]
        results = await asyncio.gather(*(store.write(lease, batch) for batch in batches), return_exceptions=True)
        assert [type(result) for result in results] == [WriteResult, WriteResult, StoreError, WriteResult]
        assert [record.path for record in await store.effects("r1")] == ["1/model", "2/model", "4/model"]
        row = await store.get("r1")
        assert row is not None and (row.input_tokens, row.output_tokens, row.cost) == (3, 6, 1.5)

    async def test_a_bug_in_one_write_leaves_nobody_waiting(
        self, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lease = await owned(store)

        async def bug(work: object) -> object:
            monkeypatch.undo()
            raise RuntimeError("a bug")

        monkeypatch.setattr(store._server, "as_owner_unshielded", bug)
        monkeypatch.setattr("quire.stores.postgres.writer.GROUP", 1)
        results = await asyncio.gather(*(store.write(lease, effect(n)) for n in (1, 2)), return_exceptions=True)
        assert [type(result) for result in results] == [RuntimeError, WriteResult]

    async def test_large_values_are_kept_once_and_out_of_the_row(
        self, server: PostgresServer, schema: str, store: PostgresStore
    ) -> None:
        lease = await owned(store)
        for number in range(3):
            await store.write(lease, effect(number + 1, "x" * 100_000))
        await store.write(lease, effect(4, "x" * 60_000))
        assert server.do(f"SELECT octet_length(body) FROM {schema}.quire_blobs") == [(100_002,)]
        assert server.do(f"SELECT max(octet_length(value)) FROM {schema}.quire_journal") == [(60_002,)]

    async def test_an_empty_batch_writes_nothing(
        self, server: PostgresServer, schema: str, store: PostgresStore
    ) -> None:
        lease = await owned(store)
        assert await store.write(lease, Batch()) == WriteResult()
        assert server.do(f"SELECT count(*) FROM {schema}.quire_journal") == [(0,)]

    @pytest.mark.parametrize(("durability", "setting"), [("power", "on"), ("process", "off")])
    async def test_durability(self, server: PostgresServer, schema: str, durability: Any, setting: str) -> None:
        store = PostgresStore(server.url(schema=schema), durability=durability)
        await owned(store)
        for connection in (owner_of(store), store._server._idle[0]):
            found = await (await connection.execute("SHOW synchronous_commit")).fetchone()
            assert found == (setting,)
        await store.close()

    def test_one_event_loop_after_another(self, server: PostgresServer, schema: str) -> None:
        store = PostgresStore(server.url(schema=schema), durability="process")
        lease = asyncio.run(owned(store))
        for number in range(3):
            assert asyncio.run(store.write(lease, effect(number + 1))) == WriteResult()
        assert len(asyncio.run(store.effects("r1"))) == 3
        asyncio.run(store.close())

    async def test_a_few_connections_serve_many_readers(self, server: PostgresServer, schema: str) -> None:
        store = PostgresStore(server.url(schema=schema))
        await store.create(new_run())
        await asyncio.gather(*(store.get("r1") for _ in range(40)))
        name = store._server._name
        (count,) = server.do("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE %s", f"{name}%")[0]
        assert 1 <= count <= 4
        await store.close()
        gone = server.do(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE %s AND state = 'active'", name
        )
        assert gone == [(0,)]

    async def test_a_reader_that_is_cancelled_leaves_no_mess(self, store: PostgresStore) -> None:
        await store.create(new_run())
        tasks = [asyncio.create_task(store.list()) for _ in range(6)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert len(await store.list()) == 1

    async def test_an_acquire_that_is_cancelled_lets_go(self, server: PostgresServer, schema: str) -> None:
        store, other = (PostgresStore(server.url(schema=schema)) for _ in range(2))
        await store.create(new_run())
        task = asyncio.create_task(store.acquire("r1"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (await other.acquire("r1")).run == "r1"
        for one in (store, other):
            await one.close()


def owner_of(store: PostgresStore) -> psycopg.AsyncConnection[tuple[Any, ...]]:
    connection = store._server._owner
    assert connection is not None
    return connection


def watch(store: PostgresStore, before: Callable[[str], object]) -> None:
    """Calls `before` with each statement on the owner's connection."""
    connection = owner_of(store)
    execute = connection.execute

    async def watched(sql: Any, *arguments: Any, **options: Any) -> Any:
        before(sql)
        return await execute(sql, *arguments, **options)

    connection.execute = watched  # type: ignore[assignment,method-assign]


def cut(store: PostgresStore, part: str, *, done: bool) -> None:
    """The network fails at the first statement with this text: before it reaches the server, or on the way back."""
    connection = owner_of(store)
    execute = connection.execute

    async def failing(sql: Any, *arguments: Any, **options: Any) -> Any:
        if part not in sql:
            return await execute(sql, *arguments, **options)
        if done:
            await execute(sql, *arguments, **options)
            if connection.pgconn.pipeline_status:
                pipeline = connection._pipeline
                assert pipeline is not None
                await pipeline.sync()
        await connection.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    connection.execute = failing  # type: ignore[assignment,method-assign]


BATCHES = {
    "alone": (effect(1), "WITH mine"),
    "status": (Batch(update=RunUpdate(Status.FAILED)), "COMMIT"),
    "all": (
        Batch(
            effects=effect(1).effects,
            events=effect(1).events,
            questions=(asked(),),
            letters=(Letter("me", "r1", "hello", 1.0),),
            update=RunUpdate(Status.RUNNING, "1"),
        ),
        "COMMIT",
    ),
    "letter": (Batch(letters=(Letter("me", "r1", "hello", 1.0),)), "COMMIT"),
}


class TestUnknownFate:
    @pytest.mark.parametrize("done", [False, True], ids=["lost", "done"])
    @pytest.mark.parametrize(("batch", "part"), BATCHES.values(), ids=BATCHES.keys())
    async def test_a_write_goes_in_once(
        self, server: PostgresServer, schema: str, store: PostgresStore, batch: Batch, part: str, done: bool
    ) -> None:
        lease = await owned(store)
        cut(store, part, done=done)
        assert await store.write(lease, batch) == WriteResult()
        assert await store.write(lease, effect(2)) == WriteResult()
        assert [record.path for record in await store.effects("r1")] == [
            *(one.path for one in batch.effects),
            "2/model",
        ]
        assert list(await store.letters()) == list(batch.letters)
        assert [kept.seq for kept in await store.events("r1")] == [*(one.seq for one in batch.events), 2]
        row = await store.get("r1")
        assert row is not None and row.input_tokens == len(batch.effects) + 1
        # The rows of both writes, and none of them twice.
        assert server.do(f"SELECT count(*) FROM {schema}.quire_journal") == [(2,)]
        with pytest.raises(RunBusy):
            await PostgresStore(server.url(schema=schema)).acquire("r1")

    @pytest.mark.parametrize("done", [False, True], ids=["lost", "done"])
    async def test_a_group_goes_in_once(self, store: PostgresStore, done: bool) -> None:
        lease, other = await owned(store), await owned(store, "r2")
        cut(store, "COMMIT", done=done)
        batches = [(one, effect(n + 1)) for n in range(10) for one in (lease, other)]
        await asyncio.gather(*(store.write(one, batch) for one, batch in batches))
        for run in ("r1", "r2"):
            assert len(await store.effects(run)) == 10
            assert [kept.seq for kept in await store.events(run)] == list(range(1, 11))
            row = await store.get(run)
            assert row is not None and row.input_tokens == 10

    @pytest.mark.parametrize("done", [False, True], ids=["lost", "done"])
    async def test_a_park_happens_once(self, store: PostgresStore, done: bool) -> None:
        lease = await owned(store)
        cut(store, "COMMIT", done=done)
        assert await store.park(lease, Batch(questions=(asked(),), update=RunUpdate(Status.AWAITING_INPUT)))
        assert [question.path for question in await store.questions()] == ["2/ask"]

    async def test_who_was_taken_over_in_between_is_told(
        self, server: PostgresServer, schema: str, store: PostgresStore
    ) -> None:
        lease = await owned(store)
        other = PostgresStore(server.url(schema=schema))
        await other.list()
        server.end_owner(schema, "r1")
        await other.acquire("r1")
        with pytest.raises(Fenced):
            await store.write(lease, effect())
        await other.close()

    async def test_a_server_that_has_forgotten_what_it_confirmed(
        self, server: PostgresServer, schema: str, store: PostgresStore
    ) -> None:
        lease = await owned(store)
        for number in (1, 2):
            await store.write(lease, effect(number))
        server.do(f"DELETE FROM {schema}.quire_journal WHERE path = '2/model'")
        with pytest.raises(StoreError, match="has lost effects of run r1 that it had confirmed"):
            await store.write(lease, effect(3))
        await store.release(lease)
        assert (await store.acquire("r1")).last_seq == 1

    @pytest.mark.parametrize("done", [False, True], ids=["lost", "done"])
    @pytest.mark.parametrize("verb", ["create", "answer", "cancel"])
    async def test_verbs_of_others_happen_once(
        self, server: PostgresServer, schema: str, store: PostgresStore, verb: str, done: bool
    ) -> None:
        lease = await owned(store)
        await store.park(lease, Batch(questions=(asked(),), update=RunUpdate(Status.AWAITING_INPUT)))
        await store.release(lease)
        broken: list[bool] = []
        transaction = psycopg.AsyncConnection.transaction

        class Cut:
            def __init__(self, connection: Any) -> None:
                self.connection, self.inner = connection, transaction(connection)

            async def __aenter__(self) -> object:
                return await self.inner.__aenter__()

            async def __aexit__(self, *raised: Any) -> object:
                if broken:
                    return await self.inner.__aexit__(*raised)
                broken.append(True)
                if done:
                    await self.inner.__aexit__(*raised)
                await self.connection.close()
                raise psycopg.OperationalError("server closed the connection unexpectedly")

        verbs: dict[str, Callable[[], Awaitable[object]]] = {
            "create": lambda: store.create(new_run("r2")),
            "answer": lambda: store.answer("r1", "2/ask", "h", "yes"),
            "cancel": lambda: store.request_cancel("r1"),
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(psycopg.AsyncConnection, "transaction", lambda connection: Cut(connection))
            await verbs[verb]()
        assert broken
        match verb:
            case "create":
                assert await store.get("r2") is not None
            case "answer":
                assert [answer.value for answer in await store.answers("r1")] == ["yes"]
            case _:
                assert [kept.type for kept in await store.events("r1")] == ["run_cancelled"]


class TestRaces:
    """Somebody holds the row of a run; what waits for it sees what was done there, not what was true before."""

    async def behind(
        self, server: PostgresServer, schema: str, sql: str, work: Awaitable[object], waits_for: str = "quire_runs"
    ) -> list[object]:
        """Starts the work while a transaction with `sql` is open, and commits that when the work waits for it."""
        rival = await psycopg.AsyncConnection.connect(server.url(schema=schema))
        await rival.execute("SELECT 1 FROM quire_runs WHERE id = 'r1' FOR UPDATE")
        await rival.execute(sql.encode())
        task = asyncio.ensure_future(work)
        waiting = f"""
            SELECT count(*) FROM pg_stat_activity
            WHERE wait_event_type = 'Lock' AND query LIKE '%%{waits_for}%%' AND %s = ANY(pg_blocking_pids(pid))
        """
        for _ in range(2_000):
            if task.done() or server.do(waiting, rival.info.backend_pid) != [(0,)]:
                break
            await asyncio.sleep(0.002)
        assert not task.done()
        await rival.commit()
        await rival.close()
        return list(await asyncio.gather(task, return_exceptions=True))

    async def test_an_answer_that_comes_while_a_run_parks(
        self, server: PostgresServer, schema: str, store: PostgresStore
    ) -> None:
        lease = await owned(store)
        await store.write(lease, Batch(questions=(asked(),), update=RunUpdate(Status.RUNNING)))
        parked = store.park(lease, Batch(update=RunUpdate(Status.AWAITING_INPUT)))
        answered = "UPDATE quire_questions SET state = 'answered', answer = 'yes'"
        assert await self.behind(server, schema, answered, parked) == [False]
        row = await store.get("r1")
        assert row is not None and row.status is Status.RUNNING

    @pytest.mark.parametrize("batch", [effect(1), Batch(update=RunUpdate(Status.FAILED))])
    async def test_a_take_over_while_a_write_is_on_its_way(
        self, server: PostgresServer, schema: str, store: PostgresStore, batch: Batch
    ) -> None:
        lease = await owned(store)
        taken = "UPDATE quire_runs SET epoch = epoch + 1"
        (result,) = await self.behind(server, schema, taken, store.write(lease, batch))
        assert isinstance(result, Fenced)
        assert list(await store.effects("r1")) == []

    async def test_an_attempt_that_is_still_under_way_when_it_is_made_again(
        self, server: PostgresServer, schema: str, store: PostgresStore
    ) -> None:
        """A connection that we have given up may commit yet."""
        lease = await owned(store)
        place = 1 << 12
        row = f"""
            INSERT INTO quire_journal
                (run, place, written_at, position, total_input, total_output, path, state, kind, request, at, elapsed)
            SELECT n, {place}, 1, '', 1, 2, '1/model', 'ok', 'model', 'h', 1, 0 FROM quire_runs
        """
        result = await self.behind(server, schema, row, store.write(lease, effect(1)))
        assert result == [WriteResult()]
        assert server.do(f"SELECT place FROM {schema}.quire_journal") == [(place,)]
        assert await store.write(lease, effect(2)) == WriteResult()

    async def test_a_text_that_a_new_run_has_found_is_not_removed(
        self, server: PostgresServer, schema: str, store: PostgresStore
    ) -> None:
        """It was there already, so the new run has put nothing in; and what refers to it is not to be seen yet."""
        text = "# Shared"
        digest = hashlib.sha256(text.encode()).hexdigest()
        await store.create(replace(new_run("old"), pins={"document": digest}, texts={digest: text}))
        await store.request_cancel("old")
        found = f"""
            WITH made AS (
                INSERT INTO quire_runs (id, title, format, document, created_at, updated_at)
                VALUES ('r1', '', '', '', 1, 1) RETURNING n
            ), put AS (
                INSERT INTO quire_blobs VALUES ('{digest}', 'x') ON CONFLICT DO NOTHING
            )
            INSERT INTO quire_pins SELECT n, '{{"document":"{digest}"}}' FROM made
        """
        pruned = store.prune(float("inf"), ENDED, dry_run=False, vacuum=False)
        (result,) = await self.behind(server, schema, found, pruned, waits_for="quire_blobs")
        assert isinstance(result, Pruned) and (result.runs, result.texts) == (("old",), 0)
        assert await store.text(digest) == text

    def test_two_threads_with_a_store_each(self, server: PostgresServer, schema: str) -> None:
        async def drive(name: str) -> None:
            store = PostgresStore(server.url(schema=schema), durability="process")
            lease = await owned(store, name)
            for number in range(10):
                await store.write(lease, effect(number + 1))
            await store.close()

        threads = [threading.Thread(target=lambda name=name: asyncio.run(drive(name))) for name in ("a", "b", "c")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store = PostgresStore(server.url(schema=schema))
        assert [len(asyncio.run(store.effects(name))) for name in ("a", "b", "c")] == [10, 10, 10]
        asyncio.run(store.close())
