"""Make the model calls of one drive, within the limits of the run and of its threads.

The most that a call may cost is set aside before it is made, in the budget of the run and in the purse of its thread,
so that concurrent calls cannot spend the same dollar; it is given back when the real cost is recorded. Where that is
more than nothing, the journal says so before the call: if the process dies, or the call is stopped, its cost is never
known, and the amount that was set aside counts as spent.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from quire.engine.records import EffectRecord, Usage, call_limit
from quire.engine.requests import TINY
from quire.errors import LimitReached, Parked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quire.engine.driver.journal import Ledger
    from quire.engine.driver.perform import Performer
    from quire.engine.driver.walker import DriveLimits
    from quire.engine.requests import ModelRequest
    from quire.values import Value


RESERVED = "reserved"
"""In the value of an intent: the dollars that were set aside for the call."""
COUNTED = "counted"
"""In the value of an intent: true if those dollars are counted as spent."""


class ModelCalls:
    """The model calls of one drive. `finish` records the outcome of a call, and returns or raises it; `on_limit` is
    called before a limit ends the run."""

    def __init__(
        self,
        ledger: Ledger,
        performer: Performer,
        terms: DriveLimits,
        finish: Callable[[EffectRecord], Awaitable[Value]],
        on_limit: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._on_limit = on_limit
        self._performer = performer
        self._finish = finish
        self._most = terms.max_model_calls
        self._made = ledger.journal.model_calls()
        self._under_way = 0
        self._quiet = asyncio.Event()
        self.budget = None if terms.budget is None else Budget(terms.budget, ledger)

    async def make(self, request: ModelRequest) -> Value:
        """Make a call, or refuse it if its thread must not make it. Raises `LimitReached` if a limit of the run has no
        room for it, and `Parked` if its service asks for a long wait: then the call was not made."""
        money = request.bounds.money if request.bounds is not None else None
        limited = self.budget is not None or money is not None
        left = self.budget.left if self.budget is not None else math.inf
        estimate = self._performer.shortened(request, left) if limited else None
        async with self._reserved(estimate):
            if (refused := self._performer.out_of_bounds(request, estimate)) is not None:
                return await self._finish(refused)
            await self._count(request)
            held = estimate or 0.0
            if money is not None:
                money.hold(held)
            try:
                return await self._finish(await self._performed(request, held))
            except Parked:
                self._made -= 1
                raise
            finally:
                self._under_way -= 1
                self._quiet.set()
                if money is not None:
                    money.hold(-held)

    async def _performed(self, request: ModelRequest, reserved: float) -> EffectRecord:
        if not reserved:
            return await self._performer.perform(request)
        intent = self._performer.intent(request)
        intent.value = {RESERVED: reserved}
        await self._ledger.write(intent)
        try:
            record = await self._performer.perform(request)
        except asyncio.CancelledError:
            self._ledger.lose(counted(intent))
            raise
        except Parked:
            await self._ledger.write(supersede=(request.path,))
            raise
        if self._performer.may_have_paid(record):
            record.usage = Usage(0, 0, reserved)
        return record

    @contextlib.asynccontextmanager
    async def _reserved(self, estimate: float | None) -> AsyncIterator[None]:
        if self.budget is None:
            yield
        else:
            async with self.budget.reserved(estimate):
                yield

    async def _count(self, request: ModelRequest) -> None:
        """Count a call that begins. Raises `LimitReached` if there are too many, once those under way have ended: they
        are paid for, and ending the run would stop them."""
        if self._most is None or self._made < self._most:
            self._made += 1
            self._under_way += 1
            return
        self._on_limit()
        while self._under_way:
            self._quiet.clear()
            await self._quiet.wait()
        raise call_limit(self._most, request.path)


class CallTime:
    """The time of one model call, which stands still while the call waits for a place among others."""

    def __init__(self, seconds: float) -> None:
        self.limit = asyncio.timeout(seconds)

    @contextlib.contextmanager
    def untimed(self) -> Iterator[None]:
        loop, ends = asyncio.get_running_loop(), self.limit.when()
        if ends is None or self.limit.expired():
            yield
            return
        left = ends - loop.time()
        self.limit.reschedule(None)
        try:
            yield
        finally:
            self.limit.reschedule(loop.time() + left)


def counted(intent: EffectRecord) -> EffectRecord:
    """Return the intent of a call whose cost will not be known: the money set aside for it is its cost."""
    reserved = _reserved_for(intent)
    return EffectRecord(
        intent.path,
        intent.kind,
        "intent",
        intent.request,
        intent.at,
        {RESERVED: reserved, COUNTED: True},
        usage=Usage(0, 0, reserved),
    )


def lost_calls(records: Iterable[EffectRecord]) -> Iterator[EffectRecord]:
    """Yield the calls that were under way when a process died and are not counted yet, as they are counted now. A
    launch is not among them: the run that it launched knows what it has spent."""
    for record in records:
        if record.kind == "model" and record.state == "intent" and record.usage is None and _reserved_for(record):
            yield counted(record)


def _reserved_for(intent: EffectRecord) -> float:
    value = intent.value.get(RESERVED) if isinstance(intent.value, Mapping) else None
    # A journal may come from a file that others wrote.
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9 else 0.0


class Budget:
    """The money of one run that has a budget.

    If the price of a call is not known beforehand, the cost of the most expensive call so far is used for it; before
    there is one, such calls are made one after the other.
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
        amount = await self._room(estimate)
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
        """Return the money that is neither spent nor set aside; nothing if a price is not known."""
        spent = self._ledger.cost
        return 0.0 if spent is None else max(0.0, self._most - spent - self._held)

    def hold(self, amount: float, calls: int) -> None:
        """Set an amount aside for a run that is launched; a negative amount gives it back. `calls` counts the launches
        that begin: other calls wait for these to end, and not for runs that continue by themselves."""
        self._held += amount
        self._calls += calls
        self._ended.set()

    async def _room(self, estimate: float | None) -> float:
        most, waited = self._most, False
        while True:
            spent = self._ledger.cost
            if spent is None:
                raise LimitReached(
                    "the price of this model is not known, so a budget cannot be kept: continue with --budget none"
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
