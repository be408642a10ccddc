"""What 10,000 runs cost that wait for people: nothing but their rows.

    python -m bench.waiting

A process that has the store open sits among them for a second, and counts its threads and what the processor did for
it. Then somebody looks into the inbox, from the store and by the verb, which has to read and write it all.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from bench.rows import Row, show
from quire.engine.records import Batch, NewRun, Question, RunUpdate, Status
from quire.stores import DEFAULT_PATH, open_store
from quire.stores.sqlite.store import SqliteStore

RUNS = 10_000
SECONDS = 1.0


def measure(folder: Path | None = None) -> list[Row]:
    with tempfile.TemporaryDirectory(dir=folder) as here, contextlib.chdir(here), _own_space(here):
        Path("quire.toml").write_text("")
        size = asyncio.run(_wait(Path(here)))
        return [*asyncio.run(_sit(Path(here))), *asyncio.run(_read(Path(here))), _verb(), size]


@contextlib.contextmanager
def _own_space(here: str) -> Iterator[None]:
    before = os.environ.get("QUIRE_HOME")
    os.environ["QUIRE_HOME"] = f"{here}/home"
    try:
        yield
    finally:
        if before is None:
            del os.environ["QUIRE_HOME"]
        else:
            os.environ["QUIRE_HOME"] = before


async def _wait(here: Path) -> Row:
    store = SqliteStore(here / DEFAULT_PATH, durability="process")
    for number in range(RUNS):
        run = f"run-{number:05}"
        await store.create(NewRun(run, "Ship", "playbook", "a.playbook.md", time.time(), {"inputs": {"a": "b"}}, {}))
        lease = await store.acquire(run)
        question = Question(run, "2/ask", "2", "Approve", "select", "Ship?", ("yes", "no"), "no", "h" * 64, number)
        update = RunUpdate(Status.AWAITING_INPUT, "2", expires_at=time.time() + 86_400)
        await store.park(lease, Batch(questions=(question,), update=update))
        await store.release(lease)
    await store.close()
    size = (here / DEFAULT_PATH).stat().st_size / RUNS
    return Row("bytes on disk for each", size, "B", "", True)


async def _sit(here: Path) -> list[Row]:
    store = open_store(here / DEFAULT_PATH)
    await store.list()
    before, threads = time.process_time(), threading.active_count()
    await asyncio.sleep(SECONDS)
    used = time.process_time() - before
    held = len(list((here / DEFAULT_PATH).parent.glob("locks/*")))
    await store.close()
    return [
        Row(f"threads for {RUNS:,} waiting runs", threads - 1, "", "none", threads == 1),
        Row("locks that they hold", held, "", "none", held == 0),
        Row("processor time in a second of waiting", used * 1e3, "ms", "none (at most 5)", used < 0.005),
    ]


async def _read(here: Path) -> list[Row]:
    """In processor time: all of it is in memory by then, and another program's turn is no cost of ours."""
    store = open_store(here / DEFAULT_PATH)
    best = 1e9
    for _ in range(9):
        start = time.process_time()
        assert len(await store.questions()) == RUNS
        best = min(best, time.process_time() - start)
    await store.close()
    return [Row(f"inbox of {RUNS:,}, read from the store", best * 1e3, "ms", "at most 100", best <= 0.1)]


def _verb() -> Row:
    from quire.cli import main
    from quire.cli.inbox import QUESTIONS

    best = 1e9
    for _ in range(3):
        written = io.StringIO()
        start = time.perf_counter()
        with contextlib.redirect_stdout(written), contextlib.redirect_stderr(io.StringIO()):
            assert main(["inbox"]) == 0
        best = min(best, time.perf_counter() - start)
        assert written.getvalue().count("Ship?") == QUESTIONS
    return Row(f"quire inbox, the oldest {QUESTIONS} of {RUNS:,} printed", best * 1e3, "ms", "", True)


if __name__ == "__main__":
    show("waiting", measure())
