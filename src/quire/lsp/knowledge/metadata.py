"""The metadata of a knowledge file as lines of `key: value`, also while they are being typed."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.formats import YAML
from quire.formats.markdown import Fence, find_fence, signature_line
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.views import View

KEYS = {
    "name": "the name of the file; needed to sign",
    "title": "what people call it; needed to sign",
    "version": 'three numbers, in quotes: `"1.0.0"`; needed to sign',
    "entry_type": "the kind of text, such as `reference`; needed to sign",
    "category": "the folder below `.ai/knowledge`; may be left out",
    "tags": "words to find it by",
    "description": "what it is about",
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
        found = next((one for one in self.entries if one.key == key), None)
        return found.values[0] if found and found.values else None

    def holds(self, offset: int) -> bool:
        return self.part is not None and self.part.start <= offset <= self.part.end


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
    found = []
    for match in _WORD.finditer(text, start, end):
        group = match.lastindex or 0
        word = match[group].rstrip()
        if word:
            found.append((word, Span(match.start(group), match.start(group) + len(word))))
    return found
