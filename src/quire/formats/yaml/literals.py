"""Nodes as plain values, and mappings whose keys must be text."""

from __future__ import annotations

from quire.diagnostics import Diagnostic
from quire.formats.yaml import codes
from quire.formats.yaml.nodes import Entry, Mapping, Node, Scalar, Sequence, describe
from quire.values import Value


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
