"""Files that start runs: those that match a pattern of the workspace, once their contents have stopped changing.

They are polled, because network mounts report no changes, and opened as file tools do it: below the workspace, never
through a link, without waiting, regular files only.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from quire.errors import CannotStart, Denied, ToolFailed
from quire.tools.builtin.file_search import Finder, PathPattern
from quire.tools.builtin.paths import KEPT_OUT, Places, fold, open_file

if TYPE_CHECKING:
    from quire.workspace.settings import Settings

LARGEST = 64_000_000
MOST_TAKEN = 100
"""Files that one look returns; the next one returns others."""


class WatchedFile(Struct, frozen=True):
    path: str
    size: int
    key: str
    """A hash of path and contents."""
    mark: tuple[int, ...]
    """It changes with the contents."""


class WatchedFiles:
    """The files of one pattern. `settled` are the marks of those that the caller is done with, by their paths."""

    def __init__(self, settings: Settings, pattern: str, report: Callable[[str], None]) -> None:
        """Raises `ToolFailed` or `CannotStart` for a pattern that leads out of the workspace or into a closed place."""
        PathPattern(pattern)
        if closed := {fold(part) for part in pattern.split("/")} & KEPT_OUT:
            raise CannotStart(f"files: {', '.join(closed)} is closed to triggers")
        self._places = Places(settings.workspace.folder, [settings.user])
        self._pattern, self._report = pattern, report
        self._seen: dict[str, tuple[int, ...]] = {}
        self.settled: dict[str, tuple[int, ...]] = {}

    def look(self) -> list[WatchedFile]:
        """Return files that are as they were at the look before, and not settled."""
        before, self._seen, files = self._seen, {}, list[WatchedFile]()
        for path in cast("list[str]", Finder(self._places).glob({"pattern": self._pattern})):
            # One that is gone or cannot be read holds up no other.
            with suppress(ToolFailed, Denied, OSError), self._places.locate(path) as place:
                status = place.status()
                if status is None or place.path != path:  # a link
                    continue
                mark = self._seen[path] = _mark(status)
                if mark != before.get(path) or mark == self.settled.get(path) or len(files) >= MOST_TAKEN:
                    continue
                if status.st_size > LARGEST:
                    self.settled[path] = mark
                    self._report(f"{path} has more than {LARGEST:,} bytes and starts nothing")
                    continue
                with os.fdopen(open_file(place), "rb") as file:
                    digest = hashlib.sha256(os.fsencode(path) + b"\0")
                    digest.update(file.read(LARGEST + 1))
                    if _mark(os.fstat(file.fileno())) == mark:
                        files.append(WatchedFile(path, status.st_size, digest.hexdigest(), mark))
        self.settled = {path: mark for path, mark in self.settled.items() if path in self._seen}
        return files


def _mark(status: os.stat_result) -> tuple[int, ...]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
