"""Random fans in fans, with people who answer at any moment, tools that fail, cancels, stops and interrupts.

Everything is drawn from a seed and nothing waits for real time, so a storm that breaks something breaks it again.
What must hold whatever happens: a drive ends, nobody waits for nothing, and in the end the run completes.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.engine.house import Clock, House

from quire.engine.driver.drive import Drive
from quire.engine.driver.journal import Journal
from quire.engine.driver.replay import to_perform_again
from quire.engine.driver.walker import DriveLimits
from quire.engine.records import Batch, RunUpdate, Status
from quire.engine.requests import Fan, HumanRequest, Outcome, ToolRequest, Walk
from quire.errors import QuireError, StepFailed, ToolFailed
from quire.stores import open_store
from quire.values import Value


@dataclass(frozen=True)
class Fanned:
    children: list[Tree]
    limit: int
    stop: bool
    catch: bool


Tree: TypeAlias = "list[str] | Fanned"


def tree(chance: random.Random, depth: int) -> Tree:
    if depth == 0 or chance.random() < 0.35:
        return [chance.choice(["ask", "ask", "work", "break"]) for _ in range(chance.randint(0, 3))]
    children = [tree(chance, depth - 1) for _ in range(chance.randint(1, 4))]
    return Fanned(children, chance.choice([1, 1, 2, 8]), chance.random() < 0.5, chance.random() < 0.5)


def walk(what: Tree, path: str) -> Walk:
    if isinstance(what, list):
        for number, work in enumerate(what):
            at = f"{path}/{number}"
            if work == "ask":
                yield HumanRequest(f"{at}/ask", at, "Q", "input", "well?")
            else:
                yield ToolRequest(f"{at}/tool", at, "srv", work, {})
        return len(what)
    children = (walk(child, f"{path}/for_each[{number}]") for number, child in enumerate(what.children))
    try:
        fan: list[Outcome] = yield Fan(path, children, what.limit, what.stop)
        result: Value = [outcome.value for outcome in fan]
    except StepFailed:
        if not what.catch:
            raise
        result = "caught"
    yield ToolRequest(f"{path}/collect/tool", path, "srv", "work", {})
    return result


class Storm:
    def __init__(self, house: House, chance: random.Random) -> None:
        self.house = house
        self.chance = chance
        self.tree = tree(chance, 3)
        house.tools.kind = chance.choice(["write", "read"])
        house.tools.act = self._act

    def _act(self, request: ToolRequest) -> Value:
        if request.tool == "break" and self.chance.random() < 0.7:
            raise ToolFailed("broken")
        return "ok"

    def _walk(self) -> Walk:
        return walk(self.tree, "1")

    async def _turns(self, most: int) -> None:
        for _ in range(self.chance.randint(1, most)):
            await asyncio.sleep(0)

    async def people(self) -> None:
        while True:
            await self._turns(8)
            asked = await self.house.store.questions(self.house.run)
            if asked and self.chance.random() < 0.7:
                one = self.chance.choice(asked)
                with contextlib.suppress(QuireError):
                    await self.house.store.answer(one.run, one.path, one.hash, "a")

    async def drive(self, begun: list[Drive]) -> None:
        """As the runtime does it."""
        house = self.house
        lease = await house.store.acquire(house.run)
        try:
            row = await house.store.get(house.run)
            assert row is not None
            records, again = await house.store.effects(house.run), row.ended_by
            if row.status in (Status.FAILED, Status.CANCELLED, Status.PAUSED):
                again += await to_perform_again(
                    lambda work: self._walk(), [one for one in records if one.path not in again]
                )
            journal = Journal([one for one in records if one.path not in again])
            answers = await house.store.answers(house.run)
            begun.append(Drive(lease, journal, house.ports(), DriveLimits(), answers=answers))
            await begun[0].until_rest(self._walk(), Batch(supersede=again, update=RunUpdate(status=Status.RUNNING)))
        finally:
            await house.store.release(lease)

    async def disturb(self, driving: asyncio.Task[None], begun: list[Drive]) -> None:
        what = self.chance.choice(["cancel", "stop", "interrupt", "answer", "", ""])
        await self._turns(40)
        if what == "cancel":
            with contextlib.suppress(QuireError):
                await self.house.store.request_cancel(self.house.run)
        elif what == "stop" and begun:
            begun[0].stop()
        elif what == "interrupt":
            driving.cancel()
        elif what == "answer" and begun:
            await begun[0]._walker.resting.take_answers()


@pytest.mark.parametrize("seed", range(80))
async def test_a_storm_passes(tmp_path: Path, seed: int) -> None:
    clock = Clock()
    house = House(open_store(tmp_path / "quire.db", durability="process", now=clock.now), clock=clock)
    await house.create()
    storm = Storm(house, random.Random(seed))
    people = asyncio.create_task(storm.people())
    for _ in range(100):
        begun: list[Drive] = []
        driving = asyncio.create_task(storm.drive(begun))
        disturbing = asyncio.create_task(storm.disturb(driving, begun))
        await asyncio.wait({driving}, timeout=20)
        assert driving.done(), "nothing moves, and nobody parks"
        await disturbing
        with contextlib.suppress(asyncio.CancelledError):
            driving.result()
        status = await house.status()
        if status is Status.COMPLETED:
            break
        assert status in (Status.PAUSED, Status.AWAITING_INPUT, Status.FAILED, Status.CANCELLED, Status.PENDING)
        if status is Status.AWAITING_INPUT:
            assert await house.store.questions(house.run) or await house.store.answers(house.run)
    people.cancel()
    assert await house.status() is Status.COMPLETED
    seqs = [event.seq for event in await house.store.events(house.run)]
    assert seqs == list(range(1, len(seqs) + 1))
    assert house.tools.live == 0
    await house.store.close()
