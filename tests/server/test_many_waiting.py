"""A hundred thousand runs that wait for people, in one PostgreSQL database: readers and answers touch a few of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.server.served import Served, served
from tests.stores.postgres_server import PostgresServer, own_server

from quire.stores.contract import MOST_QUESTIONS
from quire.telemetry.metrics import Metrics

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASKS = '# Notes\n\n## STEP 1: Decide\n\n@elicit(confirm, "Publish?")\n'
WAITING = 100_000
ATTEMPTS = 5
EVERY_QUESTION = """
    SELECT count(*) FROM {0}.quire_questions q JOIN {0}.quire_runs r ON r.id = q.run
    WHERE q.state = 'open' AND r.status = 'awaiting_input'
"""


async def test_the_inbox_of_many_waiting_runs(tmp_path: Path) -> None:
    database = own_server()
    schema = database.new_schema()
    settings = f'[store]\nurl = "{database.url(schema=schema)}"\n'
    try:
        async with served(tmp_path / "team", {"notes.playbook.md": ASKS}, settings=settings) as server:
            runs = [await asking(server) for _ in range(ATTEMPTS)]
            copy_run(database, schema, runs[0], WAITING)
            # The price of reading them all on this machine at this moment, about 70 ms when nothing else runs.
            every = await fastest(lambda: asyncio.to_thread(database.do, EVERY_QUESTION.format(schema)))
            store, left = server.site.runtime.store, iter(runs)

            async def answer() -> None:
                run = next(left)
                async with server.client() as client:
                    (question,) = (await client.get("/questions", params={"run": run})).json()["items"]
                    body = {"value": "yes", "hash": question["hash"], "drive": False}
                    assert (await client.post(f"/questions/{run}/{question['path']}/answer", json=body)).is_success

            page = await server.read("/questions?limit=50")
            assert (len(page["items"]), page["total"]) == (50, MOST_QUESTIONS + 1)
            assert page["items"][0]["run"] == runs[0]
            took = {
                "page": await fastest(lambda: server.read("/questions?limit=50")),
                "next page": await fastest(lambda: server.read(f"/questions?limit=50&after={page['next']}")),
                "count": await fastest(lambda: store.oldest_questions(1)),
                "expiring": await fastest(lambda: store.expiring(0.0, time.time())),
                "answer": await fastest(answer),
                # Each of them reads the store anew.
                "metrics": await fastest(lambda: Metrics(store, server.folder).text()),
            }
            assert {name: seconds for name, seconds in took.items() if seconds > every} == {}
            assert await fastest(lambda: server.read("/now")) < 5 * every
    finally:
        database.remove()


async def asking(server: Served) -> str:
    run = str((await server.start("notes.playbook.md"))["id"])
    await server.site.runs.ended(run, 10)
    return run


async def fastest(work: Callable[[], Awaitable[object]]) -> float:
    """The seconds of the fastest of some attempts."""
    seconds = []
    for _ in range(ATTEMPTS):
        began = time.perf_counter()
        await work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def copy_run(database: PostgresServer, schema: str, run: str, count: int) -> None:
    """Copy a waiting run. The seals of the copies are not theirs: only a process that answers or drives one minds."""
    (number, last), *_ = database.do(
        f"SELECT n, (SELECT max(n) FROM {schema}.quire_runs) FROM {schema}.quire_runs WHERE id = %s", run
    )
    later = {"created_at": "created_at + copy / 1000.0", "asked_at": "asked_at + copy / 1000.0"}
    for table, key in (("runs", "id"), ("pins", "run"), ("journal", "run"), ("questions", "run")):
        by_number = table in ("pins", "journal")
        place = f"{last} + copy" if by_number else "'copy-' || copy"
        every = database.do(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s",
            schema,
            f"quire_{table}",
        )
        names = [name for (name,) in every if name != "n"]
        values = ", ".join({**later, key: place}.get(name, name) for name in names)
        database.do(
            f"""
            INSERT INTO {schema}.quire_{table} ({", ".join(names)})
            SELECT {values} FROM {schema}.quire_{table}, generate_series(1, {count}) copy WHERE {key} = %s ORDER BY copy
            """,
            number if by_number else run,
        )
        database.do(f"ANALYZE {schema}.quire_{table}")
