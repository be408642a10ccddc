"""Serve a site over HTTP until the user interrupts it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from quire.errors import CannotStart
from quire.loopback import listening
from quire.python_process import ending_signals

if TYPE_CHECKING:
    from starlette.types import ASGIApp

MAX_CONNECTIONS = 400
"""Connections besides those of listeners. The application refuses requests before, with a problem that says why."""
MOST_WAITING = 100
"""Connections without a complete request; the oldest is closed for the next."""
HEADER_SECONDS, BODY_SECONDS = 10, 60
SECONDS_TO_END = 15
SECONDS_BETWEEN_SIGNALS = 0.5
DEFAULT_PORT = 8377
PORTS_TRIED = 20
OTHER_LOOPBACK = {"127.0.0.1": "::1", "::1": "127.0.0.1"}


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 within limits for clients that send slowly or not at all: they need no token to hold a connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._opened = self.loop.time()
        self._seconds = 0
        self._timer: asyncio.TimerHandle | None = None
        self._watch()
        waiting = [
            connection
            for connection in self.connections
            if isinstance(connection, LimitedProtocol) and connection.is_waiting
        ]
        if len(waiting) > MOST_WAITING:
            min(waiting, key=lambda protocol: protocol._opened).transport.abort()

    @property
    def is_waiting(self) -> bool:
        """Tell whether no request is being answered: the headers of the next one are not complete."""
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def _watch(self) -> None:
        """Give the headers or the body that is being received its time, which bytes that trickle in do not renew. A
        connection that rests between two requests has the time of uvicorn."""
        state, seconds = self.conn.their_state, 0
        if state is h11.SEND_BODY:
            seconds = BODY_SECONDS
        elif state is h11.IDLE and (self.cycle is None or self.conn.trailing_data[0]):
            seconds = HEADER_SECONDS
        if seconds != self._seconds:
            self._seconds = seconds
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_later(seconds, self.transport.abort) if seconds else None


class HttpServer(uvicorn.Server):
    """A uvicorn server that, when interrupted, first ends the streams and then ends normally; uvicorn's own handler
    would let the signal end the process."""

    def __init__(self, config: uvicorn.Config, leave: Callable[[], None], announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._loop = asyncio.get_running_loop()
        self._leave = leave
        self._asked_at = 0.0
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        for number in ending_signals():
            signal.signal(number, self.handle_exit)
        await super().startup(sockets)
        if self.started:
            self._announce()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; at once at a second signal. One that comes together with the first is the same: `timeout` and process
        groups send both."""
        now = time.monotonic()
        if self.should_exit:
            if now - self._asked_at < SECONDS_BETWEEN_SIGNALS:
                return
            self.force_exit = True
            # The application may not be told then, and uvicorn would print a traceback about that.
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL + 1)
        else:
            self._asked_at = now
        self.should_exit = True
        self._loop.call_soon_threadsafe(self._leave)


def open_listeners(host: str, port: int | None, *, anywhere: bool) -> list[socket.socket]:
    """Open the port, or without one the first free port from the default on. Of 127.0.0.1 and ::1 the other address is
    opened as well, if it exists and is free."""
    tried = [port] if port is not None else [*range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED), 0]
    for at in tried:
        try:
            listeners = [listening(host, at, anywhere=anywhere)]
        except CannotStart as error:
            if at == tried[-1] or "cannot listen" not in str(error):
                raise
            continue
        address, opened = listeners[0].getsockname()[:2]
        if other := OTHER_LOOPBACK.get(address):
            with contextlib.suppress(CannotStart):
                listeners.append(listening(other, opened))
        return listeners
    raise AssertionError("a port was opened, or an error raised")


def open_unix_listener(path: Path) -> socket.socket:
    """Open a Unix socket that only the user can reach. A socket that no server listens on is replaced."""
    if path.is_socket():
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(path))
            raise CannotStart(f"--uds {path}: another server listens there")
        except ConnectionRefusedError:
            path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
        listener.listen()
    except OSError as error:
        listener.close()
        raise CannotStart(f"--uds {path}: {error.strerror or error}") from None
    finally:
        os.umask(before)
    return listener


def configuration(app: ASGIApp, listeners: int) -> uvicorn.Config:
    """Return how uvicorn serves the application: plain HTTP/1.1 within limits, without a log of requests, also of those
    that it refuses. `listeners` is the number of event streams that stay open."""
    logging.getLogger("uvicorn.error").addFilter(lambda record: record.msg != "Exceeded concurrency limit.")
    return uvicorn.Config(
        app,
        http=LimitedProtocol,  # h11 limits the size of headers
        ws="none",
        log_level="warning",
        access_log=False,
        lifespan="on",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS + listeners,
        timeout_graceful_shutdown=SECONDS_TO_END,
    )


async def serve(
    app: ASGIApp,
    sockets: Sequence[socket.socket],
    leave: Callable[[], None],
    announce: Callable[[], None],
    listeners: int,
) -> None:
    """Serve until interrupted. A second interrupt ends at once. `announce` is called when requests and signals are
    handled: a signal that comes before ends the process without cleaning up."""
    await HttpServer(configuration(app, listeners), leave, announce).serve(sockets=list(sockets))
