"""What a plain scalar means: `true`, `false`, `null` and numbers as JSON writes them; all else is text.

So `on`, `no`, `12:30`, `007`, `0x1F`, `1_000` and `2026-01-01` are text, as whoever wrote them most likely meant. The
three words may be capitalised as in YAML 1.2, and `~` and nothing at all are null.
"""

from __future__ import annotations

import math
import re

WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


class NotJson(ValueError):
    """A number that JSON cannot hold; says why."""


def resolve(text: str) -> None | bool | int | float | str:
    if text in WORDS:
        return WORDS[text]
    if text[0] not in "-+.0123456789":
        return text
    number = _NUMBER.fullmatch(text)
    if not number:
        if _NO_NUMBER.fullmatch(text):
            raise NotJson(f"{text} is no JSON value")
        return text
    if number[1] or number[2]:
        value = float(text)
        if math.isinf(value):
            raise NotJson(f"{_short(text)} is too large a number")
        return value
    try:
        return int(text)
    except ValueError:  # Python refuses to convert thousands of digits, which takes quadratic time.
        raise NotJson(f"{_short(text)} has too many digits") from None


def _short(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:17]}…"
