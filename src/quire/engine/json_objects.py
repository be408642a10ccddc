"""The JSON objects that stand in a text, between prose, in one linear pass.

A decoder that is tried at every brace is quadratic: each failure costs as much as the text is long. Here the text
is read token by token. Where the JSON breaks off, every object that is still open can never be closed (read
from its own brace, it meets the same break), those that were complete are kept, and reading goes on at the
first brace that was taken for part of a string.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from quire.values import Value, decode_object

_TOKEN = re.compile(
    r"""[ \t\r\n]*+(?:
        (?P<mark>[{}\[\]:,])
      | (?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*")
      | (?P<atom>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![0-9.eE])|true|false|null)
    )""",
    re.VERBOSE | re.DOTALL,
)

_CUT = re.compile(
    r"""[ \t\r\n]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*\\?|-?[0-9.]*+[eE]?[+-]?|t(?:ru?)?|f(?:al?s?)?|n(?:ul?)?)?""", re.DOTALL
)
"""What may be left of a token where a text is cut off."""

# What may come next: a value; a value or the end of an empty list; a key; a key or the end of an empty object; a
# colon; a comma or the end of what is open.
_VALUE, _VALUE_OR_END, _KEY, _KEY_OR_END, _COLON, _COMMA_OR_END = range(6)


@dataclass(frozen=True, slots=True)
class FoundObject:
    start: int
    end: int
    value: Mapping[str, Value]


def json_objects(text: str) -> list[FoundObject]:
    """In the order of the text; an object inside another is part of it and not listed."""
    found: list[FoundObject] = []
    for start, end in _spans(text):
        with contextlib.suppress(ValueError):
            found.append(FoundObject(start, end, decode_object(text, start)))
    return found


def open_object(text: str) -> int | None:
    """Where an object begins that the end of the text cuts off; None where there is none."""
    seen: set[int] = set()
    at = text.find("{")
    while at >= 0:
        if at not in seen:
            stopped = _read(text, at, [], seen)
            if stopped is not None and _CUT.fullmatch(text, stopped):
                return at
        at = text.find("{", at + 1)
    return None


def _spans(text: str) -> list[tuple[int, int]]:
    complete: list[tuple[int, int]] = []
    seen: set[int] = set()
    at = text.find("{")
    while at >= 0:
        if at not in seen:
            _read(text, at, complete, seen)
        at = text.find("{", at + 1)
    outermost: list[tuple[int, int]] = []
    for start, end in sorted(complete):
        if not outermost or start >= outermost[-1][1]:
            outermost.append((start, end))
    return outermost


def _read(text: str, at: int, complete: list[tuple[int, int]], seen: set[int]) -> int | None:
    """Reads one value from a brace on until it ends or breaks off, noting the objects that were complete.

    Returns where no token could be read; None where the value ended, or where a token did not fit.
    """
    open_at: list[int] = []
    expected = _VALUE
    while True:
        token = _TOKEN.match(text, at)
        if token is None:
            return at
        at = token.end()
        mark = token["mark"]
        if mark is None:
            if expected in (_KEY, _KEY_OR_END) and token["text"] is not None:
                expected = _COLON
            elif expected in (_VALUE, _VALUE_OR_END):
                expected = _COMMA_OR_END
            else:
                return None
        elif mark in "{[":
            if expected not in (_VALUE, _VALUE_OR_END):
                return None
            if mark == "{":
                seen.add(at - 1)
            open_at.append(at - 1)
            expected = _KEY_OR_END if mark == "{" else _VALUE_OR_END
        elif mark in "}]":
            opened = "{" if mark == "}" else "["
            fits = expected in (_COMMA_OR_END, _KEY_OR_END if mark == "}" else _VALUE_OR_END)
            if not fits or text[open_at[-1]] != opened:
                return None
            start = open_at.pop()
            if mark == "}":
                while complete and complete[-1][0] > start:
                    complete.pop()
                complete.append((start, at))
            if not open_at:
                return None
            expected = _COMMA_OR_END
        elif mark == ":":
            if expected != _COLON:
                return None
            expected = _VALUE
        else:
            if expected != _COMMA_OR_END:
                return None
            expected = _KEY if text[open_at[-1]] == "{" else _VALUE
