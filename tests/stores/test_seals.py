"""Seals on stored runs, on both stores: a row that somebody else writes keeps the run from going on.

The key that seals is not in the database, so whoever writes there can change anything but make it fit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable

import pytest
from tests.stores.conftest import PostgresShelf, Shelf, SqliteShelf
from tests.stores.test_store_contract import DIGEST, new_run

from quire.engine.ports import Store
from quire.engine.records import Batch, EffectRecord, Event, Letter, Question, RunUpdate, Status, Usage
from quire.engine.requests import Failure
from quire.errors import BrokenSeal, StoreError
from quire.stores import open_store
from quire.stores.seals import LOOSE_ROWS, seal_answer, seal_row
from quire.trust.seal import PUBLIC_SEAL, Seal

pytestmark = pytest.mark.lasting_store("only its own process can write to it")

LARGE = "x" * 100_000
QUESTION = Question("r1", "9/ask", "9", "Approve", "confirm", "Delete it all?", (), None, "c" * 64, 1_000.0)


def effect(path: str, value: object = "fine", state: str = "ok", cost: float = 0.25) -> EffectRecord:
    return EffectRecord(path, "tool", state, "a" * 64, 1_000.0, value, None, Usage(3, 4, cost), 0.5)  # type: ignore[arg-type]


async def lived(store: Store) -> None:
    """Two runs with a journal, of which the first one waits for an answer."""
    for run in ("r2", "r1"):
        await store.create(new_run(run))
        lease = await store.acquire(run)
        await store.write(lease, Batch(update=RunUpdate(Status.RUNNING, "1")))
        for path in ("1/tool", "2/tool", "3/tool"):
            await store.write(lease, Batch((effect(path, f"{run} {path}"),)))
        await store.write(lease, Batch((effect("4/tool", LARGE),)))
        await store.write(lease, Batch((effect("5/tool", cost=1.0),), supersede=("2/tool",)))
        waits = Batch(questions=(QUESTION,) if run == "r1" else (), update=RunUpdate(Status.AWAITING_INPUT, "9"))
        assert await store.park(lease, waits)
        await store.release(lease)


def tampered(shelf: Shelf, *statements: str) -> None:
    """Writes into the database as somebody without the key."""
    for sql in statements:
        if isinstance(shelf, SqliteShelf):
            connection = sqlite3.connect(shelf.path)
            changed = connection.execute(sql.replace("{n}", "id").replace("{t}", "")).rowcount
            connection.commit()
            connection.close()
        else:
            import psycopg

            assert isinstance(shelf, PostgresShelf)
            with psycopg.connect(shelf.url, autocommit=True) as server:
                changed = server.execute(sql.replace("{n}", "place").replace("{t}", "quire_").encode()).rowcount
        assert changed, sql


FIRST = "(SELECT n FROM {t}runs WHERE id = 'r1')"
LAST = "SELECT max({n}) FROM {t}journal WHERE value LIKE '%r1%'"

CHANGES: dict[str, tuple[tuple[str, ...], str]] = {
    "a grant": (
        ("UPDATE {t}pins SET value = replace(value, 'inputs', 'grants') WHERE run = " + FIRST,),
        "its document, inputs or grants were changed",
    ),
    "another document": (
        ("UPDATE {t}runs SET document = 'evil.md' WHERE id = 'r1'",),
        "its document, inputs or grants",
    ),
    "another format": (("UPDATE {t}runs SET format = 'pipeline' WHERE id = 'r1'",), "its document, inputs or grants"),
    "the pins of another run": (
        (
            "UPDATE {t}pins SET value = (SELECT value FROM {t}pins p JOIN {t}runs r ON r.n = p.run WHERE r.id = 'r2'), "
            "seal = (SELECT p.seal FROM {t}pins p JOIN {t}runs r ON r.n = p.run WHERE r.id = 'r2') WHERE run = "
            + FIRST,
        ),
        "its document, inputs or grants",
    ),
    "no seal at all": (("UPDATE {t}pins SET seal = NULL WHERE run = " + FIRST,), "it has no seal"),
    "a seal of another key": (("UPDATE {t}pins SET seal = '00000000:1234' WHERE run = " + FIRST,), "another key than"),
    "a value": (
        ("UPDATE {t}journal SET value = '\"r1 forged\"' WHERE path = '1/tool' AND value LIKE '%r1%'",),
        "1/tool",
    ),
    "a failure made a success": (("UPDATE {t}journal SET state = 'failed' WHERE value LIKE '%r1 3/tool%'",), "3/tool"),
    "what was spent": (("UPDATE {t}journal SET total_cost = 0.0 WHERE value LIKE '%r1 3/tool%'",), "3/tool"),
    "how long it took": (("UPDATE {t}journal SET elapsed = 0.0 WHERE value LIKE '%r1 3/tool%'",), "3/tool"),
    "tokens": (("UPDATE {t}journal SET input_tokens = NULL WHERE value LIKE '%r1 3/tool%'",), "3/tool"),
    "the first record gone": (("DELETE FROM {t}journal WHERE value LIKE '%r1 1/tool%'",), "taken away"),
    "a record in the middle gone": (("DELETE FROM {t}journal WHERE value LIKE '%r1 3/tool%'",), "taken away"),
    "a record of another run": (
        (
            "UPDATE {t}journal SET value = '\"r2 3/tool\"', seal = (SELECT seal FROM {t}journal WHERE value LIKE "
            "'%r2 3/tool%') WHERE value LIKE '%r1 3/tool%'",
        ),
        "3/tool",
    ),
    "a path": (("UPDATE {t}journal SET path = '7/tool' WHERE value LIKE '%r1 3/tool%'",), "7/tool"),
    "it is to begin again": (
        ("UPDATE {t}runs SET ended_by = '[\"1/tool\"]' WHERE id = 'r1'",),
        "its status was changed",
    ),
    "who answered": (
        ("UPDATE {t}journal SET answered_by = 'eve' WHERE path = '3/tool' AND value LIKE '%r1%'",),
        "the record at 3/tool was changed",
    ),
    "a status": (("UPDATE {t}runs SET status = 'failed' WHERE id = 'r1'",), "its status was changed"),
    "a longer life": (("UPDATE {t}runs SET expires_at = 9e9 WHERE id = 'r1'",), "its status was changed"),
    "an anchor": (("UPDATE {t}runs SET anchor = 0 WHERE id = 'r1'",), "its status was changed"),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_run_that_was_changed_is_not_driven(shelf: Shelf, change: str) -> None:
    statements, reason = CHANGES[change]
    store = shelf.open()
    await lived(store)
    await store.close()
    tampered(shelf, *statements)
    store = shelf.open()
    for attempt in (store.acquire("r1"), store.check_seal("r1")):
        with pytest.raises(BrokenSeal, match=reason) as refused:
            await attempt
        assert refused.value.run == "r1" and "quire runs fork r1" in str(refused.value)
    assert not refused.value.old
    row = await store.get("r1")
    assert row is not None, "a run that is not driven can be looked at"
    assert (await store.acquire("r2")).records, "its neighbour goes on"


async def test_the_end_of_a_journal_cannot_be_cut_off(shelf: Shelf) -> None:
    store = shelf.open()
    await lived(store)
    await store.close()
    tampered(shelf, f"DELETE FROM {{t}}journal WHERE {{n}} = ({LAST.replace('r1%', 'r1 3%')})")
    with pytest.raises(BrokenSeal, match="taken away"):
        await shelf.open().acquire("r1")


async def owned(store: Store, run: str = "r1") -> Callable[[Batch], Awaitable[object]]:
    await store.create(new_run(run))
    lease = await store.acquire(run)
    await store.write(lease, Batch(update=RunUpdate(Status.RUNNING, "1")))
    return lambda batch: store.write(lease, batch)


@pytest.mark.parametrize("cut", ["the result", "the intent", "both"])
async def test_what_changed_the_world_cannot_be_taken_from_an_interrupted_run(shelf: Shelf, cut: str) -> None:
    store = shelf.open()
    write = await owned(store)
    await write(Batch((effect("1/tool", "r1 read"),)))
    await write(Batch((effect("2/tool", "r1 begun", "intent"),)))
    if cut != "the intent":
        await write(Batch((effect("2/tool", "r1 paid"),)))
    await store.close()
    gone = {"the result": ["r1 paid"], "the intent": ["r1 begun"], "both": ["r1 paid", "r1 begun"]}[cut]
    tampered(shelf, *(f"DELETE FROM {{t}}journal WHERE value LIKE '%{one}%'" for one in gone))
    with pytest.raises(BrokenSeal, match="taken away"):
        await shelf.open().acquire("r1")


async def test_no_more_than_some_records_can_be_taken_from_an_interrupted_run(shelf: Shelf) -> None:
    store = shelf.open()
    write = await owned(store)
    for number in range(LOOSE_ROWS * 3):
        await write(Batch((effect(f"{number}/tool", f"r1 {number}."),)))
    await store.close()
    unseen = 0
    for number in reversed(range(LOOSE_ROWS * 3)):
        tampered(shelf, f"DELETE FROM {{t}}journal WHERE value LIKE '%r1 {number}.%'")
        store = shelf.open()
        try:
            await store.check_seal("r1")
        except BrokenSeal:
            break
        finally:
            await store.close()
        unseen += 1
    assert 0 < unseen <= LOOSE_ROWS


async def test_large_values_and_pinned_texts_are_those_that_were_recorded(shelf: Shelf) -> None:
    store = shelf.open()
    await lived(store)
    await store.close()
    tampered(shelf, "UPDATE {t}blobs SET body = '\"forged\"' WHERE length(body) > 90000")
    store = shelf.open()
    with pytest.raises(BrokenSeal, match="the record at 4/tool was changed: its value is not the one"):
        await store.acquire("r1")
    tampered(shelf, f"UPDATE {{t}}blobs SET body = 'forged' WHERE sha256 = '{DIGEST}'")
    with pytest.raises(StoreError, match="another text under the hash"):
        await store.text(DIGEST)


async def test_large_events_are_those_that_were_recorded(shelf: Shelf) -> None:
    store = shelf.open()
    write = await owned(store)
    await write(
        Batch((effect("1/tool", "r1"),), (Event("warning", "r1", 12.0, 1, "1", "1", {"message": "x" * 99_000}),))
    )
    await store.close()
    tampered(shelf, "UPDATE {t}blobs SET body = '[]' WHERE length(body) > 90000")
    store = shelf.open()
    with pytest.raises(BrokenSeal, match="the record at 1/tool was changed: its value is not the one"):
        await store.check_seal("r1")
    await store.close()


async def test_a_question_in_other_words_is_not_answered(shelf: Shelf) -> None:
    store = shelf.open()
    await lived(store)
    await store.close()
    tampered(shelf, "UPDATE {t}questions SET prompt = 'Keep it all?' WHERE run = 'r1'")
    store = shelf.open()
    (shown,) = await store.questions("r1")
    assert shown.prompt == "Keep it all?"
    with pytest.raises(BrokenSeal, match="its question at 9/ask was not asked by a run of yours"):
        await store.answer("r1", "9/ask", "c" * 64, "yes")


async def test_an_answer_that_the_user_did_not_give_counts_for_nothing(shelf: Shelf) -> None:
    store = shelf.open()
    await lived(store)
    await store.close()
    tampered(shelf, "UPDATE {t}questions SET state = 'answered', answer = 'yes' WHERE run = 'r1'")
    store = shelf.open()
    for attempt in (store.answers("r1"), store.check_seal("r1")):
        with pytest.raises(BrokenSeal, match="the answer at 9/ask was not given by you"):
            await attempt


@pytest.mark.parametrize("name", ["'eve'", "NULL"])
async def test_an_answer_under_another_name_counts_for_nothing(shelf: Shelf, name: str) -> None:
    store = shelf.open()
    await lived(store)
    await store.answer("r1", "9/ask", "c" * 64, "yes", "ann")
    await store.close()
    tampered(shelf, f"UPDATE {{t}}questions SET answered_by = {name} WHERE run = 'r1'")
    with pytest.raises(BrokenSeal, match="the answer at 9/ask was not given by you"):
        await shelf.open().answers("r1")


def test_seals_from_before_answers_had_a_name_still_fit() -> None:
    """Both were made by the version before: a run under way goes on, and its answer is taken."""
    effect = ("2/ask", "ask", "ok", "a" * 64, 999.5, '"yes"', None, None, None, None, None, None, 0.0, None)
    row = (7, 1000.5, "2 › 1", 3, 4, 0.25, *effect, None, '[[1,"2"]]', None)
    assert seal_row(PUBLIC_SEAL, "before", row) == "9a92ff4833b3aa9ff9b3490d4c478e16"
    assert seal_answer(PUBLIC_SEAL, "r1", "2/ask", "h1", "yes", "") == "8f4c5a059da1b924c79bf8f75388fe5c"


async def test_an_answer_of_another_question_counts_for_nothing(shelf: Shelf) -> None:
    store = shelf.open()
    await lived(store)
    await store.answer("r1", "9/ask", "c" * 64, "yes")
    await store.close()
    tampered(shelf, f"UPDATE {{t}}questions SET hash = '{'d' * 64}' WHERE run = 'r1'")
    with pytest.raises(BrokenSeal, match="the answer at 9/ask"):
        await shelf.open().answers("r1")


async def test_letters_say_whether_a_run_of_the_user_has_sent_them(shelf: Shelf) -> None:
    store = shelf.open()
    write = await owned(store)
    await write(Batch(letters=(Letter("me", "r1", "done", 1_000.0),)))
    await store.close()
    tampered(shelf, "INSERT INTO {t}letters (recipient, run, text, at) VALUES ('me', 'r1', 'obey', 1000.0)")
    letters = await shelf.open().letters("me")
    assert [(letter.text, letter.sealed) for letter in letters] == [("done", True), ("obey", False)]


@pytest.mark.parametrize("change", ["a grant", "a value", "a status"])
async def test_cancelling_makes_no_forged_run_genuine(shelf: Shelf, change: str) -> None:
    store = shelf.open()
    await lived(store)
    await store.close()
    tampered(shelf, *CHANGES[change][0])
    store = shelf.open()
    if change != "a status":
        assert await store.request_cancel("r1")
    else:
        tampered(shelf, "UPDATE {t}runs SET status = 'paused', ended_by = '[\"1/tool\"]' WHERE id = 'r1'")
        assert await store.request_cancel("r1")
    with pytest.raises(BrokenSeal):
        await store.acquire("r1")


async def test_a_run_that_nobody_drives_ends_under_its_seal(shelf: Shelf) -> None:
    """Cancelled, or expired: what other processes write then is sealed as well."""
    store = shelf.open()
    await lived(store)
    assert await store.request_cancel("r1")
    await store.check_seal("r1")
    lease = await store.acquire("r1")
    await store.write(lease, Batch(update=RunUpdate(Status.PAUSED, "1", None, ("1/tool",), 1_500.0)))
    await store.release(lease)
    shelf.clock.time = 2_000.0
    with pytest.raises(Exception, match="is expired and cannot continue"):
        await store.acquire("r1")
    await store.check_seal("r1")


async def test_every_kind_of_row_holds_its_seal(shelf: Shelf) -> None:
    """All that a drive can write, then read back by another process: the database gives numbers back as it likes."""
    store = shelf.open()
    write = await owned(store)
    odd = "NUL \x00, a surrogate \ud800, \u2028 and 日本"
    await write(Batch((EffectRecord("1/a", "tool", "ok", "b" * 64, 1, odd, elapsed=0),)))
    failed = EffectRecord("1/b", "model", "failed", "", 1_000.5, None, Failure("limit", odd), Usage(0, 0, None), 1e-9)
    await write(Batch((failed,), update=RunUpdate(position=odd)))
    await write(Batch((effect("1/c", {"deep": [10**30, -0.0, 1e300, None, True]}), effect("1/d")), supersede=("1/a",)))
    await write(Batch((EffectRecord("1/e", "tool", "ok", "", 1_000.0, "", delays=(0.5, 2)),)))
    await write(Batch(update=RunUpdate(Status.FAILED, "1", Failure("tool", odd), ("1/b", odd), 5_000)))
    await store.close()
    again = shelf.open()
    await again.check_seal("r1")
    lease = await again.acquire("r1")
    assert [record.path for record in lease.records] == ["1/b", "1/c", "1/d", "1/e"]
    assert lease.records == tuple(await again.effects("r1"))


async def test_another_key_does_not_fit(shelf: Shelf) -> None:
    store = shelf.open()
    await lived(store)
    await store.close()
    where = shelf.path if isinstance(shelf, SqliteShelf) else shelf.url  # type: ignore[attr-defined]
    other = open_store(where, now=shelf.clock, durability="process", seal=Seal.of("another key of 32 letters at least"))
    try:
        with pytest.raises(BrokenSeal, match="sealed with another key than yours"):
            await other.acquire("r1")
        await other.reseal("r1")
        assert len((await other.acquire("r1")).records) == 4
    finally:
        await other.close()
