"""Endpoints: documents."""

from __future__ import annotations

from quire.server.endpoints import Endpoint, Parameter
from quire.server.handlers import documents
from quire.server.schemas import DOCUMENT, FINDINGS, FORMAT, NAME, TEXT, page_of, record

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/documents",
        "list_documents",
        "The documents of the workspace with their findings.",
        "FREE",
        documents.list_documents,
        parameters=(
            Parameter("format", FORMAT, "Only documents of this format."),
            Parameter("q", TEXT, "Words that title or path contain."),
            Parameter("folder", TEXT, "Only documents below this folder."),
        ),
        response=page_of(DOCUMENT),
    ),
    Endpoint(
        "POST",
        "/documents/check",
        "check_text",
        "Check a text that need not be saved.",
        "FREE",
        documents.check_text,
        body=record(("text",), text=TEXT, path=NAME),
        response=FINDINGS,
    ),
)
