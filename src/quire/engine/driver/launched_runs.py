"""Give a run that a thread launches a part of the money that is left, and count what it spends.

A run that is launched is a run of its own, with a budget of its own: the part that it is given is held back from its
launcher until it has ended. A launcher that waits gives all that is left, and has half of the rest back if the run
waits for a person; one that does not wait gives half.

What the run has spent counts in its launcher: with the result if that was waited for, else with the letters of the next
turn after its end, so every replay counts it at the same turn.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.driver.journal import SPENT
from quire.engine.driver.model_calls import RESERVED
from quire.engine.records import EffectRecord, Usage
from quire.engine.requests import TINY

if TYPE_CHECKING:
    from quire.engine.driver.budget import Budget
    from quire.engine.driver.journal import Ledger
    from quire.engine.driver.perform import Performer
    from quire.engine.ports import LaunchedRuns
    from quire.engine.requests import Load, Money, ToolRequest
    from quire.values import Value

ASIDE = "_async"
"""The end of the name of a tool whose caller does not wait."""


class _Launched(Struct):
    effect_id: str
    held: float
    """Dollars: the budget of the run, and what it has spent once it has ended."""
    money: Money | None
    usage: Usage | None = None
    """None while the run may spend more."""


class Launches:
    """The launches of one drive. `finish` records the outcome of an effect, and returns or raises it."""

    def __init__(
        self,
        performer: Performer,
        ledger: Ledger,
        runs: LaunchedRuns,
        budget: Budget | None,
        finish: Callable[[EffectRecord], Awaitable[Value]],
    ) -> None:
        self._performer = performer
        self._ledger = ledger
        self._runs = runs
        self._budget = budget
        self._finish = finish
        self._open: dict[str, _Launched] = {}

    async def launch(self, request: ToolRequest) -> Value:
        """Launch a run with a part of the money, or refuse it if nothing is left."""
        await self.refresh()
        money, budget, effect_id = request.money, self._budget, self._performer.effect_id(request.path)
        share = await self._runs.budget_of(effect_id)
        if share is None:
            left = min(math.inf if budget is None else budget.left, math.inf if money is None else money.left)
            if left <= TINY:
                message = "nothing is left of the budget for a run of its own"
                return await self._finish(self._performer.refused(request, message, "spend_exceeded"))
            share = left / 2 if request.tool.endswith(ASIDE) else left
        self._runs.allot(effect_id, share, strictly=budget is not None)
        intent = self._performer.intent(request)
        intent.value = {RESERVED: share}
        self._hold(share, money, calls=1)
        try:
            await self._ledger.write(intent)
            record = await self._performer.perform(request)
            record.usage = await self._runs.spent(effect_id)
            if record.usage is None:
                aside = request.tool.endswith(ASIDE)
                self._keep(request, effect_id, share if aside else await self._runs.halve(effect_id))
            return await self._finish(record)
        finally:
            self._hold(-share, money, calls=-1)

    async def resume(self, request: ToolRequest, record: EffectRecord) -> None:
        """Hold back again what a run may spend that was launched before this drive."""
        counted = (entry.value for entry in self._ledger.journal.records if entry.kind == SPENT)
        if record.usage is None and request.path not in counted:
            effect_id = self._performer.effect_id(request.path)
            self._keep(request, effect_id, await self._runs.budget_of(effect_id) or 0.0)

    async def refresh(self) -> None:
        """Give back what launched runs have left that have ended since."""
        for one in self._open.values():
            if one.usage is None and (usage := await self._runs.spent(one.effect_id)) is not None:
                one.usage, spent = usage, usage.cost or 0.0
                self._hold(spent - one.held, one.money)
                one.held = spent

    async def take_letters(self, request: Load) -> Value:
        """Read the letters of a thread, and count the runs that it has launched and that have ended."""
        await self.refresh()
        record = await self._performer.perform(request)
        thread = request.path.rsplit("/", 2)[0]
        ended = {path: one for path, one in self._open.items() if one.usage and path.rsplit("/", 3)[0] == thread}
        for path, one in ended.items():
            turn, call = (part[5:-1] for part in path.split("/")[-3:-1])  # turn[3], tool[0]
            at = f"{request.path}/{SPENT}[{turn}.{call}]"
            self._ledger.lose(EffectRecord(at, SPENT, "ok", "", record.at, path, usage=one.usage))
        try:
            return await self._finish(record)
        finally:
            for path, one in ended.items():
                del self._open[path]
                self._hold(-one.held, one.money)

    def _keep(self, request: ToolRequest, effect_id: str, share: float) -> None:
        self._open[request.path] = _Launched(effect_id, share, request.money)
        self._hold(share, request.money)

    def _hold(self, amount: float, money: Money | None, calls: int = 0) -> None:
        if self._budget is not None:
            self._budget.hold(amount, calls)
        if money is not None:
            money.hold(amount)
