"""`--log json`: each line on stderr is one JSON object, whoever writes it."""

from __future__ import annotations

import io
import json
import logging
import os
import socket
import traceback
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

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
