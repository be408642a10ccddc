"""Kinds of values: how to tell them apart, and their names for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from quire.values import Value, copy

ATOMS = frozenset({type(None), bool, int, float})
FLAT = ATOMS | {str}
NUMBERS = frozenset({int, float})
"""A bool is not one of them, although Python treats it as an int. So types are compared; `isinstance` is never used."""

ORDERED = NUMBERS | {bool}


# A tuple and not a union, which Python would build anew each time that it is asked for.
_LISTS = (list, tuple)


def is_list(value: object) -> TypeGuard[Sequence[Value]]:
    return isinstance(value, _LISTS)


def is_map(value: object) -> TypeGuard[Mapping[str, Value]]:
    # The check against the abstract class is slow and rarely needed.
    return isinstance(value, dict) or (type(value) not in FLAT and isinstance(value, Mapping))


def kind(value: object) -> str:
    """Return the name of a value's kind, with its article."""
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
    """Return the value as Python's `str()` writes it: `True`, `None`, `2.0`, `['a', 1]`.

    Labels of `match` are compared with this text. Raises `InvalidValue` for values that could not be stored either.
    """
    if isinstance(value, str):
        return value
    # Integers are copied too: Python refuses to write the longest ones, and the codec raises our own error for them.
    return str(value) if value is None or isinstance(value, bool | float) else str(copy(value))
