"""Check the types and sizes of column values. SQLite keeps any type in any column, and another program may have written
the store."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from quire.errors import StoreError

P = ParamSpec("P")
T = TypeVar("T")

_MOST = 253_402_300_799
"""The last second of the year 9999. No valid time, count or price is larger."""

_TEXT = frozenset({str})
_NUMBERS = frozenset({int, float, type(None)})


def whole(read: Callable[P, T]) -> Callable[P, T]:
    """Make a reader of rows raise `StoreError` if a row does not hold the expected values."""

    @functools.wraps(read)
    def reading(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return read(*args, **kwargs)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise StoreError("the store is damaged: a row of it does not hold what it should") from None

    return reading


def texts(*values: object) -> None:
    """Raise `TypeError` if one of the values is not text."""
    if not _TEXT.issuperset(map(type, values)):
        raise TypeError(values)


def numbers(*values: object) -> None:
    """Raise `TypeError` if one of the values is neither a number nor None, `ValueError` if one is too large."""
    if not _NUMBERS.issuperset(map(type, values)):
        raise TypeError(values)
    for value in values:
        if value is not None and not -_MOST <= value <= _MOST:  # type: ignore[operator]  # of a type that is compared
            raise ValueError(value)
