"""Find out where the cursor stands in a YAML text, also in one that is half typed.

The scanner goes through the text before the cursor by lines, indentation, brackets and quotes. It never fails: what it
does not understand is plain text.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from msgspec import Struct

ITEM = "-"
"""Stands for an item of a list in a path."""

_KEY = re.compile(r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\n]|'')*'|[^\s#:{}\[\],&*!|>'"%@`-][^:#\n]*?)[ ]*:(?=[ \t\n]|\Z)""")
_DASH = re.compile(r"-(?=[ \t\n]|\Z)")
_TAG = re.compile(r"(![^\s,{}\[\]]*)(?=[\s]|\Z)[ \t]*|[&*][^\s,{}\[\]]+[ \t]*")
_BLOCK = re.compile(r"[|>][-+0-9]*[ \t]*(?:#[^\n]*)?(?=\n|\Z)")
_DOUBLE = re.compile(r'(?:[^"\\]|\\.)*', re.DOTALL)
_SINGLE = re.compile(r"(?:[^']|'')*")
_FLOW_PLAIN = re.compile(r"(?:[^,{}\[\]:#\n]|:(?![ \t\n,{}\[\]]|\Z)|(?<![ \t])#)*")
_PLAIN = re.compile(r"(?:[^#\n]|(?<![ \t\n])#)*")
_SPACE = re.compile(r"[ \t]*")

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


class CursorPlace(Struct, frozen=True):
    """Where the cursor stands."""

    path: tuple[str, ...]
    """The keys from the root to the mapping, the list or the value at the cursor."""
    mode: Mode
    """A key is being typed, a value, or an item of a list."""
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


class Scanner:
    """Scans a text up to its end, where the cursor is."""

    def __init__(self, text: str, path: tuple[str, ...] = ()) -> None:
        """`path` leads to the place at which the text begins."""
        self._text = text
        self._root = path
        self._frames: list[_Frame] = []
        self._at = 0

    def place(self) -> CursorPlace:
        text = self._text
        while True:
            found = self._line()
            if found is not None:
                return found
            if self._at >= len(text):
                return self._blank(len(text), 0)

    def _line(self) -> CursorPlace | None:
        """Read one line, with what goes on in the lines after it. Return the place if the text ends in it."""
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
                    return self._typed("item", after, "")
                if text[after] in "\n#":
                    return self._end_of_line(after)
                column += after - at
                at = after
                continue
            if key := _KEY.match(text, at):
                self._leave(column, is_item=False)
                if not self._frames or not self._frames[-1].is_map or self._frames[-1].column != column:
                    self._frames.append(_Frame(True, column, keys=[]))
                frame = self._frames[-1]
                frame.key, frame.at_value = key[1].strip("'\""), True
                frame.keys.append(frame.key)
                space = _SPACE.match(text, key.end())
                after = space.end() if space else key.end()
                if after >= len(text):
                    # Directly behind the colon no value can begin.
                    return self._typed("value", after, "")
                if text[after] in "\n#":
                    return self._end_of_line(after)
                return self._value(after, column)
            return self._plain_line(at, column)

    def _plain_line(self, at: int, column: int) -> CursorPlace | None:
        """Read a line without a key: a key that is being typed, or a value."""
        text = self._text
        frame = self._frames[-1] if self._frames else None
        if text[at] in "\"'{[|>!&*":
            self._leave(column, is_item=False)
            return self._value(at, column)
        end = text.find("\n", at)
        if end >= 0:
            self._at = end + 1
            return self._blank(self._at, 0) if self._at >= len(text) else None
        if frame is not None and frame.is_map and frame.at_value and column > frame.column:
            parent = frame.key
            deeper = self._path()
            # Text on a line below a key: a mapping that begins there, or the rest of a long text.
            return CursorPlace(deeper, "key", at, text[at:], keys=()) if parent else None
        if frame is not None and not frame.is_map and column > frame.column:
            return self._typed("item", at, text[at:])
        self._leave(column, is_item=False)
        return self._key_place(at, text[at:])

    def _value(self, at: int, column: int) -> CursorPlace | None:
        """Read the value after a colon or a dash."""
        text, tag = self._text, ""
        while found := _TAG.match(text, at):
            tag = found[1] or tag
            at = found.end()
            if at >= len(text) and text[-1] not in " \t":
                return self._typed("value", found.start(), text[found.start() :])
        if at >= len(text):
            return self._typed("value", at, "", tag=tag)
        character = text[at]
        if character in "\"'":
            return self._quoted(at, tag)
        if character in "{[":
            return self._flow(at)
        if _BLOCK.match(text, at):
            return self._block_scalar(at, column, tag)
        if character in "\n#":
            return self._end_of_line(at)
        plain = _PLAIN.match(text, at)
        end = plain.end() if plain else at
        if end >= len(text):
            return self._typed("value", at, text[at:], tag=tag)
        return self._end_of_line(end)

    def _quoted(self, at: int, tag: str) -> CursorPlace | None:
        text, quote = self._text, self._text[at]
        found = (_DOUBLE if quote == '"' else _SINGLE).match(text, at + 1)
        end = found.end() if found else at + 1
        if end >= len(text):
            return self._typed("value", at + 1, text[at + 1 :], quote=quote, tag=tag)
        return self._end_of_line(end + 1)

    def _block_scalar(self, at: int, column: int, tag: str) -> CursorPlace | None:
        text, mark = self._text, self._text[at]
        line = text.find("\n", at)
        if line < 0:
            return self._typed("value", at, text[at:], tag=tag)
        first = line + 1
        while line >= 0:
            begin = line + 1
            line = text.find("\n", begin)
            content = text[begin : line if line >= 0 else len(text)]
            inside = len(content) - len(content.lstrip(" ")) > column
            if line < 0:
                # An empty last line belongs to the block: its indentation is being typed.
                if inside or not content.strip():
                    return self._typed("value", first, text[first:], quote=mark, tag=tag)
                self._at = begin
                return None
            if content.strip() and not inside:
                self._at = begin
                return None
        return None

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
        text, depth = self._text, len(self._frames)
        while at < len(text):
            character = text[at]
            frame = self._frames[-1] if len(self._frames) > depth else None
            if character in "{[":
                self._frames.append(_Frame(character == "{", -1, keys=[]))
                at += 1
            elif character in "}]":
                if frame is not None:
                    self._frames.pop()
                at += 1
                if len(self._frames) <= depth:
                    return self._end_of_line(at)
            elif character == ",":
                if frame is not None:
                    frame.key, frame.at_value = "", False
                at += 1
            elif character in " \t\n":
                at += 1
            elif character == "#":
                end = text.find("\n", at)
                if end < 0:
                    return CursorPlace(self._path(), "comment", at, text[at:])
                at = end + 1
            else:
                found = self._flow_scalar(at, frame)
                if isinstance(found, CursorPlace):
                    return found
                at = found
        return self._flow_typed(len(text), "")

    def _flow_scalar(self, at: int, frame: _Frame | None) -> CursorPlace | int:
        text, tag = self._text, ""
        start = at
        while found := _TAG.match(text, at):
            tag, at = found[1] or tag, found.end()
        if at >= len(text):
            begun = text[start:] if text[-1] not in " \t" else ""
            return self._flow_typed(start if begun else at, begun, tag="" if begun else tag)
        if text[at] in ",{}[]\n#" and at > start:
            return at
        quote = text[at] if text[at] in "\"'" else ""
        if quote:
            read = (_DOUBLE if quote == '"' else _SINGLE).match(text, at + 1)
            end = read.end() if read else at + 1
            if end >= len(text):
                return self._flow_typed(at + 1, text[at + 1 :], quote, tag)
            word, after = text[at + 1 : end], end + 1
        else:
            read = _FLOW_PLAIN.match(text, at)
            after = max(read.end() if read else at, at + (1 if text[at] == ":" else 0))
            if after >= len(text) and text[at] != ":":
                return self._flow_typed(at, text[at:], tag=tag)
            word = text[at:after].strip()
        space = _SPACE.match(text, after)
        colon = space.end() if space else after
        if text[colon : colon + 1] == ":" and frame is not None and frame.is_map and not frame.at_value:
            frame.key, frame.at_value = word, True
            frame.keys.append(word)
            return colon + 1
        return max(after, at + 1)

    def _flow_typed(self, start: int, typed: str, quote: str = "", tag: str = "") -> CursorPlace:
        frame = self._frames[-1] if self._frames else None
        if frame is not None and frame.is_map and not frame.at_value:
            return CursorPlace(self._path(), "key", start, typed, quote, tag, True, tuple(frame.keys))
        mode: Mode = "item" if frame is not None and not frame.is_map else "value"
        return CursorPlace(self._path(), mode, start, typed, quote, tag, True, tuple(frame.keys) if frame else ())

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
        if frames and frames[-1].column < column and frames[-1].is_map:
            return CursorPlace(self._path(), "key", at, "")
        if frames and not frames[-1].is_map:
            return self._typed("item", at, "")
        return self._key_place(at, "")

    def _key_place(self, at: int, typed: str) -> CursorPlace:
        frames = self._frames
        keys = tuple(frames[-1].keys) if frames and frames[-1].is_map else ()
        if frames and frames[-1].is_map:
            frames[-1].key, frames[-1].at_value = "", False
        return CursorPlace(self._path(), "key", at, typed, keys=keys)

    def _typed(self, mode: Mode, start: int, typed: str, *, quote: str = "", tag: str = "") -> CursorPlace:
        frame = self._frames[-1] if self._frames else None
        keys = tuple(frame.keys) if frame is not None and frame.is_map else ()
        if frame is not None and not frame.is_map:
            mode = "item"
        return CursorPlace(self._path(), mode, start, typed, quote, tag, keys=keys)

    def _path(self) -> tuple[str, ...]:
        found = list(self._root)
        for frame in self._frames:
            if not frame.is_map:
                found.append(ITEM)
            elif frame.key:
                found.append(frame.key)
        return tuple(found)
