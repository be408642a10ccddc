"""Give a run that a thread launches a part of the money that is left, and count what it spends.

A run that is launched is a run of its own, with a budget of its own: the part that it is given is held back from its
launcher. A launcher that waits gives all that is left, and has the rest back when the run ends; one that does not wait
gives half of it for good, because the run may spend it at any time.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from quire.engine.driver.model_calls import RESERVED, counted
from quire.engine.records import Usage
from quire.engine.requests import TINY

if TYPE_CHECKING:
    from quire.engine.driver.budget import Budget
    from quire.engine.driver.journal import Ledger
    from quire.engine.driver.perform import Performer
    from quire.engine.ports import LaunchedRuns
    from quire.engine.records import EffectRecord
    from quire.engine.requests import ToolRequest
    from quire.values import Value

ASIDE = "_async"
"""The end of the name of a tool whose caller does not wait."""


async def launch(
    request: ToolRequest,
    performer: Performer,
    ledger: Ledger,
    launched: LaunchedRuns,
    budget: Budget | None,
    finish: Callable[[EffectRecord], Awaitable[Value]],
) -> Value:
    """Launch a run with a part of the money, or refuse it if nothing is left."""
    money, effect_id = request.money, performer.effect_id(request.path)
    share = await launched.budget_of(effect_id)
    if share is None:
        left = min(math.inf if budget is None else budget.left, math.inf if money is None else money.left)
        if left <= TINY:
            message = "nothing is left of the budget for a run of its own"
            return await finish(performer.refused(request, message, "spend_exceeded"))
        share = left / 2 if request.tool.endswith(ASIDE) else left
    launched.allot(effect_id, share, strictly=budget is not None)
    intent = performer.intent(request)
    intent.value = {RESERVED: share}
    if budget is not None:
        budget.hold(share)
    if money is not None:
        money.hold(share)
    try:
        await ledger.write(intent)
        record = await performer.perform(request)
        record.usage = await launched.spent(effect_id) or Usage(0, 0, share)
        return await finish(record)
    except asyncio.CancelledError:
        ledger.lose(counted(intent))
        raise
    finally:
        if budget is not None:
            budget.hold(-share)
        if money is not None:
            money.hold(-share)
