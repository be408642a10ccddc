"""`quire serve --log json` as a process: every line on its stderr is JSON, from its start to its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.given import given
from tests.processes import wait_until
from tests.warm import run_quire, start_quire


def read(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_server_reports_in_json(tmp_path: Path) -> None:
    folder = given({"quire.toml": ""}, tmp_path / "team")
    files = {name: tmp_path / name for name in ("out", "err")}
    with files["out"].open("wb") as out, files["err"].open("wb") as err:
        arguments = ["serve", "--no-open", "--log", "json", "--debug"]
        process = start_quire(arguments, cwd=folder, env=dict(os.environ), stdout=out.fileno(), stderr=err.fileno())
    try:
        wait_until(lambda: "Ctrl-C ends" in files["err"].read_text(), lambda: files["err"].read_text())
        place = urlsplit(files["out"].read_text().strip())
        for request in (b"GET /\x00 nothing\r\n\r\n", b"GET /api/v1/now HTTP/1.1\r\nHost: x\r\n\r\n"):
            with socket.create_connection((str(place.hostname), place.port or 0)) as client:
                client.sendall(request)
                assert client.recv(100)
        process.send_signal(signal.SIGINT)
        process.wait(30)
    finally:
        process.kill()
        process.wait()
    lines = read(files["err"].read_text())
    messages = {line["message"]: line["level"] for line in lines}
    assert f"serving {folder}" in messages
    assert any(message.startswith("GET /api/v1/now 4") for message in messages)
    assert [level for message, level in messages.items() if "Invalid HTTP request" in message] == ["warning"]


def test_a_server_that_cannot_start_says_so_in_json(tmp_path: Path) -> None:
    folder = given({"quire.toml": ""}, tmp_path / "team")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        arguments = ["serve", "--log", "json", "--port", str(taken.getsockname()[1])]
        done: subprocess.CompletedProcess[str] = run_quire(arguments, cwd=folder, env=dict(os.environ))
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = read(done.stderr)
    assert "cannot listen on 127.0.0.1" in line["message"]
