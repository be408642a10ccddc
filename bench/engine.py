"""What a step costs when nobody is waited for: the interpreter, the driver and the journal alone.

    python -m bench.engine [FOLDER]

The folder decides which disk is measured. Journaled steps and raw commits take turns in blocks.
"""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from bench.rows import Row, show
from quire.engine.drive import Drive
from quire.engine.interpret import interpret
from quire.engine.journal import Journal
from quire.engine.ports import EffectClass, ModelCall, ModelReply, Ports, Store
from quire.engine.progress import Progress
from quire.engine.records import Batch, NewRun, RunUpdate, Status
from quire.engine.replay import replay
from quire.engine.requests import Load, Offered, ToolRequest
from quire.engine.walker import Terms
from quire.plan.nodes import Plan, Sequence, Step, UseTool
from quire.runtime.clock import WallClock
from quire.runtime.people import Nobody
from quire.store import open_store
from quire.values import Value

PURE = 5_000
BLOCKS = 20
BLOCK = 25
REPLAYED = 10_000


class Instant:
    """A tool that only reads and answers at once, a model and a loader that are never asked."""

    name = "none"

    def __init__(self) -> None:
        self.called: list[float] = []

    def effect_class(self, request: ToolRequest) -> EffectClass:
        return "read"

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        self.called.append(time.perf_counter())
        return "x" * 200

    async def offers(self, names: object) -> list[Offered]:
        raise AssertionError("no agent here")

    async def offers_under(self, grants: object) -> list[Offered]:
        raise AssertionError("no agent here")

    async def prompt(self, server: str, name: str) -> str:
        raise AssertionError

    async def complete(self, call: ModelCall, on_delta: object) -> ModelReply:
        raise AssertionError

    async def load(self, request: Load) -> str | None:
        raise AssertionError


def document(steps: int, tool: bool) -> Plan:
    work = UseTool("srv", "look", {}) if tool else None
    return Plan("T", "playbook", (), Sequence(tuple(Step(at, str(at), "S", work=work) for at in range(1, steps + 1))))


async def drive(store: Store, run: str, plan: Plan) -> tuple[float, list[float]]:
    """The seconds of one drive from start to end, and those from each tool call to the next: one step each."""
    await store.create(NewRun(run, "T", "playbook", "t.md", time.time(), {}, {}))
    instant = Instant()
    ports = Ports(store, instant, instant, instant, Nobody(), WallClock())
    lease = await store.acquire(run)
    driving = Drive(lease, Journal(()), ports, Terms())
    started = time.perf_counter()
    ended = await driving.until_rest(interpret(plan, {}), Batch(update=RunUpdate(status=Status.RUNNING)))
    took = time.perf_counter() - started
    assert ended.status is Status.COMPLETED
    await store.release(lease)
    return took, [later - earlier for earlier, later in pairwise(instant.called)]


async def pure(here: Path) -> list[Row]:
    store = open_store(here / "pure.db")
    empty, _ = await drive(store, "warm", document(1, False))
    times = [(await drive(store, f"pure-{n}", document(PURE, False)))[0] for n in range(5)]
    await store.close()
    each = (min(times) - empty) / PURE * 1e6
    return [Row("pure step", each, "µs", "at most 15", each <= 15)]


async def journaled(here: Path) -> list[Row]:
    store = open_store(here / "journaled.db")
    raw = sqlite3.connect(here / "raw.db", isolation_level=None)
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("PRAGMA synchronous = FULL")
    raw.execute("CREATE TABLE small (id INTEGER PRIMARY KEY, text TEXT)")
    base, cost = [], []
    for block in range(BLOCKS):
        for _ in range(BLOCK):
            started = time.perf_counter()
            raw.execute("INSERT INTO small (text) VALUES (?)", ("x" * 50,))
            base.append(time.perf_counter() - started)
        cost += (await drive(store, f"steps-{block}", document(BLOCK + 1, True)))[1]
    raw.close()
    await store.close()
    least, ours = statistics.median(base) * 1e6, statistics.median(cost) * 1e6
    return [
        Row("raw SQLite commit, synchronous=FULL", least, "µs", "the measure", True),
        Row("journaled step, no intent", ours, "µs", "", True),
        Row("journaled step / raw commit", ours / least, "×", "at most 1.5", ours / least <= 1.5),
    ]


async def replayed(here: Path) -> list[Row]:
    store = open_store(here / "replayed.db", durability="process")
    plan = document(REPLAYED, True)
    await drive(store, "long", plan)
    started = time.perf_counter()
    again = replay(interpret(plan, {}), await store.effects("long"), Progress.of(plan), lambda boundary: False)
    took = time.perf_counter() - started
    assert again.finished
    await store.close()
    return [Row(f"replay of {REPLAYED:,} effects", took, "s", "at most 0.5", took <= 0.5)]


def measure(folder: Path | None = None) -> list[Row]:
    with tempfile.TemporaryDirectory(dir=folder) as here:
        place = Path(here)
        return [row for part in (pure, journaled, replayed) for row in asyncio.run(part(place))]


if __name__ == "__main__":
    show("engine", measure(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
