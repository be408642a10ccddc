"""Metrics: what a scrape of a real server says, in a format that Prometheus itself accepts."""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

import httpx2
import pytest
from tests.server.served import Served, served

from quire.engine.records import Batch, EffectRecord, Event, NewRun, RunUpdate, Status, Usage
from quire.engine.requests import Failure
from quire.errors import StoreError
from quire.server.access import Users
from quire.stores import open_store
from quire.stores.contract import Marks
from quire.stores.occurrences import Occurrence, Process
from quire.stores.sqlite.in_memory import MemoryStore
from quire.stores.sqlite.store import SqliteStore
from quire.telemetry import metrics
from quire.telemetry.metrics import Metrics

pytestmark = pytest.mark.asyncio(loop_scope="session")

SAYS = "# Says\n\n## STEP 1: Say\n\nSay hello.\n"
ASKS = '# Asks\n\n## STEP 1: Decide\n\n@elicit(confirm, "Publish?")\n'
FOLDER = Path("/folder")
NAME = 'a "quoted"\nname\\ of\tmany'
MODEL = "a:model"


def check(text: str) -> None:
    """Have Prometheus itself read the metrics."""
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("promtool is not there: apt-get install prometheus")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def value(text: str, sample: str) -> float:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{sample} ")]
    return float(line.rpartition(" ")[2])


async def wrote(
    store: SqliteStore, run: str, document: str, *records: EffectRecord, end: Status = Status.COMPLETED
) -> None:
    """Write a run as a drive does: its steps, effects and end."""
    await store.create(NewRun(run, "", "playbook", document, 1.0, {"model": MODEL}, {}))
    lease = await store.acquire(run)
    await store.write(lease, Batch(events=(Event("run_started", run, 1.0, 1),), update=RunUpdate(Status.RUNNING)))
    began, ended = Event("step_started", run, 10.0, 2, "1"), Event("step_completed", run, 10.5, 3, "1")
    await store.write(lease, Batch(records, (began, ended), update=RunUpdate(position="1")))
    end_event = Event("run_completed", run, 20.0, 4)
    await store.write(lease, Batch(events=(end_event,), update=RunUpdate(end)))
    await store.release(lease)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


async def test_a_scrape_of_a_server_with_runs_in_several_states(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"says.playbook.md": SAYS, "asks.playbook.md": ASKS}) as server:
        model = server.script("replies.json", [{"default": "hello"}])
        broken = server.script("broken.json", [])
        for document, spec in (("says", model), ("says", model), ("says", broken), ("asks", None)):
            body = {"document": f"{document}.playbook.md"} | ({"model": spec} if spec else {})
            async with server.client() as client:
                run = (await client.post("/runs", json=body)).json()["id"]
            await server.site.runs.ended(run, 10)
        await server.site.ticker.beat()
        async with server.client() as client:
            answer = await client.get("/metrics")
    assert answer.headers["content-type"] == metrics.MEDIA
    text = answer.text
    check(text)
    counts = {status: value(text, f'quire_runs{{status="{status}"}}') for status in Status}
    assert {status: count for status, count in counts.items() if count} == {
        Status.COMPLETED: 2,
        Status.FAILED: 1,
        Status.AWAITING_INPUT: 1,
    }
    assert value(text, "quire_store_up") == value(text, "quire_open_questions") == 1
    assert 0 <= value(text, "quire_oldest_question_seconds") < 60
    assert value(text, 'quire_processes{kind="serve",state="fit"}') == 1
    says, asks = 'document="says.playbook.md"', 'document="asks.playbook.md"'
    assert value(text, f'quire_drives_total{{{says},status="completed"}}') == 2
    assert value(text, f'quire_drives_total{{{says},status="failed"}}') == 1
    assert value(text, f'quire_drives_total{{{asks},status="awaiting_input"}}') == 1
    assert value(text, f"quire_step_seconds_count{{{says}}}") == 3
    assert len(re.findall(r'quire_model_call_seconds_count\{model="script[^"]*",state="ok"\} 2', text)) == 1
    assert len(re.findall(r'quire_model_call_seconds_count\{model="script[^"]*",state="failed"\} 1', text)) == 1
    assert value(text, "quire_store_write_seconds_count") >= 12
    assert "hello" not in text and "Publish" not in text


async def test_counters_of_what_a_drive_writes(store: MemoryStore) -> None:
    measured = Metrics(store, FOLDER)
    call = EffectRecord("1/model", "model", "ok", "", 10.0, {"text": "", "model": "b:other"}, elapsed=0.3)
    call.usage = Usage(100, 7, 0.25)
    unpriced = EffectRecord("2/model", "model", "failed", "", 11.0, failure=Failure("timeout", ""), elapsed=900)
    unpriced.usage = Usage(5, 0, None)
    reused = EffectRecord("3/model", "model", "ok", "", 11.0, {"text": ""}, usage=Usage(0, 0, 0.0), by="run")
    lost = EffectRecord("4/model", "model", "intent", "", 11.0, {"reserved": 1.0}, usage=Usage(0, 0, 1.0))
    begun = EffectRecord("5/tool", "tool", "intent", "", 11.0)
    tool = EffectRecord("6/tool", "tool", "ok", "", 11.0, 1, elapsed=0.02)
    await wrote(store, "r1", "d", call, unpriced, reused, lost, begun, tool, end=Status.FAILED)
    text = await measured.text()
    check(text)
    of, pinned = 'document="d",model="b:other"', f'document="d",model="{MODEL}"'
    assert value(text, f'quire_tokens_total{{{of},direction="input"}}') == 100
    assert value(text, f'quire_tokens_total{{{of},direction="output"}}') == 7
    assert value(text, f'quire_tokens_total{{{pinned},direction="input"}}') == 5
    assert value(text, f"quire_cost_dollars_total{{{of}}}") == 0.25
    assert value(text, f"quire_cost_dollars_total{{{pinned}}}") == 1
    bucket = 'quire_model_call_seconds_bucket{model="b:other",state="ok",le="%s"}'
    assert [value(text, bucket % bound) for bound in ("0.1", "0.5", "+Inf")] == [0, 1, 1]
    assert value(text, f'quire_model_call_seconds_bucket{{model="{MODEL}",state="failed",le="600"}}') == 0
    assert value(text, f'quire_model_call_seconds_sum{{model="{MODEL}",state="failed"}}') == 900
    assert 'quire_model_call_seconds_count{model="a:model",state="ok"}' not in text
    assert value(text, 'quire_tool_call_seconds_bucket{state="ok",le="0.02"}') == 1
    assert value(text, 'quire_tool_call_seconds_count{state="ok"}') == 1
    assert value(text, 'quire_step_seconds_sum{document="d"}') == 0.5
    assert value(text, 'quire_drives_total{document="d",status="failed"}') == 1
    assert value(text, "quire_store_write_seconds_count") == 3


async def test_a_park_that_an_answer_prevents_ends_no_drive(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"asks.playbook.md": ASKS}) as server:
        run = str((await server.start("asks.playbook.md"))["id"])
        await server.site.runs.ended(run, 10)
        (question,) = await server.site.runtime.store.questions(run)
        async with server.client() as client:
            body = {"value": "yes", "hash": question.hash}
            assert (await client.post(f"/questions/{run}/{question.path}/answer", json=body)).is_success
            await server.site.runs.ended(run, 10)
            text = (await client.get("/metrics")).text
    drives = re.findall(r"quire_drives_total\{.*status=\"(\w+)\"\} (\d)", text)
    assert sorted(drives) == [("awaiting_input", "1"), ("completed", "1")]
    assert "quire_step_seconds_count" not in text, "the time that a person took is not that of the step"


async def test_claims_lanes_and_pending_runs(store: MemoryStore) -> None:
    measured = Metrics(store, FOLDER)
    nightly = "trigger:nightly"
    waits = NewRun("r1", "", "playbook", "d", time.time() - 90, {}, {}, source=nightly, lane=nightly)
    occurrence = Occurrence(nightly, "2026-01-01")
    for _ in range(2):
        await store.start_once(waits, occurrence)
    await store.start_once(None, Occurrence("trigger:nightly", "2026-01-02"), state="missed")
    await store.beat(Process("p", "worker", "h", 1, "", "", 0.0, time.time(), 1, 0, "unfit", "bad"))
    await store.beat(Process("q", "worker", "h", 2, "", "", 0.0, time.time() - 60, 1, 0))
    text = await measured.text()
    check(text)
    assert value(text, 'quire_fires_total{source="trigger:nightly",state="started"}') == 1
    assert value(text, 'quire_fires_total{source="trigger:nightly",state="missed"}') == 1
    assert value(text, 'quire_lane_runs{lane="trigger:nightly",status="pending"}') == 1
    assert 90 <= value(text, "quire_oldest_pending_run_seconds") < 150
    assert re.findall(r"quire_processes\{.*", text) == ['quire_processes{kind="worker",state="unfit"} 1']


async def test_names_with_signs_of_the_format(store: MemoryStore) -> None:
    measured = Metrics(store, FOLDER)
    await wrote(store, "r1", NAME)
    text = await measured.text()
    check(text)
    assert 'quire_drives_total{document="a \\"quoted\\"\\nname\\\\ of\tmany",status="completed"} 1\n' in text


async def test_a_label_has_two_hundred_values(store: MemoryStore) -> None:
    measured = Metrics(store, FOLDER)
    for number in range(metrics.MOST_NAMES + 50):
        await wrote(store, f"r{number}", f"document {number}")
    await wrote(store, "again", "document 7")
    text = await measured.text()
    check(text)
    assert len(re.findall(r"^quire_drives_total\{", text, re.MULTILINE)) == metrics.MOST_NAMES + 1
    assert value(text, 'quire_drives_total{document="other",status="completed"}') == 50
    assert value(text, 'quire_drives_total{document="document 7",status="completed"}') == 2
    assert 'status="other"' not in text


class CountingStore(MemoryStore):
    looks = 0

    async def marks(self) -> Marks:
        self.looks += 1
        await asyncio.sleep(0)
        return await super().marks()


async def test_scrapes_share_a_reading_for_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    store, now = CountingStore(), 0.0
    monkeypatch.setattr(metrics, "monotonic", lambda: now)
    measured = Metrics(store, FOLDER)
    first, *others = await asyncio.gather(*(measured.text() for _ in range(20)))
    assert {*others} == {first} and store.looks == 1
    await wrote(store, "r1", "d")
    now = metrics.READ_SECONDS - 0.1
    text = await measured.text()
    assert value(text, 'quire_runs{status="completed"}') == 0
    assert value(text, 'quire_drives_total{document="d",status="completed"}') == 1
    now = metrics.READ_SECONDS
    assert value(await measured.text(), 'quire_runs{status="completed"}') == 1
    assert store.looks == 2


async def test_a_store_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that takes connections and says nothing, as one behind a broken network."""
    monkeypatch.setattr(metrics, "PATIENCE_SECONDS", 0.2)
    held: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda reader, writer: held.append(writer), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    store = open_store(f"postgresql://quire@127.0.0.1:{port}/quire")
    try:
        async with asyncio.timeout(5):
            text = await Metrics(store, FOLDER).text()
        assert held
    finally:
        await store.close()
        silent.close()
        for writer in held:
            writer.close()
    check(text)
    assert value(text, "quire_store_up") == 0
    assert "quire_runs{" not in text


async def test_a_store_that_cannot_be_read_leaves_the_totals_of_the_process(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "quire.db")
    measured = Metrics(store, FOLDER)
    await wrote(store, "r1", "d")
    await store.close()
    for file in tmp_path.glob("quire.db*"):
        file.write_bytes(b"no database, " * 1000)
    with pytest.raises(StoreError):
        await store.marks()
    text = await measured.text()
    check(text)
    assert value(text, "quire_store_up") == 0
    assert "quire_runs{" not in text
    assert value(text, 'quire_drives_total{document="d",status="completed"}') == 1


async def test_a_store_that_another_process_holds(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "quire.db", busy_timeout=0.1)
    measured = Metrics(store, FOLDER)
    await wrote(store, "r1", "d")
    await store.close()
    holder = sqlite3.connect(store.path, isolation_level=None)
    try:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN IMMEDIATE")
        async with asyncio.timeout(5):
            text = await measured.text()
    finally:
        holder.close()
    assert value(text, "quire_store_up") == 0
    assert value(text, 'quire_drives_total{document="d",status="completed"}') == 1
    await store.close()


@pytest.mark.parametrize("path", ["/metrics", "/api/v1/metrics"])
async def test_a_look_is_enough_and_no_token_is_not(tmp_path: Path, path: str) -> None:
    async with served(tmp_path / "team", {"says.playbook.md": SAYS}, has_tokens=True) as server:
        users = Users(server.site.runtime.settings)
        tokens = [server.token, users.add("prometheus", "look"), users.add("one", "administer", "reports/*"), ""]
        assert [await status(server, path, token) for token in tokens] == [200, 200, 403, 401]


async def status(server: Served, path: str, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(base_url=f"http://{server.place}", headers=headers) as client:
        answer = await client.get(path)
    assert ("quire_runs" in answer.text) == (answer.status_code == 200)
    return answer.status_code


async def test_metrics_cost_a_step_little(tmp_path: Path) -> None:
    """About a tenth of the write of a step to a file in memory, which is itself a part of the step."""
    plain = SqliteStore(tmp_path / "quire.db")
    await plain.create(NewRun("r", "", "playbook", "d", 1.0, {"model": MODEL}, {}))
    lease = await plain.acquire("r")
    watched = MemoryStore()
    Metrics(watched, FOLDER)
    (observe,) = watched.observers
    writing, observing = [], []
    for attempt in range(10):
        steps = [step("r", 100 * attempt + number) for number in range(100)]
        began = time.perf_counter()
        for batch in steps:
            await plain.write(lease, batch)
        writing.append(time.perf_counter() - began)
        began = time.perf_counter()
        for batch in steps:
            observe(lease, batch, 0.001)
        observing.append(time.perf_counter() - began)
    assert min(observing) < 0.25 * min(writing)
    await plain.close()


def step(run: str, number: int) -> Batch:
    record = EffectRecord(f"{number}/model", "model", "ok", "", 10.0, {"text": "said", "model": MODEL}, elapsed=0.1)
    record.usage = Usage(100, 7, 0.25)
    seq, path = 3 * number, str(number)
    events = (
        Event("step_started", run, 10.0, seq + 1, path),
        Event("effect", run, 10.1, seq + 2, record.path, "", record.told(), record=record),
        Event("step_completed", run, 10.1, seq + 3, path),
    )
    return Batch((record,), events, update=RunUpdate(position=path))
