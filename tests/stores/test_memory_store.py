"""The SQLite store in memory, beyond the contract: values that neither writer nor reader can change, lost owners."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.stores.test_store_contract import effect, event, new_run, owned, question, status_of, waiting

from quire.engine.records import Batch, RunUpdate, Status
from quire.errors import StoreError
from quire.stores.contract import Marks
from quire.stores.sqlite.in_memory import Memory, MemoryStore


async def test_a_value_cannot_be_changed_by_its_writer_or_a_reader() -> None:
    store = MemoryStore()
    value: dict[str, Any] = {"text": "as it was", "parts": [1, (2, 3)]}
    data: dict[str, Any] = {"parts": [1]}
    pins: dict[str, Any] = {"inputs": {"a": [1]}}
    await store.create(replace(new_run(), pins=pins))
    lease = await store.acquire("r1")
    await store.write(lease, Batch(effects=(replace(effect(), value=value),), events=(replace(event(1), data=data),)))
    for written in (value["parts"], data["parts"], pins["inputs"]["a"]):
        written.append("changed")
    for _ in range(2):
        (record,), (kept,), row = await store.effects("r1"), await store.events("r1"), await store.get("r1")
        assert row is not None
        found: Any = record.value, kept.data, row.pins
        # As from a file, also in that a tuple comes back as a list.
        assert found == ({"text": "as it was", "parts": [1, [2, 3]]}, {"parts": [1]}, {"inputs": {"a": [1]}})
        for read in (found[0]["parts"], found[1]["parts"]):
            read.clear()


async def test_data_outlive_the_owners_that_are_lost() -> None:
    memory = Memory()
    first = MemoryStore(memory)
    lease = await owned(first)
    await first.write(lease, Batch(effects=(effect(),), update=RunUpdate(Status.RUNNING)))
    memory.lose_owners()
    second = MemoryStore(memory)
    assert await status_of(second) is Status.INTERRUPTED
    assert [record.path for record in (await second.acquire("r1")).records] == ["1/model"]


async def test_memories_share_nothing() -> None:
    await owned(MemoryStore())
    assert await MemoryStore().get("r1") is None


async def test_a_memory_that_is_closed_leaves_nothing_to_the_next_one() -> None:
    memory = Memory()
    store = MemoryStore(memory)
    lease = await owned(store)
    await store.write(lease, Batch(effects=(effect(),), events=(event(1),), questions=(question("3/ask"),)))
    used = memory.connection
    assert used is not None
    tables = [name for (name,) in used.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        await store.get("r1")
    assert [name for name in tables if used.execute(f"SELECT 1 FROM {name}").fetchone()] == []
    assert await MemoryStore().get("r1") is None
    assert (await owned(MemoryStore())).epoch == 1


async def test_a_closed_store_refuses_to_read_and_to_write() -> None:
    store = MemoryStore()
    await store.close()
    for verb in (store.get, store.effects, store.acquire, store.letters):
        with pytest.raises(StoreError, match="closed"):
            await verb("r1")


async def test_two_looks_at_an_unchanged_store_see_the_same() -> None:
    time = [50.0]
    store = MemoryStore(now=lambda: time[0])
    assert await store.marks() == Marks()
    await waiting(store, at=20.0)
    assert await store.marks() == Marks(1, 1, 20.0)
    assert [row.id for row in await store.written_since(50.0)] == ["r1"]
    assert list(await store.written_since(51.0)) == []
    lease = await store.acquire("r1")
    await store.write(lease, Batch(questions=(question("3/ask", at=30.0),), update=RunUpdate(Status.RUNNING)))
    assert await store.marks() == Marks(1, 2, 30.0)
    assert [row.status for row in await store.written_since(51.0)] == [Status.RUNNING]
