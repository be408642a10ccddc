"""Search files of the workspace: list, glob, grep. Links are listed but never followed."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from quire.errors import Denied, ToolFailed
from quire.tools.builtin.files import MAX_FILE
from quire.tools.builtin.paths import Place, Places, open_file, require_regular
from quire.tools.builtin.protected import KEPT_OUT, fold
from quire.tools.builtin.regex import PathPattern, Regex, States, compile_pattern
from quire.wording import cut

if TYPE_CHECKING:
    from quire.values import Value

MAX_FOUND = 10_000
MAX_DEPTH = 100
MAX_LINE = 500
SECONDS = 30.0


class _Matches(Struct, frozen=True):
    """The matches of a grep so far, up to a limit."""

    found: list[Value]
    limit: int
    redact: Callable[[str], str] = lambda text: text

    @property
    def full(self) -> bool:
        return len(self.found) > self.limit


class Finder:
    def __init__(self, places: Places, redact: Callable[[str], str] = lambda text: text) -> None:
        self._places = places
        self._redact = redact

    def list(self, arguments: Mapping[str, Value]) -> Value:
        path = str(arguments.get("path", "."))
        with self._places.locate(path) as place:
            folder = self._places.open_folder(place.name, place.folder)
            try:
                entries = sorted(_entries(folder), key=lambda entry: entry.name)
                if len(entries) > MAX_FOUND:
                    raise ToolFailed(
                        f"{place.path} has more than {MAX_FOUND:,} entries; use file__glob", kind="too_many"
                    )
                return [_described(entry) for entry in entries]
            finally:
                os.close(folder)

    def folder(self, path: str) -> str:
        """Return the real path of a folder in the workspace, empty for the workspace itself. Raises `ToolFailed`."""
        with self._places.locate(path) as place:
            os.close(self._places.open_folder(place.name, place.folder))
            return "/".join(place.parts)

    def glob(self, arguments: Mapping[str, Value]) -> Value:
        pattern = PathPattern(str(arguments["pattern"]))
        with self._places.locate(str(arguments.get("path", "."))) as root:
            found: list[str] = []
            for place in self._files(root, pattern, time.monotonic() + SECONDS):
                found.append(place.path)
                if len(found) > MAX_FOUND:
                    raise ToolFailed(f"more than {MAX_FOUND:,} files match; narrow the pattern", kind="too_many")
        return sorted(found)

    def grep(self, arguments: Mapping[str, Value]) -> Value:
        regex = compile_pattern(str(arguments["pattern"]), ignore_case=arguments.get("ignore_case") is True)
        names = str(arguments.get("glob", arguments.get("include", "**")))
        pattern = PathPattern(names if "/" in names else f"**/{names}")
        matches = _Matches([], cast("int", arguments.get("limit", 200)), self._redact)
        until = time.monotonic() + SECONDS
        with self._places.locate(str(arguments.get("path", "."))) as place:
            status = place.status()
            if status is None:
                raise ToolFailed(f"{place.path}: no such file or directory", kind="file")
            if not stat.S_ISDIR(status.st_mode):
                require_regular(status, place.path)
                _search(place, regex, matches, until)
            else:
                for file in self._files(place, pattern, until):
                    _search(file, regex, matches, until)
                    if matches.full:
                        break
        return {"matches": matches.found[: matches.limit], "truncated": matches.full}

    def _files(self, top: Place, pattern: PathPattern, until: float) -> Iterator[Place]:
        """Yield the matching files under a folder, ordered by path. The folder of each is open while it is being
        used."""
        folder = self._places.open_folder(top.name, top.folder)
        yield from self._below(folder, top.parts, pattern, pattern.start, until, 0)

    def _below(
        self, folder: int, parts: tuple[str, ...], pattern: PathPattern, states: States, until: float, depth: int
    ) -> Iterator[Place]:
        try:
            if depth > MAX_DEPTH:
                raise ToolFailed(f"{'/'.join(parts[:3])}/… is nested too deep to be searched", kind="too_many")
            for entry in sorted(_entries(folder), key=lambda entry: entry.name):
                _check_time(until)
                after = pattern.step(states, entry.name)
                if not after:
                    continue
                if not entry.is_dir(follow_symlinks=False):
                    if pattern.is_match(after) and (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                        yield Place(folder, entry.name, (*parts, entry.name))
                elif fold(entry.name) not in KEPT_OUT or pattern.names(states, entry.name):
                    below = self._opened(entry.name, folder)
                    if below is not None:
                        yield from self._below(below, (*parts, entry.name), pattern, after, until, depth + 1)
        finally:
            os.close(folder)

    def _opened(self, name: str, at: int) -> int | None:
        try:
            return self._places.open_folder(name, at)
        except (OSError, Denied):
            # Removed meanwhile, or not readable.
            return None


def _entries(folder: int) -> list[os.DirEntry[str]]:
    # The iterator works on a copy of the handle, and the entries on the handle itself: it stays open.
    with os.scandir(folder) as entries:
        return list(entries)


def _described(entry: os.DirEntry[str]) -> Value:
    if entry.is_symlink():
        return {"name": entry.name, "type": "link"}
    if entry.is_dir(follow_symlinks=False):
        return {"name": entry.name, "type": "folder"}
    if not entry.is_file(follow_symlinks=False):
        return {"name": entry.name, "type": "other"}
    return {"name": entry.name, "type": "file", "bytes": entry.stat(follow_symlinks=False).st_size}


def _check_time(until: float) -> None:
    if time.monotonic() > until:
        raise ToolFailed(f"the search took longer than {SECONDS:g} s; narrow it", kind="timeout")


def _search(place: Place, regex: Regex, matches: _Matches, until: float) -> None:
    """Add the matching lines of a file. Files that are not text, or too large, are skipped."""
    try:
        with os.fdopen(open_file(place), "rb") as file:
            data = file.read(MAX_FILE + 1)
    except (OSError, ToolFailed):
        return
    if not data or len(data) > MAX_FILE or b"\0" in data:
        return
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), 1):
        _check_time(until)
        if regex.search(line) is not None:
            text = matches.redact(line.removesuffix(b"\r").decode("utf-8", "replace"))
            shown = cut(text, MAX_LINE, MAX_LINE)
            matches.found.append({"path": place.path, "line": number, "text": shown})
            if matches.full:
                return
