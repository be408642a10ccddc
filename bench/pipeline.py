"""What pipelines cost: a pure step, and a fan of a thousand journaled calls.

python -m bench.pipeline [FOLDER]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

from bench.engine import Instant
from bench.rows import Row, show
from quire.engine.driver.drive import Drive
from quire.engine.driver.journal import Journal
from quire.engine.driver.walker import DriveLimits
from quire.engine.interpreter.callees import Environment
from quire.engine.interpreter.pipeline.interpret import interpret_pipeline
from quire.engine.ports import Ports, Store
from quire.engine.records import Batch, NewRun, RunUpdate, Status
from quire.library.document import read
from quire.plan.nodes import Plan
from quire.runs.adapters import Nobody, WallClock
from quire.source import Source
from quire.stores import open_store
from quire.values import Value

STEPS = 2_000
ITEMS = 1_000


def transforms(count: int) -> Plan:
    steps = "".join(f'- transform: {{value: "ctx.n + {at}", output: n}}\n' for at in range(count))
    return _plan(f"pipeline: p\nsteps:\n{steps}")


def blocks(count: int) -> Plan:
    """The same steps as `transforms`, in blocks of one."""
    steps = "".join(f'- steps: [{{transform: {{value: "ctx.n + {at}", output: n}}}}]\n' for at in range(count))
    return _plan(f"pipeline: p\ndialect: quire\nsteps:\n{steps}")


def rounds(count: int) -> Plan:
    """One loop of so many rounds."""
    return _plan(
        f"pipeline: p\ndialect: quire\nsteps:\n- repeat: {{init: '0', max: {count}, on_max: keep, until: 'false', "
        'do: {transform: {value: "acc + 1"}}}\n'
    )


def fan() -> Plan:
    return _plan(
        "pipeline: p\nsteps:\n- for_each: {over: ctx.items, on_error: abort, max_parallel: 50,"
        ' do: {tool: {name: look, args: {i: !expr item}}}, collect: {transform: {value: "count(pipe)"}}}\n'
    )


def _plan(text: str) -> Plan:
    plan = read(Source.of(text, "bench.yaml")).plan
    assert plan is not None
    return plan


async def drive(store: Store, run: str, plan: Plan, ctx: dict[str, Value]) -> tuple[float, float]:
    """Seconds on the clock and of the processor."""
    await store.create(NewRun(run, "T", "pipeline", "t.yaml", time.time(), {}, {}))
    instant = Instant()
    ports = Ports(store, instant, instant, instant, Nobody(), WallClock())
    lease = await store.acquire(run)
    driving = Drive(lease, Journal(()), ports, DriveLimits())
    started, worked = time.perf_counter(), time.process_time()
    ended = await driving.until_rest(
        interpret_pipeline(plan, ctx, Environment()), Batch(update=RunUpdate(status=Status.RUNNING))
    )
    took = time.perf_counter() - started, time.process_time() - worked
    assert ended.status is Status.COMPLETED, ended
    await store.release(lease)
    return took


async def _pure(here: Path) -> list[Row]:
    store = open_store(here / "pure.db", durability="process")
    plan = transforms(STEPS)
    each = min([(await drive(store, f"pure-{n}", plan, {"n": 0}))[0] for n in range(5)]) / STEPS * 1e6
    plain, block, loop = transforms(STEPS), blocks(STEPS), rounds(STEPS)
    best = [float("inf")] * 3
    for turn in range(7):  # in turns, so that all of them have the same machine
        for at, one in enumerate((plain, block, loop)):
            best[at] = min(best[at], await _walked(store, f"turn-{turn}-{at}", one))
    await store.close()
    around = best[1] - best[0]
    return [
        Row("pure transform step", each, "µs", "at most 15", each <= 15),
        Row("a block over the steps in it", around, "µs", "at most 3", around <= 3),
        Row("a round of a loop, with its step", best[2], "µs", "no more than a step and 3", best[2] <= best[0] + 3),
    ]


async def _walked(store: Store, run: str, plan: Plan) -> float:
    """Microseconds for each of `STEPS`."""
    return (await drive(store, run, plan, {"n": 0}))[0] / STEPS * 1e6


async def _fan(here: Path) -> list[Row]:
    plan = fan()
    cost, size, memory = [], [], []
    for count in (ITEMS, 2 * ITEMS):
        path = here / f"fan-{count}" / "quire.db"
        store = open_store(path, durability="process")
        items: dict[str, Value] = {"items": list(range(count))}
        cost.append(min([(await drive(store, f"fan-{n}", plan, items))[1] for n in range(3)]))
        await store.close()
        size.append(sum(file.stat().st_size for file in path.parent.iterdir() if file.is_file()))
        memory.append(await _peak(here / f"memory-{count}.db", plan, items))
    return [
        Row(f"for_each of {ITEMS:,} journaled calls", cost[0], "s", "of processor, at most 0.15", cost[0] <= 0.15),
        Row("bytes on disk, twice the items", size[1] / size[0], "×", "at most 2.1", size[1] <= 2.1 * size[0]),
        Row("peak memory a finished item", (memory[1] - memory[0]) / ITEMS / 1024, "KiB", "flat but for results", True),
    ]


async def _peak(path: Path, plan: Plan, ctx: dict[str, Value]) -> int:
    store = open_store(path, durability="process")
    tracemalloc.start()
    await drive(store, "memory", plan, ctx)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    await store.close()
    return peak


def measure(folder: Path | None = None) -> list[Row]:
    with tempfile.TemporaryDirectory(dir=folder) as here:
        return [row for part in (_pure, _fan) for row in asyncio.run(part(Path(here)))]


if __name__ == "__main__":
    show("pipeline", measure(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
