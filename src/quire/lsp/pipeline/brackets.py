"""Find the end of brackets in YAML and in expressions; quoted text in between does not count."""

from __future__ import annotations

import re

_TOKEN = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*+(?:''[^']*+)*'(?!')|(?:(?<=\s)\#[^\n]*)|[\[\]{}()]""", re.DOTALL)
_OPEN, _CLOSE = "[{(", "]})"


def closing(text: str, start: int) -> int:
    """Return the offset of the bracket that closes the one around an offset; the end of the text without one."""
    depth = 0
    for found in _TOKEN.finditer(text, start):
        if found[0] in _OPEN:
            depth += 1
        elif found[0] in _CLOSE:
            depth -= 1
            if depth < 0:
                return found.start()
    return len(text)


def open_call(text: str) -> tuple[int, int] | None:
    """Return the offset of the round bracket that is open at the end of an expression, and how many commas stand in it
    since; None if none is open."""
    stack: list[tuple[str, int, int]] = []
    at = 0
    while at < len(text):
        character = text[at]
        if character in "'\"":
            end = at + 1
            while end < len(text) and text[end] != character:
                end += 2 if text[end] == "\\" else 1
            at = end
        elif character in _OPEN:
            stack.append((character, at, 0))
        elif character in _CLOSE and stack:
            stack.pop()
        elif character == "," and stack:
            mark, begin, count = stack.pop()
            stack.append((mark, begin, count + 1))
        at += 1
    return next(((begin, count) for mark, begin, count in reversed(stack) if mark == "("), None)
