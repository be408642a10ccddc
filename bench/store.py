"""What a journaled effect costs, against the least that SQLite can do on the same disk in the same minute.

    python -m bench.store [FOLDER]

The folder decides which disk is measured. Both sides take turns in blocks, so a slow moment of the disk hits both.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Coroutine
from pathlib import Path

from bench import store_postgres
from bench.engine import commits, raw_file
from bench.rows import Row, show
from quire.engine.ports import Store
from quire.engine.records import Batch, EffectRecord, Event, Lease, NewRun, Question, RunUpdate, Status, Usage
from quire.stores.occurrences import Occurrence
from quire.stores.rows import JournalEnd, encode_batch
from quire.stores.seals import seal_row
from quire.stores.sqlite.store import SqliteStore
from quire.trust.seal import PUBLIC_SEAL

BLOCKS = 40
BLOCK = 20
YOUNG = 15
WARM_UP = 1_100
FANNED = 50
WAITING = 10_000
EFFECTS = 10_000


def measure(folder: Path | None = None) -> list[Row]:
    with tempfile.TemporaryDirectory(dir=folder) as here:
        rows = asyncio.run(_measure(Path(here)))
    return [*rows, *store_postgres.measure(folder)]


async def _measure(here: Path) -> list[Row]:
    claims = await claimed(SqliteStore(here / "claims" / "quire.db"), "SQLite")
    return [*_seals(), *await _commits(here), *claims, *await _inbox(here), *await _replay(here)]


async def claimed(store: Store, name: str) -> list[Row]:
    """The claim of an occurrence with its run, against a run that is created alone."""
    numbers = iter(range(10**6))

    def new() -> NewRun:
        return NewRun(f"r{next(numbers)}", "T", "playbook", "a.md", time.time(), {"inputs": {}}, {}, source="trigger:t")

    async def create() -> None:
        await store.create(new())

    async def claim() -> None:
        run = new()
        assert (await store.start_once(run, Occurrence("trigger:t", run.id)))[1]

    pairs = [
        ([await _timed(create) for _ in range(BLOCK)], [await _timed(claim) for _ in range(BLOCK)])
        for _ in range(BLOCKS)
    ]
    await store.close()
    ratio = statistics.median(statistics.median(both) / statistics.median(alone) for alone, both in pairs)
    return [Row(f"claim and run / run, {name}", ratio, "×", "at most 1.3", ratio <= 1.3)]


def _seals() -> list[Row]:
    """What the seal of a record adds to a write, beside the disk."""
    batch = encode_batch("one", _effect(7), PUBLIC_SEAL)
    tail = JournalEnd(0)
    _, (row,) = tail.then(0, batch, 1.5, PUBLIC_SEAL)
    times = timeit.repeat(lambda: seal_row(PUBLIC_SEAL, "0" * 32, row[:-1]), number=1_000, repeat=50)
    return _at_most("seal of a record", min(times) * 1e3, "µs", 5.0)


async def _commits(here: Path) -> list[Row]:
    """Twice: while both logs still grow, in files of their own each time; and when both are written over again and
    again, as ours is after the first few dozen effects. A sync is cheaper then."""
    young = _compared([times for number in range(YOUNG) for times in await _young(here, number)], "young")
    raw = raw_file(here / "raw.db")
    store = SqliteStore(here / "store" / "quire.db")
    lease = await _run(store, "one")
    batches = [_effect(n) for n in reversed(range(WARM_UP + BLOCKS * (BLOCK + FANNED)))]

    async def effect() -> None:
        await store.write(lease, batches.pop())

    async def fanned() -> None:
        await asyncio.gather(*(store.write(lease, batches.pop()) for _ in range(FANNED)))

    for _ in range(WARM_UP):
        commits(raw, 1)
        await effect()
    pairs = [(commits(raw, BLOCK), [await _timed(effect) for _ in range(BLOCK)]) for _ in range(BLOCKS)]
    old = _compared(pairs, "old")
    fan = statistics.median([await _timed(fanned) / FANNED for _ in range(BLOCKS)])
    raw.close()
    await store.close()
    return [*young, *old, Row("effect in a fan", fan * 1e6, "µs", f"each of {FANNED} that are written at once", True)]


async def _young(here: Path, number: int) -> list[tuple[list[float], list[float]]]:
    raw, store = raw_file(here / f"raw-{number}.db"), SqliteStore(here / f"young-{number}.db")
    lease = await _run(store, "one")
    batches = [_effect(n) for n in reversed(range(2 * BLOCK))]

    async def effect() -> None:
        await store.write(lease, batches.pop())

    pairs = [(commits(raw, BLOCK), [await _timed(effect) for _ in range(BLOCK)]) for _ in range(2)]
    raw.close()
    await store.close()
    return pairs


def _compared(pairs: list[tuple[list[float], list[float]]], name: str) -> list[Row]:
    least, ours = (statistics.median(time for block in side for time in block) for side in zip(*pairs, strict=True))
    ratio = statistics.median(statistics.median(cost) / statistics.median(base) for base, cost in pairs)
    return [
        Row(f"raw commit, {name} log", least * 1e6, "µs", "one small row, WAL, synchronous=FULL", True),
        Row(f"effect, {name} log", ours * 1e6, "µs", "1 KB value, 3 events, totals, epoch", True),
        Row(
            f"effect / raw commit, {name} log",
            ratio,
            "×",
            "at most 1.5 where a raw commit takes 150 µs",
            ratio <= 1.5 or least < 150e-6,
        ),
    ]


async def _inbox(here: Path) -> list[Row]:
    store = SqliteStore(here / "inbox" / "quire.db", durability="process")
    for number in range(WAITING):
        lease = await _run(store, f"run-{number:05}")
        question = Question(
            lease.run, "2/ask", "2", "Approve", "select", "Ship it?", ("yes", "no"), "no", "h" * 64, float(number)
        )
        await store.park(
            lease,
            Batch(questions=(question,), update=RunUpdate(Status.AWAITING_INPUT, "2", expires_at=time.time() + 900)),
        )
        await store.release(lease)

    async def inbox() -> None:
        assert len(await store.questions()) == WAITING

    async def page() -> None:
        assert len(await store.list(status=Status.AWAITING_INPUT)) == 50

    result = [
        *_at_most(f"inbox of {WAITING:,}", await _best(inbox) * 1e3, "ms", 100),
        Row(f"list among {WAITING:,}", await _best(page) * 1e3, "ms", "the newest 50 that wait", True),
    ]
    await store.close()
    return result


async def _replay(here: Path) -> list[Row]:
    store = SqliteStore(here / "replay" / "quire.db", durability="process")
    lease = await _run(store, "long")
    for start in range(0, EFFECTS, FANNED):
        await asyncio.gather(*(store.write(lease, _effect(start + n)) for n in range(FANNED)))
    await store.release(lease)

    async def acquire() -> None:
        await store.release(await store.acquire("long"))

    async def effects() -> None:
        assert len(await store.effects("long")) == EFFECTS

    result = [
        Row(f"acquire with {EFFECTS:,} effects", await _best(acquire) * 1e3, "ms", "epoch, lock, kept events", True),
        Row(f"read {EFFECTS:,} effects", await _best(effects) * 1e3, "ms", "the journal as a replay needs it", True),
    ]
    await store.close()
    return result


async def _run(store: SqliteStore, id: str) -> Lease:
    await store.create(NewRun(id, "A title", "playbook", "a.playbook.md", time.time(), {"inputs": {"a": "b"}}, {}))
    return await store.acquire(id)


def _effect(number: int) -> Batch:
    path = f"{number}/model"
    record = EffectRecord(
        path, "model", "ok", "f" * 64, 1.5, value={"text": "word " * 200}, usage=Usage(900, 200, 0.002), elapsed=1.25
    )
    events = tuple(
        Event(type, "", 1.5, number * 3 + n + 1, path, str(number), {"title": "A step", "tokens": 200})
        for n, type in enumerate(("step_started", "effect_done", "step_completed"))
    )
    return Batch(effects=(record,), events=events, update=RunUpdate(position=str(number)))


def _at_most(name: str, value: float, unit: str, limit: float) -> list[Row]:
    return [Row(name, value, unit, f"at most {limit:g}", value <= limit)]


async def _timed(work: Callable[[], Coroutine[None, None, None]]) -> float:
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


async def _best(work: Callable[[], Coroutine[None, None, None]]) -> float:
    return min([await _timed(work) for _ in range(5)])


if __name__ == "__main__":
    show("store", measure(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
