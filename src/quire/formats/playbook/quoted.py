"""Double-quoted texts in a row, as `@elicit` has them: `"a", "b", default:"c"`.

The format has no escapes: a quote ends the text. Only when a row makes no sense that way is it read again with a
backslash before a quote meaning the quote itself, so that `"C:\\"` stays what it is and `"say \\"hi\\""` works.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PLAIN = re.compile(r'"([^"]*+)"\s*+')
_ESCAPED = re.compile(r'"((?:[^"\\]|\\.)*+)"\s*+', re.DOTALL)
_DEFAULT = "default:"
_SPACE = re.compile(r"\s*+")


@dataclass(frozen=True, slots=True)
class Row:
    texts: tuple[str, ...]
    default: str | None
    escaped: bool


def read_row(text: str, at: int, end: int) -> Row | None:
    """The texts from `at` to `end`; None when they are anything but quoted texts with commas between them."""
    return _read(_PLAIN, text, at, end) or _read(_ESCAPED, text, at, end)


def _read(pattern: re.Pattern[str], text: str, at: int, end: int) -> Row | None:
    escaped = pattern is _ESCAPED
    texts: list[str] = []
    while True:
        at = _skip_space(text, at, end)
        named = text.startswith(_DEFAULT, at, end)
        match = pattern.match(text, at + len(_DEFAULT) if named else at, end)
        if not match:
            return None
        value = match[1].replace('\\"', '"') if escaped else match[1]
        at = match.end()
        if named:
            return Row(tuple(texts), value, escaped) if at == end else None
        texts.append(value)
        if at == end:
            return Row(tuple(texts), None, escaped)
        if text[at] != ",":
            return None
        at += 1


def _skip_space(text: str, at: int, end: int) -> int:
    match = _SPACE.match(text, at, end)
    return match.end() if match else at
