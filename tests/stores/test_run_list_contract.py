"""What every store does with the list of runs: pages from the newest to the oldest, filters, counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from quire.engine.ports import Store
from quire.engine.records import Batch, EffectRecord, Lease, NewRun, Question, RunUpdate, Status, Usage
from quire.engine.requests import Failure
from quire.errors import NoSuchRun
from quire.stores import run_pages
from quire.stores.contract import History, Spent
from quire.stores.run_pages import RunFilters, Sort, cursor, read_cursor, with_subject, words_of

if TYPE_CHECKING:
    from tests.stores.conftest import Shelf

pytestmark = pytest.mark.lasting_store("it has no server that would list its runs in pages")


async def made(store: Store, id: str, at: float, status: Status = Status.PENDING, **more: Any) -> None:
    """Create a run; a status other than `pending` is that of a run that was driven there."""
    pins: dict[str, Any] = {
        "model": "script:needle",
        "inputs": more.get("inputs", {}),
        "origin": more.get("origin", {}),
    }
    run = NewRun(
        id, more.get("title", "A title"), more.get("format", "playbook"), more.get("document", "a.md"), at, pins, {}
    )
    await store.create(run)
    if status is Status.PENDING:
        return
    lease = await store.acquire(id)
    asked = [Question(id, "2/ask", "2", "", "confirm", "?", (), None, "h", 1.0)] if more.get("asks") else []
    failure = Failure("model", more["error"]) if "error" in more else None
    await store.write(
        lease,
        Batch(questions=tuple(asked), update=RunUpdate(status, failure=failure, expires_at=more.get("expires_at"))),
    )
    if status is not Status.RUNNING or more.get("orphan"):
        await store.release(lease)


async def ids(store: Store, **filters: Any) -> list[str]:
    return [row.id for row in (await store.page(RunFilters(**filters))).rows]


async def test_pages_follow_each_other_while_runs_come_and_go(store: Store) -> None:
    for number in range(7):
        # Several runs of one moment: their number decides.
        await made(store, f"r{number}", 100.0 + number // 3)
    pages = store
    first = await pages.page(RunFilters(), limit=3)
    assert [row.id for row in first.rows] == ["r6", "r5", "r4"]
    await made(store, "new", 500.0)
    second = await pages.page(RunFilters(), first.next, limit=3)
    assert [row.id for row in second.rows] == ["r3", "r2", "r1"]
    third = await pages.page(RunFilters(), second.next, limit=3)
    assert ([row.id for row in third.rows], third.next) == (["r0"], None)
    assert (await pages.page(RunFilters(), limit=8)).next is None
    assert await pages.page(RunFilters(), limit=8) == replace(
        await pages.page(RunFilters(), limit=100), rows=list(await store.list(limit=100))
    )


async def test_an_empty_store_has_an_empty_page(store: Store) -> None:
    assert await ids(store) == []
    assert await ids(store, statuses=tuple(Status), words=("x",), origin="r", asks=True, document="d", since=1.0) == []
    assert set((await store.counts(RunFilters())).values()) == {0}


STATUSES: dict[str, tuple[Status, dict[str, Any]]] = {
    "pending": (Status.PENDING, {}),
    "running": (Status.RUNNING, {}),
    "interrupted": (Status.RUNNING, {"orphan": True}),
    "paused": (Status.PAUSED, {}),
    "waits": (Status.AWAITING_INPUT, {"expires_at": 2_000.0, "asks": True}),
    "overdue": (Status.AWAITING_INPUT, {"expires_at": 900.0, "asks": True}),
    "expired": (Status.EXPIRED, {}),
    "done": (Status.COMPLETED, {}),
    "failed": (Status.FAILED, {"error": "no connection"}),
    "cancelled": (Status.CANCELLED, {}),
}


async def test_the_status_is_the_one_that_is_shown(store: Store, shelf: Shelf) -> None:
    for number, (id, (status, more)) in enumerate(STATUSES.items()):
        await made(store, id, float(number), status, **more)
    other = shelf.open()
    for status in Status:
        assert await ids(other, statuses=(status,)) == [row.id for row in await other.list(status=status)], status
    assert await ids(other, statuses=(Status.EXPIRED,)) == ["expired", "overdue"]
    assert await ids(other, statuses=(Status.RUNNING, Status.FAILED)) == ["failed", "running"]
    assert await ids(other, statuses=(Status.INTERRUPTED, Status.RUNNING)) == ["interrupted", "running"]
    assert await ids(other, asks=True) == ["waits"]
    counts = await other.counts(RunFilters(statuses=(Status.PAUSED,)))
    assert counts == {status: 2 if status is Status.EXPIRED else 1 for status in Status}
    assert await other.count(RunFilters(statuses=(Status.EXPIRED, Status.PAUSED))) == 3


async def test_counts_end_somewhere(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_pages, "MOST_COUNTED", 2)
    for number in range(5):
        await made(store, f"r{number}", 1.0)
    assert (await store.counts(RunFilters()))[Status.PENDING] == 3


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"document": "notes/b.yaml"}, ["two"]),
        ({"document": "b.yaml"}, ["two"]),
        ({"document": "otes/b.yaml"}, []),
        ({"format": "pipeline"}, ["two"]),
        ({"since": 20.0}, ["three", "two"]),
        ({"origin": "one"}, ["three"]),
        ({"origin": "two"}, []),
        ({"words": ("RELEASE",)}, ["one"]),
        ({"words": ("release", "notes")}, ["one"]),
        ({"words": ("release", "swiss")}, []),
        ({"words": ("swiss",)}, ["two"]),
        ({"words": ("thr",)}, ["three"]),
        ({"words": ("refused",)}, ["three"]),
        ({"words": ("100%",)}, ["two"]),
        ({"words": ("1_0%",)}, []),
        ({"words": ('"quoted"',)}, ["two"]),
        ({"words": ("back\\slash",)}, ["two"]),
        # The model and the names in the pins are not what a user searches for.
        ({"words": ("needle",)}, []),
        ({"words": ("inputs",)}, []),
        ({"format": "playbook", "words": ("release",), "since": 5.0}, ["one"]),
    ],
)
async def test_filters(store: Store, filters: dict[str, Any], found: list[str]) -> None:
    await made(store, "one", 10.0, title="Release notes")
    inputs = {"text": 'Swiss cards, 100% "quoted" back\\slash', "long": "x" * 100_000}
    await made(store, "two", 20.0, format="pipeline", document="/home/me/notes/b.yaml", inputs=inputs)
    await made(store, "three", 30.0, Status.FAILED, error="Connection refused", origin={"run": "one", "step": "two"})
    assert await ids(store, **filters) == found


async def restored(store: Store, id: str, at: float, took: float = 0.0, cost: float | None = 0.0, **more: Any) -> None:
    """Create a completed run with the time that it took and its cost."""
    run = NewRun(id, id, "playbook", "a.md", at, {"inputs": {}, **more.pop("pins", {})}, {}, **more)
    record = EffectRecord("1/model", "model", "ok", "h", at, "x", usage=Usage(1, 1, cost))
    await store.restore(run, History(RunUpdate(Status.COMPLETED), (record,), (), at + took, cost=cost))


ORDERS: dict[Sort, list[str]] = {
    "started": ["f", "e", "d", "c", "b", "a"],
    "took": ["b", "e", "d", "a", "f", "c"],
    "cost": ["a", "e", "c", "b", "f", "d"],
    "subject": ["c", "f", "b", "e", "a", "d"],
}


@pytest.mark.parametrize("sort", ORDERS)
@pytest.mark.parametrize("limit", [1, 2, 5, 100])
async def test_pages_follow_each_other_in_every_order(store: Store, sort: Sort, limit: int) -> None:
    """Runs that are alike follow by their numbers, and one whose price is not known costs least."""
    took = {"a": 3.0, "b": 9.5, "c": 0.1, "d": 4.0, "e": 4.0, "f": 0.3}
    cost = {"a": 0.7, "b": 0.1, "c": 0.25, "d": None, "e": 0.25, "f": 0.0}
    subject = {"a": "Zoo", "b": "tea", "c": "a ä, 100% _ & / : ?", "d": "zoo x", "e": "zoo", "f": "Tea"}
    for number, id in enumerate("abcdef"):
        await restored(store, id, 10.0 + number, took[id], cost[id], subject=subject[id])
    pages, found, after = store, list[str](), None
    while True:
        page = await pages.page(RunFilters(), after, limit, sort)
        found += [row.id for row in page.rows]
        after = page.next
        if after is None:
            break
        for other in ORDERS.keys() - {sort}:
            with pytest.raises(ValueError, match="cursor"):
                await pages.page(RunFilters(), after, limit, other)
    assert found == ORDERS[sort]


async def test_runs_by_cost_and_time_and_tries(store: Store) -> None:
    await restored(store, "cheap", 1.0, 2.0, 0.01)
    await restored(store, "dear", 2.0, 60.0, 0.8)
    await restored(store, "unknown", 3.0, 30.0, None)
    await restored(store, "try", 4.0, 90.0, 0.9, pins={"until": "2"})
    assert await ids(store, min_cost=0.5) == ["dear"]
    assert await ids(store, min_cost=0.5, tries=True) == ["try", "dear"]
    assert await ids(store, min_took=30.0) == ["unknown", "dear"]
    assert await store.count(RunFilters()) == 3
    assert replace(await store.spent(0.0), cost=0.0) == Spent(3, 0.0, 1, 3, 0)
    assert (await store.spent(0.0)).cost == pytest.approx(1.71)
    assert await store.spent(2.0, 3.0) == Spent(1, 0.8, 0, 1, 0)
    row = await store.get("try")
    assert row and row.until == "2"


async def test_names_and_notes_change_nothing_else(store: Store, shelf: Shelf) -> None:
    """A label is written while the run is driven, by another process too."""
    await made(store, "r", 1.0, Status.RUNNING, title="Report")
    lease = Lease("r", 1, 0, frozenset())
    before = await store.get("r")
    shelf.clock.time += 50
    other = shelf.open()
    await other.label("r", {"name": "the one we sent", "note": "line 1\nline 2"})
    await other.label("r", {"seen_at": 5.0})
    row = await store.get("r")
    assert before and row == replace(before, name="the one we sent", note="line 1\nline 2", seen_at=5.0)
    assert row.label == "the one we sent"
    for word in ("SENT", "line 2"):
        assert await ids(store, words=words_of(word)) == ["r"]
    await store.write(lease, Batch(update=RunUpdate(Status.COMPLETED)))
    await store.release(lease)
    await store.check_seal("r")
    await other.label("r", {"name": None})
    assert (await other.named(["r", "none"]))[0].label == before.subject
    with pytest.raises(NoSuchRun):
        await other.label("none", {"name": "x"})


async def test_a_subject_is_stored_with_the_run(store: Store) -> None:
    for number, service in enumerate(["search", "login", "login"]):
        inputs = {"kind": "incident", "service": service}
        run = NewRun(f"r{number}", "T", "playbook", "a.md", float(number), {"inputs": inputs}, {})
        await store.create(await with_subject(store, run))
    assert [row.subject for row in await store.list()] == ["login · incident"] * 2 + ["incident · search"]
    assert await ids(store, words=("login", "incident")) == ["r2", "r1"]
    large = {"text": "x" * 100_000}
    await store.create(NewRun("large", "T", "playbook", "b.md", 9.0, {"inputs": large}, {}))
    assert await store.recent_inputs("b.md", 5) == []


async def test_waits_of_people_and_runs_without_pins(store: Store, shelf: Shelf) -> None:
    await made(store, "asks", 1.0, Status.FAILED, asks=True, error="no connection")
    await made(store, "waits", 2.0, Status.AWAITING_INPUT, asks=True)
    assert await store.waited(0.0) == []
    await store.answer("waits", "2/ask", "h", "yes")
    lease = await store.acquire("waits")
    answered = EffectRecord("2/ask", "ask", "ok", "h", 43.5, "yes")
    await store.write(lease, Batch((answered,), consume=("2/ask",), update=RunUpdate(Status.RUNNING)))
    assert await store.waited(0.0) == [(1.0, 42.5)] and await store.waited(2.0) == []
    bare = await shelf.open().page(RunFilters(), pins=False)
    assert [replace(row, pins={}) for row in await store.list()] == bare.rows


def test_cursors_are_read_or_refused() -> None:
    for place in ((0.0, 1), (1_763_331_732.123_456, 10**12), (1e-5, 3), (3e16, 4)):
        assert read_cursor(cursor(*place)) == place
    for text in (
        "",
        "1.0",
        "1.0_",
        "_1",
        "1.0_x",
        "nan_1",
        "1.0_1; DROP TABLE runs",
        "١_1",
        "1.0_" + "9" * 30,
        "1.2.3_4",
    ):
        with pytest.raises(ValueError, match=r"cursor|float"):
            read_cursor(text)


def test_words_of_a_search_box() -> None:
    assert words_of("  two  words\n") == ("two", "words")
    assert len(words_of("w " * 50)) == run_pages.MOST_WORDS
