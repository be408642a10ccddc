"""Show the model request of a step of a playbook, or of an agent of a pipeline, without sending it.

The real interpreter is walked; a request without a record gets a stand-in that is easily recognized as one. So the
preview equals the prompt that would be sent, except at those places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.inputs import complete_inputs, missing_inputs
from quire.engine.interpreter.pipeline.agent import run_agent
from quire.engine.interpreter.pipeline.steps import PipelineScope, readable_names
from quire.engine.interpreter.playbook.interpret import interpret
from quire.engine.interpreter.playbook.steps import unattended_answer
from quire.engine.request_hashes import request_hash
from quire.engine.requests import (
    Effect,
    Emit,
    Fan,
    HumanRequest,
    Load,
    Metering,
    ModelRequest,
    Offer,
    Spawn,
    ToolRequest,
    WorkCheck,
)
from quire.errors import CannotStart, StepFailed
from quire.expr import RESERVED
from quire.formats.pipeline.prompt_references import template
from quire.plan.descriptions import instead_of_model
from quire.plan.nodes import Case, Comparison, Plan, Reference, Sequence, Step, Template, Think, UseTool, walk
from quire.plan.pipeline_work import Agent
from quire.plan.vocabulary import path_named
from quire.values import Value, text_or_json

if TYPE_CHECKING:
    from quire.engine.interpreter.callees import Environment
    from quire.engine.records import EffectRecord

# No value has the empty name, so it reads as empty text and this condition never holds.
_NEVER = Comparison("", "!=", "")

LoadText = Callable[[Load], str | None]


class Preview(Struct, frozen=True):
    """The model request that a step would make."""

    request: ModelRequest
    notes: tuple[str, ...] = ()
    """Sentences for people that say where the preview differs from a run."""


def find_step(plan: Plan, named: str) -> tuple[str, Step]:
    """Return the step with that label, or with that path if several steps have the label. Raises `CannotStart`."""
    steps = dict(plan.steps())
    path = path_named(named, {path: step.label for path, step in steps.items()})
    if path is None:
        raise CannotStart(f"unknown step {named}: the steps are {', '.join(step.label for step in steps.values())}")
    return path, steps[path]


def stand_in_inputs(plan: Plan, given: Mapping[str, Value]) -> tuple[dict[str, str], list[str]]:
    """Return all inputs, and the names of the required ones that were not given.

    Each missing input has its own placeholder as its value.
    """
    missing = {own.name for own in missing_inputs(plan, given)}
    inputs = tuple(
        replace(own, type="string", options=(), default=f"{{{{{own.name}}}}}") if own.name in missing else own
        for own in plan.inputs
    )
    values = complete_inputs(replace(plan, inputs=inputs), given)
    return values, [own.name for own in plan.inputs if own.name in missing]


def preview(
    plan: Plan,
    inputs: Mapping[str, str],
    target: str,
    load: LoadText,
    *,
    records: Iterable[EffectRecord] = (),
    context_budget: int | None = None,
) -> Preview:
    """Return the model call of the step at the path `target`. Raises `CannotStart` if the step makes none.

    If the target is in an arm that is not chosen, the arm is taken anyway, with a note. `load` reads the texts that
    `@prompt` names.
    """
    step = dict(walk(plan.body))[target]
    if not isinstance(step.work, Think):
        raise CannotStart(f"step {step.label} asks no model: {instead_of_model(step)}")
    looking = _Looking(target, load, {record.path: record for record in records})
    # Tool arguments are not built: stand-ins might not fit them, and the model does not see them.
    plan = replace(plan, body=_each_step(plan.body, _without_arguments))
    request = looking.walk(plan, inputs, context_budget)
    if request is None and "/case[" in target:
        looking.notes.append(f"with these values the run would not come to step {step.label}: its branch is taken here")
        request = looking.walk(replace(plan, body=_forced(plan.body, target, "")), inputs, context_budget)
    elif request is None and step.match and step.match.decide_first:
        looking.notes.append(f"with these values no branch of step {step.label} is chosen and it would be skipped")
        request = looking.walk(replace(plan, body=_unskipped(plan.body, step)), inputs, context_budget)
    if request is None:
        raise CannotStart(f"step {step.label} asks no model: its text is empty")
    return Preview(request, tuple(dict.fromkeys(looking.notes)))


class _Looking:
    def __init__(self, target: str, load: LoadText, records: Mapping[str, EffectRecord]) -> None:
        self.notes: list[str] = []
        self._target = target
        self._load = load
        self._records = records

    def walk(self, plan: Plan, inputs: Mapping[str, str], context_budget: int | None) -> ModelRequest | None:
        """Return the model request of the target, or None if the walk ends without it."""
        walk = interpret(plan, inputs, context_budget=context_budget)
        answer: Any = None
        try:
            while True:
                request = walk.send(answer)
                if isinstance(request, Emit):
                    answer = None
                    continue
                if isinstance(request, WorkCheck):
                    request.work.allow()  # a playbook has no loops: its text bounds the work
                    answer = None
                    continue
                if isinstance(request, Fan | Spawn | Metering):
                    raise CannotStart("steps that run side by side cannot be looked into yet")
                if request.path == f"{self._target}/model" and isinstance(request, ModelRequest):
                    return request
                answer = self._answer(request)
        except StopIteration:
            return None
        except StepFailed as error:
            labels = {path: step.label for path, step in plan.steps()}
            at = error.path
            while at and at not in labels:
                at = at.rpartition("/")[0]
            raise CannotStart(f"step {labels.get(at, '?')} would fail: {error.message}") from None
        finally:
            walk.close()

    def _answer(self, request: Effect) -> Value:
        record = self._records.get(request.path)
        if record and record.state == "ok" and record.request == request_hash(request):
            return record.value
        match request:
            case ModelRequest():
                return {"text": f"[output of step {request.label}]"}
            case ToolRequest():
                return f"[result of step {request.label}]"
            case HumanRequest():
                answer = unattended_answer(request.kind, request.options, request.default)
                return answer or f"[answer to step {request.label}]"
            case Load():
                return self._text(request)
        return {}

    def _text(self, request: Load) -> Value:
        own = request.path == f"{self._target}/prompt"
        name = f"{request.scheme}:{request.where}"
        if request.scheme == "mcp":
            self.notes.append(f"step {request.label}: {name} is fetched when the step runs")
            return f"[prompt {name}]"
        try:
            text = self._load(request)
        except StepFailed as error:
            if own:
                raise
            self.notes.append(f"step {request.label} would fail: {error.message}")
            return f"[prompt {name}]"
        if text is None and own:
            self.notes.append(f"unknown prompt {name}: the step runs on its own text")
        return text


def _each_step(sequence: Sequence, change: Callable[[Step], Step]) -> Sequence:
    steps = []
    for step in sequence.steps:
        step = change(step)
        if step.match:
            cases = tuple(replace(case, body=_each_step(case.body, change)) for case in step.match.cases)
            step = replace(step, match=replace(step.match, cases=cases))
        steps.append(step)
    return Sequence(tuple(steps))


def _without_arguments(step: Step) -> Step:
    return replace(step, work=replace(step.work, arguments={}, problem="")) if isinstance(step.work, UseTool) else step


def _unskipped(sequence: Sequence, target: Step) -> Sequence:
    """Let one step do its work although none of its branches is chosen."""

    def change(step: Step) -> Step:
        if step.span != target.span or step.label != target.label or step.match is None:
            return step
        return replace(step, match=replace(step.match, decide_first=False))

    return _each_step(sequence, change)


def _forced(sequence: Sequence, target: str, prefix: str) -> Sequence:
    """Return the same sequence, with every branch on the way to the target taking the arm that leads there."""
    steps = []
    for step in sequence.steps:
        path = f"{prefix}{step.position}"
        if step.match and target.startswith(f"{path}/case["):
            cases = tuple(
                _forced_case(case, target, f"{path}/case[{at}]/") for at, case in enumerate(step.match.cases, 1)
            )
            step = replace(step, match=replace(step.match, cases=cases))
        steps.append(step)
    return Sequence(tuple(steps))


def _forced_case(case: Case, target: str, prefix: str) -> Case:
    if target.startswith(prefix):
        return Case(None, _forced(case.body, target, prefix))
    return Case(_NEVER, case.body)


def preview_agent(
    plan: Plan, target: str, stores: Mapping[str, Value], setting: Environment, files: Mapping[str, str]
) -> Preview:
    """Return the first model call of the agent step at a path of the plan, with the values in `stores` and the texts of
    its prompt files in `files`.

    A prompt of a pipeline holds values only, so no other step is walked: every reference that has no value yet is shown
    as its own name in brackets. Raises `CannotStart` if the step is not an agent, or cannot reach its model call.
    """
    step = dict(plan.steps())[target]
    if not isinstance(step.work, Agent):
        raise CannotStart(f"step {step.label} asks no model: {instead_of_model(step)}")
    text = step.work.prompt
    if step.work.file:
        if step.work.file not in files:
            raise CannotStart(f"step {step.label} would fail: the prompt file {step.work.file} cannot be read")
        text = template(files[step.work.file])
    names = {*stores, *readable_names(plan)}
    prompt = "".join(part if isinstance(part, str) else _value(part, stores, names) for part in text.parts)
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
