"""Make the tries of a live test: in which order, how many at once, when to stop, and paid from one budget.

Repeats are the outermost loop and models the innermost one. So a test that is stopped, by its budget or by its user,
has tried all models on the same rows. All tries and judges share a purse: a call reserves the most that it may cost
before it is made, so calls side by side never spend more than the budget together.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from quire.engine.ports import Model, ModelCall, ModelReply, Priced
from quire.errors import CannotStart, ModelFailed
from quire.testing.live.tries import Attempt, Score, Try, decided, score

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
        """Pay for a call, and release the reserved money. An unknown price counts as the amount reserved."""
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
    if not isinstance(model, Priced) or model.estimate(ModelCall("", ())) is None:
        raise CannotStart(
            f"the price of {spec} is not known, so a budget cannot hold: [models.prices] of your own quire.toml sets it"
        )


AT_ONCE = 4
LOST_IN_A_ROW = 5
"""Tries that a model may lose one after the other, before it is given up."""


class Terms(Struct, frozen=True):
    """The part of a case that its schedule depends on."""

    case: str
    rows: tuple[str, ...] = ("",)
    repeats: int = 1
    passes: float | None = None


class Made(Struct, frozen=True):
    """A try, and the kind of the trouble if it was lost."""

    result: Try
    trouble: str = ""


Perform: TypeAlias = Callable[[Attempt], Awaitable[Made]]


class Schedule(Struct):
    """The tries of one live test. `tries` holds those that were made, also after an interruption."""

    terms: Sequence[Terms]
    models: Sequence[str]
    purse: Purse = field(default_factory=Purse)
    at_once: int = AT_ONCE
    on_try: Callable[[Try], None] = lambda made: None
    alone: Collection[str] = ()
    """Models that are tried one at a time: side by side, their tries would measure how long they wait."""
    tries: list[Try] = field(default_factory=list)
    given_up: dict[str, str] = field(default_factory=dict)
    """Models that cannot be used any more, with the reason."""
    _lost: dict[str, int] = field(default_factory=dict)
    _by_case: dict[tuple[str, str], list[Try]] = field(default_factory=dict)

    @property
    def planned(self) -> int:
        return sum(len(term.rows) * term.repeats for term in self.terms) * len(self.models)

    def attempts(self) -> Iterator[Attempt]:
        for repeat in range(max((term.repeats for term in self.terms), default=0)):
            for term in self.terms:
                if repeat < term.repeats:
                    yield from (Attempt(term.case, row, model, repeat) for row in term.rows for model in self.models)

    async def run(self, perform: Perform) -> None:
        """Make the tries. Stops when the budget is used up; leaves out tries whose result is decided."""
        attempts = self.attempts()
        passes = {term.case: term.passes for term in self.terms}
        turns = {model: asyncio.Semaphore(1) for model in self.alone}

        async def work() -> None:
            for attempt in attempts:
                async with turns.get(attempt.model, contextlib.nullcontext()):
                    if self.purse.exhausted:
                        return
                    made = self._of(attempt.case, attempt.model)
                    if attempt.model in self.given_up or decided(made, passes[attempt.case]):
                        continue
                    self._keep(await perform(attempt))

        async with asyncio.TaskGroup() as group:
            for _ in range(max(1, self.at_once)):
                group.create_task(work())

    def scores(self) -> list[Score]:
        """Return the scores of each case on each model, in the order of the schedule."""
        return [
            score(
                term.case,
                model,
                self._of(term.case, model),
                passes=term.passes,
                repeats=term.repeats,
                planned=len(term.rows) * term.repeats,
            )
            for term in self.terms
            for model in self.models
        ]

    def _of(self, case: str, model: str) -> list[Try]:
        return self._by_case.setdefault((case, model), [])

    def _keep(self, made: Made) -> None:
        case, model = made.result.attempt.case, made.result.attempt.model
        self.tries.append(made.result)
        self._of(case, model).append(made.result)
        if made.result.ending != "lost":
            self._lost[model] = 0
        elif made.trouble != BUDGET:
            self._lost[model] = self._lost.get(model, 0) + 1
            if made.trouble in HOPELESS or self._lost[model] >= LOST_IN_A_ROW:
                self.given_up.setdefault(model, made.result.problems[0] if made.result.problems else made.trouble)
        self.on_try(made.result)
