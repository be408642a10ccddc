"""Reads YAML strictly: a text in, nodes with their places and diagnostics out. Never raises for what a text says.

Strict means that nothing is dropped or repeated in silence: duplicate keys, anchors, merge keys and unknown tags are
errors. Reading is linear in the length of the text and uses no stack of Python's for its depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import attrgetter

import yaml

from quire.diagnostics import Diagnostic
from quire.formats.yaml import codes
from quire.formats.yaml.events import Events
from quire.formats.yaml.nodes import EXPR, Entry, Mapping, Node, Scalar, Sequence, Style
from quire.formats.yaml.scalars import NotJson, resolve
from quire.source import MAX_DOCUMENT_BYTES, NOWHERE, Source, Span

MAX_DEPTH = 100
_PROPERTIES = re.compile(r"(?:[!&][^ \t\n]*+|#[^\n]*+|[ \t\n]++)*+")
_STYLES = {"": Style.PLAIN, "'": Style.SINGLE, '"': Style.DOUBLE, "|": Style.LITERAL, ">": Style.FOLDED}
_in_order = attrgetter("span.start", "span.end")


@dataclass(frozen=True, slots=True)
class YamlReading:
    """The documents that could be read, empty ones left out, and everything that is wrong, in the order of the text.

    With an error there are still documents, so that their readers can find more; what stands in for a part that
    could not be read begins where the error about it does.
    """

    source: Source
    documents: tuple[Node, ...]
    diagnostics: tuple[Diagnostic, ...]

    def with_findings(self, found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """These and the findings of a later reader, without those about parts that are already known to be wrong."""
        known = {one.span.start for one in self.diagnostics}
        fresh = (one for one in dict.fromkeys(found) if one.span.start not in known)
        return tuple(sorted([*self.diagnostics, *fresh], key=_in_order))


def read_yaml(source: Source, *, limit: int = MAX_DOCUMENT_BYTES) -> YamlReading:
    if source.size > limit:
        help = f"it has {source.size:,} bytes; {limit:,} is the limit"
        return YamlReading(source, (), (Diagnostic(codes.TOO_LARGE, "the file is too large", NOWHERE, "", help),))
    builder = _Builder(source)
    documents = builder.build()
    return YamlReading(source, tuple(documents), tuple(sorted(builder.found, key=_in_order)))


class _Open:
    """A list or a mapping whose end has not come; the keys and values of a mapping stand in turn."""

    __slots__ = ("flow", "is_mapping", "parts", "start")

    def __init__(self, start: int, flow: bool, is_mapping: bool) -> None:
        self.start = start
        self.flow = flow
        self.is_mapping = is_mapping
        self.parts: list[Node] = []


class _Builder:
    def __init__(self, source: Source) -> None:
        self.found: list[Diagnostic] = []
        self._source = source
        self._text = source.text
        self._events = Events(source)

    def build(self) -> list[Node]:
        documents: list[Node] = []
        stack: list[_Open] = []
        events = self._events
        for event, start, end in events:
            if events.broken:
                events.broken = False
                self._unclosed(stack)
                stack.clear()
            node: Node
            if isinstance(event, yaml.ScalarEvent):
                node = self._scalar(event, start, end)
            elif isinstance(event, yaml.CollectionStartEvent):
                if len(stack) == MAX_DEPTH:
                    message = f"nested deeper than {MAX_DEPTH} levels"
                    self.found.append(Diagnostic(codes.TOO_DEEP, message, Span(start, end)))
                    break
                if event.tag is not None or event.anchor is not None:
                    self._properties(event, start)
                stack.append(_Open(start, bool(event.flow_style), isinstance(event, yaml.MappingStartEvent)))
                continue
            elif isinstance(event, yaml.CollectionEndEvent):
                node = self._closed(stack.pop(), end)
            elif isinstance(event, yaml.AliasEvent):
                node = self._alias(Span(start, end))
            else:
                continue
            if stack:
                stack[-1].parts.append(node)
            elif not (isinstance(node, Scalar) and node.value is None and not node.text):
                documents.append(node)
        if events.broken:
            self._unclosed(stack)
        self.found += events.found
        return documents

    def _unclosed(self, stack: list[_Open]) -> None:
        """Where a bracket was open at a syntax error, the missing other half is the likely reason."""
        error = self._events.found[-1]
        if stack and stack[-1].flow and not error.help:
            at = stack[-1].start
            bracket = "{" if stack[-1].is_mapping else "["
            help = f"the {bracket} on line {self._source.position(at).line} may not be closed"
            self._events.found[-1] = replace(error, help=help)

    def _scalar(self, event: yaml.ScalarEvent, start: int, end: int) -> Scalar:
        text, style = self._events.restored(event.value), event.style
        if style in ("|", ">"):
            # The parser counts the blank lines after a block to it.
            end = start + len(self._text[start:end].rstrip(" \t\n"))
        span = body = Span(start, end)
        if event.tag is not None or event.anchor is not None:
            begin = _PROPERTIES.match(self._text, start, end)
            body = Span(begin.end() if begin else start, end)
            self._properties(event, start)
        if event.tag == EXPR:
            return Scalar(text, text, span, body, _STYLES[style or ""], EXPR)
        if style:
            return Scalar(text, text, span, body, _STYLES[style])
        try:
            return Scalar(resolve(text), text, span, body)
        except NotJson as problem:
            help = "put it in quotes if it is meant as text"
            self.found.append(Diagnostic(codes.NUMBER, str(problem), span, "", help))
            return Scalar(text, text, span, body)

    def _properties(self, event: yaml.NodeEvent, start: int) -> None:
        """Reports the anchor and the tag of a node, where it has one that it must not have."""
        if event.anchor is not None:
            at = self._text.index("&", start)
            self._aliasing(Span(at, at + 1 + len(event.anchor)), "an anchor")
        tag = getattr(event, "tag", None)
        if tag is None or (tag == EXPR and isinstance(event, yaml.ScalarEvent)):
            return
        at = self._text.index("!", start)
        span = Span(at, at + len(self._text[at : at + 200].split(maxsplit=1)[0].rstrip(",]}")))
        shown = self._text[span.start : span.end]
        if tag == EXPR:
            message, help = f"{EXPR} cannot mark a list or a mapping", "put the whole expression in quotes after it"
        else:
            message, help = (
                f"the tag {shown} is not known",
                f"{EXPR} is the only tag; put text that begins with ! in quotes",
            )
        self.found.append(Diagnostic(codes.TAG, message, span, "", help))

    def _alias(self, span: Span) -> Scalar:
        self._aliasing(span, "an alias")
        return Scalar(None, self._text[span.start : span.end], span, span)

    def _aliasing(self, span: Span, what: str) -> None:
        shown = self._text[span.start : span.end]
        help = "write the value out; put text that begins with & or * in quotes"
        self.found.append(Diagnostic(codes.ALIAS, f"{shown} is {what}: these are not read", span, "", help))

    def _closed(self, done: _Open, end: int) -> Node:
        if not done.flow:
            # A block ends for the parser where the next token begins, far below.
            end = done.parts[-1].span.end if done.parts else done.start
        span = Span(done.start, max(end, done.start))
        if not done.is_mapping:
            return Sequence(tuple(done.parts), span)
        entries: dict[tuple[type, object], Entry] = {}
        for key, value in zip(done.parts[::2], done.parts[1::2], strict=True):
            if not isinstance(key, Scalar) or key.tag:
                self._bad_key(key)
                continue
            if key.text == "<<" and key.style is Style.PLAIN:
                self.found.append(
                    Diagnostic(codes.MERGE_KEY, "the merge key << is not read", key.span, "", "write the keys out")
                )
                continue
            same = entries.setdefault((type(key.value), key.value), entry := Entry(key, value))
            if same is not entry:
                line = self._source.position(same.key.span.start).line
                message = f"the key {_short(key.text)} is here twice"
                self.found.append(
                    Diagnostic(codes.DUPLICATE_KEY, message, key.span, "", f"the first is on line {line}")
                )
        return Mapping(tuple(entries.values()), span)

    def _bad_key(self, key: Node) -> None:
        if isinstance(key, Scalar):
            message, help = f"a key cannot be an {key.tag}", ""
        else:
            what = "list" if isinstance(key, Sequence) else "mapping"
            message, help = f"a {what} cannot be a key", "put text that begins with { or [ in quotes"
        self.found.append(Diagnostic(codes.KEY, message, key.span, "", help))


def _short(text: str) -> str:
    return f'"{text}"' if len(text) <= 60 else f'"{text[:57]}…"'
