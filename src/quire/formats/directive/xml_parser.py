"""Parse XML with lxml, with a parser that is used again for the next text."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from lxml import etree


class Builder(Protocol):
    """Makes something of the tags and texts of one text."""

    def start(self, tag: str, attributes: dict[str, str]) -> None: ...

    def end(self, tag: str) -> None: ...

    def data(self, text: str) -> None: ...


class _Target:
    """Passes what a parser sees on to the builder of the text that is parsed."""

    def __init__(self) -> None:
        self.builder: Builder | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self.builder is not None:
            self.builder.start(tag, attributes)

    def end(self, tag: str) -> None:
        if self.builder is not None:
            self.builder.end(tag)

    def data(self, text: str) -> None:
        if self.builder is not None:
            self.builder.data(text)

    def close(self) -> None:
        return None


_IDLE: list[tuple[etree.XMLParser, _Target]] = []
"""Parsers that can be used again. A parser of lxml refers to itself: thrown away, it would stay, with all that it has
read, until the next search for garbage, and an editor has a text parsed after each letter."""


def feed(builder: Builder, data: bytes) -> None:
    """Give a builder the tags and texts of some XML. Raises `XMLSyntaxError`, and what the builder raises."""
    parser, target = _IDLE.pop() if _IDLE else _parser()
    target.builder = builder
    try:
        parser.feed(data)
        parser.close()
    except BaseException:
        target.builder = None
        with suppress(Exception):
            parser.close()  # so that it begins anew
        raise
    finally:
        target.builder = None
        _IDLE.append((parser, target))


def _parser() -> tuple[etree.XMLParser, _Target]:
    from lxml import etree

    target = _Target()
    parser = etree.XMLParser(
        target=cast("etree.ParserTarget", target),
        resolve_entities=False,
        no_network=True,
        huge_tree=False,
        load_dtd=False,
        encoding="utf-8",
    )
    return parser, target
