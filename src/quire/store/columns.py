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
    for value in values:
        if not isinstance(value, str):
            raise TypeError(value)


def numbers(*values: object) -> None:
    """Raise where one of them is neither a number of a possible size nor missing."""
    for value in values:
        if value is None:
            continue
        if not isinstance(value, int | float):
            raise TypeError(value)
        if not -_MOST <= value <= _MOST:
            raise ValueError(value)
