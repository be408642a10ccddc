"""Endpoints: webhooks of the user's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.server.endpoints import Endpoint
from quire.server.handlers import webhooks
from quire.server.schemas import NAME, SEQ, page_of, record

if TYPE_CHECKING:
    from quire.values import Value

_WEBHOOK: Mapping[str, Value] = {
    "type": "object",
    "properties": {"name": NAME, "waiting": SEQ, "arrived": SEQ, "lost": SEQ},
    "required": ["name", "host", "events", "waiting", "arrived", "lost"],
}

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/webhooks",
        "list_webhooks",
        "The webhooks of the user's settings, with what waits and what has arrived.",
        "FREE",
        webhooks.list_webhooks,
        response=page_of(_WEBHOOK),
    ),
    Endpoint(
        "POST",
        "/webhooks/{name}/test",
        "test_webhook",
        "Send a message of the type `test` to one webhook.",
        "WRITES",
        webhooks.test_webhook,
        body=record(),
        status=202,
        response=_WEBHOOK,
    ),
    Endpoint(
        "DELETE",
        "/webhooks/{name}/messages",
        "drop_messages",
        "Drop the messages to one webhook that have not arrived yet.",
        "WRITES",
        webhooks.drop_messages,
        response=_WEBHOOK,
    ),
)
