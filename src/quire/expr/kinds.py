"""Kinds of values: how they are told apart, and what people call them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from quire.values import Value, copy

ATOMS = frozenset({type(None), bool, int, float})
FLAT = ATOMS | {str}
NUMBERS = frozenset({int, float})
"""A bool is none of them, though Python says it is an int: so types are compared, never `isinstance`."""

ORDERED = NUMBERS | {bool}


def is_list(value: object) -> TypeGuard[Sequence[Value]]:
    return isinstance(value, list | tuple)


def is_map(value: object) -> TypeGuard[Mapping[str, Value]]:
    # The abstract class is slow to ask and hardly ever needed.
    return isinstance(value, dict) or (type(value) not in FLAT and isinstance(value, Mapping))


def kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    if is_list(value):
        return "a list"
    return "a map" if is_map(value) else f"a Python {type(value).__name__}"


def python_text(value: Value) -> str:
    """The value as Python's `str()` writes it: `True`, `None`, `2.0`, `['a', 1]`. Labels of `match` are compared so.

    Raises `InvalidValue` for what could not be stored either.
    """
    if isinstance(value, str):
        return value
    # Integers too: Python refuses to write the longest ones, and the codec says so in our words.
    return str(value) if value is None or isinstance(value, bool | float) else str(copy(value))
