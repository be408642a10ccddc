"""Durations as people write them: `20ms`, `30s`, `30m`, `24h`, `7d`."""

from __future__ import annotations

from quire.patterns import late_pattern

_WRITTEN = late_pattern(r"([0-9]{1,9})\s*(ms|s|m|h|d)")
_MOST = 1_000_000 * 86400.0
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_of(text: str) -> float | None:
    """Return a duration in seconds; None if the text is not a duration, is 0, or longer than a date can be."""
    found = _WRITTEN.fullmatch(text.strip())
    seconds = int(found[1]) * _SECONDS[found[2]] if found else 0.0
    return seconds if 0 < seconds <= _MOST else None
