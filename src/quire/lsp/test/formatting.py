"""Put the keys of a test file in order: names first, then the world of a case, then its expectations.

Values stay as they are written, comments stay with their key.
Only mappings in lines are touched: those in braces are short, and names of steps and inputs have no order.
The new text is read again; a change after which it has other values is not made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from quire.diagnostics import Edit
from quire.formats.test.fields import keys_at, takes_matcher
from quire.formats.yaml import TEST_TAGS, read_yaml
from quire.formats.yaml.nodes import Entry, Mapping, Node
from quire.formats.yaml.nodes import Sequence as YamlSequence
from quire.lsp.document_text import plain_value, safe_edits
from quire.lsp.test.index import ITEM, key_role
from quire.source import MAX_TEST_BYTES, Source, Span, line_end, line_start

if TYPE_CHECKING:
    from quire.lsp.document_view import View

_FIRST = {key: rank for rank, key in enumerate(("document", "about", "name", "tags", "status", "exit"), start=-10)}
_LAST = {key: rank for rank, key in enumerate(("expect", "then", "live", "todo", "skip", "flaky", "cases"), start=10)}
"""Keys before and after all others, which keep the order that their author has chosen."""
_ANCHOR = re.compile(r"(?:^|[\s\[{,])[&*][A-Za-z0-9_-]", re.MULTILINE)


def format(view: View, span: Span) -> list[Edit]:
    """Return the edits that put keys in order, for the mappings that a span touches."""
    tree = view.reading.tree
    if not isinstance(tree, Mapping):
        return []
    text, before = view.source.text, plain_value(tree)
    edits = [Edit(place, place.of(text), new) for place, new in _changes(text, tree, ()) if place.meets(span)]

    def means_the_same(new: str) -> bool:
        documents = read_yaml(Source("", new), limit=MAX_TEST_BYTES, tags=TEST_TAGS).documents
        return len(documents) == 1 and plain_value(documents[0]) == before

    return safe_edits(text, edits, means_the_same)


def _changes(text: str, node: Node, path: tuple[str, ...]) -> Iterator[tuple[Span, str]]:
    """Yield the places that change, with their new texts. A mapping whose keys move is one place."""
    if isinstance(node, YamlSequence):
        for item in node.items:
            yield from _changes(text, item, (*path, ITEM))
        return
    if not isinstance(node, Mapping) or not node.entries:
        return
    inner = [list(_changes(text, entry.value, (*path, entry.key.text))) for entry in node.entries]
    order = _order(node, path)
    pieces = _pieces(text, node) if order is not None else None
    if order is None or pieces is None or _is_fixed(text, pieces, order):
        for some in inner:
            yield from some
        return
    texts = [_applied(text, piece, some) for piece, some in zip(pieces, inner, strict=True)]
    column = _column(text, node.entries[0])
    moved = [texts[at] for at in order]
    new = moved[0] + "".join(f"\n{' ' * column}{entry_text}" for entry_text in moved[1:])
    yield Span(pieces[0].start, pieces[-1].end), new


def _order(node: Mapping, path: tuple[str, ...]) -> list[int] | None:
    """Return the new order of the entries; None if they stay as they are."""
    if key_role(path) is not None or (path and takes_matcher(path)):
        return None
    ranked = keys_at(path)
    keys = [entry.key.text for entry in node.entries]
    if len(keys) < 2 or any(key not in ranked for key in keys):
        return None
    order = sorted(range(len(keys)), key=lambda at: _FIRST.get(keys[at], 0) + _LAST.get(keys[at], 0))
    return None if order == list(range(len(keys))) else order


def _is_fixed(text: str, pieces: Sequence[Span], order: Sequence[int]) -> bool:
    """Tell whether entries cannot move: an anchor has to stand before its use, and a comment cannot stand between the
    mark of an item and its first key."""
    whole = _ANCHOR.search(text, pieces[0].start, pieces[-1].end)
    return whole is not None or text[pieces[order[0]].start] == "#"


def _pieces(text: str, node: Mapping) -> list[Span] | None:
    """Return the text of each entry, from its key or the comments above it to its end; None for a mapping that is not
    written in lines, or whose comments would lose their place."""
    entries = node.entries
    if text[node.span.start] == "{":
        return None
    starts: list[int] = []
    column = _column(text, entries[0])
    for number, entry in enumerate(entries):
        start = entry.key.span.start
        line = line_start(text, start)
        before = text[line:start]
        if number and (before.strip() or len(before) != column):
            return None
        starts.append(start if number == 0 else _with_comments(text, line, column) + column)
    if any(later <= earlier for earlier, later in pairwise(starts)):
        return None
    ends = [text.rfind("\n", start, following) for start, following in pairwise(starts)]
    return [Span(start, end) for start, end in zip(starts, [*ends, _end_of_mapping(text, node)], strict=True)]


def _with_comments(text: str, line: int, column: int) -> int:
    """Return the start of the first comment line right above a line; of the line itself if there is none."""
    while line > 0:
        above = line_start(text, line - 1)
        if not text[above : line - 1].startswith(" " * column + "#"):
            break
        line = above
    return line


def _end_of_mapping(text: str, node: Mapping) -> int:
    """Return the end of the last line of a mapping, with a comment behind the value."""
    end = max(node.span.start, _last(node))
    while end > node.span.start and text[end - 1] in " \t\n":
        end -= 1
    return line_end(text, end)


def _last(node: Node) -> int:
    if isinstance(node, Mapping) and node.entries:
        last = node.entries[-1]
        return max(last.key.span.end, _last(last.value))
    if isinstance(node, YamlSequence) and node.items:
        is_flow = node.span.start < node.items[0].span.start
        return max(node.span.end if is_flow else 0, _last(node.items[-1]))
    return node.span.end


def _column(text: str, entry: Entry) -> int:
    start = entry.key.span.start
    return start - line_start(text, start)


def _applied(text: str, piece: Span, changes: Sequence[tuple[Span, str]]) -> str:
    new_text = piece.of(text)
    for span, new in sorted(changes, key=lambda change: change[0].start, reverse=True):
        new_text = new_text[: span.start - piece.start] + new + new_text[span.end - piece.start :]
    return new_text
