"""Find where in a YAML text an offset stands, by its lines alone: the text may be half typed and need not be YAML.

A place is the path of keys to it, `-` for an item of a list: `cases`, `-`, `expect`, `steps`. Parts in braces and
brackets are read character by character, all others by their indentation.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, TypeAlias

from msgspec import Struct

from quire.lsp.test.yaml_flow import flow_place, keys_ahead
from quire.source import Span

Kind: TypeAlias = Literal["key", "value", "text"]
"""`key`: a key is or could be here; `value`: the value of a key or an item; `text`: inside of a text of several lines,
or after a value that is complete."""

ITEM = "-"
_KEY = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#"'{}\[\],&*!|>%@`-][^#:\n]*?|-[^\s#:\n][^#:\n]*?)[ \t]*:(?=[ \t]|$)"""
)
_MARKER = re.compile(r"-(?=[ \t]|$)[ \t]*")
_ENDS = re.compile(r"[,{}\[\]\n]|:(?=\s|$)| #")
_QUOTES = "\"'"
_WALKED = 50
"""Lines that are looked at one by one before the text is searched."""


class Place(Struct, frozen=True):
    """A place in a test file."""

    path: tuple[str, ...]
    """For a key the path of the mapping around it, for a value that of the value itself."""
    kind: Kind
    word: Span
    """The key or the value that is there, as far as it is typed, without quotes."""
    present: frozenset[str] = frozenset()
    """The other keys of the mapping."""
    in_flow: bool = False
    """True inside of braces or brackets."""
    tag: str = ""
    """`!expr` or `!snapshot` before the value."""


class _Line(Struct, frozen=True):
    """The structure of one line: the columns of its item marks and of its key, and where the rest begins."""

    marks: tuple[int, ...]
    key: str | None
    column: int
    """Of the key, or of the text if there is no key."""
    rest: int
    """The column of what stands after the key, or of the text."""


def place_at(text: str, offset: int, *, whole: bool = False) -> Place:
    """Return the place of an offset. With `whole` the word under the cursor counts up to its end."""
    end = offset
    if whole:
        found = _ENDS.search(text, offset)
        end = found.start() if found else len(text)
        while end > offset and text[end - 1] in " \t\"'":
            end -= 1
    start = text.rfind("\n", 0, end) + 1
    before = text[start:end]
    line = _structure(before)
    around = _around(text, start, line, end)
    if (opened := _opened(text, around, end)) is not None:
        return opened
    path = (*around.path, *((ITEM,) if line.marks else ()))
    begin = start + line.column
    if line.key is not None:
        return _value(text, start + line.rest, end, (*path, line.key))
    if begin < end and text[begin] in "{[":
        return _in_flow(text, path, begin, end)
    if text.startswith("!", begin) and begin < end:
        return _value(text, begin, end, path)
    present = _siblings(text, start, line.column, bool(line.marks))
    return Place(path, "key", _unquoted(text, begin, end), present)


class _Around(Struct, frozen=True):
    """The surroundings of a line: the path to it, and the value that is open there if that is not a block."""

    path: tuple[str, ...]
    rest: int = -1
    """The offset of a text that began at a key above and goes on here; -1 if there is none."""


def _structure(line: str) -> _Line:
    at = len(line) - len(line.lstrip(" \t"))
    marks: list[int] = []
    while found := _MARKER.match(line, at):
        marks.append(at)
        at = found.end()
    key = _KEY.match(line, at)
    if key is None:
        return _Line(tuple(marks), None, at, at)
    rest = key.end()
    while rest < len(line) and line[rest] in " \t":
        rest += 1
    return _Line(tuple(marks), bare(key[1]), at, rest)


def bare(word: str) -> str:
    """Return a key without its quotes."""
    word = word.strip()
    return word[1:-1] if len(word) > 1 and word[0] in _QUOTES and word[-1] == word[0] else word.lstrip(_QUOTES)


def _around(text: str, start: int, line: _Line, cursor: int) -> _Around:
    """Go up from the line at `start`, and collect what is indented less. An item may stand in the same column as the
    key of its list."""
    limit, after_mark = (line.marks[0], True) if line.marks else (line.column, False)
    path: list[str] = [ITEM for _ in line.marks[1:]]
    rest = -1
    is_nearest = True
    end = start - 1
    walked = 0
    while end >= 0 and (limit > 0 or after_mark):
        walked += 1
        if walked > _WALKED and (end := _line_above(text, end, limit, after_mark)) < 0:
            break
        begin = text.rfind("\n", 0, end) + 1
        first = begin
        while first < end and text[first] in " \t":
            first += 1
        column = first - begin
        if first < end and text[first] != "#" and (column < limit or (after_mark and column == limit)):
            above = _structure(text[begin:end])
            if above.key is not None and (above.column < limit or (after_mark and above.column == limit)):
                if _goes_on(text, begin + above.rest, end, cursor, is_nearest):
                    path, rest = [], begin + above.rest
                path.append(above.key)
                limit, after_mark, is_nearest = above.column, False, False
            for mark in reversed(above.marks):
                if mark < limit:
                    path.append(ITEM)
                    limit, after_mark = mark, True
        end = begin - 1
    return _Around(tuple(reversed(path)), rest)


def _line_above(text: str, end: int, limit: int, after_mark: bool) -> int:
    """Return the end of the last line before `end` that may stand around; -1 if there is none. It is found in one
    search, because lists of cases are long."""
    found = -1
    for one in _less_indented(limit, after_mark).finditer(text, 0, end):
        found = one.start()
    if found < 0:
        return -1
    line = text.find("\n", found, end)
    return end if line < 0 else line


@lru_cache(maxsize=64)
def _less_indented(limit: int, after_mark: bool) -> re.Pattern[str]:
    less = rf"^ {{0,{limit - 1}}}(?=[^ \t\n#])" if limit else ""
    same = rf"^ {{{limit}}}(?=[^ \t\n#-])" if after_mark else ""
    return re.compile("|".join(part for part in (less, same) if part), re.MULTILINE)


def _goes_on(text: str, rest: int, end: int, cursor: int, is_nearest: bool) -> bool:
    """Tell whether the value that begins at `rest` goes on to the cursor: a block of text, an open brace, or a plain
    text in lines of its own."""
    if rest >= end or text[rest] in "#&":
        return False
    if text[rest] in "{[":
        return flow_place(text, rest, cursor) is not None
    return text[rest] in "|>" or is_nearest


def _opened(text: str, around: _Around, end: int) -> Place | None:
    """Return the place inside of braces or of a text that began on a line above; None if there is none."""
    if around.rest < 0:
        return None
    if text[around.rest] in "{[":
        return _in_flow(text, around.path, around.rest, end)
    return Place(around.path, "text", Span(end, end))


def _in_flow(text: str, path: tuple[str, ...], start: int, end: int) -> Place:
    found = flow_place(text, start, end)
    if found is None:
        return Place(path, "text", Span(end, end))
    tag, begin = _tag(text, found.word, end)
    begin = _unquoted(text, begin, end).start
    present = found.present | (keys_ahead(text, end) if found.kind == "key" else frozenset())
    return Place((*path, *found.path), found.kind, Span(begin, end), present - {text[begin:end]}, True, tag)


def _value(text: str, rest: int, end: int, path: tuple[str, ...]) -> Place:
    """Return the place in the value that begins at `rest`."""
    if rest < end and text[rest] in "{[":
        return _in_flow(text, path, rest, end)
    if rest < end and text[rest] in "|>":
        return Place(path, "text", Span(end, end))
    tag, begin = _tag(text, rest, end)
    return Place(path, "value", _unquoted(text, begin, end), tag=tag)


def _tag(text: str, start: int, end: int) -> tuple[str, int]:
    """Return the tag before a value, and where the value itself begins."""
    for tag in ("!expr", "!snapshot"):
        if text.startswith(tag, start) and start + len(tag) < end:
            at = start + len(tag)
            while at < end and text[at] in " \t":
                at += 1
            return tag, _unquoted(text, at, end).start
    return "", start


def _unquoted(text: str, start: int, end: int) -> Span:
    start = min(start, end)
    return Span(start + 1, end) if start < end and text[start] in _QUOTES else Span(start, end)


def _siblings(text: str, start: int, column: int, at_mark: bool) -> frozenset[str]:
    """Return the keys of the mapping around a line, without its own."""
    found: set[str] = set()
    end = start - 1
    while end >= 0 and not at_mark:
        begin = text.rfind("\n", 0, end) + 1
        line = _structure(text[begin:end])
        if line.key is not None and line.column == column:
            found.add(line.key)
        if not _is_empty(text[begin:end]) and (line.column < column or (line.marks and line.marks[0] < column)):
            break
        end = begin - 1
    begin = text.find("\n", start) + 1
    while 0 < begin < len(text):
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        line = _structure(text[begin:end])
        if not _is_empty(text[begin:end]):
            if line.column < column or (line.marks and line.marks[0] < column):
                break
            if line.key is not None and line.column == column:
                found.add(line.key)
        begin = end + 1
    return frozenset(found)


def _is_empty(line: str) -> bool:
    """Tell whether a line has only space or a comment."""
    line = line.lstrip()
    return not line or line.startswith("#")
