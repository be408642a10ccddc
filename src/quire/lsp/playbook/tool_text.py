"""The parts of a `@tool(connection, tool, {…})` with their places, also of one that is half typed."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from quire.patterns import late_pattern
from quire.source import PLACEHOLDER, Span

_NAME = r'[^\S\n]*+(?:"([^"\n]*+)"?+|([A-Za-z0-9_.-]*+))[^\S\n]*+'
_CALL = late_pattern(rf"[^\S\n]*+@tool\({_NAME}(?:,{_NAME}(?:(,)|(?=\)|$)))?")


class ToolText(Struct, frozen=True):
    """A call of a tool as it is written. Spans are without quotes."""

    connection: str
    connection_span: Span
    tool: str
    tool_span: Span | None
    """None if the comma before the tool is not there yet."""
    arguments: int | None
    """The offset behind the second comma; None if it is not there yet."""


def read_tool(text: str, start: int, end: int) -> ToolText | None:
    """Read the call on a line, or on the part of it before the cursor; None if there is none."""
    found = _CALL.match(text, start, end)
    if not found:
        return None
    first = 1 if found[1] is not None else 2
    second = 3 if found[3] is not None else 4
    has_tool = found[second] is not None
    return ToolText(
        found[first],
        Span(*found.span(first)),
        found[second] or "",
        Span(*found.span(second)) if has_tool else None,
        found.end(5) if found[5] else None,
    )


class JsonText(Struct, frozen=True):
    """A quoted text in JSON. Its span is without quotes."""

    span: Span
    depth: int
    """The number of objects and lists around it."""
    is_key: bool
    key: str
    """The key of the innermost object that a value belongs to; empty for a key itself."""
    is_open: bool = False
    """True if the closing quote is missing."""


def json_texts(text: str, at: int, end: int) -> Iterator[JsonText]:
    """Yield the quoted texts of JSON from an offset on. The JSON may be cut off, and may hold placeholders."""
    stack: list[str] = []
    keys: list[str] = [""]
    expects_key = False
    while at < end:
        sign = text[at]
        if sign == '"':
            stop = at + 1
            while stop < end and text[stop] != '"':
                stop += 2 if text[stop] == "\\" else 1
            stop = min(stop, end)
            is_key = expects_key and bool(stack) and stack[-1] == "{"
            span = Span(at + 1, stop)
            yield JsonText(span, len(stack), is_key, "" if is_key else keys[-1], stop >= end)
            if is_key:
                keys[-1] = text[at + 1 : stop]
                expects_key = False
            at = stop
        elif sign == "{" and (hole := PLACEHOLDER.match(text, at, end)):
            at = hole.end() - 1
        elif sign in "{[":
            stack.append(sign)
            keys.append("")
            expects_key = sign == "{"
        elif sign in "}]" and stack:
            stack.pop()
            keys.pop()
            expects_key = False
        elif sign == ",":
            expects_key = bool(stack) and stack[-1] == "{"
        at += 1


def open_place(text: str, start: int, end: int) -> tuple[str, str, int]:
    """Return what is being typed at the end of a JSON text: `key`, `value` or an empty text for neither, the key of a
    value, and where the typed part begins. Only the outermost object counts."""
    last = None
    for one in json_texts(text, start, end):
        last = one
    if last is not None and last.is_open and last.depth == 1:
        return ("key", "", last.span.start) if last.is_key else ("value", last.key, last.span.start)
    if last is not None and last.is_open:
        return "", "", end
    rest = text[last.span.end + 1 if last else start : end]
    bare = rest.strip()
    if last is None:
        return ("key", "", end) if bare == "{" else ("", "", end)
    if last.depth == 1 and last.is_key and bare.startswith(":"):
        typed = rest.partition(":")[2].lstrip()
        if typed and not typed.isalpha():
            return "", "", end
        return "value", text[last.span.start : last.span.end], end - len(typed)
    return ("key", "", end) if bare.endswith(",") and last.depth == 1 else ("", "", end)
