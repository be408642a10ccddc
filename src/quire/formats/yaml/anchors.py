"""Anchors and aliases of a YAML text, within limits.

An alias is the node of its anchor, with the position of the anchor. Nodes are shared, never copied, so an alias costs
nothing to read; but code that walks the tree meets the node at every alias. So the limits apply to the text with all
aliases written out: it may not have more characters than a document may have bytes, and lists and mappings may not be
nested too deep. Characters are counted rather than nodes, because a long text that is repeated grows as well, and the
known positions are enough to count them. An alias that exceeds a limit is refused before a node is made of it.
"""

from __future__ import annotations

from msgspec import Struct

from quire.diagnostics import Diagnostic
from quire.formats.yaml import codes
from quire.formats.yaml.nodes import Node, Scalar, Style
from quire.source import Source, Span
from quire.wording import cut

MAX_DEPTH = 100
"""Maximum depth of nested lists and mappings."""


class _Anchored(Struct):
    """An anchor and its node."""

    at: int
    node: Node | None = None
    """None until the end of the node has been read."""
    length: int = 0
    """Length of its text with aliases written out."""
    height: int = 0
    """Levels of nesting; 0 for a scalar."""


class Anchors:
    """The anchors of one YAML document at a time. The added characters are counted over the whole text."""

    def __init__(self, source: Source, limit: int) -> None:
        self.found: list[Diagnostic] = []
        self.added = 0
        """Number of characters that aliases would add to the text so far."""
        self._source = source
        self._limit = limit
        self._known: dict[str, _Anchored] = {}

    def forget(self) -> None:
        """Forget all anchors at the start of a document: an alias cannot refer to an anchor of another document."""
        self._known.clear()

    def open(self, name: str, start: int) -> None:
        """Remember an anchor whose node has not been read yet.

        A repeated name is reported: otherwise the meaning of an alias would depend on its position.
        """
        at = self._source.text.index("&", start)
        same = self._known.get(name)
        self._known[name] = _Anchored(at)
        if same is not None:
            line = self._source.position(same.at).line
            help = f"the first is on line {line}; give this one another name"
            self._report(f"the anchor &{_short_name(name)} is here twice", Span(at, at + 1 + len(name)), help)

    def close(self, name: str, node: Node, length: int, height: int) -> None:
        anchored = self._known[name]
        anchored.node, anchored.length, anchored.height = node, length, height

    def node(self, name: str, span: Span, depth: int) -> tuple[Node, int]:
        """Return the node of an alias and its height; a placeholder if there is no node that it may refer to."""
        anchored = self._known.get(name)
        if anchored is None:
            help = f"an anchor &{_short_name(name)} must come before it; put text that begins with * in quotes"
            self._report(f"the alias *{_short_name(name)} does not name an anchor of this document", span, help)
            return _stand_in(name, span), 0
        if anchored.node is None:
            line = self._source.position(anchored.at).line
            message = f"the alias *{_short_name(name)} stands inside of what it names"
            self._report(message, span, f"the anchor is on line {line}; nothing can contain itself")
            return _stand_in(name, span), 0
        if depth + anchored.height > MAX_DEPTH:
            message = f"with what the alias *{_short_name(name)} stands for, nested deeper than {MAX_DEPTH} levels"
            self.found.append(Diagnostic(codes.TOO_DEEP, message, span))
            return _stand_in(name, span), 0
        added = self.added + max(anchored.length - (span.end - span.start), 0)
        if len(self._source.text) + added > self._limit:
            message = f"with what the alias *{_short_name(name)} stands for, the text is too large"
            self._report(message, span, f"aliases count as if they were written out; {self._limit:,} is the limit")
            return _stand_in(name, span), 0
        self.added = added
        return anchored.node, anchored.height

    def _report(self, message: str, span: Span, help: str) -> None:
        self.found.append(Diagnostic(codes.ALIAS, message, span, "", help))


def is_stand_in(node: Node) -> bool:
    """Tell whether this is the placeholder of an alias that has been reported.

    No plain text begins with an asterisk.
    """
    return isinstance(node, Scalar) and node.text.startswith("*") and node.style is Style.PLAIN


def _stand_in(name: str, span: Span) -> Scalar:
    return Scalar(None, f"*{name}", span, span)


def _short_name(name: str) -> str:
    return cut(name, 60, 57)
