"""YAML with positions: what pipelines, document tests and other YAML files are read from."""

from __future__ import annotations

from quire.formats.yaml.anchors import MAX_DEPTH
from quire.formats.yaml.literals import literal, named
from quire.formats.yaml.nodes import EXPR, Entry, Mapping, Node, Scalar, Sequence, Style, describe, label_of, text_of
from quire.formats.yaml.places import place
from quire.formats.yaml.read import YamlReading, read_yaml

__all__ = [
    "EXPR",
    "MAX_DEPTH",
    "Entry",
    "Mapping",
    "Node",
    "Scalar",
    "Sequence",
    "Style",
    "YamlReading",
    "describe",
    "label_of",
    "literal",
    "named",
    "place",
    "read_yaml",
    "text_of",
]
