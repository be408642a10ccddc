"""Find where an offset stands inside of braces and brackets of a YAML text, which need not be closed."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

ITEM = "-"
_QUOTES = "\"'"
MOST_AHEAD = 5_000
"""Characters that are looked at behind the cursor."""


class FlowPlace(Struct, frozen=True):
    """A place inside of a flow."""

    path: tuple[str, ...]
    kind: Literal["key", "value"]
    word: int
    """The offset at which the word begins."""
    present: frozenset[str] = frozenset()
    """The keys of the mapping before it."""


class _Frame:
    """A mapping or a list that is open."""

    def __init__(self, is_list: bool, start: int) -> None:
        self.is_list = is_list
        self.key: str | None = None
        self.keys: set[str] = set()
        self.token = start


def flow_place(text: str, start: int, end: int) -> FlowPlace | None:
    """Return the place of `end` in the flow that begins at `start`; None if the flow is closed before."""
    frames: list[_Frame] = []
    at = start
    while at < end:
        sign = text[at]
        if sign in "{[":
            frames.append(_Frame(sign == "[", at + 1))
        elif sign in "}]":
            if frames:
                frames.pop()
            if not frames:
                return None
        elif not frames:
            return None
        elif sign in _QUOTES and not text[frames[-1].token : at].strip():
            at = _end_of_quote(text, at, end)
            continue
        elif sign == ",":
            frames[-1].key = None
            frames[-1].token = at + 1
        elif sign == ":" and _ends_key(text, at, frames[-1]):
            frame = frames[-1]
            frame.key = _bare(text[frame.token : at])
            frame.keys.add(frame.key)
            frame.token = at + 1
        elif sign == "#" and text[at - 1] in " \t\n":
            line = text.find("\n", at)
            at = end if line < 0 else line
        at += 1
    if not frames:
        return None
    path: list[str] = []
    for frame in frames[:-1]:
        path += _step(frame)
    last = frames[-1]
    word = last.token
    while word < end and text[word] in " \t\n":
        word += 1
    if last.is_list or last.key is not None:
        return FlowPlace((*path, *_step(last)), "value", word)
    return FlowPlace(tuple(path), "key", word, frozenset(last.keys))


def _step(frame: _Frame) -> list[str]:
    if not frame.is_list:
        return [frame.key or ""]
    return [ITEM] if frame.key is None else [ITEM, frame.key]


def _ends_key(text: str, at: int, frame: _Frame) -> bool:
    """Tell whether a colon ends a key, and is not a part of a text such as an address."""
    if frame.key is not None:
        return False
    following = text[at + 1 : at + 2]
    return following in ("", " ", "\t", "\n", ",", "}", "]") or text[at - 1] in _QUOTES


def _end_of_quote(text: str, at: int, end: int) -> int:
    """Return the offset behind a quoted text; `end` if it is not closed."""
    quote = text[at]
    at += 1
    while at < end:
        if quote == '"' and text[at] == "\\":
            at += 1
        elif text[at] == quote:
            return at + 1
        at += 1
    return end


def _bare(word: str) -> str:
    word = word.strip()
    return word[1:-1] if len(word) > 1 and word[0] in _QUOTES and word[-1] == word[0] else word


def keys_ahead(text: str, offset: int) -> frozenset[str]:
    """Return the keys of the mapping around an offset that stand behind it."""
    found: set[str] = set()
    depth, token, at = 0, -1, offset
    end = min(len(text), offset + MOST_AHEAD)
    while at < end:
        sign = text[at]
        if sign in "{[":
            depth += 1
        elif sign in "}]":
            depth -= 1
            if depth < 0:
                break
        elif sign in _QUOTES and depth == 0 and token >= 0 and not text[token:at].strip():
            at = _end_of_quote(text, at, end)
            continue
        elif depth == 0 and sign == ",":
            token = at + 1
        elif (
            depth == 0
            and sign == ":"
            and token >= 0
            and (text[at + 1 : at + 2] in (" ", "\n", "") or text[at - 1] in _QUOTES)
        ):
            found.add(_bare(text[token:at]))
            token = -1
        at += 1
    return frozenset(found)
