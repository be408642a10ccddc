"""Patterns that are compiled when they are first used.

Compiling a pattern takes a third of a millisecond, and a command uses few of the patterns of the modules that it loads:
compiled with their modules, they would take a tenth of the time of `quire run`.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


def late_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` returns, without compiling it yet. A wrong pattern raises when it is used."""
    return cast("re.Pattern[AnyStr]", _LatePattern(text, flags))


class _LatePattern:
    """Stands for a pattern, and keeps each of its methods that was asked for."""

    def __init__(self, text: Any, flags: int) -> None:
        self._written = text, flags

    def __getattr__(self, name: str) -> Any:
        member = getattr(re.compile(*self._written), name)
        setattr(self, name, member)
        return member
