"""Pay for the calls of a live test from one budget, and measure them.

All tries and judges of a live test share a purse. A call reserves the most that it may cost before it is made, so calls
side by side never spend more than the budget together.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from quire.engine.ports import Model, ModelCall, ModelReply, Priced
from quire.errors import CannotStart, ModelFailed

BUDGET = "budget"
"""The kind of the failure of a call that the budget does not cover."""
NOT_THE_MODEL = frozenset(
    ("rate_limit", "server", "timeout", "connection", "auth", "unknown_model", "quota", "bad_model")
)
"""Kinds of failures that say nothing about the replies of a model: the service, the key or the file is at fault."""
HOPELESS = frozenset(("auth", "unknown_model", "quota", "bad_model"))
"""Kinds of failures after which no other call of the model can succeed."""

_NOT_CHARGED = frozenset(("rate_limit", "connection", "auth", "unknown_model", "quota", "bad_model"))


class Purse:
    """The money of one live test, in dollars. Without a budget it only counts."""

    def __init__(self, budget: float | None = None) -> None:
        self.budget = budget
        self.spent = 0.0
        self.unpriced = 0
        """Calls whose price is not known."""
        self.exhausted = False
        self._reserved = 0.0

    @property
    def left(self) -> float | None:
        return None if self.budget is None else max(0.0, self.budget - self.spent - self._reserved)

    def reserve(self, amount: float) -> bool:
        """Set an amount aside; return False, and be exhausted from then on, if the budget does not cover it."""
        if self.budget is not None and self.spent + self._reserved + amount > self.budget + 1e-9:
            self.exhausted = True
            return False
        self._reserved += amount
        return True

    def settle(self, reserved: float, cost: float | None) -> None:
        """Pay for a call, and release what was reserved for it. An unknown price counts as the amount reserved."""
        self._reserved -= reserved
        self.spent += reserved if cost is None else cost
        self.unpriced += cost is None


class Meter(Struct):
    """The consumption of one try, and the trouble that it had."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    """None as soon as one call had no known price."""
    trouble: str = ""
    """The kind of the last failure that was not the model's fault."""
    message: str = ""


class Metered:
    """A model whose calls are paid from a purse and measured in a meter."""

    def __init__(self, model: Model, purse: Purse, meter: Meter) -> None:
        self._model = model
        self._purse = purse
        self._meter = meter

    @property
    def name(self) -> str:
        return self._model.name

    def estimate(self, call: ModelCall) -> float | None:
        return self._model.estimate(call) if isinstance(self._model, Priced) else None

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        purse, meter = self._purse, self._meter
        most = (self.estimate(call) or 0.0) if purse.budget is not None else 0.0
        if not purse.reserve(most):
            meter.trouble, meter.message = BUDGET, "the budget is used up"
            raise ModelFailed("the budget of this live test is used up", kind=BUDGET)
        meter.calls += 1
        cost: float | None = None
        try:
            reply = await self._model.complete(call, on_delta)
            cost = reply.usage.cost
        except ModelFailed as error:
            if error.kind in NOT_THE_MODEL:
                meter.trouble, meter.message = error.kind, str(error)
            if error.kind in _NOT_CHARGED or self.estimate(call) == 0.0:
                cost = 0.0
            raise
        finally:
            # Any other call that failed or was cancelled may have been charged: it counts as the most.
            purse.settle(most, cost)
            meter.cost = None if cost is None or meter.cost is None else meter.cost + cost
        meter.input_tokens += reply.usage.input_tokens
        meter.output_tokens += reply.usage.output_tokens
        return reply


def require_price(model: Model, spec: str) -> None:
    """Raise `CannotStart` for a model whose price is not known: a budget would not hold for it."""
    known = isinstance(model, Priced) and model.estimate(ModelCall("", ())) is not None
    if not known:
        raise CannotStart(
            f"the price of {spec} is not known, so a budget cannot hold: [models.prices] of your own quire.toml sets it"
        )
