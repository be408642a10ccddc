"""`--log json`: each line on stderr is one JSON object, whoever writes it."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import socket
import subprocess
import traceback
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.given import given
from tests.processes import wait_until
from tests.warm import run_quire, start_quire

from quire.telemetry.logs import JsonLines, line_of


def read(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_line_has_time_level_message_process_and_run() -> None:
    line = line_of("run 1k3zr0a-9xk2m: the disk is full")
    assert {*line} == {"time", "level", "message", "process", "run"}
    assert line["run"] == "1k3zr0a-9xk2m"
    assert line["process"] == f"{os.getpid()}@{socket.gethostname()}", "as `quire worker list` names it"
    assert datetime.now(UTC) - datetime.fromisoformat(line["time"]) < timedelta(minutes=1)
    assert "run" not in line_of("runs 1k3zr0a-9xk2m, and running")


@pytest.mark.parametrize(
    ("message", "level"),
    [
        ("serving /work", "info"),
        ("error in the third word", "error"),
        ("warning: step 2 asks a person", "warning"),
        ("WARNING:  Invalid HTTP request received.", "warning"),
        ("Traceback (most recent call last):\n  …", "error"),
        ("the error was mended", "info"),
    ],
)
def test_the_level_is_the_first_word(message: str, level: str) -> None:
    assert line_of(message)["level"] == level


def test_a_message_of_several_lines_is_one_object() -> None:
    lines = JsonLines(out := io.StringIO())
    lines.write("quire: one\n  two \N{SNOWMAN}\x1b[31m\n")
    print("three", 4, file=lines)
    (first, second) = read(out.getvalue())
    assert (first["message"], second["message"]) == ("one\n  two \N{SNOWMAN}\x1b[31m", "three 4")
    assert out.getvalue().isascii()


def test_logs_and_tracebacks_of_python_pass_too() -> None:
    lines = JsonLines(out := io.StringIO())
    logger = logging.getLogger("tests.telemetry")
    handler = logging.StreamHandler(lines)
    logger.addHandler(handler)
    try:
        raise ValueError("a mistake\nof ours")
    except ValueError:
        logger.exception("it broke")
        traceback.print_exc(file=lines)
    finally:
        logger.removeHandler(handler)
    logged, *rest = read(out.getvalue())
    assert "it broke" in logged["message"] and "of ours" in logged["message"]
    assert "ValueError" in " ".join(line["message"] for line in rest)


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
