"""The names of a knowledge file: its own, its tags, and the items that its metadata and its text name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.lsp.answers import Index, Link, Name, Symbol
from quire.lsp.directive.item_words import path_of_item
from quire.lsp.knowledge.metadata import metadata
from quire.source import Span
from quire.wording import cut_line

if TYPE_CHECKING:
    from quire.lsp.knowledge.metadata import Metadata
    from quire.lsp.views import View

_HEADING = re.compile(r"^(#{1,4})[ \t]+(\S[^\n]*)$", re.MULTILINE)
_MENTION = re.compile(r"`(\w[\w-]*(?:/\w[\w-]*)+)`")
_MOST_MENTIONS = 500
_OWN = ("name", "title", "version", "entry_type", "category", "description", "body", "content", "tags")
_DETAIL = 60


def index(view: View) -> Index:
    found = metadata(view)
    names = tuple(_names(view, found))
    links = [
        Link(one.span, one.document, f"{one.kind} {one.text}") for one in names if one.role == "reads" and one.document
    ]
    links += _mentions(view, found)
    return Index(names, tuple(_symbols(view, found)), tuple(links))


def _names(view: View, found: Metadata) -> Iterator[Name]:
    for entry in found.entries:
        for text, span in entry.values:
            if entry.key == "name":
                yield Name("knowledge", text, span, "declares", document=view.path, renames=False)
            elif entry.key == "tags":
                yield Name("field", text, span, "reads", scope="tag", renames=False)
            elif entry.key not in _OWN:
                for item_type in ("knowledge", "directive"):
                    path = path_of_item(view.folder, item_type, text)
                    if path:
                        kind = "knowledge" if item_type == "knowledge" else "directive"
                        yield Name(kind, text, span, "reads", document=path, renames=False)  # type: ignore[arg-type]
                        break


def _mentions(view: View, found: Metadata) -> Iterator[Link]:
    """Yield the ids of items that stand in backticks in the text. They are prose, so nothing but a link is made."""
    for count, match in enumerate(_MENTION.finditer(view.source.text, found.body_start)):
        if count >= _MOST_MENTIONS:
            return
        for item_type in ("knowledge", "directive"):
            path = path_of_item(view.folder, item_type, match[1])
            if path:
                yield Link(Span(match.start(1), match.end(1)), path, f"{item_type} {match[1]}")
                break


def _symbols(view: View, found: Metadata) -> Iterator[Symbol]:
    text = view.source.text
    if not text.strip():
        return
    named, title = found.value("name"), found.value("title")
    name, selection = named or ("knowledge", Span(0, 0))
    children = [
        Symbol(one.key, "field", one.span, one.key_span, cut_line(", ".join(word for word, _ in one.values), _DETAIL))
        for one in found.entries
    ]
    headings = list(_HEADING.finditer(text, found.body_start)) if found.part is not None else []
    ends = [len(text)] * 5
    parts = []
    for match in reversed(headings):
        level = len(match[1])
        parts.append(
            Symbol(match[2].strip(), "element", Span(match.start(), ends[level]), Span(match.start(2), match.end(2)))
        )
        ends[level:] = [match.start()] * (5 - level)
    detail = cut_line(title[0], _DETAIL) if title else ""
    yield Symbol(name, "knowledge", Span(0, len(text)), selection, detail, (*children, *reversed(parts)))
