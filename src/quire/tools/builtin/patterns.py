"""Glob patterns, matched name by name on the way down, so that no folder is opened that cannot hold a match.

`*`, `?` and `[…]` stand for parts of one name, `**` for any number of folders. The states of a pattern are the
places in it that may come next; matching is linear in the pattern for each name.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from itertools import pairwise

from quire.errors import ToolFailed

MAX_PATTERN = 1000

States = frozenset[int]


class Pattern:
    def __init__(self, text: str) -> None:
        """Raises `ToolFailed` for one that would lead out of the folder."""
        parts = [part for part in text.split("/") if part not in ("", ".")]
        if text.startswith("/") or ".." in parts or "\0" in text:
            raise ToolFailed("a pattern must be relative and must not contain ..", kind="pattern")
        if not parts or len(text) > MAX_PATTERN:
            raise ToolFailed(f"a pattern has 1 to {MAX_PATTERN} characters", kind="pattern")
        # Two in a row mean the same as one, and many of them would make many states.
        self._parts = [part for above, part in pairwise(["", *parts]) if not part == above == "**"]
        self.start = self._closed([0])

    def step(self, states: States, name: str) -> States:
        """The states after one more name of the path."""
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
        """Whether the pattern spells this very name next, without a wildcard."""
        return any(state < len(self._parts) and self._parts[state] == name for state in states)

    def _closed(self, states: Iterable[int]) -> States:
        found: set[int] = set()
        for state in states:
            found.add(state)
            while state < len(self._parts) and self._parts[state] == "**":
                state += 1
                found.add(state)
        return frozenset(found)
