"""What one evaluation carries along: the names it can read, and how much work it may still do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from quire.expr.errors import EvalError
from quire.expr.limits import MAX_STEPS
from quire.source import Span


class Run:
    """Lives for one evaluation; after an error it is thrown away, so nothing in it is ever put right."""

    __slots__ = ("left", "names", "stores")

    def __init__(self, names: Mapping[str, Any], stores: Mapping[str, Any]) -> None:
        self.names = names
        self.stores = stores
        self.left = MAX_STEPS

    def charge(self, steps: int, span: Span) -> None:
        self.left -= steps
        if self.left < 0:
            message = f"the expression takes more than {MAX_STEPS:,} steps"
            raise EvalError(message, span, "work on fewer items, or do a part of it in a step of its own")


Code: TypeAlias = Callable[[Run], Any]
"""A compiled node. Its result is a `Value`; `Any` saves a cast at every use of an already checked one."""
