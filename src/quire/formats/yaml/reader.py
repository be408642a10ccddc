"""Read YAML strictly, into nodes with positions and diagnostics. Never raises because of the content of a text.

Strict means that nothing is dropped silently: duplicate keys, aliases without anchor and unknown tags are errors.
Reading takes linear time and does not recurse. `<<` gives a mapping the entries of others: its own entries take
precedence, then those of the first mapping, then those of the next.

An alias is the node of its anchor, with the position of the anchor. Nodes are shared, never copied, so an alias costs
nothing to read; but code that walks the tree meets the node at every alias. So the limits apply to the text with all
aliases written out: it may not have more characters than a document may have bytes, and lists and mappings may not be
nested too deep. Characters are counted rather than nodes, because a long text that is repeated grows as well, and the
known positions are enough to count them. An alias that exceeds a limit is refused before a node is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from operator import attrgetter
from typing import TypeAlias

import yaml
from msgspec import Struct
from msgspec.structs import replace

from quire.diagnostics import Diagnostic
from quire.formats.yaml import codes
from quire.formats.yaml.nodes import (
    AFTER_TAG,
    EXPR,
    OWN_TAGS,
    SNAPSHOT,
    TAGS,
    Entry,
    Mapping,
    Mismatch,
    Node,
    NotJson,
    Scalar,
    Sequence,
    Style,
    describe,
    resolve,
    tagged,
)
from quire.formats.yaml.parser_events import Events
from quire.source import MAX_DOCUMENT_BYTES, NOWHERE, Source, Span
from quire.wording import LONGEST_QUOTED, cut, quoted

_OWN = "tag:yaml.org,2002:"
_PROPERTIES = re.compile(r"(?:[!&][^ \t\n]*+|#[^\n]*+|[ \t\n]++)*")
_STYLES = {"": Style.PLAIN, "'": Style.SINGLE, '"': Style.DOUBLE, "|": Style.LITERAL, ">": Style.FOLDED}
_in_order = attrgetter("span.start", "span.end")
_Key: TypeAlias = tuple[type, object]
"""The value of a key and its type: `1`, `1.0` and `true` are equal in Python."""


class YamlReading(Struct, frozen=True):
    """The documents that could be read, without empty ones, and everything that is wrong, in the order of the text.

    If there are errors, there are still documents, so that their readers can find more. The placeholder for a part that
    could not be read begins where the error about it does.
    """

    source: Source
    documents: tuple[Node, ...]
    diagnostics: tuple[Diagnostic, ...]

    def with_findings(self, findings: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """Return these findings and those of a later reader, without those about parts that are already reported."""
        reported = {diagnostic.span.start for diagnostic in self.diagnostics}
        fresh = (finding for finding in dict.fromkeys(findings) if finding.span.start not in reported)
        return tuple(sorted([*self.diagnostics, *fresh], key=_in_order))


def read_yaml(source: Source, *, limit: int = MAX_DOCUMENT_BYTES, tags: tuple[str, ...] = OWN_TAGS) -> YamlReading:
    """Read a text. `tags` are those of the format; every other tag that is not one of YAML is an error."""
    if source.size > limit:
        help = f"it has {source.size:,} bytes; {limit:,} is the limit"
        return YamlReading(source, (), (Diagnostic(codes.TOO_LARGE, "the file is too large", NOWHERE, "", help),))
    builder = _Builder(source, limit, tags)
    documents = builder.build()
    return YamlReading(source, tuple(documents), tuple(sorted(builder.found, key=_in_order)))


class _Open:
    """A list or a mapping whose end has not been read yet. The keys and values of a mapping alternate in `parts`.

    `aliases` are the positions of the parts that are aliases. `before` is the number of characters that aliases had
    added to the text when it began; `height` is the number of levels from here down.
    """

    __slots__ = ("aliases", "anchor", "before", "flow", "height", "is_mapping", "parts", "start")

    def __init__(self, start: int, flow: bool, is_mapping: bool, anchor: str | None, before: int) -> None:
        self.start = start
        self.flow = flow
        self.is_mapping = is_mapping
        self.anchor = anchor
        self.before = before
        self.height = 1
        self.parts: list[Node] = []
        self.aliases: dict[int, Span] | None = None

    def place(self, part: int) -> Span:
        alias = self.aliases.get(part) if self.aliases else None
        return alias or self.parts[part].span


class _Builder:
    def __init__(self, source: Source, limit: int, tags: tuple[str, ...]) -> None:
        self.found: list[Diagnostic] = []
        self._tags = tags
        self._source = source
        self._text = source.text
        self._events = Events(source)
        self._anchors = Anchors(source, limit)

    def build(self) -> list[Node]:
        documents: list[Node] = []
        stack: list[_Open] = []
        events, anchors = self._events, self._anchors
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
                is_mapping, anchor = isinstance(event, yaml.MappingStartEvent), event.anchor
                if event.tag is not None:
                    self._tag(event.tag, start, _OWN + ("map" if is_mapping else "seq"))
                if anchor is not None:
                    anchors.open(anchor, start)
                stack.append(_Open(start, bool(event.flow_style), is_mapping, anchor, anchors.added))
                continue
            elif isinstance(event, yaml.CollectionEndEvent):
                done = stack.pop()
                node = self._closed(done, end)
                if stack and stack[-1].height <= done.height:
                    stack[-1].height = done.height + 1
            elif isinstance(event, yaml.AliasEvent):
                node = self._alias(event, Span(start, end), stack)
            else:
                if isinstance(event, yaml.DocumentStartEvent):
                    anchors.forget()
                continue
            if stack:
                stack[-1].parts.append(node)
            elif not (isinstance(node, Scalar) and node.value is None and not node.text):
                documents.append(node)
        if events.broken:
            self._unclosed(stack)
        self.found += anchors.found
        self.found += events.found
        return documents

    def _unclosed(self, stack: list[_Open]) -> None:
        """Add a hint to a syntax error inside an open bracket: the missing closing bracket is the likely cause."""
        error = self._events.found[-1]
        if stack and stack[-1].flow and not error.help:
            at = stack[-1].start
            bracket = "{" if stack[-1].is_mapping else "["
            help = f"the {bracket} on line {self._source.position(at).line} may not be closed"
            sign = self._text[error.span.start : error.span.start + 1]
            if sign == ";":
                help = "in brackets, parts are separated by a comma"
            elif sign and sign in "{|>":
                help = "put a text with brackets or signs in it into quotes"
            self._events.found[-1] = replace(error, help=help)

    def _scalar(self, event: yaml.ScalarEvent, start: int, end: int) -> Scalar:
        text, style = self._events.restored(event.value), event.style
        if style in ("|", ">"):
            # The parser includes the blank lines after a block.
            end = start + len(self._text[start:end].rstrip(" \t\n"))
        span = body = Span(start, end)
        tag, anchor = event.tag, event.anchor
        if tag is None and anchor is None:
            if style:
                return Scalar(text, text, span, body, _STYLES[style])
            try:
                return Scalar(resolve(text), text, span, body)
            except NotJson:
                return Scalar(self._plain(text, span), text, span, body)
        begin = _PROPERTIES.match(self._text, start, end)
        body = Span(begin.end() if begin else start, end)
        value = self._tagged(tag, text, style, span) if tag is not None else text if style else self._plain(text, span)
        node = Scalar(value, text, span, body, _STYLES[style or ""], tag if tag in self._tags else "")
        if anchor is not None:
            self._anchors.open(anchor, start)
            self._anchors.close(anchor, node, body.end - body.start, 0)
        return node

    def _plain(self, text: str, span: Span) -> None | bool | int | float | str:
        try:
            return resolve(text)
        except NotJson as problem:
            help = "put it in quotes if it is meant as text"
            self.found.append(Diagnostic(codes.NUMBER, str(problem), span, "", help))
            return text

    def _tagged(self, tag: str, text: str, style: str | None, span: Span) -> None | bool | int | float | str:
        if tag in self._tags:
            return text
        kind = tag.removeprefix(_OWN)
        if kind == tag or kind not in TAGS:
            self._tag(tag, span.start, EXPR)
            return text if style else self._plain(text, span)
        try:
            return tagged(kind, text)
        except Mismatch as problem:
            self.found.append(Diagnostic(codes.TAG, str(problem), span))
        except NotJson as problem:
            self.found.append(Diagnostic(codes.NUMBER, str(problem), span))
        return text

    def _tag(self, tag: str, start: int, right: str) -> None:
        """Report the tag of a node if it is not the right one."""
        if tag == right:
            return
        at = self._text.index("!", start)
        span = Span(at, at + len(self._text[at : at + 200].split(maxsplit=1)[0].rstrip(",]}")))
        shown = self._text[span.start : span.end]
        own = tag.removeprefix(_OWN)
        if tag in self._tags:
            message, help = f"{tag} cannot mark a list or a mapping", AFTER_TAG[tag]
        elif own != tag and (own in TAGS or own in ("seq", "map")):
            what = "a list" if right.endswith("seq") else "a mapping" if right.endswith("map") else "a single value"
            message, help = f"{shown} cannot mark {what}", "leave the tag out"
        else:
            message = f"the tag {shown} is not known"
            tags = f"{EXPR}, {SNAPSHOT}" if SNAPSHOT in self._tags else EXPR
            help = f"there are {tags} and YAML's own, such as !!str; put text that begins with ! in quotes"
        self.found.append(Diagnostic(codes.TAG, message, span, "", help))

    def _alias(self, event: yaml.AliasEvent, span: Span, stack: list[_Open]) -> Node:
        node, height = self._anchors.node(event.anchor or "", span, len(stack))
        if stack:
            around = stack[-1]
            around.aliases = around.aliases or {}
            around.aliases[len(around.parts)] = span
            around.height = max(around.height, height + 1)
        return node

    def _closed(self, done: _Open, end: int) -> Node:
        if not done.flow:
            # For the parser a block ends where the next token begins, possibly many lines below.
            parts = done.parts
            last = done.place(len(parts) - 1) if done.aliases else parts[-1].span if parts else None
            end = last.end if last else done.start
        span = Span(done.start, max(end, done.start))
        node = self._mapping(done, span) if done.is_mapping else Sequence(tuple(done.parts), span)
        if done.anchor is not None:
            begin = _PROPERTIES.match(self._text, span.start, span.end)
            length = span.end - (begin.end() if begin else span.start) + self._anchors.added - done.before
            self._anchors.close(done.anchor, node, length, done.height)
        return node

    def _mapping(self, done: _Open, span: Span) -> Mapping:
        entries: dict[_Key, Entry] = {}
        merge: Entry | None = None
        parts = done.parts
        for key, value, at in zip(parts[::2], parts[1::2], range(0, len(parts), 2), strict=True):
            if not isinstance(key, Scalar) or key.tag:
                self._bad_key(key, done.place(at))
                continue
            entry = Entry(key, value)
            name = key.value
            is_tagged = "!" in self._text[key.span.start : key.body.start]
            if name == "<<" and key.style is Style.PLAIN and not is_tagged:
                same = merge = merge or entry
            else:
                same = entries.setdefault((type(name), name), entry)
            if same is not entry:
                line = self._source.position(same.key.span.start).line
                message = f"the key {quoted(key.text)} is here twice"
                place, help = done.place(at), f"the first is on line {line}"
                self.found.append(Diagnostic(codes.DUPLICATE_KEY, message, place, "", help))
        if merge is not None:
            entries = {**self._merged(merge), **entries}
        return Mapping(tuple(entries.values()), span)

    def _merged(self, merge: Entry) -> dict[_Key, Entry]:
        """Return the entries that `<<` stands for. The length of an alias in it has already been counted."""
        entries: dict[_Key, Entry] = {}
        for item in merge.value.items if isinstance(merge.value, Sequence) else (merge.value,):
            if isinstance(item, Mapping):
                for entry in item.entries:
                    entries.setdefault((type(entry.key.value), entry.key.value), entry)
            elif not is_stand_in(item):
                message = f"<< takes a mapping or a list of mappings, not {describe(item)}"
                help = 'a key that is really called so is written "<<"'
                self.found.append(Diagnostic(codes.MERGE_KEY, message, merge.key.span, "", help))
        return entries

    def _bad_key(self, key: Node, place: Span) -> None:
        if isinstance(key, Scalar):
            message, help = f"a key cannot be an {key.tag}", ""
        else:
            what = "list" if isinstance(key, Sequence) else "mapping"
            message, help = f"a {what} cannot be a key", "put text that begins with { or [ in quotes"
        self.found.append(Diagnostic(codes.KEY, message, place, "", help))


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
    return cut(name, LONGEST_QUOTED, LONGEST_QUOTED - 3)
