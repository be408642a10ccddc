"""Clients of `quire mcp --http` that leave, flood and lie: refused, forgotten, and never a traceback."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.processes import wait_until

pytest.importorskip("mcp")

from tests.mcp_server.serving import THINK, Gated, Serving, text, write

from quire.mcp_server import client_calls
from quire.mcp_server.server import MAX_SESSIONS, _remember

TOKEN = "x" * 20
HEADERS = {
    "Authorization": f"Bearer {TOKEN}",
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}


class Door:
    def __init__(self, port: int) -> None:
        self.port = port

    def send(self, body: object, session: str = "", method: str = "POST") -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        more = {"mcp-session-id": session, "mcp-protocol-version": "2025-06-18"} if session else {}
        connection.request(method, "/mcp", data, {**HEADERS, **more})
        return connection.getresponse()

    def open(self) -> str:
        return self.send(INITIALIZE).headers["mcp-session-id"]

    def leave_in_the_middle(self, lines: bytes) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(lines)


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    (tmp_path / "quire.toml").touch()
    (tmp_path / "p.playbook.md").write_text("# P\n\n## STEP 1: A\n\nSay it.\n")
    environ = {**os.environ, "QUIRE_HOME": str(tmp_path / "home"), "QUIRE_MCP_TOKEN": TOKEN}
    command = [sys.executable, "-m", "quire", "mcp", "--http", "--script", "s.yaml"]
    (tmp_path / "s.yaml").write_text("- reply: done\n")
    said = tmp_path / "said"
    with said.open("wb") as file:
        server = subprocess.Popen(command, cwd=tmp_path, env=environ, stderr=file, stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: re.search(r":(\d+)/mcp", said.read_text()) or server.poll() is not None)
        found = re.search(r":(\d+)/mcp", said.read_text())
        assert found is not None, said.read_text()
        yield Door(int(found[1]))
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)
    assert "Traceback" not in said.read_text() and "Error" not in said.read_text(), said.read_text()
    assert server.returncode == 130


def test_whoever_leaves_floods_or_lies(door: Door) -> None:
    session = door.open()
    head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % door.port
    head += b"".join(f"{name}: {value}\r\n".encode() for name, value in HEADERS.items())
    for part in (b"", b"POST /mc", head, head + b"Content-Length: 5000\r\n\r\n{", head + b"Content-Length: x\r\n\r\n"):
        door.leave_in_the_middle(part)
    get = head.replace(b"POST", b"GET") + f"mcp-session-id: {session}\r\n\r\n".encode()
    door.leave_in_the_middle(get)
    call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "playbook__p", "arguments": {}}}
    body = json.dumps(call).encode()
    door.leave_in_the_middle(head + f"mcp-session-id: {session}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    assert door.send(b"x" * 4_100_000).status == 413
    for odd in (b"[" * 100_000, b"\xff\xfe", b"null", b"[]", b'{"jsonrpc": "1.0"}', b"{" * 10 + b"NaN"):
        assert door.send(odd, session).status in (400, 406, 422)
    assert door.send({**call, "params": {"name": [], "arguments": 7}}, session).status == 200
    assert door.send(None, session, "DELETE").status == 200
    assert door.send({**call, "id": 4}, session).status == 404, "a session that was ended is gone"
    assert door.send({**call, "id": 4}, "0" * 32).status == 404
    opened = [door.send(INITIALIZE).status for _ in range(MAX_SESSIONS + 5)]
    assert opened.count(200) <= MAX_SESSIONS and opened[-1] == 503


def test_nothing_is_kept_of_sessions_that_are_gone() -> None:
    kept: dict[str, int] = {}
    for number in range(10 * MAX_SESSIONS):
        _remember(kept, str(number), number)
    _remember(kept, str(number - 1), 0)
    assert len(kept) == MAX_SESSIONS and next(reversed(kept)) == str(number - 1)


async def test_so_many_runs_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_calls, "MOST_RUNS", 3)
    (tmp_path / "work").mkdir()
    model = Gated()
    serving = Serving(write(tmp_path / "work", think=THINK), model=model)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(serving.runtime.close)
        client = await stack.enter_async_context(serving.client("auto"))
        running = [asyncio.create_task(client.call_tool("pipeline__think", {})) for _ in range(3)]
        while len(model.calls) < 3:
            await asyncio.sleep(0)
        refused: Any = await client.call_tool("pipeline__think", {})
        assert refused.is_error and "no more than 3 may be" in text(refused)
        model.go.set()
        assert not any(result.is_error for result in await asyncio.gather(*running))
        assert not (await client.call_tool("pipeline__think", {})).is_error
