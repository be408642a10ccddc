"""Endpoints: pictures of documents and runs."""

from __future__ import annotations

from quire.server.endpoints import Endpoint, Parameter
from quire.server.handlers import pictures
from quire.server.schemas import CHART, FAN, ITEM_STATE, MOST_ITEMS, NAME, TEXT, TIMELINE, page_of

OPENED = Parameter("open", NAME, "A fold to draw with all it holds: the `fold` of a node.", many=True)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/runs/{run}/graph",
        "run_graph",
        "The flowchart of a run's document, placed and ready to draw.",
        "FREE",
        pictures.run_graph,
        parameters=(OPENED,),
        response=CHART,
    ),
    Endpoint(
        "GET",
        "/runs/{run}/timeline",
        "run_timeline",
        "All effects of a run as columns, by step, and the times in which it waited.",
        "FREE",
        pictures.run_timeline,
        response=TIMELINE,
    ),
    Endpoint(
        "GET",
        "/runs/{run}/fans/{path:path}",
        "run_fan",
        "The items of a fan-out: the state of each, and a page of them, the failed ones first.",
        "FREE",
        pictures.run_fan,
        parameters=(
            Parameter("q", TEXT, "Words that the text of an item or its failure contain."),
            Parameter("state", ITEM_STATE, "Only items in this state."),
            Parameter(
                "order",
                {"type": "string", "enum": ["failed", "document"]},
                "The order of the page: the failed first, or all as in the document.",
            ),
            Parameter("after", NAME, "The `next` of the page before."),
            MOST_ITEMS,
        ),
        response=FAN,
    ),
    Endpoint(
        "GET",
        "/documents/{id:path}/graph",
        "document_graph",
        "The flowchart of a document, placed and ready to draw.",
        "FREE",
        pictures.document_graph,
        parameters=(OPENED,),
        response=CHART,
    ),
    Endpoint(
        "GET",
        "/documents/{id:path}/graph.svg",
        "document_svg",
        "The flowchart of a document as a picture.",
        "FREE",
        pictures.document_svg,
        parameters=(OPENED,),
        media=pictures.SVG,
    ),
    Endpoint(
        "GET",
        "/documents/{id:path}/history",
        "document_history",
        "The last runs of a document: how each ended, how long it took and what it cost.",
        "FREE",
        pictures.document_history,
        parameters=(MOST_ITEMS,),
        response=page_of({"type": "object"}),
    ),
)
