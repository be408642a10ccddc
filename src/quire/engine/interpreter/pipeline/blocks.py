"""Run the steps of the Quire dialect that hold others in sequence, or end the pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.engine.interpreter.pipeline.steps import PipelineScope, PipelineStopped, run_block_steps, run_step
from quire.engine.requests import Emit, Walk
from quire.errors import StepFailed
from quire.values import text_or_json

if TYPE_CHECKING:
    from quire.plan.nodes import Step
    from quire.plan.pipeline_work import (
        Block,
        Fail,
        Repeat,
        Stop,
    )


def run_block(step: Step, work: Block, path: str, frame: PipelineScope) -> Walk:
    return run_block_steps(work.body, f"{path}/steps/", frame)


def run_repeat(step: Step, work: Repeat, path: str, frame: PipelineScope) -> Walk:
    """Run `do` round after round. Stores that it writes stay inside of the loop, from one round to the next."""
    last = frame.value(work.init, path) if work.init is not None else None
    inner = frame.inside(frame.pipe)
    if not frame.depth:
        yield Emit("fan_started", path, step.label, {"total": work.max, "limit": 1, "rounds": True}, kept=False)
    for number in range(1, work.max + 1):
        inner.pipe = frame.pipe
        inner.bound = {**frame.bound, "acc": last}
        inner.near = {**frame.near, "round": number}
        last = yield from run_step(work.do, f"{path}/repeat[{number}]", inner)
        inner.bound = {**frame.bound, "acc": last}
        if not frame.depth:
            yield Emit("fan_item", path, step.label, {"index": number - 1, "state": "done"}, kept=False)
        if inner.value(work.until, path):
            return last
    if work.keeps_last:
        return last
    rounds = "1 round" if work.max == 1 else f"{work.max} rounds"
    raise StepFailed(f"until did not hold after {rounds}: `{work.until.text}`", kind="repeat", path=path)


def run_fail(step: Step, work: Fail, path: str, frame: PipelineScope) -> Walk:
    message = frame.value(work.message, path)
    raise StepFailed(text_or_json(message), kind="fail", path=path)
    yield  # makes this a generator, like all runners


def run_stop(step: Step, work: Stop, path: str, frame: PipelineScope) -> Walk:
    raise PipelineStopped(frame.pipe if work.value is None else frame.value(work.value, path))
    yield  # makes this a generator, like all runners
