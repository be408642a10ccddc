"""Put the keys of steps into the order of the format. Nothing else changes: no line is broken or joined, texts stay as
they are, and a comment stays with its key.

The new text is read again; the edit of a step after which its tree is not the same is not made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.diagnostics import Edit
from quire.formats.pipeline.kinds import ALL_KINDS
from quire.formats.yaml import Entry, Mapping, Node, Sequence
from quire.lsp.pipeline.step_texts import node_of
from quire.lsp.pipeline.tree import cut_of
from quire.lsp.pipeline.yaml_places import YamlPlace, place_below
from quire.lsp.safe_edits import plain_value, safe_edits
from quire.source import Source, Span

if TYPE_CHECKING:
    from quire.lsp.views import View

_TARGET = ("pipeline", "pass", "steps")


def format(view: View, span: Span) -> list[Edit]:
    """Return the edits that put keys in order, in the steps that a span touches."""
    if view.reading is None or view.reading.file is None:
        return []
    text = view.source.text
    reported = [finding.span.start for finding in view.reading.diagnostics]
    found = []
    for part in cut_of(view):
        for item in part.spans:
            touched = item.start <= span.end and span.start < item.end
            if touched and not any(item.start <= start < item.end for start in reported):
                old = text[item.start : item.end]
                new = ordered(old, part.column)
                if new != old and plain_value(node_of(new, part.column)) == plain_value(node_of(old, part.column)):
                    found.append(Edit(item, old, new))
    return safe_edits(text, found, lambda after: _means_the_same(view, after))


def _means_the_same(view: View, text: str) -> bool:
    """Tell whether a text has the same tree as a document, apart from places."""
    from quire.formats.pipeline.as_json import pipeline_tree
    from quire.formats.pipeline.parse import parse

    after = parse(Source("", text), registered=True)
    return after.file is not None and _plain(pipeline_tree(after)) == _plain(pipeline_tree(view.reading))


def _plain(value: object) -> object:
    """Return a tree in JSON without places, and with sets of keys instead of their order."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if key not in ("span", "sha256", "source", "line")}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def ordered(text: str, column: int) -> str:
    """Return the text of an item of the list `steps` with the keys of all its steps in order."""
    node = node_of(text, column)
    if node is None:
        return text
    return _Order(text).region(0, len(text), [(node, YamlPlace("step"))])


class _Order:
    def __init__(self, text: str) -> None:
        self._text = text

    def region(self, start: int, end: int, nodes: list[tuple[Node, YamlPlace]]) -> str:
        """Return a part of the text, with the nodes in it in order."""
        parts, at = [], start
        for node, place in sorted(nodes, key=lambda one: one[0].span.start):
            if not at <= node.span.start <= node.span.end <= end:
                return self._text[start:end]  # an alias stands for a node at another place
            parts += [self._text[at : node.span.start], self._node(node, place)]
            at = node.span.end
        return "".join(parts) + self._text[at:end]

    def _node(self, node: Node, place: YamlPlace) -> str:
        span = node.span
        if isinstance(node, Sequence):
            return self.region(span.start, span.end, [(one, place_below(place, "-")) for one in node.items])
        if not isinstance(node, Mapping) or not node.entries:
            return self._text[span.start : span.end]
        chunks = self._chunks(node)
        wanted = _order(place)
        names = [str(entry.key.value) for entry in node.entries]
        inner = [[(entry.value, place_below(place, name))] for entry, name in zip(node.entries, names, strict=True)]
        if chunks is None or not wanted or any(name not in wanted for name in names):
            return self.region(span.start, span.end, [one for several in inner for one in several])
        numbers = sorted(range(len(names)), key=lambda at: wanted.index(names[at]))
        texts = [self.region(chunk.start, chunk.end, nodes) for chunk, nodes in zip(chunks, inner, strict=True)]
        parts, at = [], span.start
        for chunk, number in zip(chunks, numbers, strict=True):
            parts += [self._text[at : chunk.start], texts[number]]
            at = chunk.end
        return "".join(parts) + self._text[at : span.end]

    def _chunks(self, node: Mapping) -> list[Span] | None:
        """Return the text that moves with each entry; None if the entries cannot be moved."""
        entries = node.entries
        if self._text[node.span.start : node.span.start + 1] == "{":
            if (
                "\n" in self._text[node.span.start : node.span.end]
                or "#" in self._text[node.span.start : node.span.end]
            ):
                return None
            return [Span(entry.key.span.start, entry.value.span.end) for entry in entries]
        return self._lines(entries)

    def _lines(self, entries: tuple[Entry, ...]) -> list[Span] | None:
        """Return the lines of each entry of a block, with the comments above and behind it. None if it is not certain
        what belongs to an entry."""
        text = self._text
        found: list[Span] = []
        for at, entry in enumerate(entries):
            start, end = entry.key.span.start, max(entry.value.span.end, entry.key.span.end)
            if text[start:end].endswith("\n"):
                if "+" in text[entry.value.span.start : entry.value.span.start + 4]:
                    return None  # the empty lines behind it are a part of the text
                end = start + len(text[start:end].rstrip())
            line = text.find("\n", end)
            rest = text[end : line if line >= 0 else len(text)].rstrip()
            if rest and not rest.lstrip().startswith("#"):
                return None
            if at == 0 and text[:start].rstrip(" ").endswith("\n") and _is_comment(_line_before(text, start)):
                return None  # the comment is above the mapping
            if at > 0:
                above = text[found[-1].end : start]
                lines = [one.strip() for one in above.split("\n")]
                if len(lines) < 2 or lines[0] or not all(map(_is_comment, lines[1:-1])):
                    return None
                start = start if len(lines) == 2 else found[-1].end + above.index("#")
            found.append(Span(start, end + len(rest)))
        if found[-1].end > max(entries[-1].value.span.end, entries[-1].key.span.end):
            return None  # the comment is behind the mapping
        return found


def _is_comment(line: str) -> bool:
    return line.strip().startswith("#")


def _line_before(text: str, offset: int) -> str:
    end = text.rfind("\n", 0, offset)
    return text[text.rfind("\n", 0, end) + 1 : end] if end > 0 else ""


def _order(place: YamlPlace) -> tuple[str, ...]:
    if place.kind == "body":
        return ALL_KINDS[place.step]
    return _TARGET if place.kind == "target" else ()
