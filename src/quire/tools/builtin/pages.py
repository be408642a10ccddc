"""Convert a web page to text or Markdown for models. Scripts, styles and the like are left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.values import Value

HTML = ("text/html", "application/xhtml+xml")

_LEFT_OUT = frozenset({"script", "style", "noscript", "template", "svg", "head", "iframe", "object", "canvas"})
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
# fmt: off
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "dd", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer",
    "form", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul", *_HEADINGS,
})
# fmt: on
_LONG_TAG = re.compile(r"<(\w{1,20})\s[^<>]{100000,}>")
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "code": "`"}


def in_format(value: dict[str, Value], wanted: str) -> dict[str, Value]:
    """Return the result of a fetch with its text in the requested format; a result that is not a page stays as it
    is."""
    headers = value.get("headers")
    kind = str(headers.get("content-type", "")) if isinstance(headers, Mapping) else ""
    text = value.get("text")
    if wanted == "html" or not isinstance(text, str) or not kind.lower().startswith(HTML):
        return value
    return {**value, "text": to_text(text, markdown=wanted == "markdown")}


def to_text(page: str, *, markdown: bool) -> str:
    from lxml import etree

    parser = etree.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False, remove_comments=True, remove_pis=True)
    # The parser compares each attribute with all before it.
    page = _LONG_TAG.sub(r"<\1>", page)
    root = etree.fromstring(page.encode("utf-8", "replace") or b"<p/>", parser)
    if root is None:
        return ""
    writing = _Writing(markdown)
    left_out = 0
    # Without recursion: a page may be nested to any depth.
    for event, element in etree.iterwalk(root, events=("start", "end")):
        tag = element.tag if isinstance(element.tag, str) else ""
        if event == "start":
            left_out += tag in _LEFT_OUT
            if not left_out:
                writing.start(tag, element.get)
                writing.text(element.text or "")
        else:
            if not left_out:
                writing.end(tag, element.get)
            left_out -= tag in _LEFT_OUT
            if not left_out:
                writing.text(element.tail or "")
    return writing.result()


class _Writing:
    def __init__(self, markdown: bool) -> None:
        self._markdown = markdown
        self._parts: list[str] = []
        self._verbatim = 0
        self._lists: list[int | None] = []

    def start(self, tag: str, get: Callable[[str], str | None]) -> None:
        if tag in ("li", "tr"):
            self._parts.append("\n")
        elif tag in _BLOCKS and not (tag in ("ol", "ul") and self._lists):
            self._parts.append("\n\n")
        if tag in ("ol", "ul"):
            self._lists.append(0 if tag == "ol" else None)
        elif tag == "li":
            self._parts.append(self._bullet())
        elif tag == "br":
            self._parts.append("\n")
        elif tag == "pre":
            self._verbatim += 1
            self._mark("```\n")
        elif tag in ("td", "th"):
            self._parts.append(" ")
        elif tag == "a" and get("href"):
            self._mark("[")
        elif tag in _HEADINGS:
            self._mark(_HEADINGS[tag])
        elif tag in _MARKS and not self._verbatim:
            self._mark(_MARKS[tag])

    def end(self, tag: str, get: Callable[[str], str | None]) -> None:
        if tag in ("ol", "ul") and self._lists:
            self._lists.pop()
        elif tag == "pre":
            self._verbatim -= 1
            self._mark("\n```")
        elif tag == "a" and (target := get("href")):
            self._mark(f"]({target.strip()})")
        elif tag in _MARKS and not self._verbatim:
            self._mark(_MARKS[tag])
        if tag in _BLOCKS and tag not in ("li", "tr") and not (tag in ("ol", "ul") and self._lists):
            self._parts.append("\n\n")

    def text(self, text: str) -> None:
        if not self._verbatim:
            text = re.sub(r"\s+", " ", text)
            if not self._parts or self._parts[-1].endswith(("\n", " ")):
                text = text.lstrip(" ")
        if text:
            self._parts.append(text)

    def result(self) -> str:
        # Not by a pattern, which would scan a run of blanks from each of its characters on.
        text = "\n".join(line.rstrip(" \t") for line in "".join(self._parts).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", text).strip()

    def _bullet(self) -> str:
        depth = "  " * max(0, len(self._lists) - 1)
        if self._lists and self._lists[-1] is not None:
            self._lists[-1] += 1
            return f"{depth}{self._lists[-1]}. "
        return f"{depth}- "

    def _mark(self, mark: str) -> None:
        if self._markdown:
            self._parts.append(mark)
