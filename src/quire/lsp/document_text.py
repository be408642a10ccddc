"""The text of a document as an editor has it, the places in it as the protocol counts them, and edits of it.

A `Source` has its byte order mark dropped and its line ends normalised; the editor counts in the text as it is. Lines
are the same in both, so a place is found by its line. Columns are counted in units of the encoding that was agreed on:
bytes of UTF-8, units of UTF-16, or characters.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, TypeAlias

from quire.formats.yaml.nodes import Mapping as YamlMapping
from quire.formats.yaml.nodes import Scalar
from quire.formats.yaml.nodes import Sequence as YamlSequence
from quire.source import Source, Span, normalise

if TYPE_CHECKING:
    from quire.diagnostics import Edit
    from quire.formats.yaml.nodes import Node


Encoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]

_LINE_END = re.compile(r"\r\n|\n|\r")
_LONE = re.compile(r"[\ud800-\udfff]")
_WIDE = {"utf-8": re.compile(r"[^\x00-\x7f]"), "utf-16": re.compile(r"[\U00010000-\U0010ffff]")}
"""The characters that have several units in each encoding."""
_BOM = "\ufeff"

SHORT_LINE = 200
"""Number of characters whose units are counted anew each time."""


class EditorText:
    """One version of the text of an open document. It is never changed."""

    def __init__(self, text: str, encoding: Encoding, name: str = "") -> None:
        self.raw = text
        self.encoding = encoding
        self.name = name

    @cached_property
    def source(self) -> Source:
        """The text as the formats read it."""
        text = normalise(self.raw)
        if not text.isascii() and _LONE.search(text):
            text = _LONE.sub("\ufffd", text)
        if text is self.raw:
            return Source(self.name, text, None, self._raw_starts)
        return Source(self.name, text)

    def edited(self, changes: Sequence[object]) -> EditorText:
        """Return the text after the changes of one notification, which apply one after the other."""
        text = self
        for change in changes:
            if not isinstance(change, Mapping) or not isinstance(new := change.get("text"), str):
                continue
            where = change.get("range")
            if isinstance(where, Mapping):
                start, end = text._raw_offset(where.get("start")), text._raw_offset(where.get("end"))
                start, end = min(start, end), max(start, end)
                new = text.raw[:start] + new + text.raw[end:]
            text = EditorText(_paired(new), self.encoding, self.name)
        return text

    def offset(self, position: object) -> int:
        """Return the offset in the source of a position. One beyond a line, or beyond the text, means its end."""
        line, column = _numbers(position)
        source = self.source
        starts = source.starts()
        if line >= len(starts):
            return len(source.text)
        text = source.line(line + 1)
        if line == 0 and self.raw.startswith(_BOM):
            column = max(0, column - units(_BOM, self.encoding))
        return starts[line] + _characters(text, column, self.encoding)

    def position(self, offset: int) -> dict[str, int]:
        """Return the position of an offset in the source."""
        source = self.source
        starts = source.starts()
        offset = max(0, min(offset, len(source.text)))
        line = bisect_right(starts, offset) - 1
        column = self._column(line, offset)
        if line == 0 and self.raw.startswith(_BOM):
            column += units(_BOM, self.encoding)
        return {"line": line, "character": column}

    def _column(self, line: int, offset: int) -> int:
        """Return the units before an offset of the source in its line."""
        source = self.source
        start = source.starts()[line]
        if offset - start <= SHORT_LINE:
            return units(source.text[start:offset], self.encoding)
        if line not in self._wide:
            self._wide[line] = _wide_characters(source.line(line + 1), self.encoding)
        places, more = self._wide[line]
        return offset - start + more[bisect_left(places, offset - start)]

    @cached_property
    def _wide(self) -> dict[int, tuple[list[int], list[int]]]:
        """The wide characters of long lines. A line may have thousands of places, each far from its start."""
        return {}

    @cached_property
    def _is_plain(self) -> bool:
        """True if offsets and columns are the same in the editor's text and in the source."""
        return self.raw.isascii() and "\r" not in self.raw

    def range(self, span: Span) -> dict[str, dict[str, int]]:
        start, end = span.start, span.end
        if self._is_plain and 0 <= start <= end <= len(self.raw):
            # Findings have thousands of places, and most texts are plain.
            starts = self._raw_starts
            first = bisect_right(starts, start) - 1
            last = first if first + 1 == len(starts) or end < starts[first + 1] else bisect_right(starts, end) - 1
            begin = {"line": first, "character": start - starts[first]}
            return {"start": begin, "end": {"line": last, "character": end - starts[last]}}
        return {"start": self.position(span.start), "end": self.position(max(span.start, span.end))}

    def span(self, where: object) -> Span:
        """Return the span of a range."""
        if not isinstance(where, Mapping):
            return Span(0, 0)
        start, end = self.offset(where.get("start")), self.offset(where.get("end"))
        return Span(min(start, end), max(start, end))

    @cached_property
    def whole(self) -> dict[str, dict[str, int]]:
        """The range of the whole text."""
        return self.range(Span(0, len(self.source.text)))

    @cached_property
    def line_end(self) -> str:
        """The line end that new lines of this text get."""
        match = _LINE_END.search(self.raw)
        return match[0] if match else "\n"

    @cached_property
    def _raw_starts(self) -> list[int]:
        if "\r" not in self.raw:
            lengths = map(len, self.raw.split("\n"))
            return [0, *accumulate(map((1).__add__, lengths))][:-1]
        return [0, *(match.end() for match in _LINE_END.finditer(self.raw))]

    def _raw_offset(self, position: object) -> int:
        line, column = _numbers(position)
        starts = self._raw_starts
        if line >= len(starts):
            return len(self.raw)
        end = starts[line + 1] if line + 1 < len(starts) else len(self.raw)
        text = self.raw[starts[line] : end].rstrip("\r\n")
        return starts[line] + _characters(text, column, self.encoding)


def units(text: str, encoding: Encoding) -> int:
    """Return the length of a text as the protocol counts it."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _wide_characters(line: str, encoding: Encoding) -> tuple[list[int], list[int]]:
    """Return the places of the characters of a line that have several units, and how many units more than characters
    there are before each of them, and in the whole line."""
    if encoding == "utf-32" or line.isascii():
        return [], [0]
    wide = [(match.start(), units(match[0], encoding) - 1) for match in _WIDE[encoding].finditer(line)]
    return [place for place, _ in wide], [0, *accumulate(more for _, more in wide)]


def _characters(line: str, column: int, encoding: Encoding) -> int:
    """Return the number of characters before a column. A column inside of a character means its start."""
    if encoding == "utf-32" or line.isascii():
        return min(column, len(line))
    counts = range(len(line) + 1)
    return bisect_right(counts, column, key=lambda count: units(line[:count], encoding)) - 1


def _numbers(position: object) -> tuple[int, int]:
    """Return line and column of a position; other values than numbers count as 0."""
    if not isinstance(position, Mapping):
        return 0, 0
    line, column = position.get("line"), position.get("character")
    return (
        max(0, line) if isinstance(line, int) else 0,
        max(0, column) if isinstance(column, int) else 0,
    )


def _paired(text: str) -> str:
    """Join the halves of a character that two edits have inserted one after the other."""
    if text.isascii() or not _LONE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


MOST_CHECKS = 20
"""Texts that are read to find the edits that change the meaning. Edits that are not looked at by then are dropped."""
Plain: TypeAlias = tuple[str, object] | list["Plain"] | dict[str, "Plain"] | None


def safe_edits(text: str, edits: Sequence[Edit], means_the_same: Callable[[str], bool]) -> list[Edit]:
    """Return the edits that keep the meaning of a text: all of them, or those halves that do."""
    safe: list[Edit] = []
    waiting = [list(edits)] if edits else []
    checks = 0
    while waiting and checks < MOST_CHECKS:
        some = waiting.pop()
        checks += 1
        if means_the_same(edited(text, [*safe, *some])):
            safe += some
        elif len(some) > 1:
            middle = len(some) // 2
            waiting += [some[middle:], some[:middle]]
    return sorted(safe, key=lambda edit: edit.span.start)


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return a text after some edits, which do not touch each other."""
    parts, last = [], 0
    for edit in sorted(edits, key=lambda edit: edit.span.start):
        parts += [text[last : edit.span.start], edit.new]
        last = edit.span.end
    return "".join(parts) + text[last:]


def plain_value(node: Node | None) -> Plain:
    """Return the value of a node, for comparing two of them: without places and without the order of keys."""
    if isinstance(node, YamlMapping):
        return {
            f"{type(entry.key.value).__name__} {entry.key.value}": plain_value(entry.value) for entry in node.entries
        }
    if isinstance(node, YamlSequence):
        return [plain_value(item) for item in node.items]
    if isinstance(node, Scalar):
        return f"{node.tag} {type(node.value).__name__}", node.value
    return None
