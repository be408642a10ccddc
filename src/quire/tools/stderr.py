"""The end of what a server writes to its standard error: kept out of the terminal, shown when it fails."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TextIO

SHOWN = 4_096
KEPT = 65_536
"""More than is shown: secrets are taken out before the cut, and a secret that is cut in two would not be found."""


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

    def text(self, redact: Callable[[str], str] = lambda text: text, wait: float = 0.2) -> str:
        """The last lines, without what `redact` takes out; a dead server's are complete after a moment."""
        self._thread.join(wait)
        return redact(self._kept.decode("utf-8", "replace"))[-SHOWN:].strip()

    def _collect(self) -> None:
        with os.fdopen(self._read, "rb", buffering=0) as pipe:
            while chunk := pipe.read(KEPT):
                self._kept = (self._kept + chunk)[-KEPT:]
