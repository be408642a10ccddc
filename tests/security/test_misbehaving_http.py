"""MCP servers over HTTP that misbehave: answers without an end, redirects, doors that do not close."""

from __future__ import annotations

import gzip
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quire.engine.requests import ToolRequest
from quire.errors import ToolFailed
from quire.runs.workspace_gate import open_gate
from quire.tools import mcp_session
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.grants import default_grants
from quire.workspace.locate import Workspace

pytest.importorskip("mcp")

Answer = Callable[[socket.socket, str, dict[str, Any]], None]
TOOLS = [{"name": "work", "inputSchema": {"type": "object"}}]
INFO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "m", "version": "1"}}


def head(status: str = "200 OK", kind: str = "application/json", **more: object) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", "Connection: close", "mcp-session-id: s"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def well(connection: socket.socket, method: str, request: dict[str, Any]) -> None:
    """As a server should, for everything that comes before the attack."""
    name = request.get("method")
    if method != "POST":
        connection.sendall(head("405 Method Not Allowed"))
    elif "id" not in request:
        connection.sendall(head("202 Accepted"))
    else:
        results: dict[object, object] = {
            "initialize": INFO,
            "tools/list": {"tools": TOOLS},
            "tools/call": {"content": [{"type": "text", "text": "done"}]},
        }
        answer: dict[str, object] = {"jsonrpc": "2.0", "id": request["id"]}
        answer |= {"result": results[name]} if name in results else {"error": {"code": -32601, "message": "unknown"}}
        connection.sendall(head() + json.dumps(answer).encode())


def at_call(opening: bytes, piece: bytes = b"", pause: float = 0.0, *, method: str = "tools/call") -> Answer:
    def answer(connection: socket.socket, verb: str, request: dict[str, Any]) -> None:
        if request.get("method") != method:
            well(connection, verb, request)
            return
        connection.sendall(opening)
        while piece:
            connection.sendall(piece)
            time.sleep(pause)

    return answer


def hangs_at_the_end(connection: socket.socket, method: str, request: dict[str, Any]) -> None:
    if method == "DELETE":
        time.sleep(600)
    well(connection, method, request)


EVENTS = head(kind="text/event-stream")
LOG = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 900}})
CASES: dict[str, tuple[Answer, str]] = {
    "body": (at_call(head(), b"x" * 65536), "it sent more than 10,000,000 bytes"),
    "line": (at_call(EVENTS + b"data: ", b"x" * 65536), ""),
    "comments": (at_call(EVENTS, b": x\n\n", 0.01), "took longer than 1 s"),
    "events": (at_call(EVENTS, f"event: message\ndata: {LOG}\n\n".encode(), 0.001), "took longer than 1 s"),
    "packed": (
        at_call(head(Content_Encoding="gzip") + gzip.compress(b"0" * 50_000_000, 1)),
        "it sent its answer compressed",
    ),
    "redirect": (at_call(head("307 Temporary Redirect", Location="http://169.254.169.254/x")), "not followed"),
    "headers": (at_call(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"), ""),
    "header-drops": (at_call(b"HTTP/1.1 200 OK\r\nX: ", b"x", 0.05), "took longer than 1 s"),
    "silence": (at_call(b"", b"", method="tools/call"), ""),
    "html": (at_call(head(kind="text/html") + b"<h1>hello</h1>"), ""),
    "list": (at_call(head(), b"x" * 65536, method="tools/list"), "it sent more than 10,000,000 bytes"),
    "no-json": (at_call(head() + b"{"), ""),
}


@pytest.fixture
def served() -> Iterator[Callable[[Answer], str]]:
    listener = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def start(answer: Answer) -> str:
        def talk(connection: socket.socket) -> None:
            try:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += connection.recv(65536)
                top, _, body = data.partition(b"\r\n\r\n")
                length = next(
                    (int(line[15:]) for line in top.lower().split(b"\r\n") if line[:15] == b"content-length:"), 0
                )
                while len(body) < length:
                    body += connection.recv(65536)
                answer(connection, top.split(b" ")[0].decode(), json.loads(body or b"{}"))
                connection.close()
            except OSError:
                connection.close()

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                held.append(connection)
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"

    yield start
    listener.close()
    for connection in held:
        connection.close()


async def outcome(tmp_path: Path, url: str, seconds: float) -> str:
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"bad": {"url": url, "timeout": seconds}}}))
    environ = {**os.environ, "QUIRE_HOME": str(tmp_path / "home")}
    settings = load_settings(Workspace(tmp_path), environ)
    confirm(settings)
    async with open_gate(settings, default_grants(settings), environ) as gate:
        try:
            return str(await gate.call(ToolRequest("1/tool", "1", "bad", "work", {}), "e"))
        except ToolFailed as error:
            assert len(error.message) < 9_000
            return error.message


@pytest.mark.parametrize("name", CASES)
async def test_it_fails_soon_and_says_why(
    tmp_path: Path, served: Callable[[Answer], str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_session, "CLOSE_SECONDS", 3.0)
    answer, says = CASES[name]
    said = await outcome(tmp_path, served(answer), 1.0 if "took longer" in says else 20.0)
    assert said.startswith("MCP server bad") and says in said and said != "done", said


async def test_a_door_that_does_not_close(
    tmp_path: Path, served: Callable[[Answer], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_session, "CLOSE_SECONDS", 0.5)
    started = time.monotonic()
    assert await outcome(tmp_path, served(hangs_at_the_end), 20.0) == "done"
    assert time.monotonic() - started < 300  # the server would sleep for 600
