"""Search files of the workspace: list, glob, grep. Links are listed but never followed.

A glob is matched name by name on the way down, so that no folder is opened that cannot contain a match. `*`, `?` and
`[…]` stand for parts of one name, `**` for any number of folders. The states of a pattern are the positions in it that
may come next; matching is linear in the pattern for each name.

Regular expressions run on RE2, which takes linear time for any pattern. But some patterns take 30 microseconds for each
byte, and a search cannot be interrupted. So a long line is tried in pieces first, and searched as a whole only if that
was quick.
"""

from __future__ import annotations

import fnmatch
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, cast

from msgspec import Struct

from quire.errors import Denied, ToolFailed
from quire.tools.builtin.files import MAX_FILE
from quire.tools.builtin.paths import KEPT_OUT, Place, Places, fold, open_file, require_regular
from quire.wording import cut

if TYPE_CHECKING:
    from quire.values import Value


MAX_FOUND = 10_000
MAX_DEPTH = 100
MAX_LINE = 500
SEARCH_SECONDS = 30.0


class _Matches(Struct, frozen=True):
    """The matches of a grep so far, up to a limit."""

    lines: list[Value]
    limit: int
    redact: Callable[[str], str] = lambda text: text

    @property
    def full(self) -> bool:
        return len(self.lines) > self.limit


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
            paths: list[str] = []
            for place in self._files(root, pattern, time.monotonic() + SEARCH_SECONDS):
                paths.append(place.path)
                if len(paths) > MAX_FOUND:
                    raise ToolFailed(f"more than {MAX_FOUND:,} files match; narrow the pattern", kind="too_many")
        return sorted(paths)

    def grep(self, arguments: Mapping[str, Value]) -> Value:
        regex = compile_pattern(str(arguments["pattern"]), ignore_case=arguments.get("ignore_case") is True)
        names = str(arguments.get("glob", arguments.get("include", "**")))
        pattern = PathPattern(names if "/" in names else f"**/{names}")
        matches = _Matches([], cast("int", arguments.get("limit", 200)), self._redact)
        until = time.monotonic() + SEARCH_SECONDS
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
        return {"matches": matches.lines[: matches.limit], "truncated": matches.full}

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
                    try:
                        below = self._places.open_folder(entry.name, folder)
                    except (OSError, Denied):
                        continue  # Removed meanwhile, or not readable.
                    yield from self._below(below, (*parts, entry.name), pattern, after, until, depth + 1)
        finally:
            os.close(folder)


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
        raise ToolFailed(f"the search took longer than {SEARCH_SECONDS:g} s; narrow it", kind="timeout")


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
            matches.lines.append({"path": place.path, "line": number, "text": cut(text, MAX_LINE, MAX_LINE)})
            if matches.full:
                return


MAX_PATTERN = 1000

States = frozenset[int]


class PathPattern:
    def __init__(self, text: str) -> None:
        """Raises `ToolFailed` for a pattern that would lead out of the folder."""
        parts = [part for part in text.split("/") if part not in ("", ".")]
        if text.startswith("/") or ".." in parts or "\0" in text:
            raise ToolFailed("a pattern must be relative and must not contain ..", kind="pattern")
        if not parts or len(text) > MAX_PATTERN:
            raise ToolFailed(f"a pattern has 1 to {MAX_PATTERN} characters", kind="pattern")
        # Two in a row mean the same as one, and many of them would make many states.
        self._parts = [part for above, part in pairwise(["", *parts]) if not part == above == "**"]
        self.start = self._closed([0])

    def step(self, states: States, name: str) -> States:
        """Return the states after one more name of the path."""
        after: list[int] = []
        for state in states:
            if state == len(self._parts):
                continue
            part = self._parts[state]
            if part == "**":
                after.append(state)
            elif fnmatch.fnmatchcase(name, part):
                after.append(state + 1)
        return self._closed(after)

    def is_match(self, states: States) -> bool:
        return len(self._parts) in states

    def names(self, states: States, name: str) -> bool:
        """Tell whether the pattern contains exactly this name next, without a wildcard."""
        return any(state < len(self._parts) and self._parts[state] == name for state in states)

    def _closed(self, states: Iterable[int]) -> States:
        closed: set[int] = set()
        for state in states:
            closed.add(state)
            while state < len(self._parts) and self._parts[state] == "**":
                state += 1
                closed.add(state)
        return frozenset(closed)


MAX_PROGRAM = 20_000
PATTERN_SECONDS = 3.0
_SECONDS_A_BYTE = 1e-7
"""Additional seconds for each byte searched; usual patterns take a tenth of it."""

_PIECE = 4096
_SMALL_PROGRAM = 100


class Regex(Protocol):
    def search(self, text: bytes) -> object | None: ...


class _Compiled(Regex, Protocol):
    @property
    def programsize(self) -> int: ...


class Expression(Struct):
    """One search through any number of lines, with one budget of processor time for all of them."""

    regex: Regex
    size: int
    _spent: float = 0.0
    _searched: int = 0

    def search(self, line: bytes) -> object | None:
        """Search one line. Raises `ToolFailed` if the pattern takes too long."""
        if self.size <= _SMALL_PROGRAM:
            return self.regex.search(line)
        if len(line) > _PIECE:
            for start in range(0, len(line), _PIECE):
                self._measured(line[start : start + _PIECE])
        return self._measured(line)

    def _measured(self, text: bytes) -> object | None:
        begun = time.thread_time()
        match = self.regex.search(text)
        self._spent += time.thread_time() - begun
        self._searched += len(text)
        if self._spent > PATTERN_SECONDS + self._searched * _SECONDS_A_BYTE:
            raise ToolFailed(
                f"the pattern takes too long: {self._spent:.1f} s for {self._searched:,} bytes; repeat less in it",
                kind="timeout",
            )
        return match


def compile_pattern(pattern: str, *, ignore_case: bool = False) -> Expression:
    """Compile a regular expression. Raises `ToolFailed`."""
    if find_spec("re2") is None:
        raise ToolFailed("file__grep needs the package google-re2", kind="pattern")
    if len(pattern) > MAX_PATTERN:
        raise ToolFailed(f"a pattern has at most {MAX_PATTERN} characters", kind="pattern")
    re2 = import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        compiled = cast("_Compiled", re2.compile(pattern, options))
    except re2.error as error:
        reason = error.args[0] if error.args else "?"
        why = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ToolFailed(f"the pattern is not valid RE2: {why}", kind="pattern") from None
    if compiled.programsize > MAX_PROGRAM:
        raise ToolFailed(
            f"the pattern is too large: it has {compiled.programsize:,} steps, and {MAX_PROGRAM:,} are allowed; "
            "repeat less in it",
            kind="pattern",
        )
    return Expression(compiled, compiled.programsize)
