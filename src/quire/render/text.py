"""Text for a terminal: untrusted characters made visible, numbers as people read them.

What a model, a document or a tool wrote is never sent to a terminal as it is: an escape sequence could move the
cursor, change the window's title or hide what stands beside it.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with every control character shown instead of obeyed; lines and tabs stay."""
    return _UNSAFE.sub(_shown, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The same on a single line, for titles and messages."""
    return " ".join(visible(text).split())


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"<U+{code:04X}>"


def duration(seconds: float) -> str:
    """`0.4s`, `12.3s`, `3m 20s`, `2h 05m`."""
    if seconds < 59.95:
        return f"{max(0.0, seconds):.1f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02}m"


def tokens(count: int) -> str:
    return f"{count:,} token{'' if count == 1 else 's'}"


def money(cost: float | None) -> str:
    """Empty for what was free; `$?` where nobody knows the price."""
    if cost is None:
        return "$?"
    return f"${cost:.4f}" if cost else ""


def numbers(seconds: float, count: int, cost: float | None) -> str:
    """What something took: time, tokens and money, as far as there is any."""
    parts = [duration(seconds) if seconds >= 0.05 else "", tokens(count) if count else "", money(cost)]
    return " · ".join(part for part in parts if part)
