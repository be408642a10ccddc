"""Make text from documents safe for a terminal: nothing in it moves the cursor, changes colours or reverses the
line."""

from __future__ import annotations

import codecs
import re
import unicodedata

# C0 and C1 controls, lone surrogates, line separators, the marks that reverse the order of what is read, and letters
# that only hide something: tag characters, word joiners and invisible operators, annotations.
_HIDDEN = (
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)

# JSON has escapes for C0 controls already, apart from the line ends between its values.
_HIDDEN_IN_JSON = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"

PLAINER = "quire.plainer"
"""Name of the error handler for characters that an encoding does not have: `errors=PLAINER`."""
_SIGNS = {"·": "-", "…": "...", "→": "->", "↳": ">", "│": "|", "–": "-", "—": "-", "×": "x"}


def visible(text: str) -> str:
    """Show every hidden character of a text as a picture or an escape."""
    return text if text.isascii() and text.isprintable() else re.sub(_HIDDEN, _shown, text)


def in_encoding(text: str, encoding: str) -> str:
    """Return the text in characters of an encoding: a simpler sign for each sign of ours, an escape for any other."""
    return text.encode(encoding, PLAINER).decode(encoding)


def _plainer(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    signs = (_SIGNS.get(character) or character.encode("ascii", "backslashreplace").decode() for character in missing)
    return "".join(signs), error.end


codecs.register_error(PLAINER, _plainer)


def escaped(encoded: str) -> str:
    """Write every hidden character of a JSON text as an escape. Decoding it gives the same value."""
    return re.sub(_HIDDEN_IN_JSON, lambda match: f"\\u{ord(match[0]):04x}", encoded)


def width(text: str) -> int:
    """Return how many columns a visible text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
