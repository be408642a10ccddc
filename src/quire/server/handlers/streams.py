"""Events: the stream of one run, and the one stream of the page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType

from quire.engine.records import FINAL
from quire.operations.field_types import Input, Limit, Name, Object, OfRun, Page, Seq, operation
from quire.operations.problems import Problem
from quire.server.hub import MEDIA_TYPE, EventStream, Frame

if TYPE_CHECKING:
    from starlette.responses import Response

    from quire.server.hub import Subscription
    from quire.server.routes import RequestHost
    from quire.server.site import Site
    from quire.values import Value

MOST_FOLLOWED = 50
_PLACE = re.compile(r"([^:,\s]{1,64}):([0-9]{1,15})")


class RunEvents(OfRun, frozen=True, kw_only=True):
    after: Annotated[Seq, Meta(description="The number of the last event that is known.")] = 0
    before: (
        Annotated[Seq, Meta(description="Return the last events before this number, in pages of JSON.")] | UnsetType
    ) = UNSET
    limit: Limit = 500


@operation("The events of a run: a stream, or pages of JSON.", RunEvents, Page[Object])
async def run_events(host: RequestHost, given: RunEvents) -> Value | Response:
    site, after = host.site, given.after
    run = await site.runtime.find(given.run)
    if MEDIA_TYPE not in host.request.headers.get("accept", ""):
        return await _event_page(site, given, run)
    last = host.request.headers.get("last-event-id", "")
    if last.isascii() and last.isdecimal() and len(last) < 16:
        after = int(last)
    listener = site.hub.join({run: after}, whole=False)
    return EventStream(_run_frames(site, run, listener), lambda: site.hub.leave(listener))


async def _event_page(site: Site, given: RunEvents, run: str) -> Value:
    """Return events in their order: after a number, or with `before` the last ones before it. `next` continues in the
    same direction."""
    journal, limit = site.runtime.store.journal(), given.limit
    if not isinstance(given.before, UnsetType):
        events = await journal.event_page(run, before=given.before, limit=limit + 1)
        page, last = events[-limit:], 0
    else:
        events = await journal.event_page(run, after=given.after, limit=limit + 1)
        page, last = events[:limit], -1
    more = str(page[last].seq) if len(events) > limit else None
    return {"items": [event.as_json() for event in page], "next": more}


async def _run_frames(site: Site, run: str, listener: Subscription) -> AsyncIterator[Frame]:
    await site.hub.catch_up(listener)
    row = await site.runtime.row(run)
    if row.status in FINAL:
        listener.put(Frame("end", {"run": run}))
        listener.end()
    async for frame in listener.frames():
        yield frame


class PageEvents(Input, frozen=True, kw_only=True):
    run: Annotated[tuple[Name, ...], Meta(description="A run to follow, as RUN:SEQ.")] = ()


@operation("The stream of the page: changes of the workspace, and the events of the named runs.", PageEvents, None)
async def page_events(host: RequestHost, given: PageEvents) -> Response:
    site, runs = host.site, dict(_places(given.run))
    last = host.request.headers.get("last-event-id", "")
    runs.update({run: seq for run, seq in _places(last.split(",")) if run in runs} if last else {})
    if len(runs) > MOST_FOLLOWED:
        raise Problem.of("too-many", f"{len(runs)} runs cannot be followed at once: {MOST_FOLLOWED} can")
    stored = {run: seq for run, seq in runs.items() if await site.runtime.store.get(run) is not None}
    listener = site.hub.join(stored, whole=True)
    return EventStream(_page_frames(site, listener), lambda: site.hub.leave(listener))


def _places(texts: tuple[str, ...] | list[str]) -> list[tuple[str, int]]:
    """Read `RUN:SEQ`. A text that is not one is left out."""
    matches = (_PLACE.fullmatch(text.strip()) for text in texts)
    return [(place[1], int(place[2])) for place in matches if place]


async def _page_frames(site: Site, listener: Subscription) -> AsyncIterator[Frame]:
    await site.hub.catch_up(listener)
    listener.put(Frame("hello", {"runs": list(listener.seen)}))
    async for frame in listener.frames():
        yield frame
