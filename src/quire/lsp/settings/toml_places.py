"""Find the tables, keys and values of a TOML text with their places. The text may be half typed.

Python's reader of TOML has no places. This one reads no values: it only knows where they begin and end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from quire.source import Span, line_end

_PART = re.compile(r"""[ \t]*(?:([A-Za-z0-9_-]+)|"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)')[ \t]*""")
_TEXT = re.compile(r""""((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|#[^\n]*""")
_HEADER = re.compile(r"\[[A-Za-z0-9_.\"-]+\][ \t]*(?:#.*)?$", re.MULTILINE)
_QUOTES = ('"""', "'''", '"', "'")


class TomlPart(Struct, frozen=True):
    """One part of a dotted name, without its quotes."""

    text: str
    span: Span


class TomlKey(Struct, frozen=True):
    """A key with its value."""

    parts: tuple[TomlPart, ...]
    """The parts as written here."""
    path: tuple[str, ...]
    """The whole path, with the table around it."""
    value: Span
    """Empty if there is none yet."""


class TomlTable(Struct, frozen=True):
    """A table: its name, and the keys in it."""

    parts: tuple[TomlPart, ...]
    header: Span
    """The line with its name; empty for the top of the file."""
    span: Span
    """From its name to the next table."""
    keys: tuple[TomlKey, ...] = ()

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(part.text for part in self.parts)


@lru_cache(maxsize=4)
def tables_of(text: str) -> list[TomlTable]:
    """Return the tables of a text in their order; the first one is the top of the file. The last texts are kept,
    because each feature asks; the list is not to be changed."""
    tables: list[TomlTable] = []
    parts: tuple[TomlPart, ...] = ()
    header = Span(0, 0)
    start = 0
    keys: list[TomlKey] = []
    at = 0
    while at < len(text):
        end = line_end(text, at)
        first = at
        while first < end and text[first] in " \t":
            first += 1
        if text.startswith("[", first):
            tables.append(TomlTable(parts, header, Span(start, at), tuple(keys)))
            marks = 2 if text.startswith("[[", first) else 1
            parts, _ = _dotted(text, first + marks, end)
            header, start, keys = Span(first, end), first, []
        elif first < end and text[first] != "#":
            read, behind = _entries(text, first, end, len(text), tuple(part.text for part in parts))
            keys += read
            end = line_end(text, behind) if behind >= 0 else end
        at = end + 1
    tables.append(TomlTable(parts, header, Span(start, len(text)), tuple(keys)))
    return tables


def _dotted(text: str, at: int, end: int) -> tuple[tuple[TomlPart, ...], int]:
    """Read a dotted name. Return its parts, and the offset behind it."""
    parts: list[TomlPart] = []
    while match := _PART.match(text, at, end):
        group = next(number for number in (1, 2, 3) if match[number] is not None)
        parts.append(TomlPart(match[group], Span(*match.span(group))))
        at = match.end()
        if not text.startswith(".", at) or at >= end:
            break
        at += 1
    return tuple(parts), at


def _entries(text: str, at: int, end: int, most: int, table: tuple[str, ...]) -> tuple[list[TomlKey], int]:
    """Read a key before `end` with its value before `most`, and the keys in the braces of that. Return them, and the
    offset behind the value; -1 if there is none yet."""
    parts, behind = _dotted(text, at, end)
    if not parts:
        return [], -1
    path = (*table, *(part.text for part in parts))
    if not text.startswith("=", behind):
        return [TomlKey(parts, path, Span(behind, behind))], -1
    start = behind + 1
    while start < most and text[start] in " \t":
        start += 1
    close = min(end_of_value(text, start), most)
    keys = [TomlKey(parts, path, Span(start, close))]
    at = start + 1 if text.startswith("{", start) else close
    while at < close:
        inner, behind = _entries(text, at, close, close, path)
        keys += inner
        comma = text.find(",", behind, close) if behind >= 0 else -1
        at = comma + 1 if comma >= 0 else close
    return keys, close


def end_of_value(text: str, at: int) -> int:
    """Return the end of the value that begins at an offset. A text that is not closed ends with its line."""
    depth = 0
    start = at
    while at < len(text):
        sign = text[at]
        quote = next((quote for quote in _QUOTES if text.startswith(quote, at)), "")
        if quote:
            at = _end_of_quote(text, at, quote)
            continue
        if sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
            if depth <= 0:
                return at + (depth == 0)
        elif sign == "#":
            if depth == 0:
                return at
            at = line_end(text, at)
            continue
        elif (depth == 0 and sign in "\n,") or (depth and sign == "\n" and _begins_table(text, at + 1)):
            break
        at += 1
    while at > start and text[at - 1] in " \t\n":
        at -= 1
    return at


def _begins_table(text: str, at: int) -> bool:
    """Tell whether a line looks like the name of a table, so that a list before it is not closed."""
    return _HEADER.match(text, at) is not None


def _end_of_quote(text: str, at: int, quote: str) -> int:
    at += len(quote)
    while at < len(text):
        if text[at] == "\\" and quote[0] == '"':
            at += 2
        elif text.startswith(quote, at):
            return at + len(quote)
        elif text[at] == "\n" and len(quote) == 1:
            return at
        else:
            at += 1
    return len(text)


def texts_in(text: str, value: Span) -> Iterator[tuple[str, Span]]:
    """Yield the texts of a value, which is a text or a list of them, without their quotes."""
    for match in _TEXT.finditer(text, value.start, value.end):
        if match[0].startswith("#"):
            continue
        group = 1 if match[1] is not None else 2
        yield match[group], Span(*match.span(group))
