"""Endpoints: pictures of documents and runs."""

from __future__ import annotations

from quire.server.endpoints import Endpoint, Parameter
from quire.server.handlers import pictures
from quire.server.schemas import CHART, NAME

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
)
