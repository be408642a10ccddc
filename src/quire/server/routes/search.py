"""Endpoints: search, and the gallery of artifacts."""

from __future__ import annotations

from quire.server.endpoints import Endpoint, Parameter
from quire.server.handlers import search
from quire.server.schemas import MOST_ITEMS, NAME, NUMBER, SEQ, TEXT, page_of

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/search",
        "search",
        "Documents, steps, runs, codes, and texts of runs that hold all words.",
        "FREE",
        search.search,
        parameters=(
            Parameter("q", {"type": "string", "maxLength": 400}, "Plain words; the last one may be unfinished."),
            Parameter("in", {"type": "string", "enum": list(search.PLACES)}, "Only look there.", many=True),
            MOST_ITEMS,
        ),
        response={"type": "object", "required": ["q", "found", "indexed"]},
    ),
    Endpoint(
        "GET",
        "/artifacts",
        "list_artifacts",
        "Artifacts of completed runs, the newest first, from the index of the newest 5,000 runs.",
        "FREE",
        search.list_artifacts,
        parameters=(
            Parameter("type", {"type": "string", "maxLength": 100}, "Only artifacts of this type."),
            Parameter("document", NAME, "Only artifacts of this document."),
            Parameter("after", NAME, "The `next` of the page before."),
            MOST_ITEMS,
        ),
        response=page_of(
            {
                "type": "object",
                "properties": {"run": NAME, "type": TEXT, "size": SEQ, "head": TEXT, "at": NUMBER},
                "required": ["run", "title", "document", "type", "size", "head", "at"],
            }
        ),
    ),
)
