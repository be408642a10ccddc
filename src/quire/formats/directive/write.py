"""Write a syntax tree as Markdown. Parsing the output gives an equal tree, apart from positions.

Everything with a meaning is written in one canonical form; the process and unknown elements stay as they were.

A directive as JSON, as `quire parse` prints it, with the names of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic, Severity
from quire.formats.directive.knowledge import read_knowledge
from quire.formats.directive.lower import condition
from quire.formats.directive.parse import parse
from quire.formats.directive.syntax import (
    Action,
    Attributes,
    Combined,
    Condition,
    Cost,
    Directive,
    Grant,
    Hook,
    Parameter,
    Permissions,
    Test,
    Text,
)
from quire.plan.vocabulary import CONTEXT, OPAQUE, PRIMARIES, number_or_text
from quire.values import text_or_json

if TYPE_CHECKING:
    from quire.formats.directive import syntax
    from quire.formats.directive.syntax import ParseResult
    from quire.source import Source
    from quire.values import Value


_TAG = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_BACKTICKS = re.compile(r"^```", re.MULTILINE)


def write(directive: Directive) -> str:
    xml = "\n".join(_root(directive))
    parts = [directive.preamble, f"```xml\n{xml}\n```", directive.body]
    text = "\n\n".join(part for part in parts if part) + "\n"
    return f"{directive.signature}\n{text}" if directive.signature else text


def _root(directive: Directive) -> Iterable[str]:
    named = {"name": directive.name, "version": directive.version, "extends": directive.extends}
    yield f"<directive{_attributes((name, text.text) for name, text in named.items() if text)}>"
    metadata = list(_metadata(directive))
    if metadata:
        yield from _block("metadata", metadata)
    if directive.inputs:
        yield ""
        yield from _block("inputs", [_parameter("input", one) for one in directive.inputs])
    closing = {"success": directive.success, "failure": directive.failure}
    outputs = [_parameter("output", output) for output in directive.outputs]
    outputs += [_element(name, text) for name, text in closing.items() if text]
    if outputs:
        yield ""
        yield from _block("outputs", outputs)
    for section in directive.sections:
        yield ""
        yield f"  {section.raw}"
    yield "</directive>"


def _metadata(directive: Directive) -> Iterable[str]:
    for name in ("description", "category", "author"):
        text: Text | None = getattr(directive, name)
        if text is not None:
            yield _element(name, text.text)
    for name in ("model", "limits"):
        given: Attributes | None = getattr(directive, name)
        if given is not None:
            yield _element(name, "", ((key, value.text) for key, value in given))
    if directive.cost is not None:
        yield from _block("cost", list(_cost(directive.cost)), 0)
    if directive.context is not None:
        yield from _block("context", [_element(place, item.text) for place, item in directive.context.items], 0)
    if directive.permissions is not None:
        yield from _block("permissions", list(_permissions(directive.permissions)), 0)
    if directive.hooks:
        yield from _block("hooks", [line for hook in directive.hooks for line in _hook(hook)], 0)
    for extra in directive.extras:
        yield extra.raw


def _cost(cost: Cost) -> Iterable[str]:
    if cost.context or cost.tokens:
        given = ((key, value.text) for key, value in cost.context)
        yield _element("context", cost.tokens.text if cost.tokens else "", given)
    if cost.duration:
        yield _element("duration", cost.duration.text)
    if cost.spend or cost.currency:
        currency = [("currency", cost.currency.text)] if cost.currency else []
        yield _element("spend", cost.spend.text if cost.spend else "", currency)


def _permissions(permissions: Permissions) -> Iterable[str]:
    written = [(_primary(grant), _grant(grant)) for grant in permissions.grants]
    # Adjacent texts would become one text, so each text that is not an element gets a primary of its own.
    for (primary, is_element), run in groupby(written, key=lambda one: (one[0], one[1].startswith("<"))):
        lines = [text for _, text in run]
        if not primary:
            yield from lines
        elif is_element:
            yield from _block(primary, lines, 0)
        else:
            yield from (f"<{primary}>{text}</{primary}>" for text in lines)
    for acknowledge in permissions.acknowledged:
        yield _element("acknowledge", acknowledge.reason, [("risk", acknowledge.risk)])


def _primary(grant: Grant) -> str:
    word = grant.capability.split(".")[1]
    return word if word in PRIMARIES else ""


def _grant(grant: Grant) -> str:
    primary = _primary(grant)
    rest = grant.capability.removeprefix(f"rye.{primary}." if primary else "rye.")
    if not primary:
        return _escape(rest)
    type, dot, pattern = rest.partition(".")
    return _element(type, pattern) if dot and pattern and _TAG.fullmatch(type) else _escape(rest)


def _hook(hook: Hook) -> Iterable[str]:
    given = {"id": hook.id, "event": hook.event, "position": hook.position}
    lines = [line for test in hook.tests for line in _test(test)]
    actions = [line for action in hook.actions for line in _action(action, nested=hook.nested)]
    lines += _block("action", actions, 0) if hook.nested else actions
    yield from _block("hook", lines, 0, ((name, value) for name, value in given.items() if value))


def _test(test: Test) -> Iterable[str]:
    if isinstance(test, Combined):
        yield from _block(test.kind, [line for part in test.parts for line in _test(part)], 0)
        return
    yield _element("condition", "", _condition(test))


def _condition(test: Condition) -> Iterable[tuple[str, str]]:
    yield "path", test.path
    yield "op", test.op
    if test.value is not None:
        yield "value", text_or_json(test.value)


def _action(action: Action, *, nested: bool) -> Iterable[str]:
    primary = [] if nested else [("primary", action.primary)] if action.primary else []
    params = [_element("param", "", [("name", name), ("value", value)]) for name, value in action.parameters]
    yield from _block(action.primary if nested else "action", params, 0, (*primary, *action.attributes))


def _parameter(tag: str, parameter: Parameter) -> str:
    if parameter.keyed and parameter.name in OPAQUE and parameter.description:
        return f"<{parameter.name}>{parameter.description}</{parameter.name}>"
    if parameter.keyed:
        return _element(parameter.name, parameter.description)
    given = [("name", parameter.name)] if parameter.name else []
    given.append(("type", parameter.type))
    if parameter.required:
        given.append(("required", "true"))
    if parameter.default is not None:
        given.append(("default", parameter.default))
    return _element(tag, parameter.description, given)


def _block(tag: str, lines: list[str], indent: int = 2, given: Iterable[tuple[str, str]] = ()) -> list[str]:
    """Return the lines of an element.

    Lines inside a text are never indented: the content of a raw element must not change.
    """
    space = " " * indent
    if not lines:
        return [f"{space}<{tag}{_attributes(given)} />"]
    return [f"{space}<{tag}{_attributes(given)}>", *(f"{space}  {line}" for line in lines), f"{space}</{tag}>"]


def _element(tag: str, text: str, given: Iterable[tuple[str, str]] = ()) -> str:
    opening = f"{tag}{_attributes(given)}"
    return f"<{opening}>{_escape(text)}</{tag}>" if text else f"<{opening} />"


def _attributes(given: Iterable[tuple[str, str]]) -> str:
    return "".join(f' {name}="{_escape_value(value)}"' for name, value in given)


def _escape(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A line of backticks would close the fence.
    return _BACKTICKS.sub("&#96;``", escaped)


def _escape_value(text: str) -> str:
    return _escape(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


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
        found["cost"] = _cost_json(directive.cost)
    if directive.permissions is not None:
        found["capabilities"] = [grant.capability for grant in directive.permissions.grants]
        if directive.permissions.acknowledged:
            found["acknowledged_risks"] = [
                {"risk": acknowledge.risk, "reason": acknowledge.reason}
                for acknowledge in directive.permissions.acknowledged
            ]
    if directive.inputs:
        found["inputs"] = [_parameter_json(one) for one in directive.inputs]
    if directive.outputs:
        found["outputs"] = [_parameter_json(output) for output in directive.outputs]
    closing: dict[str, Value] = {"success": directive.success, "failure": directive.failure}
    found |= {name: text for name, text in closing.items() if text}
    if directive.context is not None and directive.context.items:
        items = directive.context.items
        found["context"] = {place: [item.text for at, item in items if at == place] for place in CONTEXT}
    if directive.hooks:
        found["hooks"] = [_hook_json(hook) for hook in directive.hooks]
    if directive.actions:
        found["actions"] = [_action_json(action) for action in directive.actions]
    sections: dict[str, Value] = {
        section.tag: section.text for section in directive.sections if section.tag not in found
    }
    return found | sections


def directive_tree(source: Source) -> dict[str, Value]:
    """Return what `quire parse` prints: the fields, and all errors and warnings of the reader."""
    reading = parse(source)
    return _tree(fields(reading), source, reading.diagnostics)


def knowledge_tree(source: Source) -> dict[str, Value]:
    """Return what `quire parse` prints for a knowledge file."""
    knowledge = read_knowledge(source)
    return _tree({**knowledge.metadata, "body": knowledge.body}, source, knowledge.diagnostics)


def _tree(fields: dict[str, Value], source: Source, findings: tuple[Diagnostic, ...]) -> dict[str, Value]:
    said: dict[str, list[Value]] = {"warnings": [], "errors": []}
    for finding in findings:
        at = source.position(finding.span.start)
        if finding.severity in (Severity.ERROR, Severity.WARNING):
            line: dict[str, Value] = {
                "code": finding.code.id,
                "message": finding.message,
                "line": at.line,
                "column": at.column,
            }
            said[f"{finding.severity.value}s"].append(line)
    return {"valid": not said["errors"], "fields": fields, **said}


def _cost_json(cost: syntax.Cost) -> dict[str, Value]:
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


def _parameter_json(parameter: syntax.Parameter) -> dict[str, Value]:
    found: dict[str, Value] = {"name": parameter.name, "type": parameter.type, "required": parameter.required}
    if parameter.default is not None:
        found["default"] = parameter.default
    if parameter.description:
        found["description"] = parameter.description
    return found


def _hook_json(hook: syntax.Hook) -> dict[str, Value]:
    found: dict[str, Value] = {"id": hook.id, "event": hook.event}
    if hook.tests:
        found["condition"] = condition(hook.tests)
    if hook.position:
        found["position"] = hook.position
    actions: list[Value] = [_action_json(action) for action in hook.actions]
    if actions:
        found["action"] = actions if len(actions) > 1 else actions[0]
    return found


def _action_json(action: syntax.Action) -> dict[str, Value]:
    return {"primary": action.primary} | dict(action.attributes) | _parameters(action.parameters)


def _parameters(given: Iterable[tuple[str, str]]) -> dict[str, Value]:
    parameters: dict[str, Value] = dict(given)
    return {"params": parameters} if parameters else {}
