"""Handlers for events: the stream of one run, and the one stream of the page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from quire.engine.records import FINAL
from quire.server.endpoints import Call, Reply
from quire.server.problems import Problem
from quire.server.sse import MEDIA_TYPE, EventStream, Frame
from quire.stores.journal_pages import Paged

if TYPE_CHECKING:
    from starlette.responses import Response

    from quire.server.hub import Subscription
    from quire.server.site import Site

MOST_FOLLOWED = 50
_PLACE = re.compile(r"([^:,\s]{1,64}):([0-9]{1,15})")


async def run_events(site: Site, call: Call) -> Reply | Response:
    run = await site.runtime.find(call.path["run"])
    after = call.number("after", 0)
    if MEDIA_TYPE not in call.request.headers.get("accept", ""):
        return await _event_page(site, call, run, after)
    last = call.request.headers.get("last-event-id", "")
    if last.isascii() and last.isdecimal() and len(last) < 16:
        after = int(last)
    listener = site.hub.join({run: after}, whole=False)
    return EventStream(_run_frames(site, run, listener), lambda: site.hub.leave(listener))


async def _event_page(site: Site, call: Call, run: str, after: int) -> Reply:
    """Return events in their order: after a number, or with `before` the last ones before it. `next` continues in the
    same direction."""
    store, limit = site.runtime.store, call.number("limit", 500)
    if not isinstance(store, Paged):
        raise Problem.of("store", "this store cannot read parts of a journal")
    if "before" in call.query:
        events = await store.journal().event_page(run, before=call.number("before", 0), limit=limit + 1)
        kept = events[-limit:]
        more = str(kept[0].seq) if len(events) > limit else None
    else:
        events = await store.journal().event_page(run, after=after, limit=limit + 1)
        kept = events[:limit]
        more = str(kept[-1].seq) if len(events) > limit else None
    return Reply({"items": [event.as_json() for event in kept], "next": more})


async def _run_frames(site: Site, run: str, listener: Subscription) -> AsyncIterator[Frame]:
    await site.hub.catch_up(listener)
    row = await site.runtime.row(run)
    if row.status in FINAL:
        listener.put(Frame("end", {"run": run}))
        listener.end()
    async for frame in listener.frames():
        yield frame


async def page_events(site: Site, call: Call) -> Response:
    runs = dict(_places(call.texts("run")))
    last = call.request.headers.get("last-event-id", "")
    runs.update({run: seq for run, seq in _places(last.split(",")) if run in runs} if last else {})
    if len(runs) > MOST_FOLLOWED:
        raise Problem.of("too-many", f"{len(runs)} runs cannot be followed at once: {MOST_FOLLOWED} can")
    known = {run: seq for run, seq in runs.items() if await site.runtime.store.get(run) is not None}
    listener = site.hub.join(known, whole=True)
    return EventStream(_page_frames(site, listener), lambda: site.hub.leave(listener))


def _places(texts: tuple[str, ...] | list[str]) -> list[tuple[str, int]]:
    """Read `RUN:SEQ`. A text that is not one is left out."""
    found = (_PLACE.fullmatch(text.strip()) for text in texts)
    return [(place[1], int(place[2])) for place in found if place]


async def _page_frames(site: Site, listener: Subscription) -> AsyncIterator[Frame]:
    await site.hub.catch_up(listener)
    listener.put(Frame("hello", {"runs": list(listener.seen)}))
    async for frame in listener.frames():
        yield frame
