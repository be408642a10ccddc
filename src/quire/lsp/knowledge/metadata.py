"""The metadata of a knowledge file as lines of `key: value`, also while they are being typed, and the names in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.formats import YAML
from quire.formats.markdown import Fence, find_fence, signature_line
from quire.lsp.answers import Index, Link, Name, Symbol
from quire.lsp.directive.index import headings
from quire.lsp.directive.item_words import path_of_item
from quire.lsp.directive.naming import followed_category
from quire.source import Span
from quire.wording import cut_line

if TYPE_CHECKING:
    from quire.diagnostics import Edit
    from quire.lsp.document_view import View


KEYS = {
    "name": "the name of the file; needed to sign",
    "title": "its title for people; needed to sign",
    "version": 'three numbers, in quotes: `"1.0.0"`; needed to sign',
    "entry_type": "the kind of text, such as `reference`; needed to sign",
    "category": "the folder below `.ai/knowledge`; may be left out",
    "tags": "words to find it by",
    "description": "its subject",
    "references": "ids of other items",
}
"""The keys of the metadata with their meanings."""

_LINE = re.compile(r"^([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+|$)([^\n]*)$", re.MULTILINE)
_ITEM = re.compile(r"^[ \t]*-[ \t]+([^\n]*)$", re.MULTILINE)
_WORD = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'|([^\s,\[\]\"'#][^,\[\]\n#]*)")


class Entry(Struct, frozen=True):
    """A key of the metadata with its values."""

    key: str
    key_span: Span
    values: tuple[tuple[str, Span], ...]
    """The texts, without quotes: one, or those of a list."""
    span: Span
    """The whole entry."""


class Metadata(Struct, frozen=True):
    """The metadata of a file."""

    part: Span | None
    """Where it stands; None if there is none."""
    body_start: int
    entries: tuple[Entry, ...] = ()

    def value(self, key: str) -> tuple[str, Span] | None:
        entry = next((entry for entry in self.entries if entry.key == key), None)
        return entry.values[0] if entry and entry.values else None

    def holds(self, offset: int) -> bool:
        return self.part is not None and self.part.holds(offset)


def metadata(view: View) -> Metadata:
    return _read(view.source.text, PurePath(view.path).suffix.lower() in YAML)


@lru_cache(maxsize=8)
def _read(text: str, is_yaml: bool) -> Metadata:
    fence = find_fence(text, "yaml")
    if is_yaml:
        part, body = Span(len(signature_line(text, yaml=True)), len(text)), len(text)
    elif isinstance(fence, Fence):
        part, body = fence.content, fence.whole.end
    elif fence.reason == "unclosed" and fence.near is not None:
        part, body = Span(min(fence.near.end + 1, len(text)), len(text)), len(text)
    else:
        return Metadata(None, len(signature_line(text)))
    lines = list(_LINE.finditer(text, part.start, part.end))
    entries = []
    for at, match in enumerate(lines):
        end = lines[at + 1].start() if at + 1 < len(lines) else part.end
        values = _words(text, match.start(2), match.end(2))
        if not values:
            for item in _ITEM.finditer(text, match.end(), end):
                values += _words(text, item.start(1), item.end(1))
        key = Span(match.start(1), match.end(1))
        entries.append(Entry(match[1], key, tuple(values), Span(match.start(), end)))
    return Metadata(part, body, tuple(entries))


def _words(text: str, start: int, end: int) -> list[tuple[str, Span]]:
    line = text[start:end]
    if line.lstrip()[:1] not in ("[", '"', "'"):
        word = line.partition(" #")[0].strip()
        if not word or word[0] in "|>#":
            return []
        at = start + len(line) - len(line.lstrip())
        return [(word, Span(at, at + len(word)))]
    words = []
    for match in _WORD.finditer(text, start, end):
        group = match.lastindex or 0
        word = match[group].rstrip()
        if word:
            words.append((word, Span(match.start(group), match.start(group) + len(word))))
    return words


_MENTION = re.compile(r"`(\w[\w-]*(?:/\w[\w-]*)+)`")
_MOST_MENTIONS = 500
_OWN = ("name", "title", "version", "entry_type", "category", "description", "body", "content", "tags")
_DETAIL = 60


def index(view: View) -> Index:
    read = metadata(view)
    names = tuple(_names(view, read))
    links = [
        Link(name.span, name.document, f"{name.kind} {name.text}")
        for name in names
        if name.role == "reads" and name.document
    ]
    links += _mentions(view, read)
    return Index(names, tuple(_symbols(view, read)), tuple(links))


def _names(view: View, read: Metadata) -> Iterator[Name]:
    for entry in read.entries:
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


def _mentions(view: View, read: Metadata) -> Iterator[Link]:
    """Yield the ids of items that stand in backticks in the text. They are prose, so nothing but a link is made."""
    for count, match in enumerate(_MENTION.finditer(view.source.text, read.body_start)):
        if count >= _MOST_MENTIONS:
            return
        for item_type in ("knowledge", "directive"):
            path = path_of_item(view.folder, item_type, match[1])
            if path:
                yield Link(Span(match.start(1), match.end(1)), path, f"{item_type} {match[1]}")
                break


def _symbols(view: View, read: Metadata) -> Iterator[Symbol]:
    text = view.source.text
    if not text.strip():
        return
    named, title = read.value("name"), read.value("title")
    name, selection = named or ("knowledge", Span(0, 0))
    children = [
        Symbol(
            entry.key,
            "field",
            entry.span,
            entry.key_span,
            cut_line(", ".join(word for word, _ in entry.values), _DETAIL),
        )
        for entry in read.entries
    ]
    parts = [*headings(text, read.body_start)] if read.part is not None else []
    detail = cut_line(title[0], _DETAIL) if title else ""
    yield Symbol(name, "knowledge", Span(0, len(text)), selection, detail, (*children, *reversed(parts)))


def moved(view: View, new: str) -> list[Edit]:
    """Return the edit of the category. One that did not fit the old place stays as it is."""
    category = metadata(view).value("category")
    return followed_category(view.path, new, *category) if category else []
