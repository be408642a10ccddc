"""A run told again with other times, as if its models had been slow and its people had been away for hours."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from quire.engine.records import EffectRecord, Event, NewRun, RunUpdate
from quire.runs.runtime import Runtime
from quire.stores.contract import History

MODEL_SECONDS = 8.0


async def retold(runtime: Runtime, run: str, id: str, waits: Mapping[str, float]) -> str:
    """Copy a run under another id. Each call of a model takes some seconds, and each question in `waits`, by its path,
    was open for so many seconds."""
    store = runtime.store
    row = await store.get(run)
    assert row is not None
    begun = row.created_at - sum(waits.values()) - 1000
    now = begun
    effects: list[EffectRecord] = []
    events: list[Event] = []
    times: dict[str, tuple[float, float]] = {}
    for number, record in enumerate(await store.effects(run)):
        lasted = waits.get(record.path, 0.0) if record.kind == "ask" else MODEL_SECONDS * (0.4 + number % 5 * 0.3)
        times[record.path] = now, now + lasted
        at, elapsed = (now + lasted, 0.0) if record.kind == "ask" else (now, lasted)
        effects.append(replace(record, at=at, elapsed=elapsed))
        now += lasted
    at = begun
    for event in await store.events(run, 0):
        if event.path in times and event.type == "effect":
            asked, at = times[event.path]
            if event.path in waits:
                events.append(Event("question", id, asked, len(events) + 1, event.path, event.way, {}))
        told = next((one for one in effects if event.type == "effect" and one.path == event.path), None)
        events.append(replace(event, run=id, at=at, seq=len(events) + 1, record=told))
    texts = {str(row.pins["document"]): await store.text(str(row.pins["document"]))}
    update = RunUpdate(row.status, row.position, row.failure, row.ended_by)
    history = History(update, effects, events, now, row.input_tokens, row.output_tokens, row.cost)
    await store.restore(NewRun(id, row.title, row.format, row.document, begun, row.pins, texts), history)
    return id
