"""The purse of a live test: calls side by side never spend more than the budget, and every call is measured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from quire.engine.conversation import Message
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Usage
from quire.errors import CannotStart, ModelFailed
from quire.testing.live.schedule import Meter, Metered, Purse, require_price

CALL = ModelCall("", (Message("user", "hello"),))


class Costly:
    """A model whose calls cost at most `most` and then `cost`, and wait until they are let go."""

    name = "stub:costly"

    def __init__(self, most: float | None, cost: float | None, failure: ModelFailed | None = None) -> None:
        self.most = most
        self.cost = cost
        self.failure = failure
        self.gate = asyncio.Event()
        self.made = 0

    def estimate(self, call: ModelCall) -> float | None:
        return self.most

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self.made += 1
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return ModelReply("ok", self.name, Usage(100, 20, self.cost))


async def test_calls_side_by_side_keep_to_the_budget() -> None:
    model, purse = Costly(0.3, 0.1), Purse(1.0)
    meters = [Meter() for _ in range(5)]
    calls = [asyncio.create_task(Metered(model, purse, meter).complete(CALL, print)) for meter in meters]
    await asyncio.sleep(0)
    assert (model.made, purse.exhausted) == (3, True)
    assert purse.left == pytest.approx(0.1)
    model.gate.set()
    results = await asyncio.gather(*calls, return_exceptions=True)
    failures = [one for one in results if isinstance(one, ModelFailed)]
    assert [one.kind for one in failures] == ["budget", "budget"]
    assert purse.spent == pytest.approx(0.3)
    assert (meters[0].calls, meters[0].input_tokens, meters[0].output_tokens, meters[0].cost) == (1, 100, 20, 0.1)
    assert (meters[4].calls, meters[4].trouble) == (0, "budget")


async def test_a_purse_without_a_budget_only_counts() -> None:
    model, purse, meter = Costly(None, None), Purse(), Meter()
    model.gate.set()
    await Metered(model, purse, meter).complete(CALL, print)
    assert (purse.spent, purse.unpriced, purse.exhausted, purse.left, meter.cost) == (0.0, 1, False, None, None)


@pytest.mark.parametrize(
    ("kind", "spent", "trouble"),
    [("rate_limit", 0.0, "rate_limit"), ("timeout", 0.3, "timeout"), ("auth", 0.0, "auth"), ("empty", 0.3, "")],
)
async def test_failed_calls(kind: str, spent: float, trouble: str) -> None:
    """A call that may have been charged counts as the most; troubles of the service are told from bad replies."""
    model, purse, meter = Costly(0.3, 0.1, ModelFailed("no", kind=kind)), Purse(1.0), Meter()
    model.gate.set()
    with pytest.raises(ModelFailed, match="no"):
        await Metered(model, purse, meter).complete(CALL, print)
    assert (purse.spent, meter.trouble) == (spent, trouble)
    assert purse.left == pytest.approx(1.0 - spent)


async def test_a_cancelled_call_counts_as_the_most() -> None:
    model, purse, meter = Costly(0.3, 0.1), Purse(1.0), Meter()
    call = asyncio.create_task(Metered(model, purse, meter).complete(CALL, print))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert purse.spent == 0.3
    assert purse.left == pytest.approx(0.7)


async def test_free_models_stay_free_when_they_fail() -> None:
    model, purse, meter = Costly(0.0, 0.0, ModelFailed("no", kind="empty")), Purse(), Meter()
    model.gate.set()
    with pytest.raises(ModelFailed):
        await Metered(model, purse, meter).complete(CALL, print)
    assert (purse.unpriced, meter.cost) == (0, 0.0)


def test_a_budget_needs_prices() -> None:
    require_price(Costly(0.0, 0.0), "local:x")
    with pytest.raises(CannotStart, match="the price of a:b is not known"):
        require_price(Costly(None, None), "a:b")
