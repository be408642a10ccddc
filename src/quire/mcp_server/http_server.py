"""The server over streamable HTTP: on a loopback address, for clients with the token.

Any page in a browser can send requests to a loopback address. Therefore a client must have the token, the `Host` must
be the address that we serve (against names that are made to resolve to it), and an `Origin` must be our own.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse

from quire.loopback import place_of
from quire.mcp_server.server import MAX_SESSIONS, Host
from quire.python_process import ending_signals

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/mcp"
SECONDS_TO_END = 10
IDLE_SECONDS = 15 * 60.0
"""Seconds without a request after which a session is dropped; its client opens another one."""

MAX_BODY = 4_000_000
MAX_CONNECTIONS = 200


class TokenRequired:
    """Passes on only requests with `Authorization: Bearer TOKEN`. A client that disconnects during its request is not
    an error."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        tokens = [value for name, value in scope["headers"] if name == b"authorization"]
        if scope["type"] == "http" and len(tokens) == 1 and hmac.compare_digest(tokens[0], self._token):
            with contextlib.suppress(ClientDisconnect):
                await self._app(scope, receive, send)
        elif scope["type"] == "http":
            headers = {"WWW-Authenticate": "Bearer"}
            refused = PlainTextResponse("this server needs its token as a bearer token\n", 401, headers)
            await refused(scope, receive, send)


def application(host: Host, place: str, token: str) -> ASGIApp:
    port = place.rpartition(":")[2]
    places = [place, f"localhost:{port}"]
    security = TransportSecuritySettings(allowed_hosts=places, allowed_origins=[f"http://{name}" for name in places])
    app = host.server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=security,
        max_request_body_size=MAX_BODY,
        session_idle_timeout=IDLE_SECONDS,
        max_sessions=MAX_SESSIONS,
    )
    return TokenRequired(app, token)


class HttpServer(uvicorn.Server):
    """A uvicorn server that, when interrupted, first stops the runs and then ends normally; uvicorn's own handler
    would let the signal end the process."""

    def __init__(self, config: uvicorn.Config, stop_runs: Callable[[], None]) -> None:
        super().__init__(config)
        self._loop = asyncio.get_running_loop()
        self._stop_runs = stop_runs

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True
        self._loop.call_soon_threadsafe(self._stop_runs)


async def serve_http(host: Host, listener: socket.socket, token: str, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; then runs rest after their current step, or at once on a second interrupt.

    `ready` gets the URL.
    """
    place = place_of(listener)
    # Without a log handler the package prints a traceback for every client that leaves.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    config = uvicorn.Config(
        application(host, place, token),
        log_level="warning",
        access_log=False,
        lifespan="on",
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=SECONDS_TO_END,
    )
    server = HttpServer(config, host.calls.leave)
    for number in ending_signals():
        signal.signal(number, server.handle_exit)
    ready(f"http://{place}{PATH}")
    try:
        await server.serve(sockets=[listener])
    finally:
        await host.calls.stop()
