"""Orders, groups and sums among 10,002 runs, as ratios to the first page of the list in the same process."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from quire.engine.records import NewRun, Status
from quire.stores.rows import places
from quire.stores.run_pages import RunFilters
from quire.stores.sqlite.store import SqliteStore

RUNS = 10_002
TRIES = 5


async def _seconds(work: Callable[[], Awaitable[object]]) -> float:
    times = []
    for _ in range(TRIES):
        began = time.process_time()
        await work()
        times.append(time.process_time() - began)
    return min(times)


async def test_no_order_reads_the_pins_of_all_runs(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "quire.db", durability="process")
    pins = {"inputs": {"topic": "tea " * 200}}
    await store.create(NewRun("first", "T", "playbook", "a.md", 0.5, pins, {}, "s"))
    with store._database.transaction() as connection:  # as fast as possible
        (text,) = connection.execute("SELECT value FROM pins").fetchone()
        for number in range(2, RUNS + 1):
            status = "failed" if number % 9 == 0 else "completed"
            row = (number, f"r{number}", status, 1.0 + number, 2.0 + number + number % 7, f"subject {number % 50}")
            connection.execute(
                "INSERT INTO runs (n, id, title, format, document, status, created_at, updated_at, subject,"
                " failure_kind, failure_message) SELECT ?, ?, 'T', 'playbook', 'a.md', ?, ?, ?, ?, 'model', 'lost'",
                row,
            )
            connection.execute("INSERT INTO pins (run, value) VALUES (?, ?)", (number, text))
            connection.execute(
                "INSERT INTO journal (id, written_at, position, total_input, total_output, total_cost)"
                " VALUES (?, 2.0, '1', 1, 1, ?)",
                (places(number)[0] + 1, number % 13 / 100),
            )
    page = await _seconds(lambda: store.page(RunFilters()))
    assert len((await store.page(RunFilters(), limit=20_000, pins=False)).rows) == RUNS
    works: dict[str, tuple[float, Callable[[], Awaitable[object]]]] = {
        "by time": (30, lambda: store.page(RunFilters(), sort="took")),
        "by cost": (80, lambda: store.page(RunFilters(), sort="cost")),
        "by subject": (40, lambda: store.page(RunFilters(), sort="subject")),
        "failures": (100, lambda: store.page(RunFilters((Status.FAILED,)), limit=20_000, pins=False)),
        "groups": (500, lambda: store.page(RunFilters(), limit=20_000, pins=False)),
        "sums": (80, lambda: store.spent(0.0)),
    }
    ratios = {what: (await _seconds(work)) / max(page, 0.0005) for what, (_, work) in works.items()}
    assert {what: ratio for what, ratio in ratios.items() if ratio > works[what][0]} == {}, (page, ratios)
    await store.close()
