"""Write texts of documents as Markdown that they cannot break out of."""

from __future__ import annotations

import re

_TICKS = re.compile(r"`+")


def fenced(text: str, language: str = "") -> str:
    """Return a text in a fence that is longer than any in it."""
    ticks = "`" * max(3, 1 + max((len(one) for one in _TICKS.findall(text)), default=0))
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"


def code(text: str) -> str:
    """Return a text as code in a line. Line ends become spaces."""
    line = " ".join(text.split())
    ticks = "`" * (1 + max((len(one) for one in _TICKS.findall(line)), default=0))
    space = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{ticks}{space}{line}{space}{ticks}"
