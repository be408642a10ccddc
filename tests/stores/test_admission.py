"""The money of a period: what runs count against it, and that runs which start at once never pass it together."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.processes import started

from quire.engine.ports import Store
from quire.engine.records import Batch, EffectRecord, NewRun, RunUpdate, Status, Usage
from quire.errors import LimitReached
from quire.stores.contract import PeriodBudget, within
from quire.stores.occurrences import Occurrence

if TYPE_CHECKING:
    from tests.stores.conftest import PostgresShelf, Shelf, SqliteShelf

DAY = PeriodBudget("[budgets] day", 5.0, 0.0)
NIGHTLY = PeriodBudget("day_budget", 2.0, 0.0, "trigger:nightly")


def new_run(id: str, most: float | None = 1.0, source: str = "", at: float = 10.0) -> NewRun:
    return NewRun(id, "T", "playbook", "a.md", at, {"inputs": {}}, {}, source=source, reserved=most)


async def admitted(store: Store, id: str, cost: float, *budgets: PeriodBudget, source: str = "") -> bool:
    try:
        await store.create(new_run(id, cost, source), within(budgets or (DAY,), cost, 1_000.0))
    except LimitReached:
        assert await store.get(id) is None
        return False
    return True


async def spend(store: Store, id: str, cost: float | None, status: Status | None = None) -> None:
    lease = await store.acquire(id)
    call = EffectRecord(f"{cost}/model", "model", "ok", "hash", 11.0, "v", usage=Usage(1, 1, cost))
    await store.write(lease, Batch((call,), update=RunUpdate(status or Status.RUNNING)))
    await store.release(lease)


async def test_a_run_that_goes_on_counts_what_it_may_cost(store: Store) -> None:
    assert [await admitted(store, f"r{n}", 2.0) for n in range(3)] == [True, True, False]
    assert await admitted(store, "exact", 1.0)
    assert not await admitted(store, "cent", 0.01)
    with pytest.raises(LimitReached, match=r"\[budgets\] day = \$5 .*set aside \$5\.00, .*may cost \$0\.01") as stopped:
        await store.create(new_run("cent", 0.01), within([DAY], 0.01, 1_000.0))
    assert stopped.value.exit_code == 5


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.CANCELLED])
async def test_a_run_that_has_ended_counts_its_cost(store: Store, status: Status) -> None:
    assert await admitted(store, "r1", 5.0)
    assert not await admitted(store, "r2", 0.5)
    await spend(store, "r1", 0.25, status)
    assert not await admitted(store, "r2", 4.76)
    assert await admitted(store, "r2", 4.75)


async def test_a_cost_that_is_higher_than_the_amount_set_aside_counts(store: Store) -> None:
    assert await admitted(store, "r1", 1.0)
    await spend(store, "r1", 4.5)
    assert not await admitted(store, "r2", 0.6)
    assert await admitted(store, "r3", 0.5)


async def test_an_unknown_cost_counts_as_the_amount_set_aside(store: Store) -> None:
    assert await admitted(store, "r1", 4.0)
    await spend(store, "r1", None, Status.COMPLETED)
    assert not await admitted(store, "r2", 1.1)


async def test_a_wait_that_has_expired_counts_its_cost(store: Store) -> None:
    assert await admitted(store, "r1", 5.0)
    lease = await store.acquire("r1")
    await store.write(lease, Batch(update=RunUpdate(Status.AWAITING_INPUT, expires_at=999.0)))
    await store.release(lease)
    assert await admitted(store, "r2", 5.0)


async def test_each_budget_counts_its_own_source_and_time(store: Store) -> None:
    await store.create(new_run("yesterday", 100.0, at=-1.0))
    nightly = {"source": "trigger:nightly"}
    assert await admitted(store, "n1", 2.0, DAY, NIGHTLY, **nightly)
    assert not await admitted(store, "n2", 0.5, DAY, NIGHTLY, **nightly)
    assert await admitted(store, "other", 3.0, DAY)
    assert not await admitted(store, "more", 0.5, DAY)


async def test_a_claim_of_a_trigger_is_skipped_and_one_of_a_caller_is_not_kept(store: Store) -> None:
    late, key = Occurrence("trigger:nightly", "6:00"), Occurrence("id", "mine")
    claim, _ = await store.start_once(new_run("r1", 6.0), late, within([DAY], 6.0, 0.0))
    assert claim.state == "skipped" and "[budgets] day = $5 has no room" in claim.reason
    with pytest.raises(LimitReached, match="not started"):
        await store.start_once(new_run("r2", 6.0), key, within([DAY], 6.0, 0.0))
    claim, is_new = await store.start_once(new_run("r3", 1.0), key, within([DAY], 1.0, 0.0))
    assert (claim.state, claim.run, is_new) == ("started", "r3", True)


async def test_runs_that_start_at_once_share_a_budget(store: Store, shelf: Shelf) -> None:
    stores = [store, *(shelf.open() for _ in range(2))]
    tries = [admitted(each, f"{n}-{again}", 1.0) for n, each in enumerate(stores) for again in range(4)]
    assert sum(await asyncio.gather(*tries)) == 5


CREATES = """
import asyncio, sys
from quire.engine.records import *
from quire.errors import LimitReached
from quire.stores import open_store
from quire.stores.contract import PeriodBudget, within

async def main(place, name):
    store = open_store(place, durability="process")
    budgets = [PeriodBudget("day", 20.0, 0.0)]
    for n in range(1000):
        id = f"{name}-{n}"
        run = NewRun(id, "T", "playbook", "a.md", 10.0, {"inputs": {}}, {}, reserved=1.0)
        try:
            await store.create(run, within(budgets, 1.0, 0.0))
        except LimitReached:
            continue
        print(id, flush=True)
        lease = await store.acquire(id)
        call = EffectRecord("1/model", "model", "ok", "hash", 11.0, "v", usage=Usage(1, 1, 0.25))
        await store.write(lease, Batch((call,), update=RunUpdate(Status.RUNNING)))
        await store.write(lease, Batch(update=RunUpdate(Status.COMPLETED)))
        await store.release(lease)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.lasting_store("its processes share no memory")
async def test_processes_that_are_killed_never_pass_a_budget_together(
    shelf: SqliteShelf | PostgresShelf, store: Store
) -> None:
    """Each run that is left alone keeps its dollar, each that ended counts a quarter."""
    await store.create(new_run("first", 0.0))
    place, chance = str(getattr(shelf, "url", "") or getattr(shelf, "path", "")), random.Random(7)
    for batch in range(4):
        commands = [[sys.executable, "-c", CREATES, place, f"b{batch}p{number}"] for number in range(3)]
        with (
            started(commands[0], stdout=subprocess.PIPE) as one,
            started(commands[1], stdout=subprocess.PIPE) as two,
            started(commands[2], stdout=subprocess.PIPE) as three,
        ):
            for process in (one, two, three):
                assert process.stdout is not None
                for _ in range(chance.randrange(1, 6)):
                    process.stdout.readline()
                process.kill()
    rows = await store.list(limit=2000)
    counted = sum((row.cost or 0.0) if row.status is Status.COMPLETED else 1.0 for row in rows if row.id != "first")
    assert len(rows) > 12 and counted <= 20.0
    left = [n for n in range(40) if await admitted(store, f"last{n}", 1.0, PeriodBudget("day", 20.0, 0.0))]
    assert len(left) == int(20.0 - counted)
