"""Two tickers on one database die at any statement and after any commit, while their clock runs, stops and jumps: each
occurrence has one run, and none is lost within the window. A claim in a transaction of its own is found."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from tests.depth import depth
from tests.runs.trigger_place import Place, nothing
from tests.stores.postgres_server import shared_server

from quire.engine.ports import Store
from quire.engine.records import NewRun
from quire.runs.triggers import MOST_CAUGHT_UP, Triggers, source_of, time_text
from quire.stores import open_store
from quire.stores.occurrences import Occurrence, Start
from quire.trust.seal import user_seal

SEEDS = depth(6, 40)
TABLES = {
    "all": 'every = "60s"\ncatch_up = "all"\noverlap = "allow"',
    "once": 'every = "90s"\noverlap = "queue"',
    "skip": 'every = "45s"\ncatch_up = "all"',
}


class Died(Exception):
    """The process is gone."""


class Process:
    """A ticker whose store dies at one of its points."""

    def __init__(self, place: Place, url: str | Path, bug: bool) -> None:
        seal = user_seal(place.home, place.environ)
        self.store = cast("Any", open_store(url, seal=seal, now=place.clock.now, durability="process"))
        self.points, self.dies_at = 0, 0
        self.triggers = Triggers(place.runtime(self.store))
        transact = self.store._transact

        async def dying(work: Callable[[bool], Generator[Any, Any, Any]]) -> Any:
            result = await transact(lambda again: self._steps(work(again)))
            self._point()
            return result

        self.store._transact = dying
        if bug:
            self.store.start_once = self._split

    def _point(self) -> None:
        self.points += 1
        if self.points == self.dies_at:
            raise Died

    def _steps(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        try:
            step = next(steps)
            while True:
                self._point()
                step = steps.send((yield step))
        except StopIteration as end:
            self._point()
            return end.value

    async def _split(
        self, run: NewRun | None, occurrence: Occurrence, admit: Any = None, *, state: Any = "started", reason: str = ""
    ) -> tuple[Start, bool]:
        """Claim in one transaction and create the run in the next."""
        named = run.id if run else ""
        claim = Start(occurrence.source, occurrence.key, "", occurrence.due, self.store._now(), state, reason, named)
        claimed: tuple[Start, bool] = await self.store._transact(
            lambda again: self.store._transactions.start_once(None, claim, admit, again=again)
        )
        if run is not None and claimed[1] and claimed[0].state == "started":
            await self.store.create(run)
        return claimed


async def simulate(
    seed: int, base: Path, url: str | Path | None, *, jumps: bool = False, bug: bool = False
) -> list[str]:
    """Return everything that is wrong in the end."""
    chance, place = random.Random(seed), Place(base / str(seed))
    place.configure(**TABLES)
    opened = url or place.work / ".quire" / "quire.db"
    setup = Process(place, opened, bug=False)
    await place.enabled(setup.triggers._runtime, *TABLES)
    begun = place.clock.time
    processes = [Process(place, opened, bug) for _ in range(2)]
    for _ in range(40):
        place.clock.time += chance.choice((1, 5, 5, 20, 60, 60, 300))
        if jumps and chance.random() < 0.2:
            place.clock.time += chance.choice((-2, 2)) * 86_400
        both = chance.random() < 0.4
        for process in processes:
            process.dies_at = process.points + chance.randrange(1, 20) if chance.random() < 0.7 else 0
        ticks = [process.triggers.tick(place.clock.now(), nothing) for process in processes[: 1 + both]]
        for number, ended in enumerate(await asyncio.gather(*ticks, return_exceptions=True)):
            if isinstance(ended, Died):
                await processes[number].store.close()
                processes[number] = Process(place, opened, bug)
            elif isinstance(ended, BaseException):
                raise ended
        processes.reverse()
    end = place.clock.time
    await setup.triggers.tick(end, nothing)
    problems = await wrong(setup.store, begun, end, jumps=jumps)
    for process in (setup, *processes):
        await process.store.close()
    return problems


async def wrong(store: Store, begun: float, end: float, *, jumps: bool) -> list[str]:
    starts = [start for name in TABLES for start in await store.starts(source_of(name), limit=10_000)]
    runs = {row.id: row for row in await store.list(limit=10_000)}
    problems = [
        f"claim without a run: {start}" for start in starts if start.state == "started" and start.run not in runs
    ]
    claimed = [start.run for start in starts if start.run]
    problems += [f"run with {claimed.count(run)} claims: {run}" for run in runs if claimed.count(run) != 1]
    for name, step in (("all", 60), ("skip", 45)):
        own: Sequence[Start] = [start for start in starts if start.source == source_of(name)]
        keys, missed = {start.key for start in own}, [start for start in own if start.state == "missed"]
        due = [time for time in range(int(begun) // step * step, int(end) + 1, step) if time > begun]
        lost = [time for time in due if time_text(time) not in keys]
        # Without jumps no time between two looks is as long as the window, or holds a hundred occurrences.
        if not jumps and (lost or missed):
            problems.append(f"{name} lost {len(lost)}, missed {missed}")
        assert jumps or len(due) > MOST_CAUGHT_UP // 5
    return problems


def place_of(database: str) -> str | None:
    if database == "sqlite":
        return None
    server = shared_server()
    return server.url(schema=server.new_schema())


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("jumps", [False, True])
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_one_run_for_each_occurrence(seed: int, jumps: bool, database: str, tmp_path: Path) -> None:
    assert await simulate(seed, tmp_path, place_of(database), jumps=jumps) == []


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_a_claim_in_its_own_transaction_is_found(database: str, tmp_path: Path) -> None:
    assert any([await simulate(seed, tmp_path, place_of(database), bug=True) for seed in range(SEEDS)])
