"""Endpoints: health, models and trust."""

from __future__ import annotations

from quire.server.endpoints import Endpoint
from quire.server.handlers import health
from quire.server.schemas import NAME, TEXT, page_of

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/health",
        "health",
        "The server, its store, its cluster, and the last lines that it has printed.",
        "FREE",
        health.health,
        response={"type": "object", "required": ["version", "store", "driving", "log"]},
    ),
    Endpoint(
        "GET",
        "/doctor",
        "doctor",
        "What Quire finds here, as `quire doctor --json` prints it.",
        "FREE",
        health.doctor,
        response=page_of(
            {
                "type": "object",
                "properties": {
                    "what": NAME,
                    "state": {"type": "string", "enum": ["ok", "missing", "problem"]},
                    "detail": TEXT,
                },
                "required": ["what", "state", "detail"],
            }
        ),
    ),
    Endpoint(
        "GET",
        "/models",
        "list_models",
        "The model that a run would use, the models of the settings, and those on this machine.",
        "FREE",
        health.models,
        response={"type": "object", "required": ["default", "tiers", "providers", "local"]},
    ),
    Endpoint(
        "GET",
        "/trust",
        "show_trust",
        "Keys, signatures, and what the workspace asks for, with the commands that change it.",
        "FREE",
        health.trust,
        response={"type": "object", "required": ["trusted", "requests", "keys", "own", "signatures"]},
    ),
)
