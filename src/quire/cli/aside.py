"""stdout belongs to the result of a run and, with `--json`, to its events: what else is written there is talk.

A Python tool prints, a module of tools does while it is loaded, a program that a tool starts inherits the stream. Tools
run side by side and in threads, so nothing is set for one call: as long as a run is driven, all of it goes to stderr.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO

STDOUT, STDERR = 1, 2


@contextlib.contextmanager
def stdout_aside() -> Iterator[TextIO]:
    """Gives the stream that is stdout for us meanwhile; it can be written to afterwards as well."""
    mine = sys.stdout
    if not _is_the_real_one(mine):
        with contextlib.redirect_stdout(sys.stderr):
            yield mine
        return
    mine.flush()
    kept = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield os.fdopen(os.dup(kept), "w", encoding="utf-8", errors="backslashreplace", newline="\n")
    finally:
        with contextlib.suppress(OSError, ValueError):
            # Of those who held on to the stream itself: it must not come after what is ours.
            mine.flush()
        os.dup2(kept, STDOUT)
        os.close(kept)


def _is_the_real_one(stream: TextIO) -> bool:
    try:
        return stream.fileno() == STDOUT
    except (OSError, ValueError):
        return False
