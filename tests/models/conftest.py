"""A loopback service that speaks the OpenAI chat API well, badly, or not at all; and the small real model."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeAlias

import pytest

from quire.models.downloads import pulled_model

Behaviour: TypeAlias = "Callable[[Exchange], None]"


@dataclass
class Stub:
    """What to do for the next requests, in order (the last goes on), and what was asked."""

    url: str = ""
    behaviours: list[Behaviour] = field(default_factory=list)
    requests: list[dict[str, object]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)

    @property
    def spec(self) -> str:
        return f"{self.url}#stub-model"

    @staticmethod
    def say(
        *pieces: str, finish: str = "stop", tokens: tuple[int, int] = (7, 3), model: str = "stub-model"
    ) -> Behaviour:
        read, written = tokens

        def behave(exchange: Exchange) -> None:
            exchange.begin()
            exchange.model = model
            exchange.event({"role": "assistant", "content": ""})
            for piece in pieces:
                exchange.event({"content": piece})
            usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
            exchange.event({}, finish, usage)
            exchange.end()

        return behave

    @staticmethod
    def use(
        *calls: tuple[str | None, str, str], text: str = "", finish: str = "tool_calls", piece: int = 4
    ) -> Behaviour:
        """Calls of tools (id, name, arguments), the arguments in pieces, after a text."""

        def behave(exchange: Exchange) -> None:
            exchange.begin()
            exchange.event({"role": "assistant", "content": text or None})
            for index, (id_, name, arguments) in enumerate(calls):
                head = {"index": index, "id": id_, "type": "function", "function": {"name": name, "arguments": ""}}
                exchange.event({"tool_calls": [head]})
                for at in range(0, len(arguments), piece):
                    part = {"index": index, "function": {"arguments": arguments[at : at + piece]}}
                    exchange.event({"tool_calls": [part]})
            exchange.event({}, finish, {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14})
            exchange.end()

        return behave

    @staticmethod
    def by_format(forced: Behaviour, free: Behaviour) -> Behaviour:
        """One for requests with a `response_format`, the other for those without."""

        def behave(exchange: Exchange) -> None:
            wanted = exchange.stub.requests[-1].get("response_format")
            (forced if wanted else free)(exchange)

        return behave

    def hang(self, exchange: Exchange) -> None:
        self.release.wait(5)
        exchange.drop()

    @staticmethod
    def refuse(status: int, body: dict[str, object] | str = "{}", headers: dict[str, str] | None = None) -> Behaviour:
        return lambda exchange: exchange.error(status, body, headers)


class Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stub: Stub
    model = "stub-model"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.stub.requests.append(json.loads(body))
        self.stub.headers.append({name.lower(): value for name, value in self.headers.items()})
        behaviours = self.stub.behaviours
        behaviour = behaviours.pop(0) if len(behaviours) > 1 else behaviours[0]
        behaviour(self)

    def do_GET(self) -> None:
        self.stub.behaviours[0](self)

    def error(self, status: int, body: dict[str, object] | str, headers: dict[str, str] | None = None) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def begin(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def event(self, delta: dict[str, object], finish: str | None = None, usage: dict[str, int] | None = None) -> None:
        payload = {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": self.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            "usage": usage,
        }
        self.chunk(f"data: {json.dumps(payload)}\n\n")

    def end(self) -> None:
        self.chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def drop(self) -> None:
        self.close_connection = True
        self.connection.close()


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are what the tests are about."""


@pytest.fixture
def stub() -> Iterator[Stub]:
    stub = Stub()
    server = QuietServer(("127.0.0.1", 0), type("Bound", (Exchange,), {"stub": stub}))
    stub.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield stub
    stub.release.set()
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def smollm2() -> Path:
    found = pulled_model("smollm2")
    if found is None:
        pytest.skip("the model file is not here: `quire model pull smollm2` fetches it")
    return found.path
