"""The nodes of a parsed YAML text: three kinds, each with its position in the source.

Plain scalars are resolved by the core schema of YAML 1.2 (see `scalars`); quoted scalars and blocks are text. With
aliases one node is at several places of the tree, and its span is that of the anchored text. Nodes are not frozen, but
never changed once the reader has returned them.

`literal` turns nodes into plain values, and `named` reads mappings whose keys must be text.
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
        found = self.find(key)
        return found.value if found else None


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


def literal(node: Node, found: list[Diagnostic]) -> Value:
    """Return the value of a node.

    Parts that are not literals are reported and left out. The reader's limit bounds the recursion.
    """
    if isinstance(node, Scalar):
        if node.tag:
            marks = "the whole value of an argument" if node.tag == EXPR else "a prompt"
            message = f"{node.tag} cannot stand here: it marks {marks}"
            found.append(Diagnostic(codes.MISPLACED_TAG, message, node.span))
            return None
        return node.value
    if isinstance(node, Sequence):
        return [literal(item, found) for item in node.items]
    return {name: literal(entry.value, found) for name, entry in named(node, found)}


def named(mapping: Mapping, found: list[Diagnostic]) -> list[tuple[str, Entry]]:
    """Return the entries by name. A key that is not text is reported and left out."""
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
