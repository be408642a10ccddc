"""Show the model request of an agent step without running any step.

A prompt of a pipeline holds values only, so it is filled in as far as values are known; every other reference is shown
as its own name in brackets. The request around the prompt is the one that the interpreter itself makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from quire.engine.interpreter.pipeline.agent import run_agent
from quire.engine.interpreter.pipeline.steps import PipelineScope, readable_names
from quire.engine.interpreter.preview import Preview
from quire.engine.requests import ModelRequest, Offer
from quire.errors import CannotStart, StepFailed
from quire.expr import RESERVED
from quire.formats.pipeline.prompts import template
from quire.plan.descriptions import instead_of_model
from quire.plan.nodes import (
    Plan,
    Reference,
    Template,
)
from quire.plan.pipeline_work import Agent
from quire.values import Value, text_or_json

if TYPE_CHECKING:
    from quire.engine.interpreter.callees import Environment


def preview_agent(
    plan: Plan, target: str, stores: Mapping[str, Value], setting: Environment, files: Mapping[str, str]
) -> Preview:
    """Return the first model call of the agent step at a path of the plan, with the values in `stores` and the texts of
    its prompt files in `files`.

    Raises `CannotStart` if the step is not an agent, or cannot reach its model call.
    """
    step = dict(plan.steps())[target]
    if not isinstance(step.work, Agent):
        raise CannotStart(f"step {step.label} asks no model: {instead_of_model(step)}")
    text = step.work.prompt
    if step.work.file:
        if step.work.file not in files:
            raise CannotStart(f"step {step.label} would fail: the prompt file {step.work.file} cannot be read")
        text = template(files[step.work.file])
    prompt = _filled(text, stores, {*stores, *readable_names(plan)})
    work = replace(step.work, prompt=Template((prompt,)), file="")
    walk = run_agent(step, work, target, PipelineScope(setting, plan, dict(stores)))
    answer: Any = None
    try:
        while True:
            request = walk.send(answer)
            if isinstance(request, ModelRequest):
                return Preview(request)
            # Descriptions of tools come from the connections that have them, and no connection is asked here.
            answer = [[name, "", {"type": "object"}] for name in request.names] if isinstance(request, Offer) else None
    except StepFailed as error:
        raise CannotStart(f"step {step.label} would fail: {error.message}") from None
    finally:
        walk.close()


def _filled(prompt: Template, stores: Mapping[str, Value], names: set[str]) -> str:
    return "".join(part if isinstance(part, str) else _value(part, stores, names) for part in prompt.parts)


def _value(reference: Reference, stores: Mapping[str, Value], names: set[str]) -> str:
    """Return the text for a reference. `pipe`, `item` and `acc` are known only when the step runs."""
    root, *rest = reference.name.split(".")
    if root not in RESERVED and root not in names:
        return reference.raw
    if reference.default is not None:
        return reference.default
    value: Value = stores
    for segment in rest if root == "ctx" else [root, *rest]:
        if root in RESERVED - {"ctx"} or not isinstance(value, Mapping) or segment not in value:
            return f"[{reference.name}]"
        value = value[segment]
    return text_or_json(value)
