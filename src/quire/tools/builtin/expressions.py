"""Regular expressions of documents and models, on RE2, with a bound on the time that a search takes.

RE2 takes linear time for any pattern, but some patterns take 30 microseconds for each byte, and one search cannot be
interrupted. So a long line is tried in pieces first, and searched as a whole only if that was quick.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

from quire.errors import ToolFailed
from quire.tools.builtin.patterns import MAX_PATTERN

MAX_PROGRAM = 20_000
SECONDS = 3.0
_SECONDS_A_BYTE = 1e-7
"""What a search may take beyond that; usual patterns take a tenth of it."""

_PIECE = 4096
_SMALL_PROGRAM = 100


class Regex(Protocol):
    def search(self, text: bytes) -> object | None: ...


class _Compiled(Regex, Protocol):
    @property
    def programsize(self) -> int: ...


@dataclass(slots=True)
class Expression:
    """One search through any number of lines, with a budget of processor time for all of them."""

    regex: Regex
    size: int
    _spent: float = 0.0
    _searched: int = 0

    def search(self, line: bytes) -> object | None:
        """Raises `ToolFailed` where the pattern takes too long."""
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
    """Raises `ToolFailed`."""
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
