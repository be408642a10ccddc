"""Endpoints: the workspace itself."""

from __future__ import annotations

from quire.server.endpoints import Endpoint
from quire.server.handlers import workspace
from quire.server.schemas import NAME, NAMES, VALUES, answer_of

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/",
        "root",
        "Version, workspace, features and links.",
        "FREE",
        workspace.root,
        response=answer_of(version=NAME, workspace=NAME, folder=NAME, formats=NAMES, features=VALUES, links=VALUES),
    ),
    Endpoint(
        "GET",
        "/openapi.json",
        "openapi",
        "This description of the API.",
        "FREE",
        workspace.openapi,
        response=answer_of(openapi=NAME, info=VALUES, paths=VALUES, components=VALUES),
    ),
    Endpoint("GET", "/docs", "docs", "The page of the API, for people.", "FREE", workspace.docs, media="text/html"),
)
