"""Scan the tags of a directive, also in text that is being typed and is not well-formed.

The reader of the format stops at the first mistake. This scan never does: a tag without its end is a leaf, a value
without its closing quote ends with its line, an element that is never closed ends where one around it is closed. The
fence and the instructions after it are scanned in the same way.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct, field

from quire.formats.markdown import Fence, find_fence
from quire.patterns import late_pattern
from quire.plan.vocabulary import OPAQUE
from quire.source import Span

_PIECE = re.compile(r"<!--|<!\[CDATA\[|<(/?)([A-Za-z_][\w.-]*+)(?:((?:[^<>\"'\n]|\"[^\"<\n]*+\"|'[^'<\n]*+')*)>)?")
"""A comment, or a tag; the third group is the rest of a tag that is whole and stands on one line."""
_ATTRIBUTE = re.compile(r"\s*+([^\s=/>\"'<]++)(?:\s*+=\s*+(?:\"([^\"<]*+)\"|'([^'<]*+)'|(\"|')?))?")
_AFTER_VALUE = re.compile(r"[\s/>?]|$")
_OPEN_VALUE = re.compile(r"[^\n<>]*+")
_END = re.compile(r"\s*+(/?)>")
_ENDS = {"<!--": "-->", "<![CDATA[": "]]>"}
_DECLARED = late_pattern(r"<input\b[^<>]*?\bname\s*=\s*[\"'](\w+)[\"']")
_OUTPUT = late_pattern(r"<output\b[^<>]*?\bname\s*=\s*[\"'](\w+)[\"']")
_OUTPUTS = late_pattern(r"<outputs>(.*?)(?:</outputs>|</directive>|$)", re.DOTALL)
_KEYED = late_pattern(r"<(?!output\b|success\b|failure\b)([A-Za-z_]\w*)[\s>]")
DEEPEST = 100
"""Levels of elements. Those below are taken for empty, so that no text takes long: the format allows fewer."""


class Attribute(Struct, frozen=True):
    """An attribute as it is written."""

    name: str
    name_span: Span
    value: str
    value_span: Span
    """The value without its quotes; empty behind a name that has none."""
    quoted: bool = True
    """False if the value lacks its quotes, or the closing one."""


class Tagged(Struct, eq=False):
    """An element, as far as it is typed."""

    tag: str
    source: str
    """The text of the document."""
    start: int
    inner_start: int
    """The end of the opening tag."""
    inner_end: int
    end: int
    parent: Tagged | None = None
    children: list[Tagged] = field(default_factory=list)
    closing: Span | None = None
    """The name in the closing tag; None without one."""
    finished: bool = True
    """False if the opening tag has no end."""
    empty: bool = False
    """True for `<tag />`."""
    read: tuple[Attribute, ...] | None = None
    """The attributes, once they were asked for."""

    @property
    def name_span(self) -> Span:
        return Span(self.start + 1, self.start + 1 + len(self.tag))

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        if self.read is None:
            self.read = read_attributes(self.source, self.start + 1 + len(self.tag), self.inner_start)[0]
        return self.read

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @property
    def inner(self) -> Span:
        return Span(self.inner_start, self.inner_end)

    @property
    def path(self) -> str:
        """The tag with that of its parent: `cost>context`."""
        return f"{self.parent.tag}>{self.tag}" if self.parent else self.tag

    def attribute(self, name: str) -> Attribute | None:
        return next((attribute for attribute in self.attributes if attribute.name == name), None)

    def value(self, name: str) -> str:
        attribute = self.attribute(name)
        return attribute.value.strip() if attribute else ""

    def child(self, tag: str) -> Tagged | None:
        return next((child for child in self.children if child.tag == tag), None)

    def inside(self, tag: str) -> bool:
        """Tell whether an element of this tag is around this one."""
        return any(above.tag == tag for above in self.around())

    def around(self) -> Iterator[Tagged]:
        """Yield the elements around this one, the nearest first."""
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    @property
    def text(self) -> tuple[str, Span]:
        """The text inside without the white space around it, and where that is."""
        inner = self.source[self.inner_start : self.inner_end]
        text = inner.strip()
        start = self.inner_start + len(inner) - len(inner.lstrip())
        return text, Span(start, start + len(text)) if text else Span(self.inner_start, self.inner_start)


class Scan(Struct, frozen=True):
    """The parts of a directive with their elements."""

    fence: Span | None
    """The lines inside of the fence; None without one. A fence that is not closed continues to the end."""
    opening: Span | None
    """The line that opens the fence."""
    body_start: int
    """The offset at which the instructions begin."""
    tags: tuple[Tagged, ...]
    """All elements, in the order of the text."""
    tops: tuple[Tagged, ...]
    """The elements that are not inside of another one."""
    comments: tuple[Span, ...]

    @property
    def root(self) -> Tagged | None:
        return next((top for top in self.tops if top.tag == "directive" and self.holds(top.start)), None)

    def holds(self, offset: int) -> bool:
        """Tell whether an offset is in the fence."""
        return self.fence is not None and self.fence.holds(offset)

    def below(self, *tags: str) -> Tagged | None:
        """Return the first element that is reached by these tags below the root."""
        element = self.root
        for tag in tags:
            element = element.child(tag) if element else None
        return element

    def at(self, offset: int) -> Tagged | None:
        """Return the innermost element around an offset."""
        innermost: Tagged | None = None
        level: Sequence[Tagged] = self.tops
        while level:
            before = bisect_right(level, offset, key=lambda tag: tag.start) - 1
            if before < 0 or offset >= max(level[before].end, level[before].start + 1):
                return innermost
            innermost = level[before]
            level = innermost.children
        return innermost


@lru_cache(maxsize=8)
def scan(text: str) -> Scan:
    """Scan a directive."""
    read = find_fence(text, "xml")
    if isinstance(read, Fence):
        opening = Span(read.whole.start, read.content.start - 1)
        fence, body = read.content, read.whole.end
    elif read.reason == "unclosed" and read.near is not None:
        start = min(read.near.end + 1, len(text))
        opening, fence, body = read.near, Span(start, len(text)), len(text)
    else:
        opening, fence, body = None, None, len(text)
    tags: list[Tagged] = []
    comments: list[Span] = []
    for part in (fence, Span(body, len(text))):
        if part is not None:
            _Scanner(text, part, tags, comments).run()
    tops = tuple(tag for tag in tags if tag.parent is None)
    return Scan(fence, opening, body, tuple(tags), tops, tuple(comments))


def open_at(text: str, start: int, offset: int) -> list[Tagged]:
    """Return the elements that are open at an offset, the outermost first, ignoring the text after it."""
    scanner = _Scanner(text, Span(start, offset), [], [])
    scanner.run()
    return scanner.open


class _Scanner:
    def __init__(self, text: str, part: Span, tags: list[Tagged], comments: list[Span]) -> None:
        self._text = text
        self._part = part
        self._tags = tags
        self._comments = comments
        self.open: list[Tagged] = []
        """The elements that are not closed yet, the outermost first."""
        self._unclosed: set[str] = set()

    def run(self) -> None:
        at, end, text = self._part.start, self._part.end, self._text
        while match := _PIECE.search(text, at, end):
            if closing := _ENDS.get(match[0]):
                close = text.find(closing, match.end(), end)
                at = end if close < 0 else close + len(closing)
                if match[0] == "<!--":
                    self._comments.append(Span(match.start(), at))
            elif match[1]:
                at = self._close(match)
            else:
                at = self._begin(match)
        for tag in self.open:
            tag.inner_end = tag.end = end

    def _begin(self, match: re.Match[str]) -> int:
        read: tuple[Attribute, ...] | None = None
        if (rest := match[3]) is not None:
            at, finished, empty = match.end(), True, rest.endswith("/")
        else:
            read, at = read_attributes(self._text, match.end(2), self._part.end)
            end = _END.match(self._text, at, self._part.end)
            finished, empty = end is not None, end is not None and bool(end[1])
            at = end.end() if end else at
        parent = self.open[-1] if self.open else None
        tag = Tagged(match[2], self._text, match.start(), at, at, at, parent, [], None, finished, empty, read)
        self._tags.append(tag)
        if parent is not None:
            parent.children.append(tag)
        if not finished or empty:
            return at
        if tag.tag in OPAQUE:
            return self._opaque(tag)
        if len(self.open) < DEEPEST:
            self.open.append(tag)
        return at

    def _opaque(self, tag: Tagged) -> int:
        """Pass over an element whose text is kept as it is."""
        close = -1
        if tag.tag not in self._unclosed:
            close = self._text.find(f"</{tag.tag}", tag.inner_start, self._part.end)
        if close < 0:
            self._unclosed.add(tag.tag)
            if len(self.open) < DEEPEST:
                self.open.append(tag)
            return tag.inner_start
        tag.inner_end = close
        tag.closing = Span(close + 2, close + 2 + len(tag.tag))
        end = _END.match(self._text, tag.closing.end, self._part.end)
        tag.end = end.end() if end else tag.closing.end
        return tag.end

    def _close(self, match: re.Match[str]) -> int:
        end = None if match[3] is not None else _END.match(self._text, match.end(2), self._part.end)
        at = end.end() if end else match.end()
        depth, name = len(self.open) - 1, match[2]
        while depth >= 0 and self.open[depth].tag != name:
            depth -= 1
        if depth < 0:
            return at
        for inner in self.open[depth + 1 :]:
            inner.inner_end = inner.end = match.start()
        tag = self.open[depth]
        tag.inner_end, tag.end, tag.closing = match.start(), at, Span(match.start(2), match.end(2))
        del self.open[depth:]
        return at


def read_attributes(text: str, at: int, end: int) -> tuple[tuple[Attribute, ...], int]:
    """Read the attributes from an offset on, and return them with the offset behind the last one."""
    attributes: list[Attribute] = []
    while match := _ATTRIBUTE.match(text, at, end):
        name = Span(match.start(1), match.end(1))
        group = 2 if match[2] is not None else 3 if match[3] is not None else 0
        if group and ("\n" not in match[group] or _AFTER_VALUE.match(text, match.end(), end)):
            value, quoted = Span(match.start(group), match.end(group)), True
            at = match.end()
        elif group or match[4]:
            start = match.start(group) if group else match.end()
            rest = _OPEN_VALUE.match(text, start, end)
            value, quoted = Span(start, rest.end() if rest else start), False
            at = value.end
        else:
            value, quoted = Span(match.end(), match.end()), False
            at = match.end()
        attributes.append(Attribute(match[1], name, value.of(text), value, quoted))
    return tuple(attributes), at


def declared_inputs(text: str) -> tuple[str, ...]:
    """Return the names of inputs, from the text alone: it may not be well-formed."""
    return tuple(dict.fromkeys(_DECLARED.findall(text)))


def declared_outputs(text: str) -> tuple[str, ...]:
    match = _OUTPUTS.search(text)
    part = match[1] if match else ""
    return tuple(dict.fromkeys([*_OUTPUT.findall(part), *_KEYED.findall(part)]))
