"""Outline of a pipeline: its inputs, the work of each step, and the tools and pipelines it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from msgspec import UNSET

from quire.display.outline import INPUTS, head, used
from quire.display.text import one_line, paragraph, section, short, table
from quire.plan.descriptions import guard_texts, on_error_text, source_text, step_name, written
from quire.plan.nodes import Plan, Step, Think, UseTool
from quire.plan.pipeline_work import (
    Agent,
    AgentStepSettings,
    Block,
    Call,
    Fail,
    Fold,
    ForEach,
    Formula,
    Invoke,
    Literal,
    Parallel,
    Repeat,
    Select,
    Stop,
    Transform,
)
from quire.plan.thread import Thread
from quire.schema import Field, field_schema, fields_words, type_words
from quire.values import Value, encode

_TEXT = 80
_DEFAULT = 40


def pipeline_outline(plan: Plan, needed: Sequence[str], optional: Sequence[str]) -> Iterator[str]:
    """Yield the outline. `needed` and `optional` are the inputs, which are inferred if the pipeline declares none."""
    yield from head(plan.title, plan.description)
    if plan.declared:
        yield from paragraph("inputs", table([_input(field) for field in plan.declared], INPUTS))
    elif needed or optional:
        rows = [(name, "needed") for name in needed] + [(name, "optional") for name in optional]
        yield from paragraph("inputs (what steps read before any step writes it)", table(rows))
    yield from paragraph("steps", [line for step in plan.body.steps for line in _step(step)])
    lines = [f"{name}: {fields_words(schema.fields)}" for name, schema in plan.schemas.items()]
    yield from section("schemas", [one_line(line) for line in lines])
    yield from section("tools", used(tools_of(plan)))
    yield from section("pipelines that it runs", used(callees_of(plan)))


def pipeline_data(plan: Plan, needed: Sequence[str], optional: Sequence[str]) -> dict[str, Value]:
    return {
        "title": plan.title,
        "format": plan.format,
        "description": plan.description,
        "inputs": _inputs_data(plan, needed, optional),
        "steps": [_data(step) for step in plan.body.steps],
        "schemas": {name: schema.json_schema(plan.schemas.get) for name, schema in plan.schemas.items()},
        "tools": [{"tool": name, "steps": list(steps)} for name, steps in tools_of(plan).items()],
        "pipelines": [{"pipeline": name, "steps": list(steps)} for name, steps in callees_of(plan).items()],
    }


def _input(field: Field) -> tuple[str, str, str, str]:
    value = "required" if field.is_needed else "optional"
    if field.default is not UNSET:
        value = f"default {short(encode(field.default), _DEFAULT)}"
    return field.name, short(type_words(field.type), _TEXT), value, short(field.description, _TEXT)


def _inputs_data(plan: Plan, needed: Sequence[str], optional: Sequence[str]) -> list[Value]:
    """Return the inputs. Declared ones have their type as JSON Schema, which says the default too."""
    if plan.declared is None:
        names = [*((name, True) for name in needed), *((name, False) for name in optional)]
        return [{"name": name, "required": is_needed} for name, is_needed in names]
    return [{"name": field.name, "required": field.is_needed, "schema": field_schema(field)} for field in plan.declared]


def tools_of(plan: Plan) -> dict[str, list[str]]:
    """Return the tools that steps call and that agents may use, each with the labels of those steps."""
    uses: dict[str, list[str]] = {}
    for _, step in plan.steps():
        names = [name for _, name in step.work.tool_calls()] if step.work else []
        for name in (step.work.tools or ()) if isinstance(step.work, Agent) else names:
            uses.setdefault(name, []).append(step.label)
    return uses


def callees_of(plan: Plan) -> dict[str, list[str]]:
    uses: dict[str, list[str]] = {}
    for _, step in plan.steps():
        for call in step.calls():
            at = uses.setdefault(call.document, [])
            if step.label not in at:
                at.append(step.label)
    return uses


def _step(step: Step) -> Iterator[str]:
    name = step_name(step)
    output = f" → {step.capture.name}" if step.capture and step.capture.name != name else ""
    yield f"{one_line(step.label)}  {one_line(name)}{output}"
    yield from (f"    {one_line(line)}" for line in (*_does(step), *_guarded(step)))
    for name, part in _parts(step):
        # The steps of a block follow each other, and their labels say where they belong.
        if not isinstance(step.work, Block | Select):
            yield f"    {one_line(name)}:"
        yield from (f"      {line}" for line in _step(part))


def _does(step: Step) -> Iterator[str]:
    match step.work:
        case Transform(value=value):
            yield f"is {short(value.text, _TEXT)}"
        case Invoke(tool=tool, arguments=arguments, schema=schema):
            yield "runs a command" if step.kind == "shell" else "asks a person" if tool == "ask" else f"calls {tool}"
            yield from (f"with {name} = {_argument(argument)}" for name, argument in arguments)
            if schema:
                yield f"the result fits {schema}"
        case Agent(prompt=prompt, identity=identity, tools=tools, schema=schema):
            text = f"the text of {step.work.file}" if step.work.file else short(written(prompt), _TEXT)
            yield f"asks the model: {text}"
            if identity:
                yield f"as {identity}"
            if tools is not None:
                yield f"is offered at most {', '.join(tools)}" if tools else "is offered no tools"
            if schema:
                yield f"the reply fits {schema}"
            if step.work.settings:
                yield from _settings(step.work.settings)
        case Call():
            yield f"runs {step.work.document}, {_passes(step.work)}"
        case Select(on=on, cases=cases, default=default):
            yield f"on {short(on.text, _TEXT)}"
            yield from (f"{label}: {_target(target)}" for label, target in cases)
            if isinstance(default, Formula):
                yield f"otherwise: is {short(default.text, _TEXT)}"
            else:
                yield f"otherwise: {_target(default) if default else 'fails'}"
        case Repeat(init=init, until=until, max=most, keeps_last=keeps_last):
            begins = f"; begins with {short(init.text, _TEXT)}" if init else ""
            then = "then keeps the last result" if keeps_last else "then fails"
            yield f"again until {short(until.text, _TEXT)}, at most {most} times, {then}{begins}"
        case Fail(message=message):
            yield f"fails with {_argument(message)}"
        case Stop(value=result):
            yield f"ends the pipeline with {short(result.text, _TEXT) if result else 'the value before'}"
        case Block():
            pass
        case Fold(source=source, init=init, max_items=most):
            first = f", the first {most}" if most is not None else ""
            yield f"one by one over {short(source_text(source), _TEXT)}{first}; begins with {short(init.text, _TEXT)}"
        case ForEach(source=source, max_parallel=parallel, max_items=most, on_error=on_error):
            limit = f"at most {most}, " if most is not None else ""
            over = short(source_text(source), _TEXT)
            yield f"for each of {over}, {limit}{parallel} at once, {on_error_text(on_error)}"
            yield from _instead(step.work.default)
        case Parallel(on_error=on_error):
            yield f"side by side, {on_error_text(on_error)}"
            yield from _instead(step.work.default)
        case None | Think() | UseTool() | Thread():
            pass  # a pipeline has none of these
        case _:
            assert_never(step.work)


def _guarded(step: Step) -> Iterator[str]:
    if step.guard is not None:
        yield from (short(text, _TEXT + 40) for text in guard_texts(step.guard))


def _settings(settings: AgentStepSettings) -> Iterator[str]:
    if settings.model:
        yield f"on the model {settings.model}"
    named = {"turns": settings.turns, "tokens": settings.max_tokens}
    yield from (f"at most {most} {name}" for name, most in named.items() if most is not None)
    if settings.temperature is not None:
        yield f"at temperature {settings.temperature:g}"


def _instead(default: Formula | None) -> Iterator[str]:
    if default is not None:
        yield f"in place of what failed: {short(default.text, _TEXT)}"


def _target(target: Call | Block) -> str:
    if isinstance(target, Call):
        return f"runs {target.document}, {_passes(target)}"
    first, last = target.body.steps[0].label, target.body.steps[-1].label
    return f"step {first}" if first == last else f"steps {first} to {last}"


def _passes(call: Call) -> str:
    passed = [
        name if value.text == f"ctx.{name}" else f"{name} = {short(value.text, 40)}" for name, value in call.passes
    ]
    return f"passes {', '.join(passed)}" if passed else "passes nothing"


def _argument(value: Literal | Formula) -> str:
    return f"!expr {short(value.text, _TEXT)}" if isinstance(value, Formula) else short(encode(value.value), _TEXT)


def _parts(step: Step) -> tuple[tuple[str, Step], ...]:
    match step.work:
        case Fold(do=do):
            return (("do", do),)
        case ForEach(do=do, collect=collect):
            return (("do", do), ("collect", collect))
        case Parallel(branches=branches, collect=collect):
            return (*branches, ("collect", collect))
        case Block(body=body):
            return tuple((str(inner.position), inner) for inner in body.steps)
        case Select():
            blocks = [(label, target) for label, target in step.work.cases if isinstance(target, Block)]
            blocks += [("otherwise", step.work.default)] if isinstance(step.work.default, Block) else []
            return tuple((f"{label} {inner.position}", inner) for label, block in blocks for inner in block.body.steps)
        case Repeat(do=do):
            return (("do", do),)
        case None | Think() | UseTool() | Transform() | Invoke() | Agent() | Call() | Thread() | Fail() | Stop():
            return ()
        case _:
            assert_never(step.work)


def _data(step: Step) -> Value:
    data: dict[str, Value] = {
        "label": step.label,
        "title": step_name(step),
        "kind": step.kind,
        "does": [*_does(step), *_guarded(step)],
    }
    if step.capture:
        data["output"] = step.capture.name
    inside = _parts(step)
    if inside:
        data["steps"] = {name: _data(part) for name, part in inside}
    return data
