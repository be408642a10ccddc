"""Parse the XML of a fence into a small tree whose elements know their position in the file.

lxml decides whether the text is well-formed and resolves references; a parallel scan of the tags finds the positions.
Everything before a mistake is kept, so that a directive with one mistake still has its name. A DOCTYPE is refused
before anything is parsed, so there is no entity that could grow. `explain` describes XML that is not well-formed in our
own words, with the position of the cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from msgspec import Struct, field

from quire.diagnostics import Diagnostic
from quire.formats.directive import codes
from quire.plan.vocabulary import OPAQUE
from quire.source import Source, Span

if TYPE_CHECKING:
    from lxml import etree


# Error numbers of libxml2 for mistakes that people make.
_EMPTY, _AFTER_ROOT, _BAD_REFERENCE, _NO_SEMICOLON, _UNKNOWN_ENTITY = 4, 5, 9, 23, 26
_LESS_IN_VALUE, _NO_QUOTES, _OPEN_VALUE, _TWICE = 38, 39, 40, 42
_NAME, _OPEN_TAG, _CROSSED, _UNFINISHED = 68, 73, 76, 77

_REFERENCE = re.compile(r"&[^\s;&<]*;?")
_AMPERSAND = "write &amp; for an ampersand"
_LESS = "write &lt; for a less-than sign, or put the text after the fence"


class Wrong(Struct, frozen=True):
    """A mistake in the XML."""

    message: str
    at: Span
    help: str = ""
    left_open: bool = False
    """True if the message should name the element that is still open."""


def explain(code: int, message: str, text: str, at: int) -> Wrong:
    """Describe an error.

    `message` is that of the parser, for errors without a description here; `at` is where it stopped.
    """
    if code == _EMPTY:
        return Wrong("the XML fence holds no element", Span(0, min(1, len(text))), "it holds one <directive> element")
    if code == _AFTER_ROOT:
        return Wrong("the XML continues after the root element", Span(at, at + 1), "one fence holds one <directive>")
    if code in (_BAD_REFERENCE, _NO_SEMICOLON, _UNKNOWN_ENTITY):
        start = max(text.rfind("&", 0, at), 0)
        reference = _REFERENCE.match(text[start : start + 20])
        message = f"the XML holds the unknown reference {reference[0] if reference else '&'}"
        return Wrong(message, Span(start, at), _AMPERSAND)
    if code in (_CROSSED, _UNFINISHED):
        start = text.rfind("</", 0, at) if code == _CROSSED else at
        shown = text[start:at].strip()[:60]
        what = f"the XML closes {shown} too early" if code == _CROSSED and shown else "the XML ends too early"
        return Wrong(what, Span(max(start, 0), max(at, start)), "close every element that is opened", left_open=True)
    if code == _TWICE:
        return Wrong("the XML has an attribute twice in one tag", _back(text, at, "<"))
    if code in (_NO_QUOTES, _OPEN_VALUE, _LESS_IN_VALUE):
        help = _LESS if code == _LESS_IN_VALUE else 'write name="value", with both quotes'
        return Wrong("the XML has an attribute whose value is not well-formed", Span(at, at + 1), help)
    if code == _NAME:
        before = text[max(at - 1, 0) : at]
        if before == "&" or text[at : at + 1] == "&" or "EntityRef" in message:
            start = text.rfind("&", 0, at + 1)
            return Wrong("the XML holds a bare & in its text", Span(start, start + 1), _AMPERSAND)
        start = text.rfind("<", 0, at + 1)
        if start >= 0 and not text[start + 1 : at].strip():
            return Wrong("the XML holds a bare < in its text", Span(start, start + 1), _LESS)
        return Wrong("the XML has a tag that is not well-formed", Span(at, at + 1), 'an attribute is name="value"')
    if code == _OPEN_TAG:
        return Wrong("the XML has a tag without its end", _back(text, at, "<"), "a tag ends with > or />")
    # Line and column of the parser count from the start of the fence.
    message = " ".join(message.partition(", line ")[0].split())
    return Wrong(f"the XML is not well-formed: {message}", Span(at, at + 1))


def _back(text: str, at: int, sign: str) -> Span:
    start = text.rfind(sign, 0, at)
    return Span(max(start, 0), max(at, start + 1))


MAX_FENCE: Final = 100_000
MAX_DEPTH: Final = 64

_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SPECIAL = re.compile(r"<!--|<!\[CDATA\[|<!|<(template|example|raw)(?=[\s>])[^<>]*+>")
TAG = re.compile(r"<!--|<!\[CDATA\[|<\?|<(/?)([^\s/>]++)")
"""The beginning of a tag, or of something that is not one."""
REST_OF_TAG = re.compile(r"""(?:[^>"']++|"[^"]*+"|'[^']*+')*>""")
ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
"""The ends of comments and other parts that are not tags, by their beginnings."""
_ATTRIBUTE = re.compile(r"""([^\s=/>"']++)\s*+=\s*+("[^"]*+"|'[^']*+')""")
_NOT_NEWLINE = re.compile(r"[^\n]")


class Element(Struct):
    """An element. The tag is as written; positions are offsets into the source."""

    tag: str
    attributes: dict[str, str]
    start: int
    inner_start: int
    inner_end: int = 0
    end: int = 0
    parts: list[str | Element] = field(default_factory=list)
    """Texts and elements, in order."""

    @property
    def opening(self) -> Span:
        return Span(self.start, self.inner_start)

    @property
    def children(self) -> list[Element]:
        return [part for part in self.parts if isinstance(part, Element)]

    @property
    def own_text(self) -> str:
        """The text directly in the element, without that of its children."""
        return "".join(part for part in self.parts if isinstance(part, str)).strip()

    @property
    def all_text(self) -> str:
        return "".join(self._texts()).strip()

    def _texts(self) -> Iterator[str]:
        for part in self.parts:
            if isinstance(part, str):
                yield part
            else:
                yield from part._texts()

    def iter(self) -> Iterator[Element]:
        """Yield all elements below this one, in the order of the text."""
        for child in self.children:
            yield child
            yield from child.iter()

    def text_span(self, source: Source) -> Span:
        """Return where the text of the element is, without the white space around it."""
        inner = source.text[self.inner_start : self.inner_end]
        start = self.inner_start + len(inner) - len(inner.lstrip())
        end = self.inner_start + len(inner.rstrip())
        return Span(start, end) if start < end else self.opening

    def attribute_spans(self, source: Source) -> dict[str, Span]:
        """Return where the values of the attributes are, without their quotes."""
        matches = _ATTRIBUTE.finditer(source.text, self.start + 1 + len(self.tag), self.inner_start)
        return {match[1]: Span(match.start(2) + 1, match.end(2) - 1) for match in matches}

    def attribute_span(self, source: Source, name: str) -> Span:
        return self.attribute_spans(source).get(name, self.opening)

    def raw(self, source: Source) -> str:
        return source.text[self.start : self.end]


def read_xml(source: Source, content: Span) -> tuple[Element | None, list[Diagnostic]]:
    """Return the root as far as it can be read, and the findings."""
    text = source.text[content.start : content.end]
    stripped = text.lstrip()
    base = content.start + len(text) - len(stripped)
    if len(stripped) > MAX_FENCE:
        message = f"the XML of the fence has {len(stripped):,} characters, more than {MAX_FENCE:,}"
        first_line = source.line_span(source.position(content.start).line)
        return None, [Diagnostic(codes.TOO_LARGE, message, first_line, "", _SMALLER)]
    illegal = _ILLEGAL.search(stripped)
    if illegal:
        message = f"the XML holds the character U+{ord(illegal[0]):04X}, which XML does not allow"
        return None, [Diagnostic(codes.CHARACTER, message, Span(base + illegal.start(), base + illegal.end()))]
    masked, doctype = _mask(stripped)
    if doctype is not None:
        message = "the XML of a directive has no DOCTYPE and no declarations"
        return None, [Diagnostic(codes.DOCTYPE, message, Span(base + doctype, base + doctype + 2), "", _NO_DOCTYPE)]
    return _parse(source, masked.rstrip(), base)


def _mask(text: str) -> tuple[str, int | None]:
    """Blank everything that the XML parser must not see; the length stays the same.

    Also return the offset of a declaration, if there is one.
    """
    parts: list[str] = []
    done, at = 0, 0
    unclosed: set[str] = set()
    while match := _SPECIAL.search(text, at):
        at = match.end()
        if match[0] == "<!":
            return text, match.start()
        name = match[1]
        if name and match[0].endswith("/>"):
            continue
        close = f"</{name}" if name else ENDS[match[0]]
        end = -1 if close in unclosed else text.find(close, at)
        if end < 0:
            # The parser reports parts that are never closed; their end is not searched for again.
            unclosed.add(close)
            continue
        if match[0] != "<![CDATA[":
            parts += [text[done:at], _NOT_NEWLINE.sub(" ", text[at:end])]
            done = end
        at = end + len(close)
    return ("".join([*parts, text[done:]]) if parts else text), None


class _Stop(Exception):
    """Reading cannot continue, for a reason that lxml does not know."""

    def __init__(self, finding: Diagnostic) -> None:
        super().__init__(finding.message)
        self.finding = finding


class _Builder:
    """Makes the tree of one text from its tags and texts. It scans the text in parallel to find positions."""

    def __init__(self, source: Source, text: str, base: int) -> None:
        self._source = source
        self._text = text
        self._base = base
        self._at = 0
        self.root: Element | None = None
        self.open: list[Element] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        start, name = self._next()
        rest = REST_OF_TAG.match(self._text, self._at)
        self._at = rest.end() if rest else len(self._text)
        # Without resolved entities libxml2 returns every ampersand of an attribute as `&#38;`.
        attributes = {key: value.replace("&#38;", "&") for key, value in attributes.items()}
        element = Element(name, attributes, self._base + start, self._base + self._at)
        raw = self._text[start : self._at]
        names = [match[1] for match in _ATTRIBUTE.finditer(raw, len(name) + 1)]
        if any(":" in written or written == "xmlns" for written in (name, *names)):
            message = f"the XML of a directive has no namespaces, and so no {raw[:60]}"
            raise _Stop(Diagnostic(codes.NAMESPACE, message, element.opening, "", "write the name without a colon"))
        if len(self.open) >= MAX_DEPTH:
            message = f"the XML is nested deeper than {MAX_DEPTH} elements"
            raise _Stop(Diagnostic(codes.TOO_DEEP, message, element.opening))
        if self.open:
            self.open[-1].parts.append(element)
        else:
            self.root = element
        if raw.endswith("/>"):
            element.inner_end = element.end = self._base + self._at
        self.open.append(element)

    def end(self, tag: str) -> None:
        element = self.open.pop()
        if not element.end:
            start, _ = self._next()
            self._at = self._text.find(">", self._at) + 1
            element.inner_end = self._base + start
            element.end = self._base + self._at
            if element.tag in OPAQUE:
                element.parts[:] = [self._source.text[element.inner_start : element.inner_end]]

    def data(self, text: str) -> None:
        parts = self.open[-1].parts
        if parts and isinstance(parts[-1], str):
            parts[-1] += text
        else:
            parts.append(text)

    def abandon(self, end: int) -> None:
        """Close all elements that are still open, at the position of a mistake."""
        for element in self.open:
            if not element.end:
                element.inner_end = element.end = end

    def _next(self) -> tuple[int, str]:
        """Return the next tag. lxml has already seen it, so there is one."""
        while match := TAG.search(self._text, self._at):
            closing = ENDS.get(match[0])
            if closing is None:
                self._at = match.end()
                return match.start(), match[2]
            self._at = self._text.find(closing, match.end()) + len(closing)
        return len(self._text), ""


def _parse(source: Source, text: str, base: int) -> tuple[Element | None, list[Diagnostic]]:
    from lxml import etree

    builder = _Builder(source, text, base)
    try:
        _feed(builder, text.encode())
    except _Stop as stop:
        builder.abandon(stop.finding.span.start)
        return builder.root, [stop.finding]
    except etree.XMLSyntaxError as error:
        line, column = error.position
        wrong = explain(int(getattr(error, "code", 0)), error.msg or "", text, _offset(text, line or 1, column or 1))
        builder.abandon(base + wrong.at.start)
        at = Span(base + wrong.at.start, base + wrong.at.end)
        message, help = wrong.message, wrong.help
        if wrong.left_open and builder.open:
            left = builder.open[-1]
            where = source.position(left.start).line
            message = f"{message}: <{left.tag}> of line {where} is still open"
        return builder.root, [Diagnostic(codes.XML, message, at, "", help)]
    return builder.root, []


def _offset(text: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        end = text.find("\n", start)
        if end < 0:
            break
        start = end + 1
    end = text.find("\n", start)
    return min(start + column - 1, len(text) if end < 0 else end)


_SMALLER = "put long texts after the fence, or into knowledge files"
_NO_DOCTYPE = "remove it; &lt; &gt; &amp; &quot; and &#…; are known without"


class _Target:
    """Passes the events of a parser to the builder of the text that is parsed."""

    def __init__(self) -> None:
        self.builder: _Builder | None = None

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


def _feed(builder: _Builder, data: bytes) -> None:
    """Give a builder the tags and texts of some XML. Raises `XMLSyntaxError`, and what the builder raises."""
    parser, target = _IDLE.pop() if _IDLE else _new_parser()
    target.builder = builder
    try:
        parser.feed(data)
        parser.close()
    except BaseException:
        target.builder = None  # closing must not call it
        with suppress(Exception):
            parser.close()  # so that it begins anew
        raise
    finally:
        target.builder = None
        _IDLE.append((parser, target))


def _new_parser() -> tuple[etree.XMLParser, _Target]:
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
