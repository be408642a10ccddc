"""What every store promises, whatever it is made of (`Store` in quire.engine.ports)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from quire.engine.ports import Store
from quire.engine.records import (
    Answer,
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
    WriteResult,
)
from quire.engine.requests import Failure
from quire.errors import Fenced, NoSuchRun, QuireError, RunBusy, RunState, StoreError
from quire.stores.contract import MOST_QUESTIONS

if TYPE_CHECKING:
    from tests.stores.conftest import Shelf

TEXT = "# Title\n\n## STEP 1: Größe 🌍\n"
DIGEST = hashlib.sha256(TEXT.encode()).hexdigest()


def new_run(id: str = "r1", at: float = 10.0) -> NewRun:
    return NewRun(id, "A title", "playbook", "a.playbook.md", at, {"inputs": {"n": 2**70}}, {DIGEST: TEXT})


def effect(path: str = "1/model", value: str = "v", *, usage: Usage | None = None) -> EffectRecord:
    return EffectRecord(path, "model", "ok", "hash", 11.0, value, usage=usage)


def question(path: str = "2/ask", hash: str = "h1", *, run: str = "r1", at: float = 20.0) -> Question:
    return Question(run, path, "2", "Approve", "select", "Ship it?", ("yes", "no"), "no", hash, at)


def event(seq: int, type: str = "step_started", path: str = "1") -> Event:
    return Event(type, "r1", 12.5, seq, path, "1", {"text": "ü", "n": [1, None]}, {"delta": "not kept"})


async def owned(store: Store, id: str = "r1", *, at: float = 10.0) -> Lease:
    await store.create(new_run(id, at))
    return await store.acquire(id)


async def waiting(store: Store, id: str = "r1", *, expires_at: float | None = None, at: float = 20.0) -> None:
    """A run that has asked, parked, and been let go."""
    lease = await owned(store, id)
    update = RunUpdate(Status.AWAITING_INPUT, "2", expires_at=expires_at)
    assert await store.park(lease, Batch(questions=(question(run=id, at=at),), update=update))
    await store.release(lease)


async def ended(store: Store, status: Status, id: str = "r1") -> None:
    lease = await owned(store, id)
    await store.write(lease, Batch(update=RunUpdate(status)))
    await store.release(lease)


async def status_of(store: Store, id: str = "r1") -> Status:
    row = await store.get(id)
    assert row is not None
    return row.status


class TestRuns:
    async def test_a_new_run_is_pending_and_keeps_what_it_pins(self, store: Store) -> None:
        await store.create(new_run())
        row = await store.get("r1")
        assert row is not None
        assert (row.id, row.title, row.format, row.document) == ("r1", "A title", "playbook", "a.playbook.md")
        assert (row.status, row.position, row.epoch) == (Status.PENDING, "", 0)
        assert (row.created_at, row.updated_at, row.expires_at) == (10.0, 10.0, None)
        assert (row.input_tokens, row.output_tokens, row.cost) == (0, 0, 0.0)
        assert (row.failure, row.ended_by) == (None, ())
        assert row.pins == {"inputs": {"n": 2**70}}
        assert await store.text(DIGEST) == TEXT

    @pytest.mark.parametrize("others", [0, 1])
    async def test_what_is_not_there(self, store: Store, others: int) -> None:
        for _ in range(others):
            await store.create(new_run())
        assert await store.get("nobody") is None
        assert len(await store.list()) == len(await store.find("")) == others
        assert list(await store.effects("nobody")) == []
        assert list(await store.events("nobody")) == []
        assert list(await store.questions()) == []
        assert list(await store.answers("nobody")) == []
        with pytest.raises(StoreError, match="no text"):
            await store.text("0" * 64)
        for verb in (store.acquire, store.request_cancel):
            with pytest.raises(NoSuchRun, match="nobody"):
                await verb("nobody")
        with pytest.raises(NoSuchRun, match="nobody"):
            await store.answer("nobody", "2/ask", "h1", "yes")

    async def test_a_run_is_taken_only_after_the_epoch_it_was_seen_in(self, store: Store) -> None:
        await store.create(new_run())
        seen = await store.get("r1")
        assert seen is not None
        lease = await store.acquire("r1", after=seen.epoch)
        await store.release(lease)
        with pytest.raises(Fenced, match="taken over"):
            await store.acquire("r1", after=seen.epoch)
        # Whoever was turned away holds nothing.
        assert (await store.acquire("r1", after=lease.epoch)).epoch == lease.epoch + 1

    async def test_an_id_is_used_once_and_a_text_shared(self, store: Store) -> None:
        await store.create(new_run())
        with pytest.raises(StoreError, match="r1 already"):
            await store.create(replace(new_run(), title="Another"))
        await store.create(new_run("r2"))
        row = await store.get("r1")
        assert row is not None and row.title == "A title"

    async def test_a_text_under_a_wrong_hash_is_a_bug(self, store: Store) -> None:
        with pytest.raises(ValueError, match="pinned"):
            await store.create(replace(new_run(), texts={"0" * 64: TEXT}))
        assert await store.get("r1") is None

    async def test_lists_newest_first(self, store: Store) -> None:
        for id, at in (("old", 1.0), ("new", 3.0), ("mid", 2.0), ("twin", 3.0)):
            await store.create(new_run(id, at))
        assert [row.id for row in await store.list()] == ["twin", "new", "mid", "old"]
        assert [row.id for row in await store.list(limit=2)] == ["twin", "new"]
        assert [row.id for row in await store.list(status=Status.PENDING, limit=3)] == ["twin", "new", "mid"]
        assert list(await store.list(status=Status.FAILED)) == []

    async def test_finds_by_prefix(self, store: Store) -> None:
        for number in range(12):
            await store.create(new_run(f"ab{number:02}", float(number)))
        await store.create(new_run("a%_", 99.0))
        assert list(await store.find("ab")) == [f"ab{number:02}" for number in range(11, 1, -1)]
        assert list(await store.find("ab0")) == [f"ab{number:02}" for number in range(9, -1, -1)]
        assert list(await store.find("a%")) == ["a%_"]
        assert list(await store.find("x")) == []


class TestJournal:
    @pytest.mark.parametrize(
        "record",
        [
            effect(),
            replace(effect(), value=None),
            replace(effect(), value={"big": 2**80, "nested": [1.5, None, True, {"k": "é\x00🌍"}]}),
            replace(effect(), value="x" * 200_000),
            replace(effect(), value="é" * 40_000),
            replace(effect(), state="intent", value=None),
            replace(effect(), state="failed", value=None, failure=Failure("tool", "no\nway")),
            replace(effect(), usage=Usage(3, 4, None), elapsed=1.25, delays=(0.5, 2.0)),
            replace(effect(), usage=Usage()),
        ],
    )
    async def test_an_effect_comes_back_as_it_was(self, store: Store, record: EffectRecord) -> None:
        lease = await owned(store)
        await store.write(lease, Batch(effects=(record,)))
        assert list(await store.effects("r1")) == [record]

    async def test_the_same_large_value_twice(self, store: Store) -> None:
        lease = await owned(store)
        records = (effect("1/model", "x" * 100_000), effect("2/model", "x" * 100_000))
        await store.write(lease, Batch(effects=records))
        assert tuple(await store.effects("r1")) == records

    async def test_a_path_written_again_replaces_its_record(self, store: Store) -> None:
        lease = await owned(store)
        intent = replace(effect("1/tool"), state="intent", value=None)
        failed = replace(intent, state="failed", failure=Failure("tool", "no"))
        for record in (intent, effect("2/model"), failed, effect("1/tool", "done")):
            await store.write(lease, Batch(effects=(record,)))
        assert list(await store.effects("r1")) == [effect("1/tool", "done"), effect("2/model")]

    async def test_a_superseded_effect_is_gone_until_it_is_written_again(self, store: Store) -> None:
        lease = await owned(store)
        await store.write(lease, Batch(effects=(effect("1/model", "old"), effect("2/model", "kept"))))
        await store.write(lease, Batch(supersede=("1/model", "9/never"), update=RunUpdate(Status.RUNNING)))
        assert [record.path for record in await store.effects("r1")] == ["2/model"]
        await store.write(lease, Batch(effects=(effect("1/model", "new"),)))
        assert {record.path: record.value for record in await store.effects("r1")} == {
            "1/model": "new",
            "2/model": "kept",
        }

    async def test_letters_come_with_the_write_that_sends_them(self, store: Store) -> None:
        lease = await owned(store)
        first, second = Letter("me", "r1", "one", 1.0), Letter("me", "r1", "two", 2.0)
        other = Letter("you", "r1", "for you", 3.0)
        await store.write(lease, Batch(letters=(first, other)))
        await store.write(lease, Batch(letters=(second,)))
        assert list(await store.letters("me")) == [first, second]
        assert list(await store.letters("nobody")) == []
        assert list(await store.letters()) == [first, other, second]

    async def test_several_effects_in_one_batch(self, store: Store) -> None:
        lease = await owned(store)
        records = tuple(effect(f"{n}/model", usage=Usage(1, 2, 0.5)) for n in range(5))
        await store.write(lease, Batch(effects=records, events=(event(1), event(2))))
        await store.write(lease, Batch(effects=(effect("9/model"),), events=(event(3),)))
        assert list(await store.effects("r1")) == [*records, effect("9/model")]
        assert [kept.seq for kept in await store.events("r1")] == [1, 2, 3]
        row = await store.get("r1")
        assert row is not None and (row.input_tokens, row.output_tokens, row.cost) == (5, 10, 2.5)

    async def test_events_are_kept_in_order_without_what_was_live(self, store: Store) -> None:
        lease = await owned(store)
        await store.write(lease, Batch(events=(event(1), replace(event(0), type="delta"), event(2, "step_completed"))))
        await store.write(lease, Batch(effects=(effect(),)))
        await store.write(lease, Batch(events=(replace(event(3), data={"text": "x" * 100_000}),)))
        kept = list(await store.events("r1"))
        assert [(one.seq, one.type) for one in kept] == [
            (1, "step_started"),
            (2, "step_completed"),
            (3, "step_started"),
        ]
        assert kept[0] == replace(event(1), live={})
        assert kept[2].data == {"text": "x" * 100_000}
        await store.release(lease)
        assert ("delta", "1") not in (await store.acquire("r1")).seen
        for after in range(5):
            assert [one.seq for one in await store.events("r1", after)] == list(range(after + 1, 4))

    @pytest.mark.parametrize(
        "record",
        [
            replace(effect(), elapsed=1.23456),
            replace(effect(), usage=Usage(3, 4, None)),
            replace(effect(), usage=Usage(3, 4, 0.5), value="x" * 100_000),
            replace(effect(), state="intent", value=None),
            replace(effect(), state="failed", value=None, failure=Failure("tool", "no\nway")),
        ],
    )
    async def test_an_event_that_tells_of_an_effect(self, store: Store, record: EffectRecord) -> None:
        lease = await owned(store)
        at, data = record.ended_at, record.told()
        told = Event("effect", "r1", at, 2, record.path, "1ü", data, {}, False, record)
        # Not in the row of its effect: what there is to know of it is in another one.
        other = replace(told, seq=3, path="0/tool", record=effect("0/tool"))
        await store.write(lease, Batch(effects=(effect("0/tool"), record), events=(event(1), told, other)))
        await store.write(lease, Batch(supersede=(record.path,)))
        kept = [replace(event(1), live={}), replace(told, record=None), replace(other, record=None)]
        assert list(await store.events("r1")) == kept
        await store.release(lease)
        again = await store.acquire("r1")
        assert again.last_seq == 3
        assert again.seen == {("step_started", "1"), ("effect", record.path), ("effect", "0/tool")}

    async def test_runs_do_not_see_each_other(self, store: Store) -> None:
        for number in range(3):
            lease = await owned(store, f"r{number}")
            await store.write(lease, Batch(effects=(effect(value=f"v{number}"),), events=(event(1), event(2))))
        for number in range(3):
            assert [record.value for record in await store.effects(f"r{number}")] == [f"v{number}"]
            assert [kept.run for kept in await store.events(f"r{number}")] == [f"r{number}"] * 2

    async def test_usage_adds_up_and_an_unknown_price_stays_unknown(self, store: Store) -> None:
        lease = await owned(store)
        expected: list[tuple[Usage | None, int, int, float | None]] = [
            (Usage(10, 5, 0.25), 10, 5, 0.25),
            (None, 10, 5, 0.25),
            (Usage(1, 1, 0.5), 11, 6, 0.75),
            (Usage(1, 1, None), 12, 7, None),
            (Usage(1, 1, 0.5), 13, 8, None),
        ]
        for usage, input_tokens, output_tokens, cost in expected:
            # The same path over and over: a try that failed has cost its money all the same.
            await store.write(lease, Batch(effects=(effect(usage=usage),)))
            row = await store.get("r1")
            assert row is not None
            assert (row.input_tokens, row.output_tokens, row.cost) == (input_tokens, output_tokens, cost)
        await store.release(lease)
        lease = await store.acquire("r1")
        assert lease.cost is None
        await store.write(lease, Batch(effects=(effect(usage=Usage(1, 1, 1.0)),)))
        row = await store.get("r1")
        assert row is not None and (row.input_tokens, row.output_tokens, row.cost) == (14, 9, None)

    async def test_a_lease_knows_what_was_spent_on_what_is_superseded(self, store: Store) -> None:
        lease = await owned(store)
        await store.write(lease, Batch(effects=(effect(usage=Usage(1, 1, 0.25)),)))
        await store.write(lease, Batch(supersede=(effect().path,)))
        await store.release(lease)
        assert (await store.acquire("r1")).cost == 0.25

    async def test_a_status_writes_what_belongs_to_it_and_nothing_else_does(self, shelf: Shelf, store: Store) -> None:
        lease = await owned(store)
        failed = RunUpdate(Status.FAILED, "3", Failure("model", "no answer"), ("3/model", "4/model"))
        await store.write(lease, Batch(update=failed))
        await store.write(lease, Batch(events=(event(1),)))
        row = await store.get("r1")
        assert row is not None
        assert (row.status, row.position, row.failure, row.ended_by) == (
            Status.FAILED,
            "3",
            Failure("model", "no answer"),
            ("3/model", "4/model"),
        )
        shelf.clock.time = 2_000.0
        await store.write(lease, Batch(update=RunUpdate(Status.RUNNING)))
        row = await store.get("r1")
        assert row is not None
        assert (row.status, row.position, row.failure, row.ended_by) == (Status.RUNNING, "3", None, ())
        assert row.updated_at == 2_000.0
        await store.write(lease, Batch(update=RunUpdate(position="5")))
        row = await store.get("r1")
        assert row is not None and (row.status, row.position) == (Status.RUNNING, "5")

    async def test_lone_surrogates_from_a_terminal_are_replaced(self, store: Store) -> None:
        lease = await owned(store)
        failure = Failure("tool", "bad \udcff name")
        await store.write(lease, Batch(effects=(replace(effect(), failure=failure),), questions=(question(),)))
        await store.write(lease, Batch(update=RunUpdate(Status.RUNNING)))
        await store.answer("r1", "2/ask", "h1", "\ud800!")
        (record,) = await store.effects("r1")
        assert record.failure == Failure("tool", "bad \ufffd name")
        assert [answer.value for answer in await store.answers("r1")] == ["\ufffd!"]

    async def test_every_character_that_a_person_can_type_is_kept(self, store: Store) -> None:
        odd = "a\x00b \ufdd0\ufdd1\ufdd1 \\x00 \U0010ffff \r\n"
        text = f"# {odd}"
        digest = hashlib.sha256(text.encode()).hexdigest()
        await store.create(replace(new_run(), title=odd, texts={digest: text}))
        lease = await store.acquire("r1")
        asked = replace(question(), title=odd, prompt=odd, options=(odd, "no"), default=odd)
        failed = replace(effect(), state="failed", value=odd, failure=Failure("tool", odd))
        letter = Letter("me", "r1", odd, 1.0)
        update = RunUpdate(Status.RUNNING, odd)
        batch = Batch(effects=(failed,), events=(replace(event(1), way=odd, live={}),), questions=(asked,))
        await store.write(lease, replace(batch, letters=(letter,), update=update))
        assert await store.text(digest) == text
        row = await store.get("r1")
        assert row is not None and (row.title, row.position) == (odd, odd)
        assert list(await store.effects("r1")) == [failed]
        assert [kept.label for kept in await store.events("r1")] == [odd]
        assert list(await store.questions()) == [asked]
        assert list(await store.letters()) == [letter]
        await store.answer("r1", "2/ask", "h1", odd)
        assert list(await store.answers("r1")) == [Answer("2/ask", "h1", odd)]

    async def test_what_cannot_be_kept_leaves_nothing_behind(self, store: Store) -> None:
        lease = await owned(store)
        for bad in (
            Batch(effects=(effect(), replace(effect("2/model"), value=float("nan")))),
            Batch(effects=(effect(),), events=(replace(event(1), data={"n": float("inf")}),)),
        ):
            with pytest.raises(ValueError, match=r"."):
                await store.write(lease, bad)
        assert list(await store.effects("r1")) == []
        await store.write(lease, Batch(effects=(effect(),)))
        assert list(await store.effects("r1")) == [effect()]


class TestOwners:
    async def test_a_lease_knows_what_was_seen(self, store: Store) -> None:
        lease = await owned(store)
        assert lease == Lease("r1", 1, 0, frozenset())
        await store.write(lease, Batch(events=(event(1), event(2, "step_completed"), event(3, "step_started", "2"))))
        await store.release(lease)
        again = await store.acquire("r1")
        seen = frozenset({("step_started", "1"), ("step_completed", "1"), ("step_started", "2")})
        assert again == Lease("r1", 2, 3, seen)

    async def test_one_owner_at_a_time(self, shelf: Shelf, store: Store) -> None:
        other = shelf.open()
        lease = await owned(store)
        for rival in (store, other):
            with pytest.raises(RunBusy, match="r1"):
                await rival.acquire("r1")
        await store.release(lease)
        assert (await other.acquire("r1")).epoch == 2

    async def test_acquiring_leaves_the_status_to_the_driver(self, store: Store) -> None:
        await owned(store)
        assert await status_of(store) is Status.PENDING

    async def test_running_without_an_owner_is_interrupted(self, shelf: Shelf, store: Store) -> None:
        other = shelf.open()
        lease = await owned(store)
        await store.write(lease, Batch(update=RunUpdate(Status.RUNNING)))
        for reader in (store, other):
            assert await status_of(reader) is Status.RUNNING
            assert [row.id for row in await reader.list(status=Status.RUNNING)] == ["r1"]
            assert list(await reader.list(status=Status.INTERRUPTED)) == []
        await store.release(lease)
        for reader in (store, other):
            assert await status_of(reader) is Status.INTERRUPTED
            assert [row.status for row in await reader.list()] == [Status.INTERRUPTED]
            assert [row.id for row in await reader.list(status=Status.INTERRUPTED)] == ["r1"]
            assert list(await reader.list(status=Status.RUNNING)) == []

    async def test_who_has_been_taken_over_cannot_write(self, shelf: Shelf, store: Store) -> None:
        other = shelf.open()
        stale = await owned(store)
        await store.write(stale, Batch(effects=(effect(),)))
        shelf.lose_owner("r1")
        lease = await other.acquire("r1")
        with pytest.raises(Fenced, match="r1"):
            await store.write(
                stale, Batch(effects=(effect("2/model"),), events=(event(1),), update=RunUpdate(Status.FAILED))
            )
        with pytest.raises(Fenced):
            await store.park(stale, Batch(update=RunUpdate(Status.AWAITING_INPUT)))
        with pytest.raises(Fenced):
            await store.write(stale, Batch())
        await other.write(lease, Batch(effects=(effect("3/model"),)))
        assert [record.path for record in await store.effects("r1")] == ["1/model", "3/model"]
        assert list(await store.events("r1")) == []
        # Letting go of a lease that was lost must not let go of the new owner's.
        await store.release(stale)
        with pytest.raises(RunBusy):
            await shelf.open().acquire("r1")
        await other.write(lease, Batch(effects=(effect("4/model"),)))

    async def test_a_released_lease_is_over(self, store: Store) -> None:
        lease = await owned(store)
        await store.release(lease)
        await store.release(lease)
        with pytest.raises(Fenced):
            await store.write(lease, Batch(effects=(effect(),)))
        assert list(await store.effects("r1")) == []

    @pytest.mark.parametrize("status", [Status.COMPLETED, Status.EXPIRED])
    async def test_final_runs_cannot_be_acquired(self, shelf: Shelf, store: Store, status: Status) -> None:
        await ended(store, status)
        for _ in range(2):
            with pytest.raises(RunState, match=status.value):
                await shelf.open().acquire("r1")

    @pytest.mark.parametrize("status", [Status.FAILED, Status.CANCELLED, Status.PAUSED])
    async def test_others_go_on(self, shelf: Shelf, store: Store, status: Status) -> None:
        await ended(store, status)
        assert (await shelf.open().acquire("r1")).epoch == 2


class TestExpiry:
    @pytest.mark.parametrize("status", [Status.PAUSED, Status.AWAITING_INPUT])
    async def test_a_wait_past_its_time_is_expired_for_every_reader(
        self, shelf: Shelf, store: Store, status: Status
    ) -> None:
        lease = await owned(store)
        await store.park(lease, Batch(questions=(question(),), update=RunUpdate(status, expires_at=1_500.0)))
        await store.release(lease)
        shelf.clock.time = 1_500.0
        assert await status_of(store) is status
        assert [row.id for row in await store.list(status=status)] == ["r1"]
        assert [asked.expires_at for asked in await store.questions()] == [1_500.0]
        shelf.clock.time = 1_500.5
        assert await status_of(store) is Status.EXPIRED
        assert list(await store.list(status=status)) == []
        assert [row.status for row in await store.list(status=Status.EXPIRED)] == [Status.EXPIRED]
        assert list(await store.questions()) == []
        assert list(await store.questions("r1")) == []

    async def test_an_expired_run_takes_no_verb_and_stays_expired(self, shelf: Shelf, store: Store) -> None:
        await waiting(store, expires_at=1_500.0)
        shelf.clock.time = 1_501.0
        with pytest.raises(RunState, match="expired"):
            await store.answer("r1", "2/ask", "h1", "yes")
        with pytest.raises(RunState, match="expired"):
            await store.request_cancel("r1")
        with pytest.raises(RunState, match="expired"):
            await store.acquire("r1")
        # Kept, so that even a clock that is set back does not wake it.
        shelf.clock.time = 1_000.0
        assert await status_of(store) is Status.EXPIRED
        with pytest.raises(RunState, match="expired"):
            await store.acquire("r1")

    async def test_waiting_runs_by_the_time_at_which_they_expire(self, shelf: Shelf, store: Store) -> None:
        for run, expires_at in (("r1", 1_500.0), ("r2", 1_400.0), ("r3", None)):
            await waiting(store, run, expires_at=expires_at)
        assert list(await store.expiring(0.0, 1_500.0)) == ["r2"]
        assert list(await store.expiring(1_400.0, 1_500.5)) == ["r2", "r1"]
        shelf.clock.time = 1_450.0
        with pytest.raises(RunState, match="expired"):
            await store.acquire("r2")
        assert list(await store.expiring(0.0, 9_000.0)) == ["r1"], "what is recorded is listed no more"

    async def test_going_on_takes_the_expiry_away(self, shelf: Shelf, store: Store) -> None:
        await waiting(store, expires_at=1_500.0)
        lease = await store.acquire("r1")
        await store.write(lease, Batch(update=RunUpdate(Status.RUNNING)))
        shelf.clock.time = 9_000.0
        assert await status_of(store) is Status.RUNNING


class TestInbox:
    async def test_questions_oldest_first(self, store: Store) -> None:
        await waiting(store, "r2", at=30.0)
        await waiting(store, "r1", at=20.0)
        asked = list(await store.questions())
        assert asked == [question(run="r1", at=20.0), question(run="r2", at=30.0)]
        assert list(await store.questions("r2")) == asked[1:]

    async def test_questions_in_pages(self, store: Store) -> None:
        """Those of the same moment too: no question is repeated or left out."""
        for run, at in (("r1", 20.0), ("r2", 20.0), ("r3", 30.0)):
            lease = await owned(store, run)
            asked = tuple(replace(question(run=run, at=at), path=path) for path in ("2/ask", "3/ask"))
            await store.park(lease, Batch(questions=asked, update=RunUpdate(Status.AWAITING_INPUT)))
            await store.release(lease)
        seen, after = list[tuple[float, str, str]](), None
        while page := (await store.oldest_questions(2, after))[0]:
            seen += [(asked.asked_at, asked.run, asked.path) for asked in page]
            after = seen[-1]
        runs = ((20.0, "r1"), (20.0, "r2"), (30.0, "r3"))
        assert seen == [(*run, path) for run in runs for path in ("2/ask", "3/ask")]
        assert [total for _, total in [await store.oldest_questions(2, place) for place in (None, seen[3])]] == [6, 6]

    async def test_open_questions_are_counted_up_to_a_limit(self, store: Store) -> None:
        lease = await owned(store)
        asked = tuple(replace(question(), path=f"{number}/ask") for number in range(MOST_QUESTIONS + 5))
        await store.park(lease, Batch(questions=asked, update=RunUpdate(Status.AWAITING_INPUT)))
        for limit in (1, len(asked) + 1):
            questions, total = await store.oldest_questions(limit)
            assert (len(questions), total) == (min(limit, len(asked)), MOST_QUESTIONS + 1)

    async def test_a_question_waits_while_its_siblings_go_on(self, store: Store) -> None:
        lease = await owned(store)
        await store.write(lease, Batch(questions=(question(),), update=RunUpdate(Status.RUNNING)))
        assert list(await store.questions()) == [question()]
        await store.release(lease)
        assert list(await store.questions()) == [question()]
        await store.answer("r1", "2/ask", "h1", "yes")
        assert list(await store.questions()) == []

    async def test_an_answer_waits_until_it_is_taken(self, shelf: Shelf, store: Store) -> None:
        lease = await owned(store)
        both = (question("1/ask"), question("2/ask"))
        assert await store.write(lease, Batch(questions=both, update=RunUpdate(Status.RUNNING))) == WriteResult()
        await shelf.open().answer("r1", "2/ask", "h1", "yes")
        assert list(await store.answers("r1")) == [Answer("2/ask", "h1", "yes")]
        assert await store.write(lease, Batch(effects=(effect(),))) == WriteResult(answer_waiting=True)
        parked = Batch(events=(event(1),), update=RunUpdate(Status.AWAITING_INPUT, expires_at=5_000.0))
        assert await store.park(lease, parked) is False
        assert await status_of(store) is Status.RUNNING
        assert list(await store.events("r1")) == []
        taken = Batch(effects=(effect("2/ask", "yes"),), consume=("2/ask",))
        assert await store.write(lease, taken) == WriteResult()
        assert list(await store.answers("r1")) == []
        assert await store.park(lease, parked) is True
        assert await status_of(store) is Status.AWAITING_INPUT
        assert [asked.path for asked in await store.questions()] == ["1/ask"]

    async def test_an_answer_says_who_gave_it(self, shelf: Shelf, store: Store) -> None:
        lease = await owned(store)
        await store.write(lease, Batch(questions=(question(),), update=RunUpdate(Status.RUNNING)))
        await store.answer("r1", "2/ask", "h1", "yes", "ann")
        assert list(await store.answers("r1")) == [Answer("2/ask", "h1", "yes", "ann")]
        record = EffectRecord("2/ask", "ask", "ok", "h1", 1.0, "yes", by="ann")
        told = Event("effect", "r1", 1.0, 1, "2/ask", "2", record.told(), {}, False, record)
        await store.write(lease, Batch(effects=(record,), events=(told,), consume=("2/ask",)))
        await store.release(lease)
        again = shelf.open()
        assert [one.by for one in await again.effects("r1")] == ["ann"]
        assert [one.data["by"] for one in await again.events("r1")] == ["ann"]
        assert [one.by for one in (await again.acquire("r1")).records] == ["ann"]

    async def test_a_park_may_take_the_question_back_that_was_answered(self, store: Store) -> None:
        lease = await owned(store)
        await store.write(lease, Batch(questions=(question(), question("3/ask")), update=RunUpdate(Status.RUNNING)))
        await store.answer("r1", "2/ask", "h1", "yes")
        assert await store.park(lease, Batch(withdraw=("2/ask",), update=RunUpdate(Status.AWAITING_INPUT)))

    async def test_a_park_may_take_the_answer_itself(self, store: Store) -> None:
        lease = await owned(store)
        await store.write(lease, Batch(questions=(question(), question("3/ask")), update=RunUpdate(Status.RUNNING)))
        await store.answer("r1", "2/ask", "h1", "yes")
        assert await store.park(lease, Batch(consume=("2/ask",), update=RunUpdate(Status.AWAITING_INPUT)))
        assert await status_of(store) is Status.AWAITING_INPUT

    async def test_asking_again_in_the_same_words_changes_nothing(self, store: Store) -> None:
        await waiting(store)
        lease = await store.acquire("r1")
        await store.write(lease, Batch(questions=(question(at=99.0),)))
        assert list(await store.questions()) == [question()]
        await store.answer("r1", "2/ask", "h1", "yes")
        await store.write(lease, Batch(questions=(question(at=99.0),)))
        assert list(await store.answers("r1")) == [Answer("2/ask", "h1", "yes")]

    async def test_other_words_are_another_question(self, store: Store) -> None:
        await waiting(store)
        await store.answer("r1", "2/ask", "h1", "yes")
        lease = await store.acquire("r1")
        await store.write(lease, Batch(questions=(question(hash="h2"),)))
        assert list(await store.answers("r1")) == []
        assert [asked.hash for asked in await store.questions()] == ["h2"]

    @pytest.mark.parametrize("closing", [Batch(consume=("2/ask",)), Batch(withdraw=("2/ask",))])
    async def test_a_closed_question_can_be_asked_anew(self, store: Store, closing: Batch) -> None:
        await waiting(store)
        lease = await store.acquire("r1")
        await store.write(lease, closing)
        assert list(await store.questions()) == []
        await store.write(lease, Batch(questions=(question(at=50.0),)))
        assert list(await store.questions()) == [question(at=50.0)]

    async def test_a_withdrawn_question_takes_its_late_answer_along(self, store: Store) -> None:
        await waiting(store)
        await store.answer("r1", "2/ask", "h1", "yes")
        lease = await store.acquire("r1")
        assert await store.write(lease, Batch(withdraw=("2/ask",))) == WriteResult()
        assert await store.park(lease, Batch(update=RunUpdate(Status.PAUSED)))

    @pytest.mark.parametrize(
        ("path", "hash", "prepare", "said"),
        [
            ("9/ask", "h1", None, "asks nothing at 9/ask"),
            ("2/ask", "h2", None, "worded differently"),
            ("2/ask", "h1", Batch(withdraw=("2/ask",)), "taken back"),
            ("2/ask", "h1", Batch(consume=("2/ask",)), "answered already"),
            ("2/ask", "h1", Batch(update=RunUpdate(Status.COMPLETED)), "completed"),
            ("2/ask", "h1", Batch(update=RunUpdate(Status.CANCELLED)), "cancelled"),
            ("2/ask", "h1", Batch(update=RunUpdate(Status.FAILED)), "failed"),
        ],
    )
    async def test_answers_that_come_too_late(
        self, store: Store, path: str, hash: str, prepare: Batch | None, said: str
    ) -> None:
        await waiting(store)
        if prepare is not None:
            await store.write(await store.acquire("r1"), prepare)
        with pytest.raises(RunState, match=said):
            await store.answer("r1", path, hash, "yes")
        assert list(await store.answers("r1")) == []

    async def test_the_first_answer_wins(self, store: Store) -> None:
        await waiting(store)
        await store.answer("r1", "2/ask", "h1", "yes")
        with pytest.raises(RunState, match="answered already"):
            await store.answer("r1", "2/ask", "h1", "no")
        assert list(await store.answers("r1")) == [Answer("2/ask", "h1", "yes")]


class TestCancel:
    async def test_without_an_owner_it_is_done_at_once(self, store: Store) -> None:
        lease = await owned(store)
        used = effect(usage=Usage(5, 6, 0.5))
        batch = Batch(effects=(used,), events=(event(1), event(2)), questions=(question(),))
        await store.park(lease, replace(batch, update=RunUpdate(Status.AWAITING_INPUT, "2", expires_at=5_000.0)))
        await store.release(lease)
        assert await store.request_cancel("r1") is True
        row = await store.get("r1")
        assert row is not None
        assert (row.status, row.expires_at, row.position) == (Status.CANCELLED, None, "2")
        assert (row.input_tokens, row.output_tokens, row.cost) == (5, 6, 0.5)
        assert [(kept.seq, kept.type) for kept in await store.events("r1")][2:] == [(3, "run_cancelled")]
        assert list(await store.questions()) == []
        assert (await store.acquire("r1")).last_seq == 3

    async def test_an_owner_is_asked(self, shelf: Shelf, store: Store) -> None:
        lease = await owned(store)
        await store.write(lease, Batch(update=RunUpdate(Status.RUNNING)))
        assert await shelf.open().request_cancel("r1") is False
        assert await status_of(store) is Status.RUNNING
        assert await store.write(lease, Batch()) == WriteResult(cancel_requested=True)
        assert await store.write(lease, Batch(effects=(effect(),))) == WriteResult(cancel_requested=True)
        await store.write(lease, Batch(update=RunUpdate(Status.CANCELLED)))
        await store.release(lease)
        again = await store.acquire("r1")
        assert await store.write(again, Batch()) == WriteResult()
        assert [kept.type for kept in await store.events("r1")] == []

    async def test_an_owner_that_parks_without_having_looked(self, shelf: Shelf, store: Store) -> None:
        lease = await owned(store)
        assert await shelf.open().request_cancel("r1") is False
        assert await store.park(lease, Batch(questions=(question(),), update=RunUpdate(Status.AWAITING_INPUT)))
        await store.release(lease)
        assert await status_of(store) is Status.CANCELLED
        assert list(await store.questions()) == []

    async def test_an_owner_that_ends_without_having_looked(self, shelf: Shelf, store: Store) -> None:
        lease = await owned(store)
        assert await shelf.open().request_cancel("r1") is False
        await store.write(lease, Batch(update=RunUpdate(Status.COMPLETED)))
        await store.release(lease)
        assert await status_of(store) is Status.COMPLETED

    @pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.EXPIRED])
    async def test_what_has_ended_cannot_be_cancelled(self, store: Store, status: Status) -> None:
        await ended(store, status)
        with pytest.raises(RunState, match=status.value):
            await store.request_cancel("r1")
        assert await status_of(store) is status
        assert list(await store.events("r1")) == []

    async def test_a_cancelled_run_can_go_on(self, store: Store) -> None:
        await waiting(store)
        await store.request_cancel("r1")
        lease = await store.acquire("r1")
        await store.write(lease, Batch(effects=(effect(),), events=(event(lease.last_seq + 1),)))
        assert [record.path for record in await store.effects("r1")] == ["1/model"]


class TestTogether:
    async def test_many_writes_at_once(self, store: Store) -> None:
        leases = [await owned(store, f"r{number}") for number in range(5)]
        usage = Usage(1, 2, 0.25)
        await asyncio.gather(
            *(
                store.write(lease, Batch(effects=(effect(f"{n}/model", usage=usage),), events=(event(n + 1),)))
                for n in range(20)
                for lease in leases
            )
        )
        for lease in leases:
            assert sorted(record.path for record in await store.effects(lease.run)) == sorted(
                f"{n}/model" for n in range(20)
            )
            assert [kept.seq for kept in await store.events(lease.run)] == list(range(1, 21))
            row = await store.get(lease.run)
            assert row is not None and (row.input_tokens, row.output_tokens, row.cost) == (20, 40, 5.0)

    async def test_who_is_fenced_does_not_take_the_others_down(self, shelf: Shelf, store: Store) -> None:
        leases = [await owned(store, f"r{number}") for number in range(4)]
        shelf.lose_owner("r2")
        await shelf.open().acquire("r2")
        results = await asyncio.gather(
            *(store.write(lease, Batch(effects=(effect(),))) for lease in leases), return_exceptions=True
        )
        assert [type(result) for result in results] == [WriteResult, WriteResult, Fenced, WriteResult]
        for lease in leases:
            assert len(await store.effects(lease.run)) == (0 if lease.run == "r2" else 1)

    async def test_a_park_among_writes(self, store: Store) -> None:
        one, two = await owned(store, "r1"), await owned(store, "r2")
        await store.write(two, Batch(questions=(question(run="r2"),), update=RunUpdate(Status.RUNNING)))
        await store.answer("r2", "2/ask", "h1", "yes")
        update = Batch(update=RunUpdate(Status.AWAITING_INPUT))
        written, refused, parked = await asyncio.gather(
            store.write(one, Batch(effects=(effect(),))), store.park(two, update), store.park(one, update)
        )
        assert (written, refused, parked) == (WriteResult(), False, True)
        assert await status_of(store, "r2") is Status.RUNNING

    async def test_fifty_writers_at_once(self, shelf: Shelf, store: Store) -> None:
        """Fifty processes, as it were, twenty at a time: each has a run of its own, and they share the tables."""
        for number in range(50):
            await store.create(new_run(f"r{number}"))

        # A server takes a hundred connections, and other tests use it at the same time.
        room = asyncio.Semaphore(20)

        async def drive(number: int) -> None:
            async with room:
                await whole(number)

        async def whole(number: int) -> None:
            own = shelf.open()
            lease = await own.acquire(f"r{number}")
            await own.write(lease, Batch(update=RunUpdate(Status.RUNNING)))
            for n in range(4):
                value = "x" * 70_000 if n == 3 else f"{number}"
                await own.write(lease, Batch(effects=(effect(f"{n}/model", value),), events=(event(n + 1),)))
            await own.write(lease, Batch(update=RunUpdate(Status.COMPLETED)))
            await own.release(lease)
            await own.close()

        await asyncio.gather(*(drive(number) for number in range(50)))
        assert len(await store.list(status=Status.COMPLETED, limit=99)) == 50
        for number in range(50):
            values = [record.value for record in await store.effects(f"r{number}")]
            assert values == [f"{number}"] * 3 + ["x" * 70_000]
            assert [kept.seq for kept in await store.events(f"r{number}")] == [1, 2, 3, 4]

    async def test_of_many_who_want_a_run_one_gets_it(self, shelf: Shelf, store: Store) -> None:
        await store.create(new_run())
        rivals = [shelf.open() for _ in range(10)]
        results = await asyncio.gather(*(rival.acquire("r1") for rival in rivals), return_exceptions=True)
        assert sorted(type(result).__name__ for result in results) == ["Lease"] + ["RunBusy"] * 9

    async def test_of_many_answers_one_is_taken(self, shelf: Shelf, store: Store) -> None:
        await waiting(store)
        people = [shelf.open() for _ in range(10)]
        results = await asyncio.gather(
            *(one.answer("r1", "2/ask", "h1", str(number)) for number, one in enumerate(people)), return_exceptions=True
        )
        (given,) = (number for number, result in enumerate(results) if result is None)
        assert list(await store.answers("r1")) == [Answer("2/ask", "h1", str(given))]
        assert sum(isinstance(result, RunState) for result in results) == 9

    async def test_a_cancelled_writer_has_written(self, store: Store) -> None:
        lease = await owned(store)

        async def write(path: str) -> None:
            await store.write(lease, Batch(effects=(effect(path),)))

        tasks = [asyncio.create_task(write(f"{n}/model")) for n in range(3)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert len(await store.effects("r1")) == 3

    async def test_releasing_and_closing_finish_what_is_queued(self, shelf: Shelf, store: Store) -> None:
        lease, other = await owned(store), await owned(store, "r2")
        tasks = [
            asyncio.create_task(_ignore(store.write(one, Batch(effects=(effect(f"{n}/model"),)))))
            for n in range(3)
            for one in (lease, other)
        ]
        await asyncio.sleep(0)
        await store.release(lease)
        reader = shelf.open()
        await reader.acquire("r1")
        await store.close()
        await asyncio.gather(*tasks)
        assert len(await reader.effects("r1")) == len(await reader.effects("r2")) == 3

    async def test_closing_lets_go(self, shelf: Shelf, store: Store) -> None:
        lease = await owned(store)
        await store.close()
        await store.close()
        assert (await shelf.open().acquire("r1")).epoch == 2
        after: tuple[Callable[[], Coroutine[None, None, object]], ...] = (
            lambda: store.get("r1"),
            lambda: store.create(new_run("r9")),
            lambda: store.write(lease, Batch()),
        )
        for verb in after:
            with pytest.raises(QuireError):
                await verb()


async def _ignore(work: Coroutine[None, None, object]) -> None:
    await work
