"""The budget of a run: the estimated cost of a model call is set aside before the call, so that concurrent calls cannot
spend the same dollar."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from quire.engine.requests import TINY
from quire.errors import LimitReached

if TYPE_CHECKING:
    from quire.engine.driver.journal import Ledger


class Budget:
    """The money of one run that has a budget.

    If the price of a call is not known beforehand, the cost of the dearest call so far is used for it; before there is
    one, such calls are made one after the other.
    """

    def __init__(self, most: float, ledger: Ledger) -> None:
        self._most = most
        self._ledger = ledger
        self._held = 0.0
        self._calls = 0
        self._ended = asyncio.Event()

    @contextlib.asynccontextmanager
    async def reserved(self, estimate: float | None) -> AsyncIterator[None]:
        """Reserve the cost of a call while it runs; wait for running calls if they may leave enough.

        Raises `LimitReached`.
        """
        amount = await self._room(self._most, estimate)
        self._held += amount
        self._calls += 1
        try:
            yield
        finally:
            self._held -= amount
            self._calls -= 1
            self._ended.set()

    @property
    def left(self) -> float:
        """Return what is neither spent nor set aside; nothing if a price is not known."""
        spent = self._ledger.cost
        return 0.0 if spent is None else max(0.0, self._most - spent - self._held)

    def hold(self, amount: float, calls: int) -> None:
        """Set an amount aside for a run that is launched; a negative amount gives it back. `calls` counts the launches
        that begin: other calls wait for these to end, and not for runs that go on by themselves."""
        self._held += amount
        self._calls += calls
        self._ended.set()

    async def _room(self, most: float, estimate: float | None) -> float:
        waited = False
        while True:
            spent = self._ledger.cost
            if spent is None:
                raise LimitReached(
                    "the price of this model is not known, so a budget cannot be kept: go on with --budget none"
                )
            dearest = self._ledger.journal.dearest()
            amount = (dearest or 0.0) if estimate is None else estimate
            fits = spent + self._held + amount <= most + TINY and (spent < most or not amount)
            if estimate is None and not self._calls and not waited:
                fits = spent < most  # a guess alone does not refuse a call when no other is running
            if fits and not (estimate is None and dearest is None and self._calls):
                return amount
            if not self._calls:
                raise LimitReached(_used_up(most, spent, amount))
            waited = True
            self._ended.clear()
            await self._ended.wait()


def _used_up(most: float, spent: float, amount: float) -> str:
    if spent >= most:
        return f"the budget of ${most:g} is used up (${spent:.4f} spent)"
    return f"the next call may cost ${amount:.4f}, and of the budget of ${most:g} only ${most - spent:.4f} are left"
