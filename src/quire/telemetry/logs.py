"""The lines of stderr as JSON objects, for programs that collect logs."""

from __future__ import annotations

import io
import json
import os
import re
import socket
from datetime import UTC, datetime
from typing import TextIO

from quire.telemetry import TRACE

_RUN = re.compile(r"\brun ([0-9a-z]{7}-[0-9a-z]{5})\b")
_LEVEL = re.compile(r"(warning|error|critical|traceback)\b", re.IGNORECASE)


class JsonLines(io.TextIOBase):
    """A stream that writes each message to another one as a JSON object. Python's own logs and tracebacks pass too."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._text = stream, ""
        self.fileno = stream.fileno  # type: ignore[method-assign]  # servers of tools inherit it

    def write(self, text: str) -> int:
        self._text += text
        if text.endswith("\n"):
            line, self._text = line_of(self._text.strip().removeprefix("quire: ")), ""
            print(json.dumps(line), file=self._stream, flush=True)
        return len(text)


def line_of(message: str) -> dict[str, str]:
    """Return a line. The words for people say its level, and which run it is about."""
    level, run = _LEVEL.match(message), _RUN.search(message)
    about = {"run": run[1] if run else "", "trace_id": TRACE.get()}
    return {
        "time": datetime.now(UTC).isoformat(),
        "level": level[1].lower().replace("traceback", "error") if level else "info",
        "message": message,
        "process": f"{os.getpid()}@{socket.gethostname()}",
        **{name: text for name, text in about.items() if text},
    }
