"""Directives and knowledge as a thread needs them: verified, and read into what they say.

This is the `Resolver` that `quire.engine.thread.compose` asks.
"""

from __future__ import annotations

from dataclasses import dataclass

from quire.diagnostics import Severity
from quire.errors import BadDocument
from quire.plan.thread import Thread
from quire.source import Source
from quire.workspace.items import Item
from quire.workspace.verified import VerifiedItems


@dataclass(frozen=True, slots=True)
class Library:
    """Both raise `Refused` for an item that is not trusted, and what `Spaces.find` raises."""

    items: VerifiedItems

    def directive(self, item_id: str) -> Thread | None:
        """Raises `BadDocument` for one that cannot be read."""
        found = self.items.find("directive", item_id)
        return None if found is None else read_thread(found.item)

    def knowledge(self, item_id: str) -> str | None:
        """The body alone. Raises `BadDocument` for one that cannot be read."""
        found = self.items.find("knowledge", item_id)
        return None if found is None else read_body(found.item)


def read_thread(item: Item) -> Thread:
    # lxml is imported by whoever reads a directive, and by nobody else.
    from quire.formats.directive.lower import thread
    from quire.formats.directive.parse import parse

    source = Source.of(item.text, str(item.path))
    reading = parse(source)
    if reading.directive is None:
        raise BadDocument(_listed(item, source, [(one.span.start, one.message) for one in reading.of(Severity.ERROR)]))
    return thread(reading.directive)


def read_body(item: Item) -> str:
    from quire.formats.directive.knowledge import read_knowledge

    source = Source.of(item.text, str(item.path))
    knowledge = read_knowledge(source)
    if knowledge.errors:
        raise BadDocument(_listed(item, source, [(one.span.start, one.message) for one in knowledge.errors]))
    return knowledge.body


def _listed(item: Item, source: Source, problems: list[tuple[int, str]]) -> str:
    lines = "; ".join(f"line {source.position(at).line}: {message}" for at, message in problems)
    return f"the {item.type} {item.id} cannot be read: {lines}"
