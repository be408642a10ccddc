"""A real HTTP server on loopback, and a way to fetch from it as if it stood at a public address."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from quire.tools.builtin.http_request import Hosts, HttpFetch, is_public
from quire.values import Value

Reply = tuple[int, dict[str, str], bytes]

PUBLIC = "93.184.216.34"


class Server(ThreadingHTTPServer):
    """`answers` by path: status, headers, body; or a function that answers. `seen` are the paths and headers of the
    requests, `received` their methods and bodies."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, Reply | Callable[[Handler], None]] = {}
        self.received: list[tuple[str, bytes]] = []
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.port = self.server_address[1]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        headers = {name.lower(): text for name, text in self.headers.items()}
        self.server.seen.append((self.path, headers))
        self.server.received.append((self.command, self.rfile.read(int(headers.get("content-length", "0")))))
        found = self.server.answers.get(self.path, (404, {}, b"nothing here"))
        if callable(found):
            return found(self)
        self.reply(*found)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815  # the names that the library asks for

    def reply(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def get(server: Server, url: str, names: Mapping[str, list[str]] | None = None, **arguments: Value) -> dict[str, Value]:
    """Every name is at a public address, except those in `names`; every public address is this server."""

    def resolve(host: str, port: int) -> list[str]:
        return (names or {}).get(host, [PUBLIC])

    def dial(address: str, port: int, timeout: float) -> socket.socket:
        assert is_public(address)
        return socket.create_connection(("127.0.0.1", server.port), timeout)

    found = HttpFetch(Hosts(frozenset(), True, resolve), dial).get({"url": url, **arguments})
    assert isinstance(found, dict)
    return found


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running
