"""Anchors and aliases: an alias is the anchored node again, and the text is measured as if it were written out.

Nodes are shared, never copied, so an alias costs nothing to read; but whoever walks the tree meets the node at every
alias. What holds for every other text must hold there as well: written out it may have no more characters than a
document may have bytes, and lists and mappings may not be nested deeper than the limit. Characters are counted, not
nodes, because a long text that is repeated grows as well; and counting them needs no more than the places that are
known anyway. An alias that goes over a limit is refused before anything is made of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from quire.diagnostics import Diagnostic
from quire.formats.yaml import codes
from quire.formats.yaml.nodes import Node, Scalar, Style
from quire.source import Source, Span

MAX_DEPTH = 100
"""Lists and mappings inside of each other."""


@dataclass(slots=True)
class _Anchored:
    """`node` is None until its end has come. `length` is that of its text, written out; a scalar has no height."""

    at: int
    node: Node | None = None
    length: int = 0
    height: int = 0


class Anchors:
    """Those of one YAML document at a time; the measure is that of the whole text."""

    def __init__(self, source: Source, limit: int) -> None:
        self.found: list[Diagnostic] = []
        self.added = 0
        """Characters that aliases would add to the text so far."""
        self._source = source
        self._limit = limit
        self._known: dict[str, _Anchored] = {}

    def forget(self) -> None:
        """At the start of a document: an alias never names what stands in another one."""
        self._known.clear()

    def open(self, name: str, start: int) -> None:
        """An anchor has come, its node has not. A name that comes again would make it matter where an alias stands."""
        at = self._source.text.index("&", start)
        same = self._known.get(name)
        self._known[name] = _Anchored(at)
        if same is not None:
            line = self._source.position(same.at).line
            help = f"the first is on line {line}; give this one another name"
            self._report(f"the anchor &{_short(name)} is here twice", Span(at, at + 1 + len(name)), help)

    def close(self, name: str, node: Node, length: int, height: int) -> None:
        anchored = self._known[name]
        anchored.node, anchored.length, anchored.height = node, length, height

    def node(self, name: str, span: Span, depth: int) -> tuple[Node, int]:
        """What an alias stands for, and its height; a stand-in where there is nothing that it may stand for."""
        anchored = self._known.get(name)
        if anchored is None:
            help = f"an anchor &{_short(name)} must come before it; put text that begins with * in quotes"
            self._report(f"the alias *{_short(name)} does not name an anchor of this document", span, help)
            return _stand_in(name, span), 0
        if anchored.node is None:
            line = self._source.position(anchored.at).line
            message = f"the alias *{_short(name)} stands inside of what it names"
            self._report(message, span, f"the anchor is on line {line}; nothing can contain itself")
            return _stand_in(name, span), 0
        if depth + anchored.height > MAX_DEPTH:
            message = f"with what the alias *{_short(name)} stands for, nested deeper than {MAX_DEPTH} levels"
            self.found.append(Diagnostic(codes.TOO_DEEP, message, span))
            return _stand_in(name, span), 0
        added = self.added + max(anchored.length - (span.end - span.start), 0)
        if len(self._source.text) + added > self._limit:
            message = f"with what the alias *{_short(name)} stands for, the text is too large"
            self._report(message, span, f"aliases count as if they were written out; {self._limit:,} is the limit")
            return _stand_in(name, span), 0
        self.added = added
        return anchored.node, anchored.height

    def _report(self, message: str, span: Span, help: str) -> None:
        self.found.append(Diagnostic(codes.ALIAS, message, span, "", help))


def is_stand_in(node: Node) -> bool:
    """Whether an alias stood here that is reported already. No plain text begins with an asterisk."""
    return isinstance(node, Scalar) and node.text.startswith("*") and node.style is Style.PLAIN


def _stand_in(name: str, span: Span) -> Scalar:
    return Scalar(None, f"*{name}", span, span)


def _short(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:57]}…"
