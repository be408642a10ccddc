"""Text from documents, fit for a terminal: nothing in it moves the cursor, changes colours or turns the line around."""

from __future__ import annotations

import re
import unicodedata

# C0 and C1 controls, lone surrogates, line separators, and the marks that reverse the order of what is read.
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def visible(text: str) -> str:
    """The text with every hidden character shown as a picture or an escape."""
    return text if text.isascii() and text.isprintable() else _HIDDEN.sub(_shown, text)


def width(text: str) -> int:
    """How many columns a visible text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
