"""What every store does with the list of runs: pages from the newest to the oldest, filters, counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from quire.engine.ports import Store
from quire.engine.records import Batch, NewRun, Question, RunUpdate, Status
from quire.engine.requests import Failure
from quire.stores import run_pages
from quire.stores.run_pages import RunFilters, cursor, lister, read_cursor, words_of

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
    return [row.id for row in (await lister(store).page(RunFilters(**filters))).rows]


async def test_pages_follow_each_other_while_runs_come_and_go(store: Store) -> None:
    for number in range(7):
        # Several runs of one moment: their number decides.
        await made(store, f"r{number}", 100.0 + number // 3)
    pages = lister(store)
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
    assert set((await lister(store).counts(RunFilters())).values()) == {0}


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
    counts = await lister(other).counts(RunFilters(statuses=(Status.PAUSED,)))
    assert counts == {status: 2 if status is Status.EXPIRED else 1 for status in Status}
    assert await lister(other).count(RunFilters(statuses=(Status.EXPIRED, Status.PAUSED))) == 3


async def test_counts_end_somewhere(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_pages, "MOST_COUNTED", 2)
    for number in range(5):
        await made(store, f"r{number}", 1.0)
    assert (await lister(store).counts(RunFilters()))[Status.PENDING] == 3


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
