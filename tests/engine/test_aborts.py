"""Which of several failures ended a fan is decided once, by whoever was first: a replay has no clock to ask."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.engine.house import Clock, House, RecordingTools
from tests.engine.test_crashes import Died, Mortal

from quire.engine.conversation import Message
from quire.engine.driver.drive import DriveResult
from quire.engine.driver.replay import replay, to_perform_again
from quire.engine.progress import Progress
from quire.engine.records import Status
from quire.engine.requests import Fan, HumanRequest, ModelRequest, Outcome, ToolRequest, Walk
from quire.errors import JournalMismatch, StepFailed, ToolFailed
from quire.stores import open_store
from quire.values import Value

BRANCHES = {"quick": 1, "slow": 2, "fast": 1, "hung": 0}
"""The branches of a race, and the turns of the event loop after which their tool comes to its end.

`quick` writes in the turn in which `fast` fails, so that the failure waits for the next commit and `slow`, which
fails a turn later, gets into it as well. `fast` is first all the same.
"""
FAILING = frozenset({"slow", "fast"})


class Racers(RecordingTools):
    """`mended` are the tools that do not fail any more."""

    def __init__(self) -> None:
        super().__init__()
        self.kind = "read"
        self.mended: set[str] = set()

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        self.calls.append((request.tool, request.arguments, effect_id))
        for _ in range(BRANCHES.get(request.tool, 0)):
            await asyncio.sleep(0)
        if request.tool in FAILING - self.mended:
            raise ToolFailed(f"{request.tool} failed")
        if request.tool == "hung" and "hung" not in self.mended:
            await asyncio.Event().wait()
        return f"did {request.tool}"


def use(path: str, tool: str) -> Walk:
    return (yield ToolRequest(f"{path}/tool", "1", "srv", tool, {}))


def race(path: str) -> Walk:
    children = (use(f"{path}/parallel[{name}]", name) for name in BRANCHES)
    outcomes: list[Outcome] = yield Fan(path, children, 8, stop_on_first_failure=True)
    return [outcome.value for outcome in outcomes]


def retried(path: str) -> Walk:
    try:
        return (yield from race(f"{path}/try[1]"))
    except StepFailed:
        return (yield from race(f"{path}/try[2]"))


def nested() -> Walk:
    """Two items side by side, each a race that is run twice; what ended them goes into a prompt, and work goes on."""
    outcomes: list[Outcome] = yield Fan("1", iter([retried(f"1/for_each[{number}]") for number in range(2)]), 2)
    told: list[Value] = [outcome.failure.message if outcome.failure else outcome.value for outcome in outcomes]
    yield ModelRequest("2/model", "2", "", (Message("user", f"sum up {told}"),))
    yield from use("3", "work")
    return told


class World:
    """What stays when a process dies: the file, and what the tools and the model have seen."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.house = House(self.open(), tools=Racers())

    def open(self) -> Any:
        return open_store(self.path, durability="process", now=Clock().now)

    async def live(self, store: Any) -> DriveResult:
        self.house.store = store
        if await store.get(self.house.run) is None:
            await self.house.create()
        return await asyncio.wait_for(self.house.drive(nested()), 10)

    def performed(self) -> Counter[str]:
        return Counter([effect for _, _, effect in self.house.tools.calls] + self.house.model.asked())

    def key(self, path: str) -> str:
        return hashlib.sha256(f"{self.house.run}\n{path}".encode()).hexdigest()[:32]


async def test_the_race_is_close(tmp_path: Path) -> None:
    """What the test below stands on: both failures are recorded, and the second of them in the document was first."""
    world = World(tmp_path / "calm.db")
    store = world.open()
    ended = await world.live(store)
    states = {record.path: record.state for record in await store.effects(world.house.run)}
    await store.close()
    assert isinstance(ended.result, list) and ended.result[0] == "fast failed"
    for name in FAILING:
        assert states[f"1/for_each[0]/try[2]/parallel[{name}]/tool"] == "failed"


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_death_at_any_write_does_not_decide_a_race_anew(
    tmp_path: Path, when: Literal["before", "after"]
) -> None:
    for nth in itertools.count(1):
        world = World(tmp_path / f"{nth}.db")
        mortal = Mortal(world.open(), nth, when)
        with contextlib.suppress(Died):
            await world.live(mortal)
        await mortal.close()
        if mortal.writes < nth:
            assert nth > 15
            return
        again = world.open()
        if (row := await again.get(world.house.run)) is not None and row.status is Status.COMPLETED:
            await again.close()
            continue
        before = world.performed()
        records = {record.path: record for record in await again.effects(world.house.run)}
        ended = await world.live(again)
        after = world.performed()
        await again.close()
        assert ended.status is Status.COMPLETED, (nth, ended.failure)
        assert f"sum up {ended.result}" == world.house.model.asked()[-1]
        done = [world.key(path) for path, record in records.items() if record.kind == "tool"]
        if "2/model" in records:
            done.append(f"sum up {ended.result}")
        for path, record in records.items():
            if record.kind == "abort":
                done.append(world.key(f"{path.removesuffix('/abort')}/parallel[hung]/tool"))
        assert {key: after[key] for key in done} == {key: before[key] for key in done}, nth


async def test_what_ended_a_fan_is_superseded_with_the_failures(house: House) -> None:
    house.tools = tools = Racers()
    ended = await house.drive(race("1"))
    assert ended.status is Status.FAILED and ended.failure is not None and ended.failure.message == "fast failed"
    row = await house.store.get(house.run)
    assert row is not None and row.ended_by == ("1/parallel[fast]/tool", "1/parallel[slow]/tool")
    assert "1/abort" not in await house.paths()  # gone with the run's end; the failures go when it is resumed
    tools.mended = {"slow", "fast", "hung"}
    ended = await house.drive(race("1"))
    assert ended.result == ["did quick", "did slow", "did fast", "did hung"]
    assert "1/abort" not in await house.paths()


def consumed() -> Walk:
    with contextlib.suppress(StepFailed):
        yield from race("1")
    return (yield HumanRequest("2/ask", "2", "Q", "input", "well?"))


async def test_a_reader_sees_what_ended_a_fan_and_waits_for_nothing_that_was_cut_off(house: House) -> None:
    house.tools = Racers()
    assert (await house.drive(consumed())).status is Status.AWAITING_INPUT
    records = await house.store.effects(house.run)
    seen = await replay(lambda work: consumed(), records, Progress({}), lambda boundary: False)
    assert [request.path for request in seen.open] == ["2/ask"]
    assert await to_perform_again(lambda work: consumed(), records) == ()


async def test_who_is_cancelled_before_the_end_is_written_performs_all_of_it_again(house: House) -> None:
    """The record of the fan is there, as after a crash, and with it goes every failure beside it."""
    house.tools = Racers()
    await house.drive(consumed())
    records = await house.store.effects(house.run)
    seen = await replay(lambda work: race("1"), records, Progress({}), lambda boundary: False)
    assert seen.failure is not None and seen.failure.message == "fast failed"
    again = {"1/parallel[fast]/tool", "1/parallel[slow]/tool", "1/abort"}
    assert set(await to_perform_again(lambda work: race("1"), records)) == again


@pytest.mark.parametrize("branches", [1, 3], ids=["of a child that is not there", "of a child that did not fail"])
async def test_a_record_that_does_not_fit_is_noticed(house: House, branches: int) -> None:
    def walk(names: list[str]) -> Walk:
        children = (use(f"1/parallel[{name}]", name) for name in names)
        with contextlib.suppress(StepFailed):
            yield Fan("1", children, 8, stop_on_first_failure=True)
        return (yield HumanRequest("2/ask", "2", "Q", "input", "well?"))

    house.tools = Racers()
    assert (await house.drive(walk(["quick", "fast"]))).status is Status.AWAITING_INPUT
    other = ["quick", "work", "fast"][:branches]
    ended = await house.drive(walk(other))
    assert ended.failure is not None and (ended.failure.kind, "1/abort" in ended.failure.message) == ("journal", True)
    with pytest.raises(JournalMismatch):
        await replay(
            lambda work: walk(other), await house.store.effects(house.run), Progress({}), lambda boundary: False
        )
