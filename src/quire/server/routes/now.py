"""Endpoints: what needs the user now."""

from __future__ import annotations

from quire.server.endpoints import Endpoint
from quire.server.handlers import now
from quire.server.schemas import MOST_ITEMS, page_of

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/now",
        "now",
        "What waits for the user, has stopped, is running or has just ended, and what it has cost.",
        "FREE",
        now.now,
        response={
            "type": "object",
            "required": ["questions", "stopped", "running", "finished", "letters", "spent"],
        },
    ),
    Endpoint(
        "GET",
        "/letters",
        "list_letters",
        "Letters about launched runs that have ended, the newest first.",
        "FREE",
        now.list_letters,
        parameters=(MOST_ITEMS,),
        response=page_of({"type": "object", "required": ["run", "recipient", "text", "at"]}),
    ),
)
