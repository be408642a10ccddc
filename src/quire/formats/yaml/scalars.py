"""What a scalar means: plain ones by the core schema of YAML 1.2, those with one of YAML's own tags by their tag.

So `1`, `+1`, `007`, `0x1F`, `0o17`, `.5`, `1.` and `1e3` are numbers; `on`, `no`, `12:30`, `1_000` and `2026-01-01`,
which YAML 1.1 took for something else, are text, as whoever wrote them most likely meant. `.inf` and `.nan` are numbers
that JSON cannot hold, and so are refused.
"""

from __future__ import annotations

import math
import re

WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER = re.compile(r"[-+]?(?:(\.[0-9]+)|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_KINDS: dict[str, tuple[type, str]] = {
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "bool": (bool, "true or false"),
    "null": (type(None), "null"),
}
TAGS = frozenset(("str", *_KINDS))
"""The tags that YAML itself has for scalars, as they are written after `!!`."""


class NotJson(ValueError):
    """A number that JSON cannot hold; says why."""


class Mismatch(ValueError):
    """A text that is not what its tag says; says so."""


def resolve(text: str) -> None | bool | int | float | str:
    """The value of a plain scalar."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in "-+.0123456789":
        return text
    number = _NUMBER.fullmatch(text)
    if not number:
        if _NO_NUMBER.fullmatch(text):
            raise NotJson(f"{text} is not a JSON value")
        return _based(text) if _BASED.fullmatch(text) else text
    if number.lastindex:
        value = float(text)
        if math.isinf(value):
            raise NotJson(f"{_short(text)} is too large a number")
        return value
    try:
        return int(text)
    except ValueError:  # Python refuses to convert thousands of digits, which takes quadratic time.
        raise NotJson(f"{_short(text)} has too many digits") from None


def tagged(kind: str, text: str) -> None | bool | int | float | str:
    """The value of a scalar with one of `TAGS`, in quotes or not."""
    if kind == "str":
        return text
    type_, meant = _KINDS[kind]
    value = resolve(text)
    if kind == "float" and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise NotJson(f"{_short(text)} is too large a number") from None
    if type(value) is not type_:
        raise Mismatch(f'!!{kind} needs {meant}, not "{_short(text)}"')
    return value


def _based(text: str) -> int:
    value = int(text, 8 if text[1] == "o" else 16)
    try:
        str(value)
    except ValueError:  # JSON has only decimal digits, and there are too many of them.
        raise NotJson(f"{_short(text)} has too many digits") from None
    return value


def _short(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:17]}…"
