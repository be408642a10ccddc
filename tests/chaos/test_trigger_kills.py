"""Two servers under `every = "1s"`, killed in turn: no occurrence has two runs, none is lost, and idle ones cost
nothing to speak of."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.runs.trigger_place import Place

from quire.runs.triggers import Triggers, source_of, time_text

KILLS = 5
IDLE_SECONDS = 20


def serve(place: Place) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "quire", "serve", "--no-open", "--port", "0"],
        cwd=place.work,
        env={**os.environ, **place.environ},
        stdout=subprocess.DEVNULL,
        stderr=(place.base / "log").open("ab"),
    )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.clock.time = time.time()
    return place


async def enable(place: Place, *names: str) -> None:
    runtime = place.runtime()
    await place.enabled(runtime, *names)
    await runtime.close()


def test_killed_servers_lose_no_occurrence_and_start_none_twice(place: Place) -> None:
    place.configure(fast='every = "1s"\ncatch_up = "all"\noverlap = "allow"')
    place.clock.time = begun = time.time()
    asyncio.run(enable(place, "fast"))
    servers = [serve(place), serve(place)]
    try:
        for number in range(KILLS):
            time.sleep(7 + number % 3)
            victim = servers[number % 2]
            victim.send_signal(signal.SIGKILL)
            victim.wait()
            servers[number % 2] = serve(place)
        time.sleep(5)
    finally:
        for server in servers:
            server.kill()
            server.wait()
    asyncio.run(check(place, begun))


async def check(place: Place, begun: float) -> None:
    place.clock.time = end = time.time()
    runtime = place.runtime()

    async def drive(run: str) -> None:
        await runtime.drive(run)

    await Triggers(runtime).tick(end, drive)
    starts = await runtime.store.starts(source_of("fast"), limit=10_000)
    runs = {row.id: row for row in await runtime.store.list(limit=10_000)}
    assert {start.state for start in starts} == {"started"}, (place.base / "log").read_text()
    assert [start.key for start in starts][::-1] == [time_text(at) for at in range(int(begun) + 1, int(end) + 1)]
    assert len(runs) == len(starts) and {start.run for start in starts} == set(runs)
    await runtime.close()


def test_a_hundred_triggers_cost_no_processor_time_to_speak_of(place: Place) -> None:
    """At most half a hundredth of a core, beside what an idle server costs anyway."""
    place.configure(
        **{f"t{number}": f'cron = "{number % 60} 6 * * *"\nzone = "Europe/Berlin"' for number in range(100)}
    )
    asyncio.run(enable(place, *(f"t{number}" for number in range(100))))
    with_triggers = idle_seconds(place)
    asyncio.run(disable(place))
    without = idle_seconds(place)
    assert with_triggers - without <= 0.005 * IDLE_SECONDS, (with_triggers, without)


def idle_seconds(place: Place) -> float:
    """Return the processor time that a server uses while nothing is due. Its first looks load the code."""
    server = serve(place)

    def used() -> float:
        fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    try:
        time.sleep(15)
        before = used()
        time.sleep(IDLE_SECONDS)
        return used() - before
    finally:
        server.kill()
        server.wait()


async def disable(place: Place) -> None:
    runtime = place.runtime()
    for row in await runtime.store.triggers():
        await runtime.store.disable(row.name)
    await runtime.close()
