"""The ticker: who does the duties, whatever happens to processes and clocks, and what the duties do."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest
from msgspec.structs import replace
from tests.engine.house import EchoModel

from quire.engine.records import Batch, RunUpdate, Status
from quire.errors import CannotStart
from quire.library.document import read
from quire.runs import ticker as module
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.runs.ticker import SWEEP_SECONDS, Ticker
from quire.source import Source
from quire.stores import open_store
from quire.stores.occurrences import SEEN_SECONDS, Occurrence
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

DAY = 86_400.0
DOCUMENT = read(Source.of("# One\n\n## STEP 1: Say\n\nSay it.\n", "one.playbook.md"))


class Clock:
    def __init__(self) -> None:
        self.time = 1_000_000.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


class Host:
    """One machine with processes that share a store. `passes` moves both of its clocks, as time does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = Clock()
        self.steady = 0.0
        self.driven: list[str] = []
        self.reports: list[str] = []
        self.failure: Exception | None = None
        self.runtimes: list[Runtime] = []
        self.tickers: list[Ticker] = []

    def runtime(self, queue: str = "") -> Runtime:
        settings = load_settings(Workspace(self.folder), {"QUIRE_HOME": str(self.folder / "home")})
        store = open_store(self.folder / ".quire" / "quire.db", durability="process", now=self.clock.now)
        runtime = Runtime(settings, store, environ={}, model=EchoModel(), clock=self.clock, queue=queue)
        self.runtimes.append(runtime)
        return runtime

    def process(self, queue: str = "") -> Ticker:
        kind: Literal["serve", "worker"] = "worker" if queue else "serve"
        ticker = Ticker(self.runtime(queue), kind, self.drive, self.reports.append, 10, lambda: 0)
        self.tickers.append(ticker)
        self.clock.time += 1.0
        return ticker

    async def drive(self, run: str) -> None:
        self.driven.append(run)
        if self.failure is not None:
            raise self.failure

    async def passes(self, seconds: float, dead: tuple[Ticker, ...] = ()) -> None:
        """Let time pass; processes report every five seconds, but for the dead ones."""
        for _ in range(int(seconds / 5)):
            self.clock.time += 5.0
            self.steady += 5.0
            for ticker in self.tickers:
                if ticker not in dead:
                    await ticker.beat()

    def oldest(self) -> list[int]:
        return [number for number, ticker in enumerate(self.tickers) if ticker.is_oldest()]

    async def claimed(self, source: str = "trigger:nightly", queue: str = "") -> str:
        """Claim an occurrence and create its run, as a process does that dies before it drives it."""
        runtime = self.runtime(queue)
        run = await runtime.prepared(DOCUMENT, {}, RunOptions(source=source))
        await runtime.store.start_once(run, Occurrence(source, run.id))
        return run.id

    async def parked(self, wake_at: float) -> str:
        """Create a run that rests until a time, as one does whose provider asks to wait."""
        runtime = self.runtimes[0]
        run = await runtime.start(DOCUMENT, {}, RunOptions())
        lease = await runtime.store.acquire(run)
        await runtime.store.write(lease, Batch(update=RunUpdate(status=Status.PAUSED, wake_at=wake_at)))
        await runtime.store.release(lease)
        return run


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Host]:
    host = Host(tmp_path)
    monkeypatch.setattr(module, "monotonic", lambda: host.steady)
    await host.runtime().start(DOCUMENT, {}, RunOptions())  # makes the file
    yield host
    for runtime in host.runtimes:
        await runtime.close()


async def test_only_the_oldest_fit_process_does_the_duties(host: Host) -> None:
    (host.folder / "home").mkdir(exist_ok=True)
    (host.folder / "home" / "quire.toml").write_text('[cluster]\ntemporal = "127.0.0.1:1"\ntask_queue = "q"\n')
    first, second, third = host.process(), host.process(queue="q"), host.process()
    assert host.oldest() == []
    await host.passes(5)
    assert host.oldest() == [0]
    assert second.is_oldest(of_queue=True) and not third.is_oldest(of_queue=True)
    first.be("unfit", "its workspace is gone")
    await host.passes(5)
    assert host.oldest() == [1]
    stored = {process.id: process for process in await host.runtimes[0].store.processes()}
    assert stored[first.process.id].reason == "its workspace is gone"


async def test_the_duties_move_within_twenty_seconds_of_a_kill(host: Host) -> None:
    first, _ = host.process(), host.process()
    await host.passes(10)
    assert host.oldest() == [0]
    await host.passes(SEEN_SECONDS + 5, dead=(first,))
    assert host.tickers[1].is_oldest()


@pytest.mark.parametrize("jump", [2 * DAY, -2 * DAY])
async def test_a_clock_that_jumps_moves_nothing(host: Host, jump: float) -> None:
    host.process(), host.process()
    await host.passes(10)
    host.clock.time += jump
    await host.passes(5)
    assert host.oldest() == [0]
    await host.passes(60)
    assert host.oldest() == [0]


@pytest.mark.parametrize("jump", [2 * DAY, -2 * DAY])
async def test_a_clock_that_jumps_hides_no_death(host: Host, jump: float) -> None:
    first, _ = host.process(), host.process()
    await host.passes(10)
    host.clock.time += jump
    await host.passes(SEEN_SECONDS + 5, dead=(first,))
    assert host.tickers[1].is_oldest()


@pytest.mark.parametrize("jump", [0.0, -2 * DAY])
async def test_a_process_that_died_before_is_not_waited_for(host: Host, jump: float) -> None:
    first = host.process()
    await host.passes(5)
    host.clock.time += 60.0 + jump
    second = host.process()
    await second.beat()
    assert second.is_oldest()
    assert first.process.id in {process.id for process in await host.runtimes[0].store.processes()}


async def test_a_beat_neither_makes_nor_migrates_a_file(tmp_path: Path) -> None:
    host = Host(tmp_path)
    ticker = host.process()
    await ticker.beat()
    assert not (tmp_path / ".quire").exists() and not ticker.is_oldest()
    folder = tmp_path / ".quire"
    folder.mkdir()
    older = (Path(__file__).parents[1] / "stores" / "version_1.sql").read_text()
    with sqlite3.connect(folder / "quire.db") as connection:
        connection.executescript(older)
    connection.close()
    before = (folder / "quire.db").read_bytes()
    task = asyncio.create_task(host.process().run())
    for _ in range(20):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (folder / "quire.db").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["quire.db"]
    for runtime in host.runtimes:
        await runtime.close()


async def test_a_ticker_repeats_its_duties_and_leaves(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    ticker = host.process()
    times: list[float] = []
    enough = asyncio.Event()

    async def duty(now: float) -> None:
        times.append(now)
        if len(times) == 3:
            enough.set()
        raise CannotStart("the clerk is ill")

    ticker.duties.append((0.0, duty, False))
    task = asyncio.create_task(ticker.run())
    await asyncio.wait_for(enough.wait(), 20)
    assert [process.id for process in await host.runtimes[0].store.processes()] == [ticker.process.id]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await host.runtimes[0].store.processes() == []
    assert sum("the clerk is ill" in line for line in host.reports) == 1


async def test_a_parked_run_is_woken_when_its_time_has_come(host: Host) -> None:
    run, later = await host.parked(host.clock.time + 60), await host.parked(host.clock.time + 9_000)
    ticker = host.process()
    await ticker.wake(host.clock.time)
    assert host.driven == []
    await ticker.wake(host.clock.time + 60)
    assert host.driven == [run] and later not in host.driven


async def test_a_process_that_died_on_this_host_is_not_waited_for(host: Host) -> None:
    await host.claimed()  # a file is not made only to report a process
    ticker, ended = host.process(), await asyncio.create_subprocess_exec("true")
    await ended.wait()
    dead = replace(ticker.process, id="dead", pid=ended.pid, started_at=ticker.process.started_at - 60)
    for process, is_oldest in ((dead, True), (replace(dead, id="far", host="another"), False)):
        await host.runtimes[0].store.beat(process)
        await ticker.beat()
        assert ticker.is_oldest() is is_oldest


async def test_a_run_left_between_claim_and_drive_is_driven(host: Host) -> None:
    run = await host.claimed(source="another:nightly")
    of_person, of_key = host.runtimes[0], await host.claimed(source="id")
    of_trigger, of_worker = await host.claimed(), await host.claimed(source="another:nightly", queue="q")
    assert await of_person.store.list() and of_key and of_trigger
    ticker = host.process()
    await ticker.sweep(host.clock.time)
    assert host.driven == []
    await ticker.sweep(host.clock.time + SWEEP_SECONDS + 1)
    assert host.driven == [run]
    await host.process(queue="q").sweep(host.clock.time - 2 * DAY)
    assert host.driven == [run, of_worker]


async def test_a_server_takes_over_at_once_what_the_last_one_has_left(host: Host) -> None:
    runtime = host.runtimes[0]
    of_server, of_person = [await runtime.start(DOCUMENT, {}, RunOptions(door=door)) for door in ("serve", "")]
    await host.process().sweep(host.clock.time + 1, age=0.0)
    assert host.driven == [of_server] != [of_person]


async def test_a_run_that_cannot_continue_is_tried_less_and_less_often(host: Host) -> None:
    run = await host.parked(host.clock.time)
    host.failure = CannotStart("the key is missing")
    ticker = host.process()
    for _ in range(100):
        await ticker.wake(host.clock.time)
        host.steady += 5.0
    assert host.driven == [run] * 6
    assert host.reports[0] == f"run {run} cannot continue by itself: the key is missing"


async def test_few_runs_are_continued_at_a_time(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BEGUN", 3)
    runs = [await host.parked(host.clock.time) for _ in range(4)]
    ticker = host.process()
    await ticker.wake(host.clock.time)
    assert len(host.driven) == 3
    await ticker.wake(host.clock.time)
    assert set(host.driven) == set(runs)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("", {"completed", "cancelled", "failed", "waits"}),
        ('keep = "90d"', {"failed", "waits"}),
        ('keep_failed = "90d"', {"completed", "cancelled", "waits"}),
        ('keep = "91d"\nkeep_failed = "91d"', {"completed", "cancelled", "failed", "waits"}),
    ],
)
async def test_runs_are_kept_as_long_as_the_settings_say(
    host: Host, monkeypatch: pytest.MonkeyPatch, text: str, left: set[str]
) -> None:
    monkeypatch.setattr(module, "MOST_PRUNED", 1)
    (host.folder / "home").mkdir()
    (host.folder / "home" / "quire.toml").write_text(f"[runs]\n{text}\n")
    ticker = host.process()
    names: dict[str, str] = {}
    store = host.runtimes[0].store
    for name in ("completed", "cancelled", "failed", "waits"):
        run = await host.runtimes[0].start(DOCUMENT, {}, RunOptions())
        lease = await store.acquire(run)
        status = Status.AWAITING_INPUT if name == "waits" else Status(name)
        await store.write(lease, Batch(update=RunUpdate(status=status)))
        await store.release(lease)
        names[run] = name
    await ticker.prune(host.clock.time + 90.5 * DAY)
    assert {names[row.id] for row in await store.list() if row.id in names} == left
