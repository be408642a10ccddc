"""Run a pipeline from its input to its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.engine.interpreter.pipeline.agent import run_agent
from quire.engine.interpreter.pipeline.blocks import run_block, run_fail, run_repeat, run_stop
from quire.engine.interpreter.pipeline.fan import run_for_each, run_parallel
from quire.engine.interpreter.pipeline.simple import run_call, run_fold, run_invoke, run_select, run_transform
from quire.engine.interpreter.pipeline.steps import RUNNERS, PipelineScope, run_steps
from quire.plan.pipeline_work import (
    Agent,
    Block,
    Call,
    Fail,
    Fold,
    ForEach,
    Invoke,
    Parallel,
    Repeat,
    Select,
    Stop,
    Transform,
)

if TYPE_CHECKING:
    from quire.engine.interpreter.environment import Environment
    from quire.engine.requests import Walk
    from quire.plan.nodes import Plan
    from quire.values import Value

RUNNERS.update(
    {
        Transform: run_transform,
        Invoke: run_invoke,
        Agent: run_agent,
        Call: run_call,
        Select: run_select,
        Fold: run_fold,
        ForEach: run_for_each,
        Parallel: run_parallel,
        Block: run_block,
        Repeat: run_repeat,
        Fail: run_fail,
        Stop: run_stop,
    }
)


def interpret_pipeline(plan: Plan, input: Mapping[str, Value], setting: Environment) -> Walk:
    """Run a pipeline on its input. Its result has the last step's value and all named stores."""
    frame = PipelineScope(setting, plan, dict(input), tells=True)
    output = yield from run_steps(plan.body, "", frame)
    return {"output": output, "stores": dict(frame.stores)}
