"""The shape that the pins of a run must have. They may come from a file or a store that others wrote."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from quire.values import Value

Shape: TypeAlias = Callable[[Value], bool]


def _is_text(value: Value) -> bool:
    return isinstance(value, str)


def _is_flag(value: Value) -> bool:
    return isinstance(value, bool)


def _is_map(value: Value) -> bool:
    return isinstance(value, Mapping)


def _is_count(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _is_amount(value: Value) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -(1 << 53) < value < 1 << 53 and math.isfinite(value)


def _or_none(shape: Shape) -> Shape:
    return lambda value: value is None or shape(value)


def _are_texts(value: Value) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def _is_map_of(shape: Shape) -> Shape:
    return lambda value: isinstance(value, Mapping) and all(shape(one) for one in value.values())


def _is_profile(value: Value) -> bool:
    if not isinstance(value, list | tuple) or len(value) not in (3, 4):
        return False
    return _are_texts(value[:2]) and _are_texts(value[2]) and all(_is_count(one) for one in value[3:])


SHAPES: Mapping[str, Shape] = {
    "document": _is_text,
    "folder": _or_none(_is_text),
    "model": _is_text,
    "inputs": _is_map,
    "breakpoints": _are_texts,
    "answers": _is_map_of(_is_text),
    "unattended": _is_flag,
    "allow": _are_texts,
    "grants": _are_texts,
    "budget": _or_none(_is_amount),
    "context_budget": _or_none(_is_count),
    "callee_context_budget": _or_none(_is_count),
    "callees": _is_map_of(_is_map_of(_is_text)),
    "identity": _is_text,
    "profiles": _is_map_of(_is_profile),
    "reply_to": _is_text,
    "declared": _is_text,
    "key": _is_text,
    "bundle": _is_text,
    "keys": _are_texts,
    "one_model": _is_flag,
    "limits": _is_map_of(lambda value: value is None or _is_text(value) or _is_amount(value)),
    "origin": _is_map,
    "imported": _is_map,
    "instead": _is_text,
    "queue": _is_text,
    "out": _is_text,
    "warnings": _are_texts,
    "semantics_version": _is_count,
}
"""Pins of names that are not here are not looked at."""

NEEDED = ("document", "folder", "model", "inputs")


def misshapen_pin(stored: Mapping[str, Value]) -> str:
    """The name of the first pin that is missing or of another shape; empty where all are as they should be."""
    missing = next((name for name in NEEDED if name not in stored), "")
    return missing or next((name for name, shape in SHAPES.items() if name in stored and not shape(stored[name])), "")
