"""Format the fence of a directive: the indentation of tags, and the spaces between attributes.

Texts are never touched: only white space between elements changes, and only where the engine reads the elements. A
`<process>` in the fence is sent to the model as it is, and stays so. Nothing is done while the XML is not well-formed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from quire.diagnostics import Edit
from quire.formats.directive.codes import errors
from quire.formats.directive.parse import METADATA
from quire.lsp.directive.elements import OWN_CONTENT
from quire.lsp.directive.tags import scan
from quire.plan.vocabulary import OPAQUE
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.directive.tags import Scan, Tagged
    from quire.lsp.views import View

_INDENT = "  "
_READABLE = frozenset((errors.PERMISSION_TAG.id, errors.RISK.id))


def format(view: View, span: Span) -> list[Edit]:
    text = view.source.text
    scanned = scan(text)
    root = scanned.root
    if root is None or scanned.fence is None or not _is_whole(view):
        return []
    edits = [edit for edit in _Formatter(text, scanned).edits(root) if edit.old != edit.new]
    chosen = [edit for edit in edits if edit.span.start <= span.end and span.start <= edit.span.end]
    return sorted(chosen, key=lambda edit: edit.span.start)


def _is_whole(view: View) -> bool:
    """Tell whether the XML of the fence could be read to its end."""
    from quire.diagnostics import Severity

    found = view.reading.of(Severity.ERROR)
    return view.reading.partial.root.end > 0 and all(
        one.code.id in _READABLE or not one.code.id.startswith("DR00") for one in found
    )


def _is_in_child(tag: Tagged, offset: int) -> bool:
    before = bisect_right(tag.children, offset, key=attrgetter("start"))
    return before > 0 and offset < tag.children[before - 1].end


class _Formatter:
    def __init__(self, text: str, scanned: Scan) -> None:
        self._text = text
        self._scan = scanned
        self._starts = [span.start for span in scanned.comments]

    def edits(self, root: Tagged) -> Iterator[Edit]:
        yield from self._indent(root.start, 0)
        yield from self._tag(root)
        if self._is_structure(root):
            yield from self._inside(root, 0)

    def _inside(self, tag: Tagged, depth: int) -> Iterator[Edit]:
        """Yield the edits of everything in an element that holds elements only."""
        for child in tag.children:
            yield from self._indent(child.start, depth + 1)
            if not self._is_read(child):
                continue
            yield from self._tag(child)
            if child.children and self._is_structure(child):
                yield from self._inside(child, depth + 1)
            elif child.closing is not None and not child.children:
                yield from self._indent(child.inner_end, depth + 1)  # the reader drops white space around a text
        for span in self._comments(tag):
            if "\n" not in self._text[span.start : span.end]:
                yield from self._indent(span.start, depth + 1)
        if tag.closing is not None:
            yield from self._indent(tag.inner_end, depth)

    def _comments(self, tag: Tagged) -> list[Span]:
        """Return the comments that stand directly in an element."""
        first, last = bisect_left(self._starts, tag.inner_start), bisect_left(self._starts, tag.inner_end)
        return [one for one in self._scan.comments[first:last] if not _is_in_child(tag, one.start)]

    def _is_read(self, tag: Tagged) -> bool:
        """Tell whether the engine reads an element, so that its white space has no meaning."""
        above = tag.parent
        if above is None or tag.tag in OPAQUE:
            return False
        if above.tag == "directive":
            return tag.tag in OWN_CONTENT
        return tag.tag in METADATA if above.tag == "metadata" else True

    def _is_structure(self, tag: Tagged) -> bool:
        """Tell whether there is nothing but elements, comments and white space in an element."""
        at = tag.inner_start
        parts = [
            *((one.start, one.end) for one in tag.children),
            *((one.start, one.end) for one in self._comments(tag)),
        ]
        for start, end in sorted(parts):
            if self._text[at:start].strip():
                return False
            at = end
        return not self._text[at : tag.inner_end].strip()

    def _indent(self, offset: int, depth: int) -> Iterator[Edit]:
        """Yield the edit of the white space at the start of the line, if nothing else stands before the offset."""
        start = self._text.rfind("\n", 0, offset) + 1
        old = self._text[start:offset]
        if not old.strip() and start >= (self._scan.fence.start if self._scan.fence else 0):
            yield Edit(Span(start, offset), old, _INDENT * depth)

    def _tag(self, tag: Tagged) -> Iterator[Edit]:
        """Yield the edit of the white space in an opening tag that stands on one line."""
        start, end = tag.name_span.end, tag.inner_start
        old = self._text[start:end]
        if "\n" in old or not all(one.quoted for one in tag.attributes):
            return
        parts = [""]
        for one in tag.attributes:
            quote = self._text[one.value_span.start - 1]
            parts.append(f"{one.name}={quote}{one.value}{quote}")
        new = " ".join(parts) + (" />" if tag.empty else ">")
        if re.sub(r"\s", "", old) == re.sub(r"\s", "", new):
            yield Edit(Span(start, end), old, new)
