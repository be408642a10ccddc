"""Sizes as people write them: `20`, `2.5 M`, `40 KB`. `K` and `M` are thousands and millions, `KB` and `MB` bytes.

Durations as people write them: `20ms`, `30s`, `30m`, `24h`, `7d`.
"""

from __future__ import annotations

from msgspec import Struct

from quire.patterns import late_pattern

_WRITTEN_SIZE = late_pattern(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?\s*([kmg]b?)?")
_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "kb": 2**10, "mb": 2**20, "gb": 2**30}
MOST = 10**15
"""No size is larger."""


class Size(Struct, frozen=True):
    count: int
    is_text: bool = False
    """True if it was written in bytes, so that it can only be the size of a text."""

    def __str__(self) -> str:
        if self.is_text and self.count:
            for unit in ("gb", "mb", "kb"):
                if self.count % _UNITS[unit] == 0:
                    return f"{self.count // _UNITS[unit]:,} {unit.upper()}"
        return f"{self.count:,}"


def size_of(value: object) -> Size | None:
    """Return a size that is written as a text or is a whole number; None if it is neither, or too large. A part of one
    counts as one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Size(value) if 0 <= value <= MOST else None
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= len(str(MOST)) - 1:
        return Size(int(value))  # most sizes; no pattern is compiled for them
    match = _WRITTEN_SIZE.fullmatch(value.strip().lower()) if isinstance(value, str) and len(value) < 40 else None
    if match is None:
        return None
    unit, decimals = match[3] or "", match[2] or ""
    count = -(-int(match[1] + decimals) * _UNITS.get(unit, 1) // 10 ** len(decimals))
    return Size(count, unit.endswith("b")) if count <= MOST else None


_WRITTEN_DURATION = late_pattern(r"([0-9]{1,9})\s*(ms|s|m|h|d)")
_LONGEST_DURATION = 1_000_000 * 86400.0
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_of(text: str) -> float | None:
    """Return a duration in seconds; None if the text is not a duration, is 0, or longer than a date can be."""
    match = _WRITTEN_DURATION.fullmatch(text.strip())
    seconds = int(match[1]) * _SECONDS[match[2]] if match else 0.0
    return seconds if 0 < seconds <= _LONGEST_DURATION else None
