"""Budgets of threads: what a thread may spend, what its children hold back from it, and what it has used.

All amounts come from records, so they are the same on every replay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from quire.engine.interpreter.thread.limits import Cost, LimitEvent, Limits, exceeded
from quire.engine.requests import Bounds, Meter
from quire.plan.vocabulary import LARGEST_LIMIT

if TYPE_CHECKING:
    from quire.values import Value


class Purse:
    """A thread's budget in dollars.

    A child's purse is filled from its parent's, which has that much less until the child gives back what it did not
    need; so money is never promised twice. An unknown price is not counted: the limit on tokens bounds such a thread.
    """

    def __init__(self, limit: float, parent: Purse | None = None, share: float = 1.0) -> None:
        """`share` is the largest part of the parent's remaining money that may be taken."""
        self._parent = parent
        self._open = parent is not None
        self._told = 0.0
        self._held = 0.0
        self._reserved = 0.0
        self.limit = limit if parent is None else max(0.0, min(limit, parent.left * share))
        self.spent = 0.0
        self._reserve()

    @property
    def left(self) -> float:
        return self.limit - self.spent - self._held

    def pay(self, cost: float | None) -> None:
        self.spent += cost or 0.0
        self._reserve()

    def raise_to(self, limit: float) -> None:
        """Raise the limit as a person decided; never by more than the parent has left."""
        more = limit - self.limit
        if self._parent is not None and self._open:
            more = min(more, max(0.0, self._parent.left))
        self.limit += more
        self._reserve()

    def close(self) -> None:
        """Give back the remaining money, except what is still held for launched runs. The amount spent counts as spent
        by the parent too."""
        if self._parent is not None and self._open:
            self._open = False
            self._parent.hold(self._held - self._reserved)
            self._tell(self.spent)

    def settle(self, spent: float) -> None:
        """Close the purse of a thread that was stopped.

        `spent` is the total of its records. That may be more than the thread has counted: a replay stops the thread
        before it has walked through all of its records again.
        """
        self.close()
        self._tell(spent - self._told)

    def _tell(self, more: float) -> None:
        if self._parent is not None and more > 0:
            self._told += more
            self._parent.pay(more)

    def hold(self, amount: float) -> None:
        """Set an amount aside: for a child, or for a running call. A negative amount gives it back."""
        self._held += amount
        if self._parent is not None and not self._open:
            self._parent.hold(amount)
        self._reserve()

    def _reserve(self) -> None:
        """Hold back from the parent all that this purse may spend, or more if more was spent.

        The limit of a child in a replay can be lower than it was when the child spent its money: it depends on what the
        parent had left at that moment.
        """
        if self._parent is not None and self._open and self.limit != math.inf:
            needed = max(self.limit, self.spent + self._held)
            if needed != self._reserved:
                self._parent.hold(needed - self._reserved)
                self._reserved = needed


class SharedPurse(Purse):
    """A purse without money of its own, for a document that a thread calls: it pays from the thread's purse. Several
    can be open at once.

    `spent` is the amount that was paid through this one.
    """

    def __init__(self, owner: Purse) -> None:
        super().__init__(owner.limit)
        self._owner = owner

    @property
    def left(self) -> float:
        return self._owner.left

    def pay(self, cost: float | None) -> None:
        super().pay(cost)
        self._owner.pay(cost)

    def settle(self, spent: float) -> None:
        if spent > self.spent:
            self.pay(spent - self.spent)

    def raise_to(self, limit: float) -> None:
        self._owner.raise_to(limit)

    def hold(self, amount: float) -> None:
        self._owner.hold(amount)


RAISABLE = ("turns", "tokens", "spend", "duration_seconds")
"""Limits that end a thread at its next turn, and that a person may raise at that moment."""

REACHED = (*(f"{name}_exceeded" for name in RAISABLE), "spend_unknown")


class Account:
    def __init__(self, limits: Limits, purse: Purse) -> None:
        self.limits = limits
        self.cost = Cost()
        self._purse = purse

    def pay(self, meter: Meter, *, turns: int = 0) -> None:
        used = Cost(turns, meter.input_tokens, meter.output_tokens, meter.cost, meter.elapsed)
        self.cost = self.cost.plus(used)
        self._purse.pay(meter.cost)

    def count_child(self, cost: Mapping[str, Value]) -> None:
        """Add the cost of a child.

        Its turns and tokens are its own; its time is the parent's too, and its money is already counted by the purse.
        """
        spend = cost["spend"]
        known = self.cost.spend is not None and isinstance(spend, int | float)
        total = (self.cost.spend or 0.0) + cast("float", spend) if known else None
        elapsed = self.cost.elapsed_seconds + cast("float", cost["elapsed_seconds"])
        self.cost = replace(self.cost, spend=total, elapsed_seconds=elapsed)

    def count_documents(self, spent: float) -> None:
        """Add the cost of documents that the thread called; the purse has counted it already."""
        if spent and self.cost.spend is not None:
            self.cost = replace(self.cost, spend=self.cost.spend + spent)

    def count_spawns(self, started: int) -> None:
        self.cost = replace(self.cost, spawns=started)

    def bounds(self) -> Bounds:
        """Return the bounds of the next model call."""
        left = None if self.limits.tokens is None else max(1, self.limits.tokens - self.cost.tokens)
        event = exceeded(self.limits, self.cost)
        return Bounds(
            reached=(event.limit_code, event.message) if event else None,
            money=None if self.limits.spend is None else self._purse,
            tokens=LARGEST_LIMIT if left is None else left,
        )

    def reached(self, code: str, message: str) -> LimitEvent:
        """Return the limit that a call was refused for, with this code and message, in the form that hooks see."""
        return LimitEvent.told(code, message) or LimitEvent(code, self.cost.spend, self.limits.spend or 0.0)

    def raise_limit(self, name: str, value: float) -> None:
        self.limits = self.limits.raised(name, value)
        if name == "spend":
            self._purse.raise_to(value)
