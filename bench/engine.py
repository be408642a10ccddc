"""What a step costs when nobody is waited for: the interpreter, the driver and the journal alone.

    python -m bench.engine [FOLDER]

The folder decides which disk is measured. Journaled steps and raw commits take turns in blocks.
"""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from bench.rows import Row, show
from quire.engine.conversation import Offered
from quire.engine.driver.drive import Drive
from quire.engine.driver.journal import Journal
from quire.engine.driver.replay import replay
from quire.engine.driver.walker import DriveLimits
from quire.engine.interpreter.playbook.interpret import interpret
from quire.engine.ports import EffectClass, ModelCall, ModelReply, Ports, Store
from quire.engine.progress import Progress
from quire.engine.records import Batch, NewRun, RunUpdate, Status
from quire.engine.requests import Effect, Load, ToolRequest
from quire.plan.nodes import Plan, Sequence, Step, UseTool
from quire.runs.adapters import Nobody, WallClock
from quire.stores import open_store
from quire.stores.sqlite.database import LOG_PAGES
from quire.telemetry.exporter import Exporter
from quire.telemetry.spans import RunSpans
from quire.values import Value

PURE = 5_000
BLOCKS = 20
BLOCK = 20
REPLAYED = 10_000
TRACED = 500
BUSY = 1_000
"""Microseconds of a raw commit from which on the disk has other things to do."""


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


RECEIVER = """
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *words):
        pass
server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


async def drive(store: Store, run: str, plan: Plan, exporter: Exporter | None = None) -> tuple[float, list[float]]:
    """The seconds of one drive from start to end, and those from each tool call to the next: one step each."""
    await store.create(NewRun(run, "T", "playbook", "t.md", time.time(), {}, {}))
    instant = Instant()
    ports = Ports(store, instant, instant, instant, Nobody(), WallClock())
    lease = await store.acquire(run)
    driving = Drive(lease, Journal(()), ports, DriveLimits())
    if exporter is not None and lease.row is not None:
        spans, requests = RunSpans(lease.row, None), dict[str, Effect]()
        spans.request_of = requests.get
        driving.keep_requests(requests)
        driving.when_written(lambda events: exporter.add(span for event in events for span in spans.add(event)))
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
    return [Row("pure step", each, "µs", "at most 10", each <= 10)]


async def journaled(here: Path) -> list[Row]:
    """One step against one raw commit, three times over, because a sync of a log that grows costs twice that of one
    that is written over: as each comes (ours is written over soon, SQLite's own only after a thousand pages), with our
    short log on both sides, and at the start, where both still grow. The last two say what the step itself costs."""
    store = open_store(here / "journaled.db")
    raw, short = raw_file(here / "raw.db"), raw_file(here / "short.db", LOG_PAGES)
    plain, tuned, cost = [], [], []
    for block in range(BLOCKS):
        plain.append(commits(raw, BLOCK))
        tuned.append(commits(short, BLOCK))
        cost.append((await drive(store, f"steps-{block}", document(BLOCK + 1, True)))[1])
    raw.close()
    short.close()
    await store.close()
    return [
        *_compared("as each comes", plain, cost),
        *_compared("both with the short log", tuned, cost),
        *_compared("while both logs grow", *await _at_first(here)),
    ]


async def _at_first(here: Path) -> tuple[list[list[float]], list[list[float]]]:
    base, cost = [], []
    for number in range(BLOCKS):
        store, raw = open_store(here / f"first-{number}.db"), raw_file(here / f"first-raw-{number}.db")
        for block in range(2):
            base.append(commits(raw, BLOCK))
            cost.append((await drive(store, f"steps-{block}", document(BLOCK + 1, True)))[1])
        raw.close()
        await store.close()
    return base, cost


def _compared(when: str, base: list[list[float]], cost: list[list[float]]) -> list[Row]:
    """Of whole blocks, checkpoints and all; each beside the block that was measured right before it."""
    means = [(statistics.fmean(one), statistics.fmean(other)) for one, other in zip(base, cost, strict=True)]
    least, ours = (statistics.median(side) * 1e6 for side in zip(*means, strict=True))
    ratio = statistics.median(mine / theirs for theirs, mine in means)
    # On a disk that is busy with others the wait hides whatever a step costs, and every ratio comes near to 1.
    busy = least > BUSY
    return [
        Row(f"raw SQLite commit, synchronous=FULL, {when}", least, "µs", "the measure", True),
        Row(f"journaled step, no intent, {when}", ours, "µs", "", True),
        Row(
            f"journaled step / raw commit, {when}",
            ratio,
            "×",
            "says nothing: the disk is busy" if busy else "at most 1.5 where a raw commit takes 150 µs",
            ratio <= 1.5 or least < 150 or busy,
        ),
    ]


def raw_file(path: Path, log_pages: int | None = None) -> sqlite3.Connection:
    """With the settings of SQLite itself, but for the length of its log where one is given."""
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("PRAGMA synchronous = FULL")
    if log_pages is not None:
        raw.execute(f"PRAGMA wal_autocheckpoint = {log_pages}")
    raw.execute("CREATE TABLE small (id INTEGER PRIMARY KEY, text TEXT)")
    return raw


def commits(raw: sqlite3.Connection, count: int) -> list[float]:
    """The seconds that each of so many commits of one small row takes."""
    took = []
    for _ in range(count):
        started = time.perf_counter()
        raw.execute("INSERT INTO small (text) VALUES (?)", ("x" * 50,))
        took.append(time.perf_counter() - started)
    return took


async def traced(here: Path) -> list[Row]:
    """The same steps with and without spans that go to a receiver, in turns; two spans a step."""
    store = open_store(here / "traced.db")
    receiver = subprocess.Popen([sys.executable, "-c", RECEIVER], stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
    with receiver:
        assert receiver.stdout is not None
        exporter, lost = Exporter(f"http://127.0.0.1:{receiver.stdout.readline().strip()}"), list[str]()
        ratios, work = [], []
        for block in range(BLOCKS):
            at = [time.process_time()]
            plain = (await drive(store, f"plain-{block}", document(TRACED, True)))[0]
            at.append(time.process_time())
            ratios.append((await drive(store, f"traced-{block}", document(TRACED, True), exporter))[0] / plain)
            exporter.flush(lost.append, 30)
            at.append(time.process_time())
            work.append((at[2] - 2 * at[1] + at[0]) / TRACED * 1e6)
        receiver.kill()
    assert not lost
    await store.close()
    ratio = statistics.median(ratios)
    return [
        Row("processor time of the two spans of a step", statistics.median(work), "µs", "", True),
        Row("journaled step with traces / without", ratio, "×", "at most 1.05", ratio <= 1.05),
    ]


async def replayed(here: Path) -> list[Row]:
    store = open_store(here / "replayed.db", durability="process")
    plan = document(REPLAYED, True)
    await drive(store, "long", plan)
    started = time.perf_counter()
    again = await replay(
        lambda work: interpret(plan, {}), await store.effects("long"), Progress.of(plan), lambda boundary: False
    )
    took = time.perf_counter() - started
    assert again.finished
    await store.close()
    return [Row(f"replay of {REPLAYED:,} effects", took, "s", "at most 0.25", took <= 0.25)]


def measure(folder: Path | None = None) -> list[Row]:
    with tempfile.TemporaryDirectory(dir=folder) as here:
        place = Path(here)
        return [row for part in (pure, journaled, traced, replayed) for row in asyncio.run(part(place))]


if __name__ == "__main__":
    show("engine", measure(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
