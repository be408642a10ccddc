"""A directive as JSON, as `quire parse` prints it, with the names of the file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic, Severity
from quire.formats.directive.knowledge import read_knowledge
from quire.formats.directive.lower import condition
from quire.formats.directive.parse import parse
from quire.plan.vocabulary import CONTEXT, number_or_text

if TYPE_CHECKING:
    from quire.formats.directive import syntax
    from quire.formats.directive.syntax import ParseResult
    from quire.source import Source
    from quire.values import Value


def fields(reading: ParseResult) -> dict[str, Value]:
    """Return the fields that are present. The preamble is the text before the fence, including the signature line."""
    directive = reading.partial
    before = reading.source.text[: directive.fence.start].strip() if directive.fence.end else directive.preamble
    found: dict[str, Value] = {"preamble": before, "body": directive.body}
    for extra in directive.extras:
        if extra.text:
            found.setdefault(extra.name, extra.text)
    for name in ("name", "version", "extends", "description", "category", "author"):
        text: syntax.Text | None = getattr(directive, name)
        if text is not None:
            found[name] = text.text
    if directive.model is not None:
        found["model"] = {name: value.text for name, value in directive.model}
    if directive.limits is not None:
        found["limits"] = {name: number_or_text(value.text) for name, value in directive.limits}
    if directive.cost is not None:
        found["cost"] = _cost(directive.cost)
    if directive.permissions is not None:
        found["capabilities"] = [grant.capability for grant in directive.permissions.grants]
        if directive.permissions.acknowledged:
            found["acknowledged_risks"] = [
                {"risk": one.risk, "reason": one.reason} for one in directive.permissions.acknowledged
            ]
    if directive.inputs:
        found["inputs"] = [_parameter(one) for one in directive.inputs]
    if directive.outputs:
        found["outputs"] = [_parameter(one) for one in directive.outputs]
    closing: dict[str, Value] = {"success": directive.success, "failure": directive.failure}
    found |= {name: text for name, text in closing.items() if text}
    if directive.context is not None and directive.context.items:
        items = directive.context.items
        found["context"] = {place: [item.text for at, item in items if at == place] for place in CONTEXT}
    if directive.hooks:
        found["hooks"] = [_hook(one) for one in directive.hooks]
    if directive.actions:
        found["actions"] = [_action(one) for one in directive.actions]
    sections: dict[str, Value] = {one.tag: one.text for one in directive.sections if one.tag not in found}
    return found | sections


def directive_tree(source: Source) -> dict[str, Value]:
    """Return what `quire parse` prints: the fields, and all errors and warnings of the reader."""
    reading = parse(source)
    return _tree(fields(reading), source, reading.diagnostics)


def knowledge_tree(source: Source) -> dict[str, Value]:
    """Return what `quire parse` prints for a knowledge file."""
    knowledge = read_knowledge(source)
    return _tree({**knowledge.metadata, "body": knowledge.body}, source, knowledge.diagnostics)


def _tree(fields: dict[str, Value], source: Source, found: tuple[Diagnostic, ...]) -> dict[str, Value]:
    said: dict[str, list[Value]] = {"warnings": [], "errors": []}
    for one in found:
        at = source.position(one.span.start)
        if one.severity in (Severity.ERROR, Severity.WARNING):
            line: dict[str, Value] = {"code": one.code.id, "message": one.message, "line": at.line, "column": at.column}
            said[f"{one.severity.value}s"].append(line)
    return {"valid": not said["errors"], "fields": fields, **said}


def _cost(cost: syntax.Cost) -> dict[str, Value]:
    found: dict[str, Value] = {}
    context: dict[str, Value] = {name: number_or_text(value.text) for name, value in cost.context}
    if cost.tokens is not None:
        context["max_tokens"] = number_or_text(cost.tokens.text)
    if context:
        found["context"] = context
    if cost.duration is not None:
        found["duration"] = number_or_text(cost.duration.text)
    spend: dict[str, Value] = {}
    if cost.currency is not None:
        spend["currency"] = cost.currency.text
    if cost.spend is not None:
        spend["amount"] = number_or_text(cost.spend.text)
    return found | ({"spend": spend} if spend else {})


def _parameter(parameter: syntax.Parameter) -> dict[str, Value]:
    found: dict[str, Value] = {"name": parameter.name, "type": parameter.type, "required": parameter.required}
    if parameter.default is not None:
        found["default"] = parameter.default
    if parameter.description:
        found["description"] = parameter.description
    return found


def _hook(hook: syntax.Hook) -> dict[str, Value]:
    found: dict[str, Value] = {"id": hook.id, "event": hook.event}
    if hook.tests:
        found["condition"] = condition(hook.tests)
    if hook.position:
        found["position"] = hook.position
    actions: list[Value] = [_action(one) for one in hook.actions]
    if actions:
        found["action"] = actions if len(actions) > 1 else actions[0]
    return found


def _action(action: syntax.Action) -> dict[str, Value]:
    return {"primary": action.primary} | dict(action.attributes) | _parameters(action.parameters)


def _parameters(given: Iterable[tuple[str, str]]) -> dict[str, Value]:
    parameters: dict[str, Value] = dict(given)
    return {"params": parameters} if parameters else {}
