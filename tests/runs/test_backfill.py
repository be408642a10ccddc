"""`quire triggers backfill`: only the times that nothing has claimed, one after another."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.trigger_place import Place, day_of, nothing

from quire.errors import CannotStart, RunState
from quire.operations.host import Caller, Host
from quire.operations.triggers import backfill_trigger
from quire.runs.runtime import Runtime
from quire.runs.triggers import MOST_BACKFILLED
from quire.stores.occurrences import Occurrence
from quire.values import Value

SPAN = {"name": "noon", "since": "2027-01-11", "until": "2027-01-15T12:00"}
DAYS = [f"2027-01-{day}T12:00:00Z" for day in (11, 12, 13, 14, 15)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.configure(noon='cron = "0 12 * * *"', drop='files = "*.csv"', often='every = "1s"')
    return place


async def backfill(runtime: Runtime, **given: Value) -> dict[str, Value]:
    work, host = backfill_trigger, Host(runtime, Caller())
    answer: dict[str, Value] = await work.run(host, work.read({**SPAN, **given}))
    return answer


async def test_only_holes_are_filled(place: Place) -> None:
    runtime = place.runtime()
    await place.enabled(runtime, "noon")
    await runtime.store.start_once(None, Occurrence("trigger:noon", DAYS[1]), state="skipped", reason="x")
    shown = await backfill(runtime, dry_run=True)
    assert shown == {"due": [DAYS[0], *DAYS[2:]], "most": None, "fires": []}
    assert len(await runtime.store.starts()) == 1 and not await runtime.store.list()
    filled = await backfill(runtime)
    assert filled["due"] == shown["due"]
    rows = await runtime.store.list()
    # One after another, although the trigger skips what overlaps; each knows its time.
    assert [row.status for row in rows] == ["completed"] * 4
    assert sorted(day_of(row) for row in rows) == shown["due"]
    assert (await backfill(runtime))["due"] == []
    place.clock.time += 86_400  # the ticker goes on behind them
    triggers = await place.enabled(runtime, "noon")
    assert await triggers.tick(place.clock.now(), nothing) == []
    await runtime.close()


async def test_the_zone_of_the_trigger_counts_and_the_future_does_not(place: Place) -> None:
    place.configure(noon='cron = "0 12 * * *"\nzone = "Europe/Berlin"\nbudget = 0.5')
    runtime = place.runtime()
    for since, until, due in (
        ("2027-01-12T12:00", "2027-01-12T12:00", ["2027-01-12T11:00:00Z"]),
        ("2027-01-12T12:00:01", "2027-01-13T10:59:59Z", []),
        ("2027-01-15", "2030-01-01", ["2027-01-15T11:00:00Z"]),
    ):
        assert (await backfill(runtime, since=since, until=until, dry_run=True))["due"] == due
    with pytest.raises(RunState, match="not enabled"):
        await backfill(runtime)
    await runtime.close()


@pytest.mark.parametrize("change", [{"name": "drop"}, {"name": "often"}, {"since": "monday"}, {"name": "nothing"}])
async def test_what_cannot_be_filled(place: Place, change: dict[str, str]) -> None:
    runtime = place.runtime()
    with pytest.raises(CannotStart, match=f"only {MOST_BACKFILLED:,} due|a time is written|unknown trigger"):
        await backfill(runtime, **change)
    assert not await runtime.store.starts()
    await runtime.close()
