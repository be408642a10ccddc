"""The workflow of a run: have it driven until it ends or waits. It decides nothing about the run itself.

A run that waits has no workflow: an answer, a wake-up or the sweep starts the next one under the same id.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from quire.cluster.orders import (
        BUSY,
        DRIVE,
        ENDED,
        FIRST_WORKFLOW,
        HANDED_OVER,
        LOOK,
        WAITS,
        WORKFLOW,
        Order,
        Outcome,
    )

LONGEST_DRIVE = timedelta(days=365)
"""A timeout that Temporal requires. A dead worker is noticed by its missing heartbeats, never by this."""

BUSY_SECONDS = 15.0
LONGEST_WAIT_SECONDS = 7 * 86_400.0

# Retry at once, however often it happened: a dead worker is not a reason to wait. An error can ask for a pause itself.
AT_ONCE = RetryPolicy(initial_interval=timedelta(milliseconds=100), backoff_coefficient=1.0)


@workflow.defn(name=WORKFLOW)
class RunWorkflow:
    ends: tuple[str, ...] = (ENDED, WAITS)
    """The rests of a run with which its workflow ends."""

    def __init__(self) -> None:
        self._looks = 0
        self._resume = False

    @workflow.signal(name=LOOK)
    def look(self, resume: bool = False) -> None:
        self._looks += 1
        self._resume = self._resume or resume

    @workflow.run
    async def run(self, order: Order) -> str:
        self._resume = self._resume or order.resume
        while True:
            looks, resume = self._looks, self._resume
            self._resume = False
            outcome = await self._drive(Order(order.run, order.heartbeat, resume))
            if outcome.rests == HANDED_OVER:
                # Its worker is shutting down and has parked the run: the next worker continues it.
                self._resume = self._resume or resume or outcome.status == "paused"
            elif looks == self._looks:
                if outcome.rests in self.ends:
                    return outcome.status
                await self._wait(looks, _seconds(outcome))
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(Order(order.run, order.heartbeat, self._resume))

    async def _drive(self, order: Order) -> Outcome:
        outcome: Outcome = await workflow.execute_activity(
            DRIVE,
            order,
            result_type=Outcome,
            start_to_close_timeout=LONGEST_DRIVE,
            heartbeat_timeout=timedelta(seconds=order.heartbeat),
            retry_policy=AT_ONCE,
        )
        return outcome

    async def _wait(self, looks: int, seconds: float) -> None:
        try:
            await workflow.wait_condition(lambda: self._looks != looks, timeout=seconds)
        except asyncio.TimeoutError:  # noqa: UP041  # the sandbox has its own idea of which of the two it is
            return


@workflow.defn(name=FIRST_WORKFLOW)
class WaitingRunWorkflow(RunWorkflow):
    """Version 1: it also lives while its run waits, until a signal comes or the run expires."""

    ends = (ENDED,)

    @workflow.run
    async def run(self, order: Order) -> str:
        return await super().run(order)


def _seconds(outcome: Outcome) -> float:
    if outcome.rests == BUSY:
        return BUSY_SECONDS
    if outcome.expires_at is None:
        return LONGEST_WAIT_SECONDS
    # One second more, so that the run has expired by the store's clock too.
    return min(max(outcome.expires_at - workflow.time(), 0.0) + 1.0, LONGEST_WAIT_SECONDS)
