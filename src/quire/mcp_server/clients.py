"""Clients of the server: the facts about a client that are needed to talk to it, in either generation of the
protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct
from msgspec.structs import replace

from quire.values import clean

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

Context: TypeAlias = ServerRequestContext[Any, Any]

RECIPIENT = "mcp:"
"""Prefix of the ids of clients as recipients of letters."""

_LONGEST_NAME = 80


class Caller(Struct, frozen=True):
    """The client of one request."""

    session: ServerSession
    request: types.RequestId | None
    recipient: str
    modern: bool
    elicits: bool
    logs: bool
    """True if the client wants messages about the steps: it asked for progress or log messages."""

    @classmethod
    def of(cls, context: Context) -> Caller:
        session = context.session
        capabilities = session.client_capabilities
        return cls(
            session=session,
            request=context.request_id,
            recipient=RECIPIENT + _name(session),
            modern=context.protocol_version in MODERN_PROTOCOL_VERSIONS,
            elicits=_can_show_forms(capabilities.elicitation if capabilities else None),
            logs=any(key in (context.meta or {}) for key in ("progress_token", types.LOG_LEVEL_META_KEY)),
        )

    @property
    def form(self) -> str:
        """Return the author of an answer that the client's user gave in a form."""
        return f"{self.recipient} (form)"

    def with_log(self, wanted: bool) -> Caller:
        return replace(self, logs=wanted)


def connection_of(context: Context) -> str:
    """Return the connection that a request came from; empty for stdio."""
    request = context.request
    headers = getattr(request, "headers", None)
    return str(headers.get("mcp-session-id", "")) if headers is not None else ""


def _name(session: ServerSession) -> str:
    params = session.client_params
    name = clean(params.client_info.name).strip() if params else ""
    return "".join(part for part in name if part.isprintable())[:_LONGEST_NAME] or "client"


def _can_show_forms(capability: types.ElicitationCapability | None) -> bool:
    """Return True if the client can show forms. Clients from before there were modes do not name any, and show
    forms."""
    return capability is not None and (capability.form is not None or capability.url is None)
