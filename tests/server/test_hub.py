"""The hub: each event of a run reaches a subscriber, even if it is told before it is written or a read fails."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, cast

import pytest

from quire.engine.records import Event, RunRow, Status
from quire.errors import StoreError
from quire.server.hub import Changed, Hub, Subscription

if TYPE_CHECKING:
    from quire.server.hub import Changes

pytestmark = pytest.mark.asyncio(loop_scope="session")

EVENTS = [Event(type, "r", 0.0, seq) for seq, type in enumerate(("run_started", "effect", "run_completed"), 1)]


class Writes:
    """A store as the hub sees it. Each entry of `meanwhile` happens while one read waits for its answer."""

    seconds = 0.25

    def __init__(self) -> None:
        self.status = Status.RUNNING
        self.written: list[Event] = []
        self.meanwhile: list[Callable[[], None]] = []

    async def since_last(self, touched: Collection[str]) -> Changed:
        rows = {
            run: RunRow(run, "", "playbook", "", self.status, "", 0, 0, None, 0, 0, 0, None, (), 1, {})
            for run in touched
        }
        self._wait()
        return Changed(rows)

    async def events(self, run: str, after: int) -> Sequence[Event]:
        events = [event for event in self.written if event.seq > after]
        self._wait()
        return events

    async def last_event(self, run: str) -> int:
        return self.written[-1].seq if self.written else 0

    def _wait(self) -> None:
        if self.meanwhile:
            self.meanwhile.pop(0)()

    def write(self, hub: Hub, *events: Event) -> None:
        self.written += events
        hub.written(events)


def hub_of(store: Writes, report: Callable[[str], None] = pytest.fail) -> Hub:
    return Hub(cast("Changes", store), report, 10)


async def joined(hub: Hub) -> Subscription:
    one = hub.join({"r": 0}, whole=True)
    await hub.catch_up(one)
    return one


def waiting(one: Subscription) -> list[str]:
    return [frame.event for frame in one._frames if frame.id]


async def test_an_event_has_a_number_only_once_it_is_written() -> None:
    """reliability G2: a number of an event that is lost with its process is given to another event."""
    store = Writes()
    hub, (started, effect, _) = hub_of(store), EVENTS
    one = await joined(hub)
    hub.listen(started)
    hub.listen(effect)
    (first, second) = [(frame.id, frame.data) for frame in one._frames]
    assert first == ("", {"type": "run_started", "run": "r", "at": 0.0, "provisional": True})
    assert second == ("", {"type": "effect", "run": "r", "at": 0.0, "provisional": True})
    store.write(hub, started, effect)
    assert [(frame.id, frame.data) for frame in list(one._frames)[2:]] == [
        ("r:1", started.as_json()),
        ("r:2", effect.as_json()),
    ]
    await hub._look()
    assert waiting(one) == ["run_started", "effect"]


async def test_events_between_two_commits_are_read_for_a_client_that_comes_then() -> None:
    store = Writes()
    hub, (started, effect, completed) = hub_of(store), EVENTS
    store.meanwhile = [lambda: store.write(hub, started)]  # written after the read of the new subscriber
    one = await joined(hub)
    assert waiting(one) == ["run_started"]
    store.written.append(effect)  # by a process that is not told of here
    store.write(hub, completed)
    assert waiting(one) == ["run_started"]
    await hub._look()
    assert waiting(one) == ["run_started", "effect", "run_completed"]


async def test_the_last_write_of_a_cancelled_drive_is_read_when_the_run_rests() -> None:
    store = Writes()
    hub = hub_of(store)
    one = await joined(hub)
    for event in EVENTS:
        hub.listen(event)
    store.written, store.status = EVENTS, Status.PAUSED
    await hub._look()
    assert waiting(one) == ["run_started", "effect", "run_completed"]


@pytest.mark.parametrize("reads", [0, 1])
async def test_a_read_that_failed_is_made_again(reads: int) -> None:
    store = Writes()
    hub = hub_of(store)

    def fail() -> None:
        raise StoreError("the disk is away")

    one = await joined(hub)
    store.written, store.status = EVENTS, Status.COMPLETED
    hub.listen(EVENTS[2])
    store.meanwhile = [*[lambda: None] * reads, fail]
    with pytest.raises(StoreError):
        await hub._look()
    await hub._look()
    assert waiting(one) == ["run_started", "effect", "run_completed"]


async def test_a_mistake_of_ours_is_reported_once_and_later_changes_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.server.hub.SECONDS_AFTER_TROUBLE", 0)
    monkeypatch.setattr("quire.server.hub.SECONDS_TO_COLLECT", 0)
    store, reported, mistakes = Writes(), list[str](), 3
    store.seconds = 0.0
    hub = hub_of(store, reported.append)

    def fail() -> None:
        raise KeyError("a row without a column")

    one = await joined(hub)
    store.meanwhile = [fail] * mistakes
    store.written, store.status = EVENTS, Status.COMPLETED
    hub.listen(EVENTS[2])
    watching = asyncio.create_task(hub.watch())
    frames = one.frames()
    async with asyncio.timeout(10):
        seen = [await anext(frames)]
        while (seen[-1].event, seen[-1].data) != ("store", {"error": ""}):
            seen.append(await anext(frames))
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    (report,) = reported
    assert "a row without a column" in report and "Traceback" in report
    assert [frame.event for frame in seen if frame.id] == ["run_started", "effect", "run_completed"]
    troubles = [frame.data["error"] for frame in seen if frame.event == "store" and isinstance(frame.data, dict)]
    assert len(troubles) == 2 and "a mistake of Quire" in str(troubles[0])
