"""What every store does with whole runs: takes one in with its history, removes old ones and no more than that."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from quire.engine.ports import Store
from quire.engine.records import (
    Batch,
    EffectRecord,
    Event,
    Lease,
    Letter,
    NewRun,
    Question,
    RunUpdate,
    Status,
    Usage,
)
from quire.engine.requests import Failure
from quire.errors import NoSuchRun, StoreError
from quire.stores.contract import ENDED, History, Pruned

if TYPE_CHECKING:
    from tests.stores.conftest import Shelf

BIG = "x" * 100_000


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def new_run(id: str, *texts: str) -> NewRun:
    pins: dict[str, Any] = {"documents": [digest(text) for text in texts]}
    return NewRun(id, "A title", "playbook", "a.playbook.md", 10.0, pins, {digest(text): text for text in texts})


def record(path: str = "1/model", value: str = "v") -> EffectRecord:
    return EffectRecord(path, "model", "ok", "hash", 11.0, value, usage=Usage(3, 4, 0.5), elapsed=1.0)


def told(seq: int, of: EffectRecord) -> Event:
    return Event("effect", "r1", of.ended_at, seq, of.path, "1", of.told())


class TestRestore:
    @pytest.mark.parametrize("status", [Status.PAUSED, Status.COMPLETED, Status.FAILED])
    async def test_a_run_comes_with_its_history(self, store: Store, status: Status) -> None:
        first, second = record(), record("2/model", BIG)
        events = (
            Event("run_started", "r1", 9.0, 1),
            told(2, first),
            told(3, second),
            Event("run_paused", "r1", 13.0, 4),
        )
        failure = Failure("model", "no") if status is Status.FAILED else None
        history = History(RunUpdate(status, "2", failure), (first, second), events, 99.0, 7, 8, None)
        await store.restore(new_run("r1", "# One"), history)
        row = await store.get("r1")
        assert row is not None
        assert (row.status, row.position, row.failure, row.epoch) == (status, "2", failure, 0)
        # What its effects cost was paid elsewhere.
        assert (row.input_tokens, row.output_tokens, row.cost) == (7, 8, None)
        assert (row.created_at, row.updated_at) == (10.0, 99.0)
        assert list(await store.effects("r1")) == [first, second]
        assert list(await store.events("r1")) == list(events)
        assert await store.text(digest("# One")) == "# One"
        if status is not Status.COMPLETED:
            lease = await store.acquire("r1")
            assert (lease.epoch, lease.last_seq, lease.cost) == (1, 4, None)
            await store.write(lease, Batch(effects=(record("3/model"),)))
            assert [one.path for one in await store.effects("r1")] == ["1/model", "2/model", "3/model"]

    async def test_an_id_that_is_taken(self, store: Store) -> None:
        await store.create(new_run("r1", "# One"))
        history = History(RunUpdate(Status.COMPLETED), (record(),), (), 99.0)
        with pytest.raises(StoreError, match="r1 already"):
            await store.restore(replace(new_run("r1"), title="Another"), history)
        row = await store.get("r1")
        assert row is not None and (row.title, row.status) == ("A title", Status.PENDING)
        assert list(await store.effects("r1")) == []


async def driven(store: Store, id: str, *texts: str, status: Status = Status.COMPLETED, value: str = "v") -> Lease:
    await store.create(new_run(id, *texts))
    lease = await store.acquire(id)
    question = Question(id, "2/ask", "2", "", "confirm", "?", (), None, "h", 1.0)
    batch = Batch(effects=(record(value=value),), events=(Event("a", id, 1.0, 1),), questions=(question,))
    await store.write(lease, replace(batch, letters=(Letter("me", id, "hello", 1.0),)))
    await store.write(lease, Batch(update=RunUpdate(status, expires_at=1_500.0)))
    return lease


async def left(store: Store) -> set[str]:
    return {row.id for row in await store.list()}


@pytest.mark.lasting_store("it ends with its process, and removes nothing before")
class TestPrune:
    async def test_what_has_ended_before_a_moment_goes(self, shelf: Shelf, store: Store) -> None:
        for id, status in (("done", Status.COMPLETED), ("no", Status.FAILED), ("waits", Status.AWAITING_INPUT)):
            await store.release(await driven(store, id, f"# {id}", "# shared", status=status, value=f"{id}{BIG}"))
        shelf.clock.time = 1_200.0
        await store.release(await driven(store, "young"))
        assert (await store.prune(900.0, ENDED, dry_run=False, vacuum=False)).runs == ()
        pruned = await store.prune(1_100.0, ENDED, dry_run=False, vacuum=True)
        assert (pruned.runs, pruned.effects, pruned.texts) == (("done", "no"), 2, 4)
        assert pruned.size > 2 * len(BIG)
        assert await left(store) == {"waits", "young"}
        assert await store.text(digest("# shared")) == "# shared"
        assert [one.value for one in await store.effects("waits")] == [f"waits{BIG}"]
        for gone in ("done", "no"):
            assert [*await store.effects(gone), *await store.events(gone)] == []
            with pytest.raises(NoSuchRun):
                await store.acquire(gone)
            with pytest.raises(StoreError, match="no text"):
                await store.text(digest(f"# {gone}"))
        assert [letter.run for letter in await store.letters()] == ["waits", "young"]
        # The id is free again, and nothing of the old run shows.
        await store.create(new_run("done"))
        assert list(await store.events("done")) == []

    async def test_a_wait_that_has_expired_goes_with_the_expired(self, shelf: Shelf, store: Store) -> None:
        await store.release(await driven(store, "r1", status=Status.AWAITING_INPUT))
        shelf.clock.time = 1_600.0
        assert (await store.prune(1_550.0, (Status.COMPLETED,), dry_run=False, vacuum=False)).runs == ()
        assert (await store.prune(1_550.0, ENDED, dry_run=False, vacuum=False)).runs == ("r1",)

    async def test_who_came_with_a_history_is_as_old_as_its_coming(self, shelf: Shelf, store: Store) -> None:
        """A run may have ended years ago in another store: whoever has just taken it in wants it."""
        history = History(RunUpdate(Status.COMPLETED), (record(),), (told(1, record()),), 99.0)
        await store.restore(new_run("r1"), history)
        shelf.clock.time = 1_200.0
        assert (await store.prune(900.0, ENDED, dry_run=False, vacuum=False)).runs == ()
        row = await store.get("r1")
        assert row is not None and row.updated_at == 99.0
        assert (await store.prune(1_100.0, ENDED, dry_run=False, vacuum=False)).runs == ("r1",)

    async def test_where_the_room_is(self, shelf: Shelf, store: Store) -> None:
        await store.release(await driven(store, "r1"))
        pruned = await store.prune(1_100.0, ENDED, dry_run=True, vacuum=False)
        assert pruned.in_file == (type(store).__name__ == "SqliteStore")

    async def test_a_dry_run_says_the_same_and_does_nothing(self, shelf: Shelf, store: Store) -> None:
        await store.release(await driven(store, "r1", "# One"))
        shelf.clock.time = 1_200.0
        would = await store.prune(1_100.0, ENDED, dry_run=True, vacuum=True)
        assert (would.runs, would.effects, would.texts, would.given_back) == (("r1",), 1, 1, 0)
        assert await left(store) == {"r1"}
        assert await store.text(digest("# One")) == "# One"
        did = await store.prune(1_100.0, ENDED, dry_run=False, vacuum=False)
        assert replace(did, size=0) == replace(would, size=0)
        nothing = await store.prune(1_100.0, ENDED, dry_run=False, vacuum=False)
        assert nothing == Pruned(in_file=nothing.in_file)

    async def test_who_is_driven_stays(self, shelf: Shelf, store: Store) -> None:
        lease = await driven(store, "r1", status=Status.FAILED)
        for one in (store, shelf.open()):
            assert (await one.prune(9_000.0, ENDED, dry_run=False, vacuum=False)).runs == ()
        await store.write(lease, Batch(effects=(record("2/model"),)))
        await store.release(lease)
        assert (await store.prune(9_000.0, ENDED, dry_run=False, vacuum=False)).runs == ("r1",)

    async def test_texts_of_runs_that_are_made_meanwhile_are_kept(self, shelf: Shelf, store: Store) -> None:
        text = "# Shared by all\n"
        for round in range(5):
            await store.release(await driven(store, f"old{round}", text))
            others = [shelf.open() for _ in range(3)]
            await asyncio.gather(
                store.prune(9_000.0, ENDED, dry_run=False, vacuum=False),
                *(one.create(new_run(f"new{round}-{n}", text)) for n, one in enumerate(others)),
            )
            assert await store.text(digest(text)) == text
            for one in others:
                await one.close()


@pytest.mark.lasting_store("it ends with its process, and removes nothing before")
class TestRemove:
    async def test_named_runs_go_if_they_have_ended(self, shelf: Shelf, store: Store) -> None:
        for id, status in (("done", Status.COMPLETED), ("other", Status.FAILED), ("waits", Status.AWAITING_INPUT)):
            await store.release(await driven(store, id, f"# {id}", "# shared", status=status))
        named = ["done", "waits", "nothing"]
        would = await store.remove(named, dry_run=True)
        assert (would.runs, would.effects, await left(store)) == (("done",), 1, {"done", "other", "waits"})
        assert await store.remove(named, dry_run=False) == would
        assert await left(store) == {"other", "waits"}
        assert await store.text(digest("# shared")) == "# shared"
        assert list(await store.effects("done")) == []
        shelf.clock.time = 1_600.0
        assert (await store.remove(["waits"], dry_run=False)).runs == ("waits",)

    async def test_a_run_that_is_about_to_be_driven_stays(self, shelf: Shelf, store: Store) -> None:
        await store.release(await driven(store, "r1", status=Status.FAILED))
        lease = await shelf.open().acquire("r1")
        assert lease.run == "r1"
        assert (await store.remove(["r1"], dry_run=False)).runs == ()
        assert await left(store) == {"r1"}
