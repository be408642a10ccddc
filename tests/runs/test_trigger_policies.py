"""Catching up, overlap, outages and clock changes together, on a real store: every claim against brute force."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.test_trigger_times import AUTUMN, SPRING, local_times
from tests.runs.trigger_place import Place

from quire.runs.triggers import MOST_CAUGHT_UP, ON_TIME, source_of, time_text

HOUR = 3600.0
WINDOW = 24 * HOUR


def brute_force(due: list[float], looks: list[float], catch_up: str, overlap: str, *, quick: bool) -> dict[str, str]:
    """Return the state of each claim by its key. Quick runs end before the next look, others never."""
    states: dict[str, str] = {}
    cursor, pending = looks[0], 0
    for now in looks[1:]:
        since = [time for time in due if cursor < time <= now]
        fresh = [time for time in since if now - time <= (ON_TIME if catch_up == "none" else WINDOW)]
        start = fresh[-(MOST_CAUGHT_UP if catch_up == "all" else 1) :]
        if left := [time for time in since if time not in start]:
            until = start[0] - 0.5 if start else now - (ON_TIME if catch_up == "none" else WINDOW)
            states[f"{time_text(left[0])}..{time_text(until)}"] = "missed"
        for time in start:
            states[time_text(time)] = "skipped" if overlap == "skip" and pending else "started"
            pending += states[time_text(time)] == "started"
        cursor = since[-1] if start else now if since else cursor
        pending = 0 if quick else pending
    return states


@pytest.mark.parametrize("start", [SPRING, AUTUMN], ids=["spring", "autumn"])
@pytest.mark.parametrize("outage", [0, 3, 30], ids=["no outage", "3 hours", "30 hours"])
@pytest.mark.parametrize("catch_up", ["once", "all", "none"])
@pytest.mark.parametrize("overlap", ["skip", "queue", "allow"])
@pytest.mark.parametrize(("cron", "minute", "hour"), [("30 2 * * *", 30, 2), ("15 * * * *", 15, None)])
async def test_policies(
    cron: str, minute: int, hour: int | None, start: float, outage: int, catch_up: str, overlap: str, tmp_path: Path
) -> None:
    quick = (hour is None) == (overlap != "queue")
    place = Place(tmp_path)
    begin = start + 19 * HOUR  # a few hours before the night in which the clocks change
    place.clock.time = begin
    looks = [begin + number * 900 for number in range(20)]
    looks += [looks[-1] + outage * HOUR + number * 900 for number in range(1, 20)]
    place.configure(t=f'cron = "{cron}"\nzone = "Europe/Berlin"\ncatch_up = "{catch_up}"\noverlap = "{overlap}"')
    runtime = place.runtime()
    triggers = await place.enabled(runtime, "t")

    async def drive(run: str) -> None:
        if quick:
            await runtime.drive(run)

    for look in looks[1:]:
        place.clock.time = look
        await triggers.tick(look, drive)
    starts = await runtime.store.starts(source_of("t"), limit=1000)
    due = local_times(minute, hour, begin, looks[-1])
    assert {start.key: start.state for start in starts} == brute_force(due, looks, catch_up, overlap, quick=quick)
    await runtime.close()
