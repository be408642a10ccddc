"""What a YAML text is read into: three kinds of node, each with its place in the source.

Plain scalars are resolved by the core schema of YAML 1.2 (see `scalars`); what is in quotes or in a block is text.
Where there are aliases one node stands in several places of the tree, and its span is that of the anchored text. Nobody
changes a node once the reader has given it away; they are not frozen because that costs several times as much to make.

Nodes as plain values, and mappings whose keys must be text.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from quire.diagnostics import Diagnostic
from quire.formats.yaml import codes

if TYPE_CHECKING:
    from quire.source import Span
    from quire.values import Value

EXPR = "!expr"
"""The one tag of our own."""


class Style(StrEnum):
    """How a scalar is written."""

    PLAIN = "plain"
    SINGLE = "'"
    DOUBLE = '"'
    LITERAL = "|"
    FOLDED = ">"


class Scalar(Struct):
    """`span` covers tag and anchor as well, `body` only what comes after them (quotes included).

    `tag` is only ever ours, and such a scalar is text; one of YAML's own has had its effect on `value`.
    """

    value: None | bool | int | float | str
    text: str
    span: Span
    body: Span
    style: Style = Style.PLAIN
    tag: str = ""


class Entry(Struct):
    """A key can be any untagged scalar: whether it must be text is for the reader of the mapping to say."""

    key: Scalar
    value: Node


class Sequence(Struct):
    items: tuple[Node, ...]
    span: Span


class Mapping(Struct):
    """Keys are distinct, in the order of the text; those that were merged into it come first."""

    entries: tuple[Entry, ...]
    span: Span

    def find(self, key: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.key.value == key), None)

    def get(self, key: str) -> Node | None:
        found = self.find(key)
        return found.value if found else None


Node: TypeAlias = Scalar | Sequence | Mapping


def text_of(node: Node | None) -> str | None:
    """The text, if the node is text without a tag."""
    return node.value if isinstance(node, Scalar) and not node.tag and isinstance(node.value, str) else None


def label_of(key: Scalar) -> str:
    """A key as the text that Python makes of its value: `true` is `True`, `null` is `None`, `3` is `3`."""
    return str(key.value)


def describe(node: Node) -> str:
    """What a node is, for messages that say it should have been something else."""
    if isinstance(node, Sequence):
        return "a list"
    if isinstance(node, Mapping):
        return "a mapping"
    if node.tag:
        return f"an {node.tag}"
    if node.value is None:
        return "null" if node.text else "empty"
    if isinstance(node.value, bool):
        return f"the boolean {node.text}"
    return "text" if isinstance(node.value, str) else f"the number {node.text}"


def literal(node: Node, found: list[Diagnostic]) -> Value:
    """The value of a node; what is not a literal is reported and left out. The reader's limit bounds the recursion."""
    if isinstance(node, Scalar):
        if node.tag:
            message = f"{node.tag} cannot stand here: it marks the whole value of an argument"
            found.append(Diagnostic(codes.MISPLACED_TAG, message, node.span))
            return None
        return node.value
    if isinstance(node, Sequence):
        return [literal(item, found) for item in node.items]
    return {name: literal(entry.value, found) for name, entry in named(node, found)}


def named(mapping: Mapping, found: list[Diagnostic]) -> list[tuple[str, Entry]]:
    """The entries by name; a key that is not text is reported and left out."""
    entries: list[tuple[str, Entry]] = []
    for entry in mapping.entries:
        name = entry.key.value
        if isinstance(name, str):
            entries.append((name, entry))
        else:
            help = f'write "{entry.key.text}" if text is meant' if entry.key.text else ""
            message = f"a key must be text, not {describe(entry.key)}"
            found.append(Diagnostic(codes.KEY, message, entry.key.span, "", help))
    return entries
