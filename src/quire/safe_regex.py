"""Match patterns of hooks with RE2, which takes linear time for every pattern."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Protocol, cast

from quire.values import clean

MAX_PATTERN = 1000


class Pattern(Protocol):
    def search(self, text: str) -> object | None: ...


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Pattern | None:
    """Compile a pattern. Return None if it is too long, if RE2 does not support it, or if RE2 is not installed."""
    if len(pattern) > MAX_PATTERN:
        return None
    try:
        re2 = import_module("re2")
    except ImportError:
        return None
    options = re2.Options()
    options.log_errors = False
    try:
        return cast("Pattern", re2.compile(clean(pattern), options))
    except re2.error:
        return None


def can_match(pattern: str) -> bool:
    """Tell whether a pattern can be used.

    Without RE2 this is not known, and every pattern that is short enough counts as usable.
    """
    return compiled(pattern) is not None or (len(pattern) <= MAX_PATTERN and compiled("") is None)
