"""Run a directive: its thread from the first turn to its outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.engine.interpreter.thread.loop import run_thread
from quire.engine.requests import Meter, Metering

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.setup import Setup
    from quire.engine.requests import Walk


def interpret_directive(setup: Setup) -> Walk:
    """Run a thread.

    Its result has the outputs, or the last words if none are declared. A thread that failed ends the run.
    """
    # A turn that a resume does again was paid for all the same.
    meters: list[Meter] = yield Metering(superseded=True)
    setup.purse.pay(meters[-1].cost)
    ending = yield from run_thread(setup)
    if not ending.success:
        raise ending.failure(setup.path)
    output = dict(ending.outputs) if setup.composed.outputs else ending.result
    return {"output": output, "thread": ending.as_value()}
