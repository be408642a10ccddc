"""Endpoints: streams of events."""

from __future__ import annotations

from quire.server.endpoints import Endpoint, Parameter
from quire.server.handlers import streams
from quire.server.schemas import MOST_ITEMS, NAME, SEQ, page_of

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/runs/{run}/events",
        "run_events",
        "The events of a run: a stream, or pages of JSON.",
        "FREE",
        streams.run_events,
        parameters=(
            Parameter("after", SEQ, "The number of the last event that is known."),
            Parameter("before", SEQ, "Return the last events before this number, in pages of JSON."),
            MOST_ITEMS,
        ),
        response=page_of({"type": "object"}),
    ),
    Endpoint(
        "GET",
        "/events",
        "page_events",
        "The stream of the page: changes of the workspace, and the events of the named runs.",
        "FREE",
        streams.page_events,
        parameters=(Parameter("run", NAME, "A run to follow, as RUN:SEQ.", many=True),),
        media="text/event-stream",
    ),
)
