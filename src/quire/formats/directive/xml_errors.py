"""What is said about XML that is not well-formed, in words of our own and with the place that is to blame."""

from __future__ import annotations

import re
from dataclasses import dataclass

from quire.source import Span

# The numbers of libxml2 for the mistakes that people make.
_EMPTY, _AFTER_ROOT, _BAD_REFERENCE, _NO_SEMICOLON, _UNKNOWN_ENTITY = 4, 5, 9, 23, 26
_LESS_IN_VALUE, _NO_QUOTES, _OPEN_VALUE, _TWICE, _NAME, _OPEN_TAG, _CROSSED, _UNFINISHED = (
    38,
    39,
    40,
    42,
    68,
    73,
    76,
    77,
)

_REFERENCE = re.compile(r"&[^\s;&<]*;?")
_AMPERSAND = "write &amp; for an ampersand"
_LESS = "write &lt; for a less-than sign, or put the text after the fence"


@dataclass(frozen=True, slots=True)
class Wrong:
    """`left_open` says that an element that is still open belongs to the message."""

    message: str
    at: Span
    help: str = ""
    left_open: bool = False


def explain(code: int, message: str, text: str, at: int) -> Wrong:
    """`message` is that of the parser, for the mistakes that have no words here; `at` is where it stopped."""
    if code == _EMPTY:
        return Wrong("the XML fence holds no element", Span(0, min(1, len(text))), "it holds one <directive> element")
    if code == _AFTER_ROOT:
        return Wrong("the XML goes on after the root element", Span(at, at + 1), "one fence holds one <directive>")
    if code in (_BAD_REFERENCE, _NO_SEMICOLON, _UNKNOWN_ENTITY):
        start = max(text.rfind("&", 0, at), 0)
        return Wrong(
            f"the XML holds the unknown reference {_reference(text[start : start + 20])}",
            Span(start, at),
            _AMPERSAND,
        )
    if code in (_CROSSED, _UNFINISHED):
        start = text.rfind("</", 0, at) if code == _CROSSED else at
        shown = text[start:at].strip()[:60]
        what = f"the XML closes {shown} too early" if code == _CROSSED and shown else "the XML ends too early"
        return Wrong(what, Span(max(start, 0), max(at, start)), "close every element that is opened", left_open=True)
    if code == _TWICE:
        return Wrong("the XML has an attribute twice in one tag", _back(text, at, "<"))
    if code in (_NO_QUOTES, _OPEN_VALUE, _LESS_IN_VALUE):
        help = _LESS if code == _LESS_IN_VALUE else 'write name="value", with both quotes'
        return Wrong("the XML has an attribute whose value is not well-formed", Span(at, at + 1), help)
    if code == _NAME:
        before = text[max(at - 1, 0) : at]
        if before == "&" or text[at : at + 1] == "&" or "EntityRef" in message:
            start = text.rfind("&", 0, at + 1)
            return Wrong("the XML holds a bare & in its text", Span(start, start + 1), _AMPERSAND)
        start = text.rfind("<", 0, at + 1)
        if start >= 0 and not text[start + 1 : at].strip():
            return Wrong("the XML holds a bare < in its text", Span(start, start + 1), _LESS)
        return Wrong("the XML has a tag that is not well-formed", Span(at, at + 1), 'an attribute is name="value"')
    if code == _OPEN_TAG:
        return Wrong("the XML has a tag without its end", _back(text, at, "<"), "a tag ends with > or />")
    return Wrong(f"the XML is not well-formed: {_one_line(message)}", Span(at, at + 1))


def _back(text: str, at: int, sign: str) -> Span:
    start = text.rfind(sign, 0, at)
    return Span(max(start, 0), max(at, start + 1))


def _one_line(message: str) -> str:
    """Without the line and column, which count from the start of the fence."""
    return " ".join(message.partition(", line ")[0].split())


def _reference(text: str) -> str:
    """The reference that a text begins with, as it is written: up to its semicolon, or to where it must have ended."""
    found = _REFERENCE.match(text)
    return found[0] if found else "&"
