"""Check what a column holds. SQLite keeps any type in any column, and a store may have been written by others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from quire.errors import StoreError

P = ParamSpec("P")
T = TypeVar("T")

_MOST = 253_402_300_799
"""The last second of the year 9999: no time, no count and no price is beyond."""

_TEXT = frozenset({str})
_NUMBERS = frozenset({int, float, type(None)})


def whole(read: Callable[P, T]) -> Callable[P, T]:
    """Make a reader of rows raise `StoreError` where a row does not hold what it should."""

    @functools.wraps(read)
    def reading(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return read(*args, **kwargs)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise StoreError("the store is damaged: a row of it does not hold what it should") from None

    return reading


def texts(*values: object) -> None:
    """Raise `TypeError` where one of them is not text."""
    if not _TEXT.issuperset(map(type, values)):
        raise TypeError(values)


def numbers(*values: object) -> None:
    """Raise where one of them is neither a number of a possible size nor missing."""
    if not _NUMBERS.issuperset(map(type, values)):
        raise TypeError(values)
    for value in values:
        if value is not None and not -_MOST <= value <= _MOST:  # type: ignore[operator]  # of a type that is compared
            raise ValueError(value)
