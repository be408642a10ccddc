"""YAML with positions, for pipelines, document tests and other YAML files."""

from __future__ import annotations

from quire.formats.yaml.nodes import (
    EXPR,
    FILE,
    SNAPSHOT,
    TEST_TAGS,
    Entry,
    Mapping,
    Node,
    Scalar,
    Sequence,
    Style,
    describe,
    label_of,
    literal,
    named,
    place,
    text_of,
)
from quire.formats.yaml.reader import MAX_DEPTH, YamlReading, read_yaml

__all__ = [
    "EXPR",
    "FILE",
    "MAX_DEPTH",
    "SNAPSHOT",
    "TEST_TAGS",
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
