"""A real `quire lsp` process, for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.processes import started

from quire.lsp.desk import uri_of

COMMAND = [str(Path(sys.executable).with_name("quire")), "lsp"]


class LanguageServer:
    """The process, and the messages that it has sent."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._next = 0
        self.told: list[dict[str, Any]] = []

    def send(self, message: Mapping[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Return the next message."""
        assert self.process.stdout is not None
        length = 0
        while line := self.process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            assert name == b"Content-Length", line
            length = int(value)
        assert length, "the server has ended"
        message: dict[str, Any] = json.loads(self.process.stdout.read(length))
        return message

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        self._next += 1
        self.send({"id": self._next, "method": method, "params": params})
        while (message := self.receive()).get("id") != self._next or "method" in message:
            self.told.append(message)
        return message["result"]

    def begin(self, folder: Path, capabilities: Mapping[str, Any] | None = None, process: int | None = None) -> None:
        folders = [{"uri": uri_of(str(folder)), "name": "work"}]
        self.ask(
            "initialize",
            {"processId": process, "capabilities": dict(capabilities or {}), "workspaceFolders": folders},
        )
        self.send({"method": "initialized", "params": {}})

    def open(self, path: Path, text: str) -> None:
        item = {"uri": uri_of(str(path)), "languageId": "markdown", "version": 1, "text": text}
        self.send({"method": "textDocument/didOpen", "params": {"textDocument": item}})

    def findings(self, path: Path) -> list[str]:
        """Wait for the next findings about a document and return their codes."""
        while (message := self.receive()).get("method") != "textDocument/publishDiagnostics" or message["params"][
            "uri"
        ] != uri_of(str(path)):
            self.told.append(message)
        return [one["code"] for one in message["params"]["diagnostics"]]


@contextmanager
def language_server(folder: Path, *arguments: str) -> Iterator[LanguageServer]:
    """Start the server in a workspace; it is ended with the test."""
    environment = {**os.environ, "QUIRE_HOME": str(folder.parent / "home")}
    with started(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        yield LanguageServer(process)
