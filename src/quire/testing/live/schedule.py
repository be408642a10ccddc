"""Make the tries of a live test: in which order, how many at once, and when to stop.

Repeats are the outermost loop and models the innermost one. So a test that is stopped, by its budget or by its user,
has tried all models on the same rows.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from quire.testing.live.purse import BUDGET, HOPELESS, Purse
from quire.testing.live.tries import Attempt, Score, Try, decided, score

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
        return sum(len(one.rows) * one.repeats for one in self.terms) * len(self.models)

    def attempts(self) -> Iterator[Attempt]:
        for repeat in range(max((one.repeats for one in self.terms), default=0)):
            for one in self.terms:
                if repeat < one.repeats:
                    yield from (Attempt(one.case, row, model, repeat) for row in one.rows for model in self.models)

    async def run(self, perform: Perform) -> None:
        """Make the tries. Stops when the budget is used up; leaves out tries whose result is decided."""
        attempts = self.attempts()
        passes = {one.case: one.passes for one in self.terms}

        turns = {model: asyncio.Semaphore(1) for model in self.alone}

        async def work() -> None:
            for attempt in attempts:
                async with turns.get(attempt.model, contextlib.nullcontext()):
                    if self.purse.exhausted:
                        return
                    if attempt.model in self.given_up or self._is_decided(attempt, passes[attempt.case]):
                        continue
                    self._keep(await perform(attempt))

        async with asyncio.TaskGroup() as group:
            for _ in range(max(1, self.at_once)):
                group.create_task(work())

    def scores(self) -> list[Score]:
        """Return the scores of each case on each model, in the order of the schedule."""
        return [
            score(
                one.case,
                model,
                self._of(one.case, model),
                passes=one.passes,
                repeats=one.repeats,
                planned=len(one.rows) * one.repeats,
            )
            for one in self.terms
            for model in self.models
        ]

    def _is_decided(self, attempt: Attempt, passes: float | None) -> bool:
        return decided(self._of(attempt.case, attempt.model), passes)

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
