"""What a thread has used and may still use. Whatever is counted here comes from records, so it is the same again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from quire.engine.ports import LONGEST_REPLY
from quire.engine.requests import Bounds, Meter
from quire.engine.thread.limits import Cost, LimitEvent, Limits, exceeded
from quire.engine.thread.purse import Purse
from quire.values import Value

RAISABLE = ("turns", "tokens", "spend", "duration_seconds")
"""The limits that end a thread at its next turn, and that a person may raise then."""

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
        """A child's turns and tokens are its own; its time is the parent's too, and its money the purse has counted."""
        spend = cost["spend"]
        known = self.cost.spend is not None and isinstance(spend, int | float)
        total = (self.cost.spend or 0.0) + cast("float", spend) if known else None
        elapsed = self.cost.elapsed_seconds + cast("float", cost["elapsed_seconds"])
        self.cost = replace(self.cost, spend=total, elapsed_seconds=elapsed)

    def count_documents(self, spent: float) -> None:
        """What documents that the thread called have cost; the purse has counted it."""
        if spent and self.cost.spend is not None:
            self.cost = replace(self.cost, spend=self.cost.spend + spent)

    def count_spawns(self, started: int) -> None:
        self.cost = replace(self.cost, spawns=started)

    def bounds(self) -> Bounds:
        """Those of the next model call."""
        left = None if self.limits.tokens is None else max(1, self.limits.tokens - self.cost.tokens)
        event = exceeded(self.limits, self.cost)
        return Bounds(
            reached=(event.limit_code, event.message) if event else self._purse_empty(),
            money=None if self.limits.spend is None else self._purse,
            tokens=LONGEST_REPLY if left is None else min(LONGEST_REPLY, left),
        )

    def reached(self, code: str, message: str) -> LimitEvent:
        """The limit that a call was refused for, with this code and in these words, as hooks are told of it."""
        return LimitEvent.told(code, message) or LimitEvent(code, self.cost.spend, self.limits.spend or 0.0)

    def raise_limit(self, name: str, value: float) -> None:
        self.limits = self.limits.raised(name, value)
        if name == "spend":
            self._purse.raise_to(value)

    def _purse_empty(self) -> tuple[str, str] | None:
        """Nothing is left of what was set aside for this thread. How much that was depends on the moment in which it
        was started, so it is nothing but a reason to refuse a call: what a hook or a model sees are the limits."""
        if self.limits.spend is None or self.cost.spend is None or self._purse.left > 0:
            return None
        return (
            "spend_exceeded",
            "limit reached: nothing is left of the spend of this thread; resume with a higher limit",
        )
