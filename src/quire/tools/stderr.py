"""The end of what a server writes to its standard error: kept out of the terminal, shown when it fails."""

from __future__ import annotations

import os
import threading
from typing import TextIO

KEPT = 4_096


class Tail:
    """A pipe for a child process and the last bytes that came through it, in memory and nowhere else.

    A server may write secrets there, so nothing of it goes to a file.
    """

    def __init__(self) -> None:
        self._read, write = os.pipe()
        self.stream: TextIO = os.fdopen(write, "w", encoding="utf-8")
        self._kept = b""
        # A daemon: a grandchild may hold the pipe open long after the server is gone.
        self._thread = threading.Thread(target=self._collect, name="mcp-stderr", daemon=True)
        self._thread.start()

    def started(self) -> None:
        """The child has its own copy of the writing end now; ours would keep the pipe from ending."""
        self.stream.close()

    def text(self, wait: float = 0.2) -> str:
        """The last lines; a dead server's are complete after a moment."""
        self._thread.join(wait)
        return self._kept.decode("utf-8", "replace").strip()

    def _collect(self) -> None:
        with os.fdopen(self._read, "rb", buffering=0) as pipe:
            while chunk := pipe.read(KEPT):
                self._kept = (self._kept + chunk)[-KEPT:]
