"""Outline of a directive: its inputs and outputs, the documents it is composed from, its capabilities and limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from quire.display.outline import INPUTS, head
from quire.display.text import one_line, paragraph, section, short, table
from quire.engine.interpreter.thread.budgets import DEFAULTS
from quire.source import relative_to_here
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.library.survey import Capability, ContextText, DirectiveSurvey, File, HookSource
    from quire.plan.thread import Parameter

_POSITIONS = {"system": "system message", "before": "before the directive", "after": "after the directive"}
_OPERATORS = {
    "eq": "is",
    "ne": "is not",
    "gt": "is above",
    "gte": "is at least",
    "lt": "is below",
    "lte": "is at most",
    "in": "is one of",
    "contains": "contains",
    "regex": "matches",
}


def directive_outline(survey: DirectiveSurvey) -> Iterator[str]:
    thread = survey.thread
    yield from head(f"{thread.name} {thread.version}".strip(), thread.description)
    yield one_line(f"directive {survey.item_id}" + (f", by {thread.author}" if thread.author else ""))
    yield from paragraph("model", _model(survey))
    if thread.inputs:
        yield from paragraph("inputs", table([_parameter(parameter) for parameter in thread.inputs], INPUTS))
    yield from paragraph("outputs", _outputs(survey))
    chain = [(file.id, file.space or "not found", _shown(file.path)) for file in survey.chain]
    yield from paragraph("extends (from the directive to its root)", table(chain))
    yield from section("context", table([_layer(text) for text in survey.context]))
    yield from paragraph("capabilities", _capabilities(survey))
    yield from paragraph("limits", table(_limits(survey), ("LIMIT", "EFFECTIVE", "FROM")))
    yield from section("hooks, in the order in which they act", [_hook(hook) for hook in survey.hooks])
    yield from paragraph("signatures", _signatures(survey.files))
    messages = {file.message for file in survey.files}
    warnings = [warning for warning in survey.composed.warnings if warning not in messages]
    yield from section("warnings", [one_line(warning) for warning in warnings])


def directive_data(survey: DirectiveSurvey) -> dict[str, Value]:
    thread = survey.thread
    return {
        "title": thread.name,
        "format": "directive",
        "id": survey.item_id,
        "version": thread.version,
        "description": thread.description,
        "category": thread.category,
        "author": thread.author,
        "model": {**thread.model, "resolves_to": survey.model.spec or None, "why": survey.model.reason},
        "inputs": [_parameter_data(parameter) for parameter in thread.inputs],
        "outputs": [_parameter_data(output) for output in thread.outputs],
        "success": thread.success or None,
        "failure": thread.failure or None,
        "extends": [_file_data(file) for file in survey.chain],
        "context": [
            {
                "position": text.position,
                "item_id": text.item_id,
                "from": text.who,
                "suppressed_by": text.suppressed or None,
            }
            for text in survey.context
        ],
        "capabilities": [
            {
                "capability": capability.capability,
                "from": capability.origin_id,
                "file": capability.path,
                "line": capability.line,
                "risk": capability.tier.value if capability.tier else None,
                "acknowledged": capability.acknowledged,
            }
            for capability in survey.capabilities
        ],
        "acknowledged": [
            {"risk": acknowledgement.risk, "reason": acknowledgement.reason}
            for acknowledgement in survey.composed.acknowledged
        ],
        "limits": {"declared": dict(survey.composed.limits_declared), "effective": survey.limits.as_value()},
        "hooks": [_hook_data(hook) for hook in survey.hooks],
        "signatures": [_file_data(file) for file in survey.files],
        "warnings": list(survey.composed.warnings),
    }


def condition_words(condition: Mapping[str, Value]) -> str:
    """Describe a hook's condition in words; empty for a condition that always holds."""
    parts = []
    for name, word in (("all", " and "), ("any", " or ")):
        inner = condition.get(name)
        if isinstance(inner, list | tuple):
            words = [condition_words(part) for part in inner if isinstance(part, Mapping)]
            joined = word.join(words)
            parts.append(f"({joined})" if len(words) > 1 and len(condition) > 1 else joined)
    negated = condition.get("not")
    if isinstance(negated, Mapping):
        parts.append(f"not ({condition_words(negated)})")
    if "path" in condition or "op" in condition:
        path, op = str(condition.get("path", "")), str(condition.get("op", "eq"))
        test = f"{_OPERATORS.get(op, op)} {encode(condition.get('value'))}"
        parts.append(f"{path} {'exists' if op == 'exists' else test}")
    return " and ".join(filter(None, parts))


def _model(survey: DirectiveSurvey) -> list[str]:
    written = " ".join(f'{name}="{value}"' for name, value in survey.thread.model.items())
    resolved = f"{survey.model.spec} ({survey.model.reason})" if survey.model.spec else survey.model.reason
    return [one_line(f"<model {written} />" if written else "none is named"), one_line(f"here: {resolved}")]


def _parameter(parameter: Parameter) -> tuple[str, ...]:
    value = "required" if parameter.required else "optional"
    if parameter.default is not None:
        value = f"default {parameter.default}"
    return parameter.name, parameter.type, short(value, 40), short(parameter.description, 80)


def _outputs(survey: DirectiveSurvey) -> list[str]:
    thread = survey.thread
    rows = [
        (output.name, output.type, "required" if output.required else "", short(output.description, 80))
        for output in thread.outputs
    ]
    lines = table(rows) if rows else ["its last words (no outputs are declared)"]
    for name, text in (("success", thread.success), ("failure", thread.failure)):
        if text:
            lines.append(f"on {name} it says: {short(text, 100)}")
    return lines


def _layer(text: ContextText) -> tuple[str, ...]:
    left_out = f"left out: suppressed by {text.suppressed}" if text.suppressed else ""
    return _POSITIONS[text.position], text.item_id, f"from {text.who}", left_out


def _capabilities(survey: DirectiveSurvey) -> list[str]:
    if not survey.capabilities:
        return ["none: neither it nor what it extends has <permissions>, so it is refused"]
    lines = table([_capability(capability) for capability in survey.capabilities])
    if survey.risk_problem:
        lines.append(one_line(f"nothing starts: {survey.risk_problem}"))
    for acknowledgement in survey.composed.acknowledged:
        lines.append(f"acknowledged {one_line(acknowledgement.risk)}: {short(acknowledgement.reason, 100)}")
    return lines


def _capability(capability: Capability) -> tuple[str, ...]:
    tier = capability.tier.value if capability.tier else "no known risk"
    if capability.acknowledged:
        note = "acknowledged" if tier in ("elevated", "unrestricted") else ""
    else:
        note = "NOT acknowledged: it is refused" if tier == "unrestricted" else "not acknowledged: a warning"
    return capability.capability, tier, f"{_shown(capability.path)}:{capability.line}", note


def _limits(survey: DirectiveSurvey) -> list[tuple[str, ...]]:
    effective, declared = survey.limits.as_value(), survey.composed.limits_declared
    return [
        (
            name,
            "no limit" if effective[name] is None else str(effective[name]),
            "the directive" if name in declared else "default",
        )
        for name in DEFAULTS
    ]


def _hook(source: HookSource) -> str:
    hook = source.hook
    when = condition_words(hook.condition)
    actions = []
    for action in hook.actions:
        parameters = ", ".join(f"{name}={short(encode(value), 40)}" for name, value in action.parameters)
        item = f"{action.primary} {action.item_type} {action.item_id}"
        actions.append(item + (f" with {parameters}" if parameters else ""))
    head = f"{hook.id or '(no id)'} on {hook.event}" + (f", if {when}" if when else "")
    return one_line(f"{head}: {'; '.join(actions)}  ({_shown(source.path)}:{source.line})")


def _signatures(files: Sequence[File]) -> list[str]:
    rows = [(file.verdict, file.type, file.id, _shown(file.path)) for file in files]

    def coloured(cell: str, column: int) -> str:
        colour = "green" if cell.strip() in ("signed", "built in") else "red"
        return cell if column else click.style(cell, fg=colour)

    return [*table(rows, style=coloured), *(one_line(file.message) for file in files if file.message)]


def _parameter_data(parameter: Parameter) -> Value:
    return {
        "name": parameter.name,
        "type": parameter.type,
        "required": parameter.required,
        "default": parameter.default,
        "description": parameter.description,
    }


def _file_data(file: File) -> Value:
    return {
        "id": file.id,
        "type": file.type,
        "space": file.space or None,
        "file": file.path or None,
        "verdict": file.verdict,
        "message": file.message or None,
    }


def _hook_data(source: HookSource) -> Value:
    hook = source.hook
    return {
        "id": hook.id,
        "event": hook.event,
        "condition": dict(hook.condition),
        "condition_words": condition_words(hook.condition),
        "actions": [
            {"primary": act.primary, "item_type": act.item_type, "item_id": act.item_id, "params": dict(act.parameters)}
            for act in hook.actions
        ],
        "position": hook.position,
        "file": source.path,
        "line": source.line,
    }


def _shown(path: str) -> str:
    """Return the path relative to the current folder, if it is below that."""
    return (relative_to_here(path) or path) if path else ""
