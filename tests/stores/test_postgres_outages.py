"""PostgreSQL itself dies, or does not let us in; processes die in the middle. Runs stay whole."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine import test_crashes as crashes
from tests.stores.postgres_server import PostgresServer, own_server
from tests.stores.test_postgres import owned
from tests.stores.test_sqlite import new_run

from quire.engine.ports import Store
from quire.engine.records import Batch, EffectRecord, Event, Lease, RunUpdate, Status, WriteResult
from quire.errors import QuireError, RunBusy, StoreError
from quire.library.document import read
from quire.source import Source
from quire.stores.postgres.store import PostgresStore


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    server = own_server()
    yield server
    server.remove()


@pytest.fixture
def schema(server: PostgresServer) -> str:
    return server.new_schema()


def effect(number: int, value: str = "v") -> Batch:
    path = f"{number}/model"
    record = EffectRecord(path, "model", "ok", "hash", 11.0, value)
    return Batch(effects=(record,), events=(Event("step_completed", "", 12.0, number, path),))


async def restart(server: PostgresServer, mode: str = "immediate") -> None:
    await asyncio.to_thread(server.stop, mode)
    await asyncio.to_thread(server.start)


@pytest.fixture(scope="module")
def locked(server: PostgresServer) -> PostgresServer:
    server.do("CREATE ROLE careful LOGIN PASSWORD 's3cret/@'")
    server.allow("local all careful scram-sha-256")
    return server


class TestDoor:
    async def test_the_right_password(self, locked: PostgresServer, schema: str) -> None:
        locked.do(f"GRANT ALL ON SCHEMA {schema} TO careful")
        store = PostgresStore(locked.url(user="careful", password="s3cret/@", schema=schema))
        await store.create(new_run())
        assert await store.get("r1") is not None
        await store.close()

    @pytest.mark.parametrize(
        ("password", "said"), [("wr0ng", "refuses the user or the password"), ("", "wants a password")]
    )
    async def test_a_wrong_password(
        self, locked: PostgresServer, password: str, said: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("PGPASSWORD", raising=False)
        monkeypatch.setenv("PGPASSFILE", "/nowhere")
        store = PostgresStore(locked.url(user="careful", password=password))
        with pytest.raises(StoreError, match=said) as caught:
            await store.list()
        assert "\n" not in str(caught.value) and "wr0ng" not in str(caught.value)


class TestRestart:
    @pytest.mark.parametrize("mode", ["immediate", "fast"])
    async def test_writes_go_on_when_the_server_is_back(self, server: PostgresServer, schema: str, mode: str) -> None:
        store = PostgresStore(server.url(schema=schema))
        lease, other = await owned(store), await owned(store, "r2")
        await store.write(lease, Batch(update=RunUpdate(Status.RUNNING)))
        stop = asyncio.Event()

        async def drive(lease: Lease) -> int:
            number = 0
            while not stop.is_set():
                number += 1
                await store.write(lease, effect(number))
            return number

        drives = [asyncio.create_task(drive(one)) for one in (lease, other)]
        await restart(server, mode)
        # Whatever was in flight has found its way by now.
        for one in (lease, other):
            await store.write(one, Batch())
        stop.set()
        for run, count in zip(("r1", "r2"), await asyncio.gather(*drives), strict=True):
            assert count > 0
            assert [record.path for record in await store.effects(run)] == [f"{n + 1}/model" for n in range(count)]
            assert [kept.seq for kept in await store.events(run)] == list(range(1, count + 1))
        journal = server.do(
            f"SELECT count(*), count(DISTINCT (run, path)) FROM {schema}.quire_journal WHERE path != ''"
        )
        assert journal[0][0] == journal[0][1]
        # The locks came back with the connection.
        rival = PostgresStore(server.url(schema=schema))
        row = await rival.get("r1")
        assert row is not None and row.status is Status.RUNNING
        with pytest.raises(RunBusy):
            await rival.acquire("r1")
        for one_store in (store, rival):
            await one_store.close()

    async def test_readers_and_other_verbs_wait_for_it(self, server: PostgresServer, schema: str) -> None:
        store = PostgresStore(server.url(schema=schema))
        await store.create(new_run())
        await asyncio.to_thread(server.stop)
        verbs = [
            asyncio.create_task(verb) for verb in (store.get("r1"), store.create(new_run("r2")), store.acquire("r1"))
        ]
        await asyncio.sleep(0)
        await asyncio.to_thread(server.start)
        row, _, lease = await asyncio.gather(*verbs)
        assert (row.id, lease.epoch) == ("r1", 1)  # type: ignore[union-attr]
        await store.close()

    async def test_who_waits_too_long_gives_up_and_the_run_goes_on_later(
        self, server: PostgresServer, schema: str
    ) -> None:
        store = PostgresStore(server.url(schema=schema), patience=0.1)
        lease = await owned(store)
        await store.write(lease, Batch(update=RunUpdate(Status.RUNNING)))
        await store.write(lease, effect(1))
        await asyncio.to_thread(server.stop)
        results = await asyncio.gather(*(store.write(lease, effect(n)) for n in (2, 3)), return_exceptions=True)
        assert all(isinstance(one, StoreError) and "does not answer" in str(one) for one in results)
        await asyncio.to_thread(server.start)
        await store.release(lease)
        await store.close()
        again = PostgresStore(server.url(schema=schema))
        row = await again.get("r1")
        assert row is not None and row.status is Status.INTERRUPTED
        lease = await again.acquire("r1")
        assert [record.path for record in await again.effects("r1")] == ["1/model"]
        assert await again.write(lease, effect(2)) == WriteResult()
        await again.close()

    async def test_nothing_is_written_behind_a_write_of_unknown_fate(self, server: PostgresServer, schema: str) -> None:
        """The driver was told that a step could not be kept: what it writes after that must not hide the gap."""
        store = PostgresStore(server.url(schema=schema), patience=0.0)
        lease = await owned(store)
        await store.write(lease, effect(1))
        server.end_owner(schema, "r1")
        with pytest.raises(StoreError, match="does not answer"):
            await store.write(lease, effect(2))
        with pytest.raises(StoreError, match="does not answer"):
            await store.write(lease, Batch(update=RunUpdate(Status.FAILED)))
        await store.close()

    @pytest.mark.parametrize("nth", [3, 6])
    async def test_a_run_goes_on_across_a_crash_of_the_server(
        self, server: PostgresServer, schema: str, tmp_path: Path, nth: int
    ) -> None:
        """The server dies while the nth write is under way, and is started again. Nobody notices but the clock."""
        url = server.url(schema=schema)

        class Elsewhere(crashes.World):
            def open(self) -> Store:
                return PostgresStore(url)

        class Shaken(crashes.Mortal):
            def __getattr__(self, name: str) -> Any:
                method = getattr(self._store, name)
                if name not in ("write", "park"):
                    return method

                async def shaken(*arguments: object) -> object:
                    self.writes += 1
                    if self.writes != nth:
                        return await method(*arguments)
                    task = asyncio.create_task(method(*arguments))
                    await restart(server)
                    return await task

                return shaken

        world = Elsewhere(tmp_path / "w", read(Source.of(crashes.PLAYBOOK, "tea.playbook.md")), {})
        store: Any = Shaken(world.open(), 0, "after")
        assert await world.live(store) == 0
        assert store.writes > nth
        await crashes.end(world, store)
        assert set(world.performed().values()) == {1}
        await store.close()


PRELUDE = """
import asyncio, sys
from quire.engine.records import *
from quire.errors import *
from quire.stores.postgres.statements import PostgresStatements
from quire.stores.postgres.store import PostgresStore
def effect(number, value="v"):
    record = EffectRecord(f"{number}/model", "model", "ok", "hash", 11.0, value)
    return Batch(effects=(record,), events=(Event("step_completed", "", 12.0, number, f"{number}/model"),))
def say(word):
    print(word, flush=True)
def wait():
    sys.stdin.readline()
store = PostgresStore(sys.argv[1])
"""

OWNER = """
async def main():
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

IN_THE_MIDDLE = """
async def main():
    lease = await store.acquire("r1")
    await store.write(lease, Batch(update=RunUpdate(Status.RUNNING, "1")))
    await store.write(lease, effect(1))
    connection = store._server._owner
    execute = connection.execute
    async def stop_before_the_end(sql, *arguments, **options):
        if sql == "COMMIT":
            await connection._pipeline.sync()
            say("in the middle")
            wait()
        return await execute(sql, *arguments, **options)
    connection.execute = stop_before_the_end
    await asyncio.gather(*(store.write(lease, effect(n)) for n in range(2, 9)))
"""

RIVAL = """
async def main():
    try:
        await store.acquire("r1")
        say("mine")
    except RunBusy as error:
        say(str(error))
    wait()
"""


class Process:
    """Another process. It says things on stdout and waits for lines on stdin."""

    def __init__(self, body: str, url: str) -> None:
        code = "\n".join((PRELUDE, body, "asyncio.run(main())"))
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def heard(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def tell(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
class TestProcesses:
    async def status(self, store: PostgresStore) -> Status:
        """The server learns of a death from the kernel, which takes it a moment to tell."""
        for _ in range(5_000):
            row = await store.get("r1")
            assert row is not None
            if row.status is not Status.RUNNING:
                return row.status
        raise AssertionError("the run is still being driven")

    @pytest.mark.parametrize("body", [OWNER, IN_THE_MIDDLE], ids=["between writes", "in a transaction"])
    async def test_a_killed_owner_leaves_what_it_had_committed(
        self, server: PostgresServer, schema: str, body: str
    ) -> None:
        store = PostgresStore(server.url(schema=schema))
        await store.create(new_run())
        process = Process(body, server.url(schema=schema))
        try:
            assert process.heard() in ("owned", "in the middle")
            row = await store.get("r1")
            assert row is not None and row.status is Status.RUNNING
        finally:
            process.kill()
        assert await self.status(store) is Status.INTERRUPTED
        lease = await store.acquire("r1")
        assert (lease.epoch, lease.last_seq) == (2, 1)
        assert [record.path for record in await store.effects("r1")] == ["1/model"]
        await store.write(lease, effect(2))
        await store.close()

    async def test_of_two_processes_one_drives_and_the_other_says_so(self, server: PostgresServer, schema: str) -> None:
        store = PostgresStore(server.url(schema=schema))
        await store.create(new_run())
        url = server.url(schema=schema)
        owner = Process(OWNER, url)
        assert owner.heard() == "owned"
        rival, late = Process(RIVAL, url), Process(RIVAL, url)
        try:
            assert rival.heard() == late.heard() == "run r1 is being driven by another process"
            owner.tell()
            assert owner.heard() == "released"
            assert (await store.acquire("r1")).last_seq == 2
        finally:
            for process in (owner, rival, late):
                process.kill()
            await store.close()

    async def test_cancel_asks_the_living_and_settles_the_dead(self, server: PostgresServer, schema: str) -> None:
        store = PostgresStore(server.url(schema=schema))
        await store.create(new_run())
        process = Process(OWNER, server.url(schema=schema))
        try:
            assert process.heard() == "owned"
            assert await store.request_cancel("r1") is False
        finally:
            process.kill()
        assert await self.status(store) is Status.INTERRUPTED
        assert await store.request_cancel("r1") is True
        assert await self.status(store) is Status.CANCELLED
        await store.close()

    async def test_an_owner_that_cancels_in_the_moment_it_is_asked(
        self, server: PostgresServer, schema: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store, owner = (PostgresStore(server.url(schema=schema)) for _ in range(2))
        await store.create(new_run())
        lease = await owner.acquire("r1")
        taking = store._take_lock
        tries: list[str] = []

        async def take(run: str) -> bool:
            tries.append(run)
            if len(tries) == 2:  # between the flag and the second look at the lock
                await owner.release(lease)
            return await taking(run)

        monkeypatch.setattr(store, "_take_lock", take)
        assert await store.request_cancel("r1") is False
        assert await self.status(store) is Status.CANCELLED
        for one in (store, owner):
            await one.close()


async def test_a_store_that_was_never_used_closes(server: PostgresServer) -> None:
    store = PostgresStore(server.url())
    await store.close()
    with pytest.raises(QuireError, match="has been closed"):
        await store.list()


def test_what_psycopg_logs_does_not_reach_the_terminal() -> None:
    """It says there that it has ignored the loss of a connection, in the middle of the output of a run."""
    code = "import logging, quire.stores.postgres.store; logging.getLogger('psycopg').warning('error ignored')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert ended.stderr == b""
