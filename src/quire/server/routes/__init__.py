"""The route table: every endpoint of the API, below `/api/v1`, by what it is about.

Routing, validation, the OpenAPI document, the page of the API and the tests are made from `ENDPOINTS`.
"""

from __future__ import annotations

from quire.server.routes import (
    documents,
    health,
    now,
    pictures,
    questions,
    run_copies,
    run_list,
    run_parts,
    runs,
    search,
    streams,
    webhooks,
    workspace,
)

ENDPOINTS = (
    *workspace.ENDPOINTS,
    *now.ENDPOINTS,
    *documents.ENDPOINTS,
    # Before the paths of single runs, which would take `counts` for the name of one.
    *run_list.ENDPOINTS,
    *run_copies.ENDPOINTS,
    *runs.ENDPOINTS,
    *pictures.ENDPOINTS,
    *run_parts.ENDPOINTS,
    *questions.ENDPOINTS,
    *search.ENDPOINTS,
    *health.ENDPOINTS,
    *webhooks.ENDPOINTS,
    *streams.ENDPOINTS,
)
