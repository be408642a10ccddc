"""Outline of a document: its inputs and steps, the tools, prompts and permissions it needs, and its bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, assert_never

import click

from quire.display.text import one_line, paragraph, section, short, table, visible
from quire.plan.descriptions import QUESTIONS, condition, condition_in_words, tool_name, written
from quire.plan.nodes import Ask, Capture, Input, Plan, PromptSource, Step, Think, UseTool
from quire.plan.nodes import Sequence as Steps
from quire.plan.thread import Thread
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.plan.bounds import PlanBounds, Range
    from quire.plan.envelope import CapabilityEnvelope
    from quire.values import Value


INPUTS = ("NAME", "TYPE", "VALUE", "DESCRIPTION")
"""The header of the inputs of a document."""


def head(title: str, description: str) -> Iterator[str]:
    """Yield the first lines of an outline."""
    yield click.style(one_line(title), bold=True)
    if description:
        yield from visible(description).split("\n")


def outline(plan: Plan) -> Iterator[str]:
    yield from head(plan.title, plan.description)
    if plan.inputs:
        yield from paragraph("inputs", table([_input(field) for field in plan.inputs], INPUTS))
    if plan.system:
        yield from paragraph("system prompt", [short(plan.system, 100)])
    yield from paragraph("steps", list(_steps(plan.body)))
    yield from section("tools", used(uses_of(plan, "tool")))
    yield from section("prompts", used(uses_of(plan, "prompt")))
    if plan.artifact:
        comes = f"from {plan.artifact.source}" if plan.artifact.source else ""
        yield from paragraph("artifact", [one_line(", ".join(filter(None, (written(plan.artifact.type), comes))))])


def outline_data(plan: Plan) -> dict[str, Value]:
    return {
        "title": plan.title,
        "format": plan.format,
        "description": plan.description,
        "system": plan.system,
        "inputs": [
            {
                "name": field.name,
                "type": field.type,
                "required": field.required,
                "default": field.default,
                "options": list(field.options),
                "description": field.description,
            }
            for field in plan.inputs
        ],
        "steps": _steps_data(plan.body),
        "tools": [{"tool": name, "steps": list(steps)} for name, steps in uses_of(plan, "tool").items()],
        "prompts": [{"prompt": name, "steps": list(steps)} for name, steps in uses_of(plan, "prompt").items()],
        "artifact": (written(plan.artifact.type) or None) if plan.artifact else None,
        **({"artifact_from": plan.artifact.source} if plan.artifact and plan.artifact.source else {}),
    }


def uses_of(plan: Plan, kind: str) -> dict[str, list[str]]:
    """Return the tools, or the prompts, that a plan names, each with the labels of its steps."""
    uses: dict[str, list[str]] = {}
    for _, step in plan.steps():
        work = step.plain_work
        match work:
            case UseTool():
                if kind == "tool":
                    uses.setdefault(tool_name(work), []).append(step.label)
            case Think(preamble=source):
                if kind == "prompt" and source:
                    uses.setdefault(prompt_name(source), []).append(step.label)
            case Thread() | None:
                pass  # its tools are offered to the model, not named
            case _:
                assert_never(work)
    return uses


def prompt_name(source: PromptSource) -> str:
    return f"{{{{{source.where}}}}}" if source.scheme == "variable" else f"{source.scheme}:{source.where}"


def _input(field: Input) -> tuple[str, ...]:
    value = "required" if field.required else f"default {field.default}" if field.default else "optional"
    options = f"one of {', '.join(field.options)}" if field.options else ""
    return field.name, field.type, ", ".join(filter(None, (value, options))), short(field.description, 80)


def _steps(sequence: Steps) -> Iterator[str]:
    for step in sequence.steps:
        yield f"{one_line(step.label)}  {one_line(step.title)}".rstrip()
        yield from (f"    {one_line(line)}" for line in _does(step))
        for number, case in enumerate(step.match.cases if step.match else ()):
            word = "elif" if number else "if"
            yield f"    {word} {one_line(condition_in_words(case.test))}:" if case.test else "    else:"
            yield from (f"      {line}" for line in _steps(case.body))


def _does(step: Step) -> Iterator[str]:
    if step.ask:
        yield _question(step.ask)
    match step.plain_work:
        case Think(prompt=prompt, preamble=preamble, context=context, model=model):
            yield f"asks the model: {short(written(prompt), 80)}" if not prompt.empty else "asks the model"
            if preamble:
                yield f"with the prompt {prompt_name(preamble)} before it"
            if context is not None:
                yield f"shows it only {', '.join(context)}" if context else "shows it no earlier result"
            if model:
                yield f"on the model {model}"
        case UseTool(problem=problem) as work:
            yield f"calls the tool {tool_name(work)}" + (f" (cannot work: {problem})" if problem else "")
        case Thread(extends=extends, limits=limits, permissions=permissions):
            yield f"runs as a thread under {len(permissions)} {pluralize('permission', len(permissions))}"
            if extends:
                yield f"continues from {extends}"
            if limits:
                yield f"at most {', '.join(f'{name} {limit}' for name, limit in limits.items())}"
        case None:
            if not step.ask and not step.match:
                yield "does nothing"
        case work:
            assert_never(work)
    if step.capture:
        yield f"keeps {_kept(step.capture)}"


def _question(ask: Ask) -> str:
    options = f" ({' | '.join(written(option) for option in ask.options)})" if ask.options else ""
    default = f", else {written(ask.default)}" if ask.default is not None else ""
    return f"{QUESTIONS[ask.kind]}: {short(written(ask.prompt), 80)}{options}{default}"


def _kept(capture: Capture) -> str:
    what = f'the field "{capture.field}"' if capture.field is not None else "the result"
    kind = f" ({capture.type}{': ' + ', '.join(capture.options) if capture.options else ''})" if capture.type else ""
    return f"{what} as {capture.name}{kind}"


def used(uses: dict[str, list[str]]) -> list[str]:
    return [f"{one_line(name)} ({pluralize('step', len(at))} {', '.join(at)})" for name, at in uses.items()]


def _steps_data(sequence: Steps) -> list[Value]:
    return [_step_data(step) for step in sequence.steps]


def _step_data(step: Step) -> Value:
    data: dict[str, Value] = {"label": step.label, "title": step.title}
    if step.ask:
        data["asks"] = ask_data(step.ask)
    match step.plain_work:
        case Think(prompt=prompt, preamble=preamble, context=context, model=model):
            request: dict[str, Value] = {"text": written(prompt), "prompt": prompt_name(preamble) if preamble else None}
            data["model"] = request
            if context is not None:
                request["context"] = list(context)
            if model:
                request["name"] = model
        case UseTool(connection=connection, tool=tool):
            data["tool"] = {"connection": connection, "tool": tool}
        case Thread(name=name, extends=extends, limits=limits, permissions=permissions):
            data["thread"] = {
                "name": name,
                "extends": extends or None,
                "limits": dict(limits),
                "permissions": [permission.capability for permission in permissions],
            }
        case None:
            pass
        case work:
            assert_never(work)
    if step.capture:
        capture = step.capture
        data["keeps"] = {
            "name": capture.name,
            "type": capture.type,
            "options": list(capture.options),
            "field": capture.field,
        }
    if step.match:
        data["branches"] = [
            {"if": condition(case.test) if case.test else None, "steps": _steps_data(case.body)}
            for case in step.match.cases
        ]
    return data


def ask_data(ask: Ask) -> dict[str, Value]:
    return {
        "kind": ask.kind,
        "prompt": written(ask.prompt),
        "options": [written(option) for option in ask.options],
        "default": written(ask.default) if ask.default is not None else None,
    }


def envelope_lines(envelope: CapabilityEnvelope) -> Iterator[str]:
    """Yield the capabilities of an envelope for people, each with its steps, the class of its effect, and how far it
    goes: `… (step 6; write) path=a`."""
    needs = []
    for need in envelope.needs:
        steps = f"{pluralize('step', len(need.steps))} {', '.join(need.steps)}"
        details = f" {' '.join(need.details)}" if need.details else ""
        needs.append(one_line(f"{need.capability} ({steps}; {need.effect}){details}"))
    needs = needs or ["nothing"]
    if envelope.unknown:
        needs.append(one_line(f"and what {', '.join(envelope.unknown)} needs, which is not known here"))
    yield from paragraph("permissions it needs", needs)


def foreseen_data(bounds: PlanBounds, envelope: CapabilityEnvelope) -> dict[str, Value]:
    """Return bounds and needed permissions for programs. Null means infinity, which JSON cannot express."""
    from quire.plan.bounds import COUNTED

    counts: dict[str, Value] = {name: range_data(getattr(bounds, name)) for name in COUNTED}
    return {
        "bounds": {**counts, "unknown": list(bounds.unknown)},
        "envelope": {
            "capabilities": [{"capability": need.capability, "steps": list(need.steps)} for need in envelope.needs],
            "unknown": list(envelope.unknown),
        },
    }


def range_data(count: Range) -> dict[str, Value]:
    return {"least": count.least, "most": count.most}
