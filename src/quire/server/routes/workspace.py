"""Endpoints: the workspace itself."""

from __future__ import annotations

from quire.server.endpoints import Endpoint
from quire.server.handlers import workspace

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/", "root", "Version, workspace, features and links.", "FREE", workspace.root),
    Endpoint("GET", "/openapi.json", "openapi", "This description of the API.", "FREE", workspace.openapi),
)
