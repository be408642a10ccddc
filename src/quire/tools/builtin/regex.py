"""Patterns of documents and models: globs, and regular expressions with a time limit.

A glob is matched name by name on the way down, so that no folder is opened that cannot contain a match. `*`, `?` and
`[…]` stand for parts of one name, `**` for any number of folders. The states of a pattern are the positions in it that
may come next; matching is linear in the pattern for each name.

Regular expressions run on RE2, which takes linear time for any pattern. But some patterns take 30 microseconds for each
byte, and a search cannot be interrupted. So a long line is tried in pieces first, and searched as a whole only if that
was quick.
"""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Protocol, cast

from msgspec import Struct

from quire.errors import ToolFailed

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
        found: set[int] = set()
        for state in states:
            found.add(state)
            while state < len(self._parts) and self._parts[state] == "**":
                state += 1
                found.add(state)
        return frozenset(found)


MAX_PROGRAM = 20_000
SECONDS = 3.0
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
        found = self.regex.search(text)
        self._spent += time.thread_time() - begun
        self._searched += len(text)
        if self._spent > SECONDS + self._searched * _SECONDS_A_BYTE:
            raise ToolFailed(
                f"the pattern takes too long: {self._spent:.1f} s for {self._searched:,} bytes; repeat less in it",
                kind="timeout",
            )
        return found


def compile_pattern(pattern: str, *, ignore_case: bool = False) -> Expression:
    """Compile a regular expression. Raises `ToolFailed`."""
    if find_spec("re2") is None:
        raise ToolFailed("file__grep needs: pip install google-re2", kind="pattern")
    if len(pattern) > MAX_PATTERN:
        raise ToolFailed(f"a pattern has at most {MAX_PATTERN} characters", kind="pattern")
    re2 = import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        compiled = cast("_Compiled", re2.compile(pattern, options))
    except re2.error as error:
        said = error.args[0] if error.args else "?"
        why = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise ToolFailed(f"the pattern is not one of RE2: {why}", kind="pattern") from None
    if compiled.programsize > MAX_PROGRAM:
        raise ToolFailed(
            f"the pattern is too large: it has {compiled.programsize:,} steps, and {MAX_PROGRAM:,} are allowed; "
            "repeat less in it",
            kind="pattern",
        )
    return Expression(compiled, compiled.programsize)
