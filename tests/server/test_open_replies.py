"""Replies under way: a listener that comes late reads them from their first letter, and none is kept for too long."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.served import served
from tests.server.test_event_streams import TWO, Received, following

from quire.engine.records import Event
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.server.open_replies import MOST_OF_CALL, MOST_OF_RUN, OpenReplies

pytestmark = pytest.mark.asyncio(loop_scope="session")


def delta(text: str, path: str = "1/model", run: str = "r") -> Event:
    return Event("delta", run, 1.0, 0, path, "1", {}, {"text": text})


def told(replies: OpenReplies, run: str = "r") -> list[dict[str, Any]]:
    return [dict(event.live) for event in replies.deltas(run)]


async def next_delta(frames: AsyncIterator[Received]) -> Received:
    while (frame := await anext(frames)).event != "delta":
        pass
    return frame


async def test_offsets_count_the_characters_before() -> None:
    replies = OpenReplies()
    offsets = [replies.take(delta(text)).live["offset"] for text in ("One ", "two ", "three")]
    assert offsets == [0, 4, 8]
    assert replies.take(delta("x", "2/model")).live["offset"] == 0
    assert told(replies) == [{"text": "One two three", "offset": 0}, {"text": "x", "offset": 0}]


async def test_a_reply_is_dropped_at_its_end_and_begun_again() -> None:
    replies = OpenReplies()
    replies.take(delta("One "))
    replies.take(Event("retry", "r", 1.0, 0, "1/model"))
    assert told(replies) == []
    assert replies.take(delta("Two ")).live["offset"] == 0
    replies.take(Event("effect", "r", 1.0, 1, "1/model"))
    assert told(replies) == [] and replies.text("r", "1/model") is None
    replies.take(delta("Three "))
    replies.take(Event("run_cancelled", "r", 1.0, 2))
    assert told(replies) == []


async def test_the_beginning_of_a_long_reply_is_cut() -> None:
    replies = OpenReplies()
    for _ in range(MOST_OF_CALL // 1000 + 5):
        replies.take(delta("x" * 1000))
    assert told(replies) == [{"text": "x" * MOST_OF_CALL, "offset": 5000, "cut": True}]
    assert replies.take(delta("y")).live["offset"] == MOST_OF_CALL + 5000
    for number in range(30):
        for _ in range(100):
            replies.take(delta("x" * 1000, f"{number}/model"))
    assert sum(len(one["text"]) for one in told(replies)) <= MOST_OF_RUN


async def test_a_late_listener_reads_a_reply_from_its_first_letter(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"two.playbook.md": TWO}) as server, server.client() as client:
        runtime = server.site.runtime
        run = await runtime.start(
            load(str(server.folder / "two.playbook.md")), {}, RunOptions(model=server.script("m.json", ["one"]))
        )
        for text in ("# Fine\n\n", "It is ", "*good*"):
            server.site.hub.listen(delta(text, "2/model", run))
        async with (
            following(client, f"/runs/{run}/events") as frames,
            following(client, "/events", run=f"{run}:0") as page,
        ):
            for stream in (frames, page):
                first = await next_delta(stream)
                assert (first.data["text"], first.data["offset"], first.id) == ("# Fine\n\nIt is *good*", 0, "")
            server.site.hub.listen(delta(" and", "2/model", run))
            second = await next_delta(frames)
            assert (second.data["text"], second.data["offset"]) == (" and", 20)
        read = await server.read(f"/runs/{run}/text/2/model?after=14")
        assert (read["text"], read["next"], read["total"]) == ("*good* and", None, 24)
