"""Syntax trees of any format without their places, for comparing trees of different texts."""

from __future__ import annotations

import dataclasses

import msgspec

from quire.formats.playbook.syntax import Step
from quire.source import Span

_PLACES = (
    "start",
    "end",
    "name_start",
    "variable_start",
    "source_start",
    "title_start",
    "title_end",
    "document",
    "pieces",
    "scalar",
    "raw",
)
"""Fields that say where something stands, besides those that hold a span."""


def without_spans(node: object) -> object:
    """Return a tree as nested tuples of types, field names and values, with every place taken out."""
    if isinstance(node, tuple | list):
        return tuple([without_spans(part) for part in node])
    if isinstance(node, Span):
        return None
    names = _fields(node)
    if names is None:
        return node
    parts = [(name, without_spans(getattr(node, name))) for name in names if name not in _PLACES]
    return (type(node), *parts, without_spans(node.placeholders) if isinstance(node, Step) else ())


def _fields(node: object) -> list[str] | None:
    if isinstance(node, msgspec.Struct):
        return [name for name in node.__struct_fields__ if not name.startswith("_")]
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return [field.name for field in dataclasses.fields(node) if field.init]
    return None
