"""What a worker does with a run that it is to look at, without Temporal: a real store, a tool that can be held up."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.engine.house import EchoModel

from quire.cluster import driver as cluster_driver
from quire.cluster.dispatch import UNWRITTEN_SECONDS, follow
from quire.cluster.driver import MOST_ATTEMPTS, TRIES, Driver, Later
from quire.cluster.orders import BUSY, ENDED, HANDED_OVER, WAITS, Order
from quire.engine.conversation import Offered
from quire.engine.ports import EffectClass
from quire.engine.records import Batch, RunUpdate, Status
from quire.engine.requests import ToolRequest
from quire.errors import CannotStart, StoreError, ToolFailed
from quire.library.document import Document, read
from quire.runs.notify import all_told
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.source import Source
from quire.stores import open_store
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace
from quire.workspace.settings import NotifySettings

STEPS = """
pipeline: steps
steps:
- tool: {name: one, args: {}, output: a}
- tool: {name: two, args: {}, output: b}
"""
ASK = """
pipeline: asks
steps:
- tool: {name: ask, args: {prompt: "Go?", type: confirm}, output: go}
- tool: {name: one, args: {}, output: a}
"""


class Gates:
    """Tools that wait until `open` is set; `broken` fails those that it names."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.calls: list[str] = []
        self.broken: set[str] = set()

    def effect_class(self, request: ToolRequest) -> EffectClass:
        return "write"

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        self.calls.append(request.tool)
        await self.open.wait()
        if request.tool in self.broken:
            raise ToolFailed("out of order")
        return request.tool

    async def offers(self, names: Sequence[str]) -> Sequence[Offered]:
        return ()

    async def offers_under(self, grants: Sequence[str]) -> Sequence[Offered]:
        return ()

    async def prompt(self, server: str, name: str) -> str:
        return ""


class House:
    def __init__(self, folder: Path) -> None:
        self.gates = Gates()
        self.said: list[str] = []
        self.settings = load_settings(Workspace(folder), {"QUIRE_HOME": str(folder / "home")})
        self.folder = folder
        self.runtimes: list[Runtime] = []
        self.runtime = self.process()
        self.driver = self.worker(self.runtime)

    def process(self) -> Runtime:
        store = open_store(self.folder / "quire.db", durability="process")
        runtime = Runtime(self.settings, store, environ={}, model=EchoModel(), tools=self.gates, queue="q")
        self.runtimes.append(runtime)
        return runtime

    def worker(self, runtime: Runtime) -> Driver:
        return Driver(runtime, same, self.said.append)

    async def start(self, text: str, **options: tuple[str, ...]) -> str:
        return await self.runtime.start(document(text), {}, RunOptions(**options))  # type: ignore[arg-type]

    async def status(self, run: str) -> Status:
        return (await self.runtime.row(run)).status


async def nobody(*details: object) -> None:
    """Tell no one of an attempt."""


async def no_other() -> Collection[str]:
    return ()


class Attempt(cluster_driver.Attempt):
    """An attempt of the only worker."""

    def __init__(
        self,
        number: int,
        epoch: int | None,
        tell: Callable[[int | None, Mapping[str, int]], Awaitable[None]] = nobody,
        refusals: Mapping[str, int] | None = None,
        workers: Callable[[], Awaitable[Collection[str]]] = no_other,
    ) -> None:
        super().__init__(number, epoch, tell, refusals or {}, workers)


async def same(runtime: Runtime, run: str) -> Runtime:
    return runtime


def document(text: str) -> Document:
    return read(Source.of(text, "page.yaml"))


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path)
    yield house
    for runtime in house.runtimes:
        await runtime.close()


async def called(house: House, times: int) -> None:
    async with asyncio.timeout(30):
        while len(house.gates.calls) < times:
            await asyncio.sleep(0)


async def test_a_run_that_ends_and_a_run_that_is_not_there(house: House) -> None:
    house.gates.open.set()
    run = await house.start(STEPS)
    outcome = await house.driver.look(Order(run), Attempt(1, None))
    assert (outcome.status, outcome.rests) == ("completed", ENDED)
    again = await house.driver.look(Order(run, resume=True), Attempt(1, None))
    assert (again.rests, house.gates.calls) == (ENDED, ["one", "two"])
    assert (await house.driver.look(Order("nobody"), Attempt(1, None))).rests == ENDED


async def test_a_waiting_run_moves_only_when_there_is_an_answer(house: House) -> None:
    house.gates.open.set()
    run = await house.start(ASK)
    outcome = await house.driver.look(Order(run), Attempt(1, None))
    row = await house.runtime.row(run)
    assert (outcome.rests, outcome.expires_at, row.epoch) == (WAITS, row.expires_at, 1)
    await house.driver.look(Order(run), Attempt(1, None))
    assert (await house.runtime.row(run)).epoch == 1
    await house.runtime.answer(run, None, "yes")
    assert (await house.driver.look(Order(run), Attempt(1, None))).status == "completed"


async def test_a_breakpoint_waits_for_somebody_to_resume(house: House) -> None:
    house.gates.open.set()
    run = await house.start(STEPS, breakpoints=("1",))
    assert (await house.driver.look(Order(run), Attempt(1, None))).rests == WAITS
    # The worker died before it could tell: the next try must not pass the breakpoint.
    assert (await house.driver.look(Order(run), Attempt(2, 1))).rests == WAITS
    assert (await house.driver.look(Order(run, resume=True), Attempt(1, None))).status == "completed"


async def test_a_run_that_waits_for_a_time_continues_only_when_it_is_woken(house: House) -> None:
    run = await house.start(STEPS)
    look = asyncio.create_task(house.driver.look(Order(run), Attempt(1, None)))
    await called(house, 1)
    house.driver.stop()
    house.gates.open.set()
    assert (await look).rests == HANDED_OVER
    store = house.runtime.store
    lease = await store.acquire(run)
    await store.write(lease, Batch(update=RunUpdate(Status.PAUSED, wake_at=time.time() + 60)))
    await store.release(lease)
    stopping, other = house.driver, house.worker(house.runtime)
    for driver, attempt in ((other, Attempt(1, None)), (other, Attempt(2, 1)), (stopping, Attempt(1, None))):
        assert (await driver.look(Order(run), attempt)).rests == WAITS
    assert (await other.look(Order(run, resume=True), Attempt(1, None))).status == "completed"
    assert house.gates.calls == ["one", "two"]


async def test_a_failed_run_is_resumed_once_for_each_order(house: House) -> None:
    house.gates.open.set()
    house.gates.broken = {"two"}
    run = await house.start(STEPS)
    assert (await house.driver.look(Order(run), Attempt(1, None))).status == "failed"
    assert (await house.driver.look(Order(run), Attempt(1, None))).status == "failed"
    attempt = Attempt(1, None)
    assert (await house.driver.look(Order(run, resume=True), attempt)).status == "failed"
    # The same order once more, because its end was not heard of: that was this try's epoch.
    await house.driver.look(Order(run, resume=True), Attempt(2, attempt.epoch))
    assert house.gates.calls == ["one", "two", "two"]


async def test_the_owner_of_the_try_before_is_taken_for_dead_and_nobody_else(house: House) -> None:
    run = await house.start(STEPS)
    first = asyncio.create_task(house.driver.look(Order(run), Attempt(1, None)))
    await called(house, 1)
    other = house.worker(house.process())
    assert (await other.look(Order(run), Attempt(1, None))).rests == BUSY
    assert (await other.look(Order(run), Attempt(2, 7))).rests == BUSY
    second = asyncio.create_task(other.look(Order(run), Attempt(2, 1)))
    await called(house, 2)
    house.gates.open.set()
    assert (await second).status == "completed"
    assert (await first).rests == BUSY, "the stale owner wrote"
    # In flight when it was taken over: that may happen twice, what was recorded never.
    assert house.gates.calls == ["one", "one", "two"]


async def test_a_new_try_at_the_same_worker_joins_the_old_one(house: House) -> None:
    run = await house.start(STEPS)
    old, new = Attempt(1, None), Attempt(2, 1)
    first = asyncio.create_task(house.driver.look(Order(run), old))
    await called(house, 1)
    second = asyncio.create_task(house.driver.look(Order(run), new))
    await asyncio.sleep(0)
    house.driver.cancel(run, old)
    house.gates.open.set()
    assert (await first).status == (await second).status == "completed"
    assert (new.epoch, house.gates.calls) == (1, ["one", "two"])


async def test_a_worker_that_stops_parks_and_hands_over(house: House) -> None:
    run = await house.start(STEPS)
    look = asyncio.create_task(house.driver.look(Order(run), Attempt(1, None)))
    await called(house, 1)
    house.driver.stop()
    house.gates.open.set()
    outcome = await look
    assert (outcome.status, outcome.rests) == ("paused", HANDED_OVER)
    assert (await house.driver.look(Order(run, resume=True), Attempt(1, None))).rests == HANDED_OVER
    next_worker = house.worker(house.process())
    # Also where the one that stopped died before it could say so.
    assert (await next_worker.look(Order(run), Attempt(2, 1))).status == "completed"
    assert house.gates.calls == ["one", "two"]


async def test_a_run_that_cannot_begin_is_given_up_after_some_tries(house: House) -> None:
    run = await house.start(ASK)
    house.gates.open.set()
    await house.driver.look(Order(run), Attempt(1, None))
    await house.runtime.answer(run, None, "yes")

    async def refuses(runtime: Runtime, run: str) -> Runtime:
        raise CannotStart("there is no key here")

    driver = Driver(house.process(), refuses, house.said.append)
    for number in range(1, TRIES):
        with pytest.raises(Later, match="there is no key here"):
            await driver.look(Order(run), Attempt(number, None, refusals={"": number - 1}))
    assert (await driver.look(Order(run), Attempt(9, None, refusals={"": TRIES - 1}))).status == "failed"
    row = await house.runtime.row(run)
    assert row.failure is not None and row.failure.message == "there is no key here"
    last = (await house.runtime.store.events(run))[-1]
    assert (last.type, last.data["message"]) == ("run_failed", "there is no key here")
    # Resumed where there is one: the answer is still there.
    assert (await house.driver.look(Order(run, resume=True), Attempt(1, None))).status == "completed"


async def test_a_run_that_cannot_begin_here_is_left_to_the_workers_that_have_not_tried_it(house: House) -> None:
    """reliability G1: the attempts of each worker are counted, and carried to the next attempt."""
    run, told = await house.start(STEPS), list[Mapping[str, int]]()

    async def refuses(runtime: Runtime, run: str) -> Runtime:
        raise CannotStart("there is no key here")

    async def tell(epoch: int | None, refusals: Mapping[str, int]) -> None:
        told.append(dict(refusals))

    async def workers() -> Collection[str]:
        return ("mine", "other")

    driver = Driver(house.process(), refuses, house.said.append, name="mine")
    for number in (1, 2, MOST_ATTEMPTS - 1):
        with pytest.raises(Later):
            await driver.look(Order(run), Attempt(number, None, tell, told[-1] if told else {}, workers))
    assert told == [{}, {"mine": 1}]  # from the second attempt on it is left to the other
    with pytest.raises(Later):  # until that has had ten minutes
        await driver.look(Order(run), Attempt(MOST_ATTEMPTS, None, tell, told[-1], workers))
    assert told[-1] == {"mine": 2}
    both = Attempt(1, None, tell, {"mine": TRIES - 1, "other": 1}, workers)
    assert (await driver.look(Order(run), both)).status == "failed"


async def test_an_unfit_worker_counts_no_attempt_and_touches_nothing(house: House) -> None:
    run, told = await house.start(STEPS), list[object]()

    async def tell(*details: object) -> None:
        told.append(details)

    driver = Driver(house.process(), same, house.said.append, lambda: "its settings have changed")
    for number in (1, MOST_ATTEMPTS, 500):
        with pytest.raises(Later, match="its settings have changed"):
            await driver.look(Order(run), Attempt(number, None, tell))
    assert (told, (await house.runtime.row(run)).epoch) == ([], 0)


async def test_a_worker_tells_the_program_of_its_user(house: House) -> None:
    (house.folder / "home").mkdir()
    told = house.folder / "told.jsonl"
    code = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')"
    command = (sys.executable, "-c", code, str(told))
    house.settings = replace(house.settings, notify=NotifySettings(command))
    house.gates.open.set()
    run = await house.start(ASK)

    async def refuses(runtime: Runtime, run: str) -> Runtime:
        raise CannotStart("there is no key here")

    waiting, failing = house.worker(house.process()), Driver(house.process(), refuses, house.said.append)
    await waiting.look(Order(run), Attempt(1, None))
    await all_told()
    await house.runtime.answer(run, None, "yes")
    await failing.look(Order(run), Attempt(1, None, refusals={"": TRIES - 1}))
    await all_told()
    events = [json.loads(line) for line in told.read_text().splitlines()]
    assert [one["type"] for one in events] == ["run.waiting", "run.failed"]
    assert events[1]["error"]["message"] == "there is no key here"


async def test_a_store_that_is_away_is_never_a_reason_to_give_up(house: House) -> None:
    run = await house.start(STEPS)

    async def away(runtime: Runtime, run: str) -> Runtime:
        raise StoreError("the database is away")

    driver = Driver(house.process(), away, house.said.append)
    waits = []
    for number in (1, 3, 5, 40):
        with pytest.raises(Later) as later:
            await driver.look(Order(run), Attempt(number, None))
        waits.append(later.value.seconds)
    assert waits == [2.0, 8.0, 30.0, 30.0]
    assert await house.status(run) is Status.PENDING


async def test_what_is_taken_has_been_told_before(house: House) -> None:
    house.gates.open.set()
    told: list[tuple[int | None, str, int]] = []

    async def tell(epoch: int | None, refusals: Mapping[str, int]) -> None:
        row = await house.runtime.row(run)
        told.append((epoch, str(row.status), row.epoch))

    run = await house.start(ASK)
    await house.driver.look(Order(run), Attempt(1, None, tell))
    await house.runtime.answer(run, None, "yes")
    await house.driver.look(Order(run), Attempt(1, None, tell))
    assert told == [(1, "pending", 0), (2, "awaiting_input", 1)]
    assert await house.status(run) is Status.COMPLETED


async def test_nothing_is_taken_that_cannot_be_told(house: House) -> None:
    """However often: that Temporal is away is no reason to give a run up."""

    async def tell(epoch: int | None, refusals: Mapping[str, int]) -> None:
        raise Later("Temporal is away", 1.0)

    run = await house.start(STEPS)
    for number in (1, TRIES, TRIES + 1):
        with pytest.raises(Later, match="Temporal is away"):
            await house.driver.look(Order(run), Attempt(number, None, tell))
    row = await house.runtime.row(run)
    assert (row.status, row.epoch, house.gates.calls) == (Status.PENDING, 0, [])


async def test_the_worker_that_was_to_take_over_falls_silent_too(house: House) -> None:
    """It had said which epoch it will have, and had not taken it: the one before still holds the run."""
    run = await house.start(STEPS)
    silent = asyncio.create_task(house.driver.look(Order(run), Attempt(1, None)))
    await called(house, 1)
    other = house.worker(house.process())
    assert (await other.look(Order(run), Attempt(3, 3))).rests == BUSY
    third = asyncio.create_task(other.look(Order(run), Attempt(3, 2)))
    await called(house, 2)
    house.gates.open.set()
    assert (await third).status == "completed"
    assert (await silent).rests == BUSY, "the stale owner wrote"


async def test_a_forged_run_is_neither_driven_nor_written_to(house: House) -> None:
    """Whoever can write a row of the shared store makes no worker do anything by it."""
    house.gates.open.set()
    run = await house.start(STEPS)
    with sqlite3.connect(house.folder / "quire.db") as database:
        database.execute("UPDATE pins SET value = json_set(value, '$.allow', json('[\"shell=unsandboxed\"]'))")
    before = await house.runtime.row(run)
    for number in range(1, TRIES + 2):
        outcome = await house.driver.look(Order(run, resume=True), Attempt(number, None))
        assert outcome.rests == ENDED
    assert house.gates.calls == [] and await house.runtime.row(run) == before
    assert all("is not driven: its document, inputs or grants were changed" in line for line in house.said)


async def test_a_resumed_run_is_followed_to_its_new_end(house: House) -> None:
    """A worker takes the run and writes a moment later: until then its row says how it ended before."""
    house.gates.open.set()
    house.gates.broken = {"two"}
    run = await house.start(STEPS)
    await house.driver.look(Order(run), Attempt(1, None))
    failed = await house.runtime.row(run)
    house.gates.broken.clear()
    seen: list[tuple[Status, int]] = []

    async def pause(seconds: float) -> None:
        row = await house.runtime.row(run)
        seen.append((row.status, row.epoch))
        if len(seen) == 1:
            await house.runtime.store.release(await house.runtime.store.acquire(run))
        elif len(seen) == 3:
            await house.driver.look(Order(run, resume=True), Attempt(1, None))

    row = await follow(house.runtime, run, lambda event: None, resumed=failed, pause=pause)
    assert (row.status, seen) == (Status.COMPLETED, [(Status.FAILED, 1), (Status.FAILED, 2), (Status.FAILED, 2)])


async def test_a_resumed_run_whose_worker_died_at_once_is_not_followed_for_ever(house: House) -> None:
    house.gates.open.set()
    house.gates.broken = {"two"}
    run = await house.start(STEPS)
    await house.driver.look(Order(run), Attempt(1, None))
    failed = await house.runtime.row(run)
    waited: list[float] = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 1:
            await house.runtime.store.release(await house.runtime.store.acquire(run))

    row = await follow(house.runtime, run, lambda event: None, resumed=failed, pause=pause)
    assert (row.status, row.epoch) == (Status.FAILED, 2)
    assert sum(waited) == pytest.approx(UNWRITTEN_SECONDS, abs=1)
