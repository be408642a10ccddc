"""Run the plain steps of a pipeline: an expression, a tool by its name, a question to a person, a command; and the
steps made of other steps in sequence: a call, a call that a value selects, a fold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from quire.engine.interpreter.callees import below, called_with, check_nesting
from quire.engine.interpreter.pipeline.steps import PipelineScope, check_work, run_block_steps, run_step, run_steps
from quire.engine.interpreter.playbook.steps import WrongAnswer, checked_answer
from quire.engine.premises import WORK
from quire.engine.requests import Emit, HumanRequest, ToolRequest, Walk
from quire.errors import StepFailed
from quire.expr import python_text
from quire.plan.built_in_tools import ASK
from quire.plan.descriptions import step_name
from quire.plan.nodes import AskKind, Step
from quire.plan.pipeline_work import Block, Call, Fold, Formula, Invoke, Literal, Select, Transform
from quire.units import seconds_of
from quire.values import InvalidValue, Value, encode

_SHELL_STEP = "shell"
_KINDS = ("input", "confirm", "select")


def run_transform(step: Step, work: Transform, path: str, frame: PipelineScope) -> Walk:
    """Compute an expression. It is pure: every replay computes it again, and it is never recorded."""
    return frame.value(work.value, path)
    yield  # makes this a generator, like all runners


def run_invoke(step: Step, work: Invoke, path: str, frame: PipelineScope) -> Walk:
    arguments: dict[str, Value] = {}
    for number, (name, value) in enumerate(work.arguments):
        yield from check_work(f"{path}{WORK}[{number}]", step.label, frame)
        arguments[name] = frame.value(value, path)
    effect = f"{path}/{'ask' if work.tool == ASK else 'tool'}"
    if work.tool == ASK:
        result: Value = yield question(arguments, effect, step.label, path, step_name(step))
    elif work.tool == _SHELL_STEP:
        if frame.setting.rules > 1 and "command" in arguments:
            arguments["command"] = _words(arguments["command"])
        _check_command(work, arguments, path)
        stdin = _stdin(frame.pipe, path) if work.piped else None
        result = yield ToolRequest(effect, step.label, "", _SHELL_STEP, arguments, stdin=stdin)
    else:
        result = yield ToolRequest(effect, step.label, "", work.tool, arguments, form="data")
    if work.schema is not None:
        hold_to_schema(work.schema, result, effect, frame)
    return result


def hold_to_schema(name: str, value: Value, path: str, frame: PipelineScope) -> None:
    """Raise `StepFailed` with all violations of the schema.

    `path` is the effect that returned the value, so that a resume performs it again.
    """
    violations = frame.schema(name, path).violations(value, frame.plan.schemas.get)
    if violations:
        listed = "; ".join(f"{violation.path or 'the result'}: {violation.message}" for violation in violations[:20])
        raise StepFailed(f"the result does not fit the schema {name}: {listed}", kind="schema", path=path)


def question(arguments: Mapping[str, Value], path: str, label: str, step_path: str, title: str = ASK) -> HumanRequest:
    """Build the request of the tool `ask`: a prompt, a kind, options for a choice, and a default."""
    prompt, kind, options = arguments.get("prompt"), arguments.get("type", "input"), arguments.get("options", [])
    if not isinstance(prompt, str):
        raise StepFailed("ask needs a prompt, which is text", kind="arguments", path=step_path)
    if kind not in _KINDS:
        raise StepFailed(
            f"ask knows the types {', '.join(_KINDS)}, not {encode(kind)}", kind="arguments", path=step_path
        )
    if not isinstance(options, list | tuple) or not all(isinstance(option, str) for option in options):
        raise StepFailed("the options of ask are a list of texts", kind="arguments", path=step_path)
    choices = tuple(cast("list[str]", options))
    if "show" in arguments:
        prompt = f"{_shown(arguments['show'])}\n\n{prompt}"
    expiry = _expiry(arguments.get("expiry"), step_path)
    default = _default(arguments.get("default"), cast(AskKind, kind), choices, step_path)
    return HumanRequest(path, label, title, cast(AskKind, kind), prompt, choices, default, True, expiry)


def _shown(value: Value) -> str:
    """Return a value in its form above a question: text as it is, anything else as a block of JSON."""
    if isinstance(value, str):
        return value
    return f"```json\n{json.dumps(value, ensure_ascii=False, indent=2)}\n```"


def _expiry(value: Value, path: str) -> float | None:
    if value is None:
        return None
    seconds = seconds_of(value) if isinstance(value, str) else None
    if seconds is None:
        raise StepFailed(
            f"the expiry of ask is such as 30m, 2h or 7d, not {encode(value)}", kind="arguments", path=path
        )
    return seconds


def _default(value: Value, kind: AskKind, options: tuple[str, ...], path: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise StepFailed("the default of ask is a text", kind="arguments", path=path)
    try:
        return checked_answer(kind, options, value)
    except WrongAnswer as wrong:
        message = f"the default of ask does not fit its type {kind}: {wrong}"
        raise StepFailed(message, kind="arguments", path=path) from None


def _stdin(value: Value, path: str) -> str:
    try:
        return encode(value)
    except InvalidValue as error:
        raise StepFailed(f"the command cannot read what comes in: {error}", kind="arguments", path=path) from None


def _words(command: Value) -> Value:
    """Turn numbers among the words of a command into text: a hash that has only digits was read as a number."""
    if not isinstance(command, list | tuple):
        return command
    return [encode(part) if type(part) in (int, float) else part for part in command]


def _check_command(work: Invoke, arguments: Mapping[str, Value], path: str) -> None:
    """Check that a command is a text from the document, which goes to a shell, or a list: a computed command must be a
    list, and a shell never reads it."""
    command = arguments.get("command")
    literal = any(name == "command" and isinstance(value, Literal) for name, value in work.arguments)
    if isinstance(command, str) and literal:
        return
    if isinstance(command, list | tuple) and command and all(isinstance(part, str) for part in command):
        return
    if isinstance(command, str):
        message = "a command that is computed must be a list of texts (no shell reads it), not one text"
    else:
        message = "a command is a text or a list of texts"
    raise StepFailed(message, kind="arguments", path=path)


def run_call(step: Step, work: Call, path: str, frame: PipelineScope) -> Walk:
    return (yield from below(step.label, _run_document(work, f"{path}/call/", path, frame)))


def run_select(step: Step, work: Select, path: str, frame: PipelineScope) -> Walk:
    value = frame.value(work.on, path)
    try:
        label = python_text(value)
    except InvalidValue as error:
        raise StepFailed(f"what `match` is on cannot be a label: {error}", kind="match", path=path) from None
    if not isinstance(value, str):
        frame.setting.work.add_text(len(label))
    for number, (name, target) in enumerate(work.cases, 1):
        if name == label:
            return (yield from _run_target(step, target, number, path, frame))
    if isinstance(work.default, Formula):
        return frame.value(work.default, path)
    if work.default is None:
        names = ", ".join(name for name, _ in work.cases)
        raise StepFailed(f"{label!r} is none of the cases ({names}), and there is no default", kind="match", path=path)
    return (yield from _run_target(step, work.default, len(work.cases) + 1, path, frame))


def _run_target(step: Step, target: Call | Block, number: int, path: str, frame: PipelineScope) -> Walk:
    """Run the branch that a `match` has selected. A block is on the stores of the `match`, and its paths name it."""
    if isinstance(target, Block):
        return (yield from run_block_steps(target.body, f"{path}/match[{number}]/", frame))
    return (yield from below(step.label, _run_document(target, f"{path}/match/", path, frame)))


def run_fold(step: Step, work: Fold, path: str, frame: PipelineScope) -> Walk:
    """Run `do` for one item after the other.

    Stores that `do` writes stay inside the fold, from one item to the next.
    """
    items = frame.items(work.source, path)
    accumulated = frame.value(work.init, path)
    if work.max_items is not None and len(items) > work.max_items:
        message = f"the fold goes through the first {work.max_items} of {len(items)} items"
        yield Emit("warning", path, "", {"message": message})
        items = items[: work.max_items]
    inner = frame.inside(frame.pipe, sees_loops=True)
    if not frame.depth:
        yield Emit("fan_started", path, step.label, {"total": len(items), "limit": 1}, kept=False)
    for number, item in enumerate(items):
        inner.pipe = frame.pipe
        inner.bound = {"item": item, "acc": accumulated}
        accumulated = yield from run_step(work.do, f"{path}/fold[{number}]", inner)
        if not frame.depth:
            yield Emit("fan_item", path, step.label, {"index": number, "state": "done"}, kept=False)
    return accumulated


def _run_document(work: Call, prefix: str, path: str, frame: PipelineScope) -> Walk:
    """Run another document on the passed values alone; it sees the schemas of its own file."""
    callee = frame.setting.documents.get(work.document)
    if callee is None:
        raise StepFailed(f"there is no pipeline {work.document}", kind="call", path=path)
    check_nesting(prefix, path)
    stores: dict[str, Value] = {}
    for number, (name, value) in enumerate(work.passes):
        yield from check_work(f"{path}{WORK}[{number}]", "", frame)
        stores[name] = frame.value(value, path)
    if callee.format != "pipeline":
        from quire.engine.interpreter.callees import call_document

        return (yield from call_document(work.document, stores, prefix, path, frame.setting))
    stores = called_with(callee, stores, path, frame.setting.work)
    inner = PipelineScope(frame.setting, callee, stores, frame.pipe, depth=frame.depth)
    return (yield from run_steps(callee.body, prefix, inner))
