"""Double-quoted texts in a row, as `@elicit` has them, with escapes: `"say \\"hi\\"", default:"c"`.

The format has none: a quote ends the text, and the scan reads it so. Only a row that makes no sense that way is read
again with a backslash before a quote meaning the quote itself, so that `"C:\\"` stays what it is.
"""

from __future__ import annotations

import re

_INSIDE = r'[^"\\]*+(?:\\.[^"\\]*+)*'
_ROW = re.compile(rf'((?:\s*+"{_INSIDE}"\s*+(?:,(?!\s*+\Z)|\Z))*)(?:\s*+default:"({_INSIDE})"\s*+)?', re.DOTALL)
_TEXT = re.compile(rf'"({_INSIDE})"', re.DOTALL)


def read_escaped(text: str, at: int, end: int) -> tuple[list[str], str | None] | None:
    """The texts from `at` to `end`, and the default; None for anything but quoted texts with commas between them."""
    match = _ROW.fullmatch(text, at, end)
    if not match or at == end:
        return None
    texts = [one.replace('\\"', '"') for one in _TEXT.findall(match[1])]
    return texts, match[2].replace('\\"', '"') if match[2] is not None else None
