"""The nodes of a parsed YAML text: three kinds, each with its position in the source.

With aliases one node is at several places of the tree, and its span is that of the anchored text. Nodes are not frozen,
but never changed once the reader has returned them. Quoted scalars and blocks are text, plain ones follow the core
schema of YAML 1.2, tagged ones their tag. So `1`, `+1`, `007`, `0x1F`, `0o17`, `.5`, `1.` and `1e3` are numbers; `on`,
`no`, `12:30`, `1_000` and `2026-01-01`, which YAML 1.1 read as something else, are text, as the author most likely
meant. `.inf` and `.nan` are numbers that JSON cannot represent, so they are refused.

`place` finds where a part of a scalar's text is in the source, so that errors in an expression can point at it. It is
exact for text on one line, with or without quotes and escapes, for literal blocks, and for folded text, where white
space belongs to the word before it. If a position cannot be mapped back, it returns the whole scalar.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from quire.diagnostics import Diagnostic
from quire.formats.yaml import codes
from quire.source import Source, Span
from quire.wording import cut

if TYPE_CHECKING:
    from quire.values import Value


EXPR = "!expr"
FILE = "!file"
SNAPSHOT = "!snapshot"
OWN_TAGS = (EXPR, FILE)
"""The tags that Quire adds to those of YAML: an expression, and a prompt that is in a file."""
TEST_TAGS = (EXPR, SNAPSHOT)
"""The tags of test files: an expression, and a value that is kept beside the test."""
AFTER_TAG = {
    EXPR: "put the whole expression in quotes after it",
    FILE: "write the name of the file after it",
    SNAPSHOT: "write it instead of the value",
}
"""Advice for a tag that is written wrongly, by tag."""


class Style(StrEnum):
    """How a scalar is written."""

    PLAIN = "plain"
    SINGLE = "'"
    DOUBLE = '"'
    LITERAL = "|"
    FOLDED = ">"


class Scalar(Struct, gc=False):
    """A single value."""

    value: None | bool | int | float | str
    text: str
    span: Span
    """Covers tag and anchor as well."""
    body: Span
    """Covers only the part after tag and anchor, quotes included."""
    style: Style = Style.PLAIN
    tag: str = ""
    """One of the tags that the format has, and then the scalar is text. YAML's own have been applied to `value`."""


class Entry(Struct, gc=False):
    """A key and its value.

    A key can be any untagged scalar: the reader of the mapping decides whether it must be text.
    """

    key: Scalar
    value: Node

    @property
    def visible(self) -> Span:
        """Where to point for a value: at its key if the value is empty."""
        return self.value.span if self.value.span.start < self.value.span.end else self.key.span


class Sequence(Struct, gc=False):
    items: tuple[Node, ...]
    span: Span


class Mapping(Struct, gc=False):
    """A mapping with distinct keys in the order of the text; keys that were merged into it come first."""

    entries: tuple[Entry, ...]
    span: Span

    def find(self, key: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.key.value == key), None)

    def get(self, key: str) -> Node | None:
        entry = self.find(key)
        return entry.value if entry else None


Node: TypeAlias = Scalar | Sequence | Mapping


def text_of(node: Node | None) -> str | None:
    """Return the text if the node is text without a tag, else None."""
    return node.value if isinstance(node, Scalar) and not node.tag and isinstance(node.value, str) else None


def label_of(key: Scalar) -> str:
    """Return a key as the text of its Python value: `true` is `True`, `null` is `None`, `3` is `3`."""
    return str(key.value)


def describe(node: Node) -> str:
    """Describe a node, for messages that say it should be something else."""
    if isinstance(node, Sequence):
        return "a list"
    if isinstance(node, Mapping):
        return "a mapping"
    if node.tag:
        return f"an {node.tag}" if node.tag == EXPR else f"a {node.tag}"
    if node.value is None:
        return "null" if node.text else "empty"
    if isinstance(node.value, bool):
        return f"the boolean {node.text}"
    return "text" if isinstance(node.value, str) else f"the number {node.text}"


def literal(node: Node, findings: list[Diagnostic]) -> Value:
    """Return the value of a node.

    Parts that are not literals are reported and left out. The reader's limit bounds the recursion.
    """
    if isinstance(node, Scalar):
        if node.tag:
            marks = "the whole value of an argument" if node.tag == EXPR else "a prompt"
            message = f"{node.tag} cannot stand here: it marks {marks}"
            findings.append(Diagnostic(codes.MISPLACED_TAG, message, node.span))
            return None
        return node.value
    if isinstance(node, Sequence):
        return [literal(item, findings) for item in node.items]
    return {name: literal(entry.value, findings) for name, entry in named(node, findings)}


def named(mapping: Mapping, findings: list[Diagnostic]) -> list[tuple[str, Entry]]:
    """Return the entries by name. A key that is not text is reported and left out."""
    entries: list[tuple[str, Entry]] = []
    for entry in mapping.entries:
        name = entry.key.value
        if isinstance(name, str):
            entries.append((name, entry))
        else:
            help = f'write "{entry.key.text}" if text is meant' if entry.key.text else ""
            message = f"a key must be text, not {describe(entry.key)}"
            findings.append(Diagnostic(codes.KEY, message, entry.key.span, "", help))
    return entries


WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER = re.compile(r"[-+]?(?:(\.[0-9]+)|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_KINDS: dict[str, tuple[type, str]] = {
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "bool": (bool, "true or false"),
    "null": (type(None), "null"),
}
TAGS = frozenset(("str", *_KINDS))
"""YAML's own tags for scalars, as they are written after `!!`."""


class NotJson(ValueError):
    """A number that JSON cannot represent; the text says why."""


class Mismatch(ValueError):
    """A text that does not match its tag; the text of the error says so."""


def resolve(text: str) -> None | bool | int | float | str:
    """Return the value of a plain scalar. Raises `NotJson`."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in "-+.0123456789":
        return text
    number = _NUMBER.fullmatch(text)
    if not number:
        if _NO_NUMBER.fullmatch(text):
            raise NotJson(f"{text} is not a JSON value")
        return _based(text) if _BASED.fullmatch(text) else text
    if number.lastindex:
        value = float(text)
        if math.isinf(value):
            raise NotJson(f"{_short(text)} is too large a number")
        return value
    try:
        return int(text)
    except ValueError:  # Python refuses to convert thousands of digits, because that takes quadratic time.
        raise NotJson(f"{_short(text)} has too many digits") from None


def tagged(kind: str, text: str) -> None | bool | int | float | str:
    """Return the value of a scalar with one of `TAGS`, quoted or not. Raises `NotJson` or `Mismatch`."""
    if kind == "str":
        return text
    type_, meant = _KINDS[kind]
    value = resolve(text)
    if kind == "float" and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise NotJson(f"{_short(text)} is too large a number") from None
    if type(value) is not type_:
        raise Mismatch(f'!!{kind} needs {meant}, not "{_short(text)}"')
    return value


def _based(text: str) -> int:
    value = int(text, 8 if text[1] == "o" else 16)
    try:
        str(value)
    except ValueError:  # JSON has only decimal digits, and there are too many of them.
        raise NotJson(f"{_short(text)} has too many digits") from None
    return value


def _short(text: str) -> str:
    return cut(text, 20, 17)


_ESCAPE = re.compile(r"\\(?:x..|u.{4}|U.{8}|.)|.", re.DOTALL)
_DOUBLED = re.compile(r"''|.", re.DOTALL)
_ANY = re.compile(r".", re.DOTALL)
_PIECES = {Style.DOUBLE: _ESCAPE, Style.SINGLE: _DOUBLED}
_BLANK_ESCAPES = " \t\nntvfrN_LP"


def place(source: Source, scalar: Scalar, part: Span) -> Span:
    """Return the span in the source of a span in `scalar.text`."""
    at = _offsets(source.text, scalar)
    if at is None or not 0 <= part.start <= part.end < len(at):
        return scalar.body
    if part.start == part.end:
        return Span(at[part.start], at[part.start])
    # A part that ends at the end of a line of a block does not extend into the indentation of the next line.
    end = at[part.end - 1] + 1 if scalar.style is Style.LITERAL else at[part.end]
    return Span(at[part.start], end)


def _offsets(text: str, scalar: Scalar) -> list[int] | None:
    """Return the offset of each character of the scalar's text and of its end; None if that is not possible."""
    body = text[scalar.body.start : scalar.body.end]
    start = scalar.body.start
    if scalar.style is Style.LITERAL:
        return _literal_block(body, scalar.text, start)
    if "\n" in body or scalar.style is Style.FOLDED:
        return _folded(body, scalar, start)
    if scalar.style is Style.PLAIN:
        return list(range(start, start + len(body) + 1)) if body == scalar.text else None
    pattern = _ESCAPE if scalar.style is Style.DOUBLE else _DOUBLED
    at = [start + 1 + match.start() for match in pattern.finditer(body[1:-1])]
    return [*at, scalar.body.end - 1] if len(at) == len(scalar.text) else None


def _literal_block(body: str, text: str, start: int) -> list[int] | None:
    at: list[int] = []
    resolved = text.split("\n")
    for line, (begin, written) in zip(resolved, _lines(body, start), strict=False):
        if not written.endswith(line):
            return None
        begin += len(written) - len(line)
        at.extend(range(begin, begin + len(line) + 1))
    return at if len(at) >= len(text) + 1 else [*at, *([start + len(body)] * (len(text) + 1 - len(at)))]


def _folded(body: str, scalar: Scalar, start: int) -> list[int] | None:
    """Map folded text. Folding changes only white space: all other characters are in both texts, in the same order."""
    pattern = _PIECES.get(scalar.style, _ANY)
    begin = body.find("\n") + 1 if scalar.style is Style.FOLDED else 0 if pattern is _ANY else 1
    end = len(body) if pattern is _ANY else len(body) - 1
    pieces = ((start + match.start(), match[0]) for match in pattern.finditer(body, begin, end))
    written = [(at, piece) for at, piece in pieces if not _blank(piece)]
    visible = [character for character in scalar.text if not character.isspace()]
    if len(written) != len(visible) or any(
        len(piece) == 1 and piece != character for (_, piece), character in zip(written, visible, strict=True)
    ):
        return None
    offsets: list[int] = []
    places = iter(written)
    after = start + begin
    for character in scalar.text:
        if character.isspace():
            offsets.append(after)
        else:
            at, piece = next(places)
            offsets.append(at)
            after = at + len(piece)
    return [*offsets, after]


def _blank(piece: str) -> bool:
    return piece.isspace() or (len(piece) == 2 and piece[0] == "\\" and piece[1] in _BLANK_ESCAPES)


def _lines(body: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the lines below the header, with their offsets."""
    at = body.find("\n") + 1
    while 0 < at <= len(body):
        end = body.find("\n", at)
        end = len(body) if end < 0 else end
        yield start + at, body[at:end]
        at = end + 1
