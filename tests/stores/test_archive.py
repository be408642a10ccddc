"""Whole runs in a store: taken in, removed with all that only they referred to, copied while others write."""

from __future__ import annotations

import hashlib
import multiprocessing
import sqlite3
from pathlib import Path

import pytest

from quire.engine.records import Batch, EffectRecord, Event, Letter, NewRun, Question, RunUpdate, Status, Usage
from quire.errors import RunBusy, StoreError
from quire.stores.contract import ENDED, History
from quire.stores.sqlite.store import SqliteStore
from quire.values import Value

LARGE = "x" * 100_000


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Shelf:
    def __init__(self, folder: Path) -> None:
        self.path = folder / ".quire" / "quire.db"
        self.time = 1_000.0
        self.store = SqliteStore(self.path, now=lambda: self.time, durability="process")

    async def run(self, id: str, *texts: str, status: Status | None = Status.COMPLETED, value: str = "v") -> None:
        """A run that ended, or came to rest, at the time of now."""
        pins: dict[str, Value] = {
            "document": sha256(texts[0]),
            "callees": {str(n): {"sha256": sha256(t)} for n, t in enumerate(texts)},
        }
        digests = {sha256(text): text for text in texts}
        await self.store.create(NewRun(id, id, "playbook", "p.md", self.time, pins, digests))
        if status is None:
            return
        lease = await self.store.acquire(id)
        effect = EffectRecord("1/model", "model", "ok", "h", self.time, value, usage=Usage(1, 2, 0.5))
        expires = self.time + 100 if status in (Status.PAUSED, Status.AWAITING_INPUT) else None
        asked: tuple[Question, ...] = ()
        if status is Status.AWAITING_INPUT:
            asked = (Question(id, "2/ask", "2", "T", "input", "?", (), None, "h", self.time),)
        update = RunUpdate(status, "1", expires_at=expires)
        await self.store.write(lease, Batch((effect,), questions=asked, update=update))
        await self.store.release(lease)

    async def ids(self) -> set[str]:
        return {row.id for row in await self.store.list()}

    def count(self, table: str) -> int:
        connection = sqlite3.connect(self.path)
        try:
            found: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            return found
        finally:
            connection.close()


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


HISTORY = History(
    RunUpdate(Status.FAILED, "2", ended_by=("2/tool",)),
    [
        EffectRecord("1/model", "model", "ok", "a", 900.0, {"text": LARGE}, usage=Usage(10, 5, 0.5), elapsed=2.0),
        EffectRecord("2/tool", "tool", "ok", "b", 910.0, [1]),
        EffectRecord("2/break", "break", "ok", "c", 911.0, {}),
    ],
    [
        Event("step_started", "r", 899.0, 1, "1", "1", {"title": "One"}),
        Event("effect", "r", 901.0, 2, "1/model", "1", {"kind": "model", "state": "failed"}),
        Event("effect", "r", 902.0, 3, "1/model", "1"),
        Event("effect", "r", 910.0, 4, "2/tool", "2"),
        Event("run_failed", "r", 911.0, 5, "", "2", {"message": "no"}),
    ],
    912.0,
    10,
    5,
    None,
)
NEW = NewRun("r", "A run", "playbook", "p.md", 890.0, {"document": sha256("# R")}, {sha256("# R"): "# R"})


async def test_a_run_is_taken_in_with_its_history(shelf: Shelf) -> None:
    await shelf.store.restore(NEW, HISTORY)
    row = await shelf.store.get("r")
    assert row is not None
    assert (row.status, row.position, row.created_at, row.updated_at) == (Status.FAILED, "2", 890.0, 912.0)
    assert (row.input_tokens, row.output_tokens, row.cost, row.ended_by) == (10, 5, None, ("2/tool",))
    assert list(await shelf.store.effects("r")) == list(HISTORY.effects)
    events = list(await shelf.store.events("r"))
    assert [(event.seq, event.type, event.path, event.at) for event in events] == [
        (1, "step_started", "1", 899.0),
        (2, "effect", "1/model", 901.0),
        (3, "effect", "1/model", 902.0),
        (4, "effect", "2/tool", 910.0),
        (5, "run_failed", "", 911.0),
    ]
    assert events[1].data["state"] == "failed" and events[2].data == HISTORY.effects[0].told()
    assert [event.seq for event in await shelf.store.events("r", 3)] == [4, 5]
    lease = await shelf.store.acquire("r")
    assert (lease.epoch, lease.last_seq, lease.cost) == (1, 5, None)
    assert ("step_started", "1") in lease.seen
    with pytest.raises(StoreError, match="has a run r already"):
        await shelf.store.restore(NEW, HISTORY)


async def test_nothing_is_taken_in_by_half(shelf: Shelf) -> None:
    bad = History(HISTORY.update, [*HISTORY.effects, EffectRecord("3", "x", "ok", "h", 1.0, {1: 2})], (), 912.0)  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="not text"):
        await shelf.store.restore(NEW, bad)
    assert await shelf.ids() == set()


async def test_only_runs_that_ended_long_ago_go(shelf: Shelf) -> None:
    for status in Status:
        if status is not Status.INTERRUPTED:
            await shelf.run(f"old-{status}", f"# {status}", status=status if status is not Status.PENDING else None)
    shelf.time = 5_000.0
    await shelf.run("new", "# new")
    pruned = await shelf.store.prune(4_000.0, ENDED, dry_run=False, vacuum=False)
    # What waited is expired by now, and long so.
    gone = {"completed", "failed", "cancelled", "expired", "paused", "awaiting_input"}
    assert set(pruned.runs) == {f"old-{word}" for word in gone}
    assert await shelf.ids() == {"new", "old-pending", "old-running"}


async def test_what_waits_or_is_of_another_state_stays(shelf: Shelf) -> None:
    await shelf.run("waits", "# w", status=Status.AWAITING_INPUT)
    await shelf.run("failed", "# f", status=Status.FAILED)
    await shelf.run("done", "# d")
    shelf.time = 1_050.0
    assert (await shelf.store.prune(1_040.0, [Status.COMPLETED], dry_run=False, vacuum=False)).runs == ("done",)
    assert await shelf.ids() == {"waits", "failed"}
    assert [one.run for one in await shelf.store.questions()] == ["waits"]


async def test_texts_and_values_stay_as_long_as_anybody_refers_to_them(shelf: Shelf) -> None:
    await shelf.run("a", "# shared", "# only a", value=LARGE)
    await shelf.run("b", "# shared", "# only b", value=LARGE + "b")
    await shelf.run("c", "# c", value=LARGE)
    shelf.time = 2_000.0
    await shelf.run("keeps", "# shared", value=LARGE)
    before = shelf.count("blobs")
    pruned = await shelf.store.prune(1_500.0, ENDED, dry_run=False, vacuum=False)
    assert (pruned.runs, pruned.effects, pruned.texts) == (("a", "b", "c"), 3, 4)
    assert shelf.count("blobs") == before - 4
    assert pruned.size > 90_000
    assert await shelf.store.text(sha256("# shared")) == "# shared"
    assert [effect.value for effect in await shelf.store.effects("keeps")] == [LARGE]
    assert [shelf.count(table) for table in ("runs", "pins", "journal", "questions")] == [1, 1, 1, 0]


async def test_a_dry_run_says_the_same_and_changes_nothing(shelf: Shelf) -> None:
    await shelf.run("a", "# a", value=LARGE)
    shelf.time = 2_000.0
    would = await shelf.store.prune(1_500.0, ENDED, dry_run=True, vacuum=True)
    assert await shelf.ids() == {"a"} and len(await shelf.store.effects("a")) == 1
    assert await shelf.store.prune(1_500.0, ENDED, dry_run=False, vacuum=False) == would


async def test_the_file_gets_smaller_only_when_asked(shelf: Shelf) -> None:
    for number in range(20):
        await shelf.run(f"r{number}", f"# {number}", value=LARGE + str(number))
    shelf.time = 2_000.0
    pruned = await shelf.store.prune(1_500.0, ENDED, dry_run=False, vacuum=True)
    assert pruned.given_back > 10 * len(LARGE)
    assert shelf.path.stat().st_size < 2 * len(LARGE)
    await shelf.run("after", "# after")
    assert await shelf.ids() == {"after"}


async def test_one_that_is_just_being_taken_up_again_stays(shelf: Shelf) -> None:
    await shelf.run("failed", "# f", status=Status.FAILED)
    shelf.time = 2_000.0
    other = SqliteStore(shelf.path, now=lambda: 2_000.0, durability="process")
    lease = await other.acquire("failed")
    assert (await shelf.store.prune(1_500.0, ENDED, dry_run=False, vacuum=False)).runs == ()
    with pytest.raises(RunBusy):
        await shelf.store.acquire("failed")
    await other.release(lease)
    await other.close()
    assert (await shelf.store.prune(1_500.0, ENDED, dry_run=False, vacuum=False)).runs == ("failed",)


async def test_letters_keep_their_places_for_those_who_read_on(shelf: Shelf) -> None:
    await shelf.run("child", "# c")
    await shelf.run("parent", "# p", status=Status.RUNNING)
    lease = await shelf.store.acquire("parent")
    letters = tuple(Letter(to, "child", "done", 1.0) for to in ("parent", "somebody"))
    await shelf.store.write(lease, Batch(letters=letters))
    shelf.time = 2_000.0
    await shelf.store.prune(1_500.0, [Status.COMPLETED], dry_run=False, vacuum=False)
    assert [letter.recipient for letter in await shelf.store.letters()] == ["parent"]


async def test_nothing_is_made_where_there_is_nothing(shelf: Shelf) -> None:
    assert (await shelf.store.prune(1.0, ENDED, dry_run=False, vacuum=True)).runs == ()
    with pytest.raises(StoreError, match="nothing to copy"):
        await shelf.store.backup(shelf.path.parent / "copy.db")
    assert not shelf.path.exists()


async def test_a_copy_is_a_store_of_its_own(shelf: Shelf, tmp_path: Path) -> None:
    await shelf.run("a", "# a", value=LARGE)
    size = await shelf.store.backup(tmp_path / "copy.db")
    assert size == (tmp_path / "copy.db").stat().st_size
    copy = SqliteStore(tmp_path / "copy.db", durability="process")
    assert [effect.value for effect in await copy.effects("a")] == [LARGE]
    await copy.close()
    with pytest.raises(StoreError, match="exists already"):
        await shelf.store.backup(tmp_path / "copy.db")
    with pytest.raises(StoreError, match="cannot be"):
        await shelf.store.backup(tmp_path / "none" / "copy.db")


def _keep_writing(path: Path, begun: object, stop: object) -> None:
    import asyncio

    async def work() -> None:
        store = SqliteStore(path, durability="process")
        lease = await store.acquire("busy")
        number = 0
        while not stop.is_set():  # type: ignore[attr-defined]
            number += 1
            await store.write(lease, Batch((EffectRecord(f"{number}/model", "model", "ok", "h", 1.0, number),)))
            if number == 50:
                begun.set()  # type: ignore[attr-defined]
        await store.release(lease)
        await store.close()

    asyncio.run(work())


async def test_a_copy_is_whole_while_another_process_writes(shelf: Shelf, tmp_path: Path) -> None:
    await shelf.store.create(NewRun("busy", "B", "playbook", "p.md", 1.0, {}, {}))
    context = multiprocessing.get_context("spawn")
    begun, stop = context.Event(), context.Event()
    writer = context.Process(target=_keep_writing, args=(shelf.path, begun, stop))
    writer.start()
    try:
        assert begun.wait(60)
        for number in range(3):
            await shelf.store.backup(tmp_path / f"{number}.db")
    finally:
        stop.set()
        writer.join(60)
    for number in range(3):
        copy = SqliteStore(tmp_path / f"{number}.db", durability="process")
        values = [effect.value for effect in await copy.effects("busy")]
        assert values == list(range(1, len(values) + 1)) and len(values) >= 50
        await copy.close()
