"""Parts of a journal, in every store: effects without values, one effect, events from both ends."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.stores.test_store_contract import effect, event, owned

from quire.engine.ports import Store
from quire.engine.records import Batch, EffectRecord, Event, Usage
from quire.engine.requests import Failure
from quire.values import encode

pytestmark = pytest.mark.lasting_store("it has no server that would show pages of journals")


async def test_effects_come_without_values_and_with_their_sizes(store: Store) -> None:
    lease = await owned(store)
    failed = replace(effect("2/tool"), state="failed", value=None, failure=Failure("tool", "no"))
    records = [
        replace(effect("1/model", "é" * 10), usage=Usage(3, 4, None), elapsed=1.25, delays=(0.5,)),
        failed,
        effect("3/model", "x" * 100_000),
        replace(effect("4/ask"), kind="ask", by="ada"),
    ]
    for record in records:
        await store.write(lease, Batch(effects=(record,)))
    found = await store.journal().effects("r1")
    assert [one.record for one in found] == [replace(record, value=None) for record in records]
    sizes = [None if record.value is None else len(encode(record.value).encode()) for record in records]
    assert [one.size for one in found] == sizes
    assert sizes[2] == 100_002


async def test_the_last_record_of_a_path_counts_and_a_superseded_one_does_not(store: Store) -> None:
    lease = await owned(store)
    intent = replace(effect("1/tool"), state="intent", value=None)
    for batch in (
        Batch(effects=(intent,)),
        Batch(effects=(effect("2/model"),)),
        Batch(effects=(effect("1/tool", "done"),)),
        Batch(supersede=("2/model",), effects=(effect("3/model"),)),
    ):
        await store.write(lease, batch)
    pages = store.journal()
    assert [(one.record.path, one.record.state) for one in await pages.effects("r1")] == [
        ("1/tool", "ok"),
        ("3/model", "ok"),
    ]
    assert await pages.effect("r1", "1/tool") == effect("1/tool", "done")
    assert await pages.effect("r1", "2/model") is None
    assert await pages.effect("r1", "9/model") is None
    assert await pages.effects("other") == []


def told(seq: int, record: EffectRecord) -> Event:
    return Event("effect", "r1", record.ended_at, seq, record.path, "1", record.told(), {}, False, record)


async def many(store: Store) -> None:
    """Write 30 events in rows of one, several and very many."""
    lease = await owned(store)
    seq = 0
    for size in (1, 4, 1, 9, 2, 12, 1):
        numbers = range(seq + 1, seq + size + 1)
        seq += size
        await store.write(lease, Batch(events=tuple(event(number, path=str(number)) for number in numbers)))
        record = effect(f"{seq}/model")
        await store.write(lease, Batch(effects=(record,)))


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        ({"after": 0, "limit": 3}, [1, 2, 3]),
        ({"after": 7, "limit": 12}, list(range(8, 20))),
        ({"after": 28}, [29, 30]),
        ({"after": 30}, []),
        ({"limit": 4}, [27, 28, 29, 30]),
        ({"limit": 1}, [30]),
        ({}, list(range(1, 31))),
        ({"before": 10, "limit": 3}, [7, 8, 9]),
        ({"before": 7, "limit": 100}, list(range(1, 7))),
        ({"before": 1}, []),
        ({"before": 1000, "limit": 2}, [29, 30]),
    ],
)
async def test_events_from_both_ends(store: Store, asked: dict[str, int], numbers: list[int]) -> None:
    await many(store)
    found = await store.journal().event_page("r1", **asked)
    assert [one.seq for one in found] == numbers


async def test_an_event_page_holds_what_the_whole_list_holds(store: Store) -> None:
    lease = await owned(store)
    for seq in range(1, 6):
        record = effect(f"{seq}/model", usage=Usage(1, 2, 0.5))
        await store.write(lease, Batch(effects=(record,), events=(told(seq, record),)))
    assert await store.journal().event_page("r1", after=2) == list(await store.events("r1", 2))


async def test_rows_that_outrun_their_numbers_are_found(store: Store) -> None:
    """Thousands of rows without an event push the next rows behind the place that their numbers would have."""
    lease = await owned(store)
    await store.write(lease, Batch(events=(event(1),)))
    paths = tuple(f"{number}/model" for number in range(9000))
    await store.write(lease, Batch(supersede=paths))
    for seq in range(2, 8):
        await store.write(lease, Batch(events=(event(seq),)))
    pages = store.journal()
    assert [one.seq for one in await pages.event_page("r1", before=3, limit=5)] == [1, 2]
    assert [one.seq for one in await pages.event_page("r1", after=2, limit=2)] == [3, 4]
