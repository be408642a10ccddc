"""Find out where the cursor stands in a YAML text, also in one that is half typed.

The scanner goes through the text before the cursor by lines, indentation, brackets and quotes. It never fails: text
that it does not understand is plain text. A bracket or a quote that is not closed ends before the next line with too
little indentation, so it does not hide the rest of the text.
"""

from __future__ import annotations

import re
import sys
from typing import Literal, TypeAlias

from msgspec import Struct

ITEM = "-"
"""Stands for an item of a list in a path."""

KEY = re.compile(
    r"""("[^"\\\n]*+(?:\\.[^"\\\n]*+)*"[ \t]*|'[^'\n]*+(?:''[^'\n]*+)*'(?!')[ \t]*|"""
    r"""(?:[^\s#:{}\[\],&*!|>'"%@`-]|-[^\s#:])[^:#\n]*+(?:(?::(?![ \t\n]|\Z)|(?<![ \t])#)[^:#\n]*+)*)"""
    r":(?=[ \t\n]|\Z)"
)
"""Matches a key outside of brackets, with its colon."""
_DASH = re.compile(r"-(?=[ \t\n]|\Z)")
_TAG = re.compile(r"(![^\s,{}\[\]]*)(?=[\s]|\Z)[ \t]*|[&*][^\s,{}\[\]]+[ \t]*")
_BLOCK = re.compile(r"[|>][-+0-9]*[ \t]*(?:#[^\n]*)?(?=\n|\Z)")
_DOUBLE = re.compile(r'(?:[^"\\]|\\(?:.|\Z))*', re.DOTALL)
_SINGLE = re.compile(r"(?:[^']|'')*")
_FLOW_PLAIN = re.compile(r"(?:[^,{}\[\]:#\n]|:(?![ \t\n,{}\[\]]|\Z)|(?<![ \t])#)*")
_FLOW_VALUE = re.compile(r"(?:[^,{}\[\]#\n]|(?<![ \t])#)*")
_PLAIN = re.compile(r"(?:[^#\n]|(?<![ \t\n])#)*")
_SPACE = re.compile(r"[ \t]*")
_NEVER = re.compile(r"(?!)")
_MARKS = "\"'{[|>!&*"
"""Begin a value that is not a plain text."""

Mode: TypeAlias = Literal["key", "value", "item", "comment"]


class _Frame(Struct):
    """A mapping or a list that is open at the cursor."""

    is_map: bool
    column: int
    """The column in which its keys or items begin; -1 for one in brackets."""
    key: str = ""
    keys: list[str] = []
    at_value: bool = False
    """True after the colon of a key."""
    filled: bool = False
    """True after a text that is the value of the key; in brackets after each value that is complete."""


class CursorPlace(Struct, frozen=True):
    """Where the cursor stands."""

    path: tuple[str, ...]
    """The keys from the root to the mapping, the list or the value at the cursor."""
    mode: Mode
    """A key is being typed, a value, an item of a list, or a comment. `comment` is also behind a complete value."""
    start: int
    """Where the text that is being typed begins, without quotes and tags."""
    text: str
    """That text up to the cursor."""
    quote: str = ""
    """The quote or the mark of the block (`|`, `>`) around it."""
    tag: str = ""
    flow: bool = False
    """True inside of brackets."""
    keys: tuple[str, ...] = ()
    """The keys that stand in the same mapping before the cursor."""
    later: bool = False
    """True on a later line of a text that began at its key; `text` is only that line."""


class Scanner:
    """Scans a text up to its end, where the cursor is."""

    def __init__(self, text: str, start: int = 0, *, path: tuple[str, ...] = (), key: str = "") -> None:
        """`start` is the beginning of a line. `path` leads to it, or `key` if it stands in the value of a key of the
        outermost mapping."""
        self._text = text
        self._root = path
        self._frames = [_Frame(True, 0, key, [key], True)] if key else []
        self._at = start
        self._column = -1
        """The column of the mapping or the list around a value."""

    def place(self) -> CursorPlace:
        text = self._text
        while True:
            place = self._line()
            if place is not None:
                return place
            if self._at >= len(text):
                return self._blank(len(text), 0)

    def _line(self) -> CursorPlace | None:
        """Read one line, with what continues in the lines after it. Return the place if the text ends in it."""
        text, start = self._text, self._at
        space = _SPACE.match(text, start)
        at = space.end() if space else start
        if at >= len(text):
            return self._blank(at, at - start)
        if text[at] == "\n":
            self._at = at + 1
            return self._blank(at + 1, 0) if self._at >= len(text) else None
        if text[at] == "#":
            return self._skip_comment(at)
        if start == at and text.startswith("---", at):
            end = text.find("\n", at)
            self._frames.clear()
            self._at = len(text) if end < 0 else end + 1
            return None
        return self._content(at, at - start)

    def _skip_comment(self, at: int) -> CursorPlace | None:
        end = self._text.find("\n", at)
        if end < 0:
            return CursorPlace(self._path(), "comment", at, self._text[at:])
        self._at = end + 1
        return self._blank(self._at, 0) if self._at >= len(self._text) else None

    def _content(self, at: int, column: int) -> CursorPlace | None:
        """Read the keys and items of a line from an offset in a column."""
        text = self._text
        while True:
            if dash := _DASH.match(text, at):
                self._leave(column, is_item=True)
                if not self._frames or self._frames[-1].is_map or self._frames[-1].column != column:
                    self._frames.append(_Frame(False, column))
                space = _SPACE.match(text, dash.end())
                after = space.end() if space else dash.end()
                if after >= len(text):
                    return self._typed(after, "")
                if text[after] in "\n#":
                    return self._end_of_line(after)
                column += after - at
                at = after
                continue
            if key := KEY.match(text, at):
                self._leave(column, is_item=False)
                if not self._frames or not self._frames[-1].is_map or self._frames[-1].column != column:
                    self._frames.append(_Frame(True, column))
                frame = self._frames[-1]
                frame.key, frame.at_value, frame.filled = bare(key[1]), True, False
                frame.keys.append(frame.key)
                space = _SPACE.match(text, key.end())
                after = space.end() if space else key.end()
                if after >= len(text):
                    # Directly behind the colon no value can begin.
                    return self._typed(after, "")
                return self._value(after)
            return self._plain_line(at, column)

    def _plain_line(self, at: int, column: int) -> CursorPlace | None:
        """Read a line without a key: a key that is being typed, or a value."""
        text = self._text
        is_last = text.find("\n", at) < 0
        if is_last or text[at] in _MARKS:
            self._leave(column, is_item=False)
        frame = self._frames[-1] if self._frames else _Frame(False, -1)
        is_key = frame.is_map and frame.column == column
        if is_key:
            frame.key, frame.at_value, frame.filled = "", False, False
        if not is_last and (is_key or frame.filled or text[at] not in _MARKS):
            return self._end_of_line(at)
        if text[at] in _MARKS and not frame.filled:
            return self._value(at)
        return self._below(at) if frame.at_value else self._typed(at, text[at:])

    def _value(self, at: int) -> CursorPlace | None:
        """Read the value after a colon or a dash."""
        text, tag = self._text, ""
        while match := _TAG.match(text, at):
            tag = match[1] or tag
            at = match.end()
            if at >= len(text) and text[-1] not in " \t":
                return self._typed(match.start(), text[match.start() :])
        if at >= len(text):
            return self._typed(at, "", tag=tag)
        character = text[at]
        if character in "\n#":
            return self._end_of_line(at)
        self._column = self._frames[-1].column if self._frames else -1
        if character in "{[":
            return self._flow(at)
        if self._frames:
            self._frames[-1].filled = self._frames[-1].at_value
        if character in "\"'":
            end = self._end_of_quote(at)
            return self._end_of_line(end) if end < len(text) else self._typed(at + 1, text[at + 1 :], character, tag)
        if _BLOCK.match(text, at):
            return self._block_scalar(at, tag)
        plain = _PLAIN.match(text, at)
        end = plain.end() if plain else at
        return self._end_of_line(end) if end < len(text) else self._typed(at, text[at:], tag=tag)

    def _end_of_quote(self, at: int) -> int:
        """Return the end of a quoted text. One whose next lines are indented too little ends with its line: its quote
        is not typed yet."""
        text = self._text
        match = (_DOUBLE if text[at] == '"' else _SINGLE).match(text, at + 1)
        end = match.end() if match else at + 1
        line = text.find("\n", at, end)
        less = self.less_indented().search(text, line, end) if line >= 0 else None
        return line if less and (end >= len(text) or text[less.end() : end].strip()) else end

    def less_indented(self) -> re.Pattern[str]:
        """Return the pattern for the end of the line before one that cannot belong to the value that is read: one with
        too little indentation, also if that is all of the last line."""
        if self._column < 0:
            return _NEVER
        return re.compile(rf"\n(?=[ \t]{{0,{self._column}}}(?:[^\s#}}\]]|(?<=[ \t])\Z))")

    def _block_scalar(self, at: int, tag: str) -> CursorPlace | None:
        text, mark = self._text, self._text[at]
        line = text.find("\n", at)
        first = line + 1 if line >= 0 else len(text)
        while line >= 0:
            begin = line + 1
            line = text.find("\n", begin)
            content = text[begin : line if line >= 0 else len(text)]
            # In an empty last line the indentation is being typed.
            is_blank = not content.strip() if line >= 0 else not content
            if not is_blank and len(content) - len(content.lstrip(" ")) <= self._column:
                self._at = begin
                return None
        return self._typed(first, text[first:], mark, tag)

    def _end_of_line(self, at: int) -> CursorPlace | None:
        """Go to the next line. Text behind a value is left out."""
        text = self._text
        end = text.find("\n", at)
        hash = text.find("#", at, end if end >= 0 else len(text))
        if end < 0:
            if hash >= 0:
                return CursorPlace(self._path(), "comment", hash, text[hash:])
            return CursorPlace(self._path(), "comment", len(text), "")
        self._at = end + 1
        return self._blank(self._at, 0) if self._at >= len(text) else None

    # Brackets

    def _flow(self, at: int) -> CursorPlace | None:
        """Read lists and mappings in brackets until the outermost one is closed."""
        text, depth, less_indented = self._text, len(self._frames), self.less_indented()
        while at < len(text):
            character = text[at]
            if character in "{[":
                self._frames.append(_Frame(character == "{", -1))
                at += 1
            elif character in "}]":
                self._frames.pop()
                at += 1
                if len(self._frames) <= depth:
                    return self._end_of_line(at)
                self._frames[-1].filled = True
            elif character == ",":
                frame = self._frames[-1]
                frame.key, frame.at_value, frame.filled = "", False, False
                at += 1
            elif character == "\n" and less_indented.match(text, at):
                del self._frames[depth:]
                self._at = at + 1
                return None
            elif character in " \t\n":
                at += 1
            elif character == "#":
                end = text.find("\n", at)
                if end < 0:
                    return CursorPlace(self._path(), "comment", at, text[at:])
                at = end
            else:
                place_or_end = self._flow_scalar(at)
                if isinstance(place_or_end, CursorPlace):
                    return place_or_end
                at = place_or_end
        return self._typed(len(text), "", flow=True)

    def _flow_scalar(self, at: int) -> CursorPlace | int:
        text, tag, frame, start = self._text, "", self._frames[-1], at
        while match := _TAG.match(text, at):
            tag, at = match[1] or tag, match.end()
        if at >= len(text):
            begun = text[start:] if text[-1] not in " \t" else ""
            return self._typed(start if begun else at, begun, tag="" if begun else tag, flow=True)
        if text[at] in ",{}[]\n#" and at > start:
            return at
        quote = text[at] if text[at] in "\"'" else ""
        if quote:
            end = self._end_of_quote(at)
            if end >= len(text):
                return self._typed(at + 1, text[at + 1 :], quote, tag, flow=True)
            word, after = text[at + 1 : end], end + (text[end] == quote)
        else:
            read = (_FLOW_VALUE if frame.at_value else _FLOW_PLAIN).match(text, at)
            after = max(read.end() if read else at, at + 1)
            if after >= len(text) and text[at] != ":":
                return self._typed(at, text[at:], tag=tag, flow=True)
            word = text[at:after].strip()
        space = _SPACE.match(text, after)
        colon = space.end() if space else after
        if text[colon : colon + 1] == ":" and not frame.at_value:
            frame.key, frame.at_value = word, True
            frame.keys.append(word)
            return colon + 1
        frame.filled = True
        return after

    # Places

    def _leave(self, column: int, *, is_item: bool) -> None:
        """Close the mappings and lists that end before a key or an item in a column."""
        frames = self._frames
        while frames and (frames[-1].column > column or frames[-1].column < 0):
            frames.pop()
        if frames and frames[-1].column == column and frames[-1].is_map and is_item:
            below = frames[-2] if len(frames) > 1 else None
            if below is not None and not below.is_map and below.column == column:
                frames.pop()
        elif frames and frames[-1].column == column and not frames[-1].is_map and not is_item:
            frames.pop()

    def _blank(self, at: int, column: int) -> CursorPlace:
        """Return the place on an empty line, by its indentation."""
        frames = self._frames
        while frames and (frames[-1].column > column or frames[-1].column < 0):
            frames.pop()
        if frames and frames[-1].column == column and not frames[-1].is_map:
            frames.pop()
        if frames and frames[-1].is_map and frames[-1].column == column:
            frames[-1].key, frames[-1].at_value = "", False
        return self._below(at) if frames and frames[-1].at_value else self._typed(at, "")

    def _below(self, at: int) -> CursorPlace:
        """Return the place in a line below a key: in a mapping that begins there, or in the rest of a long text."""
        later = self._frames[-1].filled
        return CursorPlace(self._path(), "value" if later else "key", at, self._text[at:], later=later)

    def _typed(self, start: int, typed: str, quote: str = "", tag: str = "", *, flow: bool = False) -> CursorPlace:
        frame = self._frames[-1] if self._frames else _Frame(True, 0)
        mode: Mode = "value" if frame.at_value else "key" if frame.is_map else "item"
        if flow and frame.filled and not typed and not quote:
            mode = "comment"
        return CursorPlace(self._path(), mode, start, typed, quote, tag, flow, tuple(frame.keys))

    def _path(self) -> tuple[str, ...]:
        path = list(self._root)
        for number, frame in enumerate(self._frames, 1):
            if not frame.is_map:
                path.append(ITEM)
            if frame.key or (frame.is_map and number < len(self._frames)):
                path.append(frame.key)
        return tuple(path)


def bare(key: str) -> str:
    """Return a key without the quotes around it."""
    return key.strip().strip("'\"")


_BRACKET = re.compile(
    r"""(?<![\w\\])(?:"[^"\\]*+(?:\\.[^"\\]*+)*"|'[^']*+(?:''[^']*+)*'(?!'))|(?<=\s)\#[^\n]*|[\[\]{}]""", re.DOTALL
)


def closing(text: str, start: int, end: int = sys.maxsize) -> int:
    """Return the offset of the bracket that closes the one around an offset; the end of the text without one. Quoted
    text in between does not count."""
    depth = 0
    for match in _BRACKET.finditer(text, start, end):
        if match[0] in "[{":
            depth += 1
        elif match[0] in "]}":
            depth -= 1
            if depth < 0:
                return match.start()
    return min(len(text), end)
