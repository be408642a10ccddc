"""Write a syntax tree as Markdown, and as the JSON that `quire show --tree` prints, with the names of the file.

Parsing the Markdown gives an equal tree, apart from positions. Everything with a meaning is written in one canonical
form; the process and unknown elements stay as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic, Severity
from quire.formats.directive import syntax
from quire.formats.directive.knowledge import read_knowledge
from quire.formats.directive.lower import condition
from quire.formats.directive.parse import parse
from quire.formats.directive.syntax import Directive, text_of
from quire.plan.vocabulary import CONTEXT, OPAQUE, PRIMARIES, number_or_text
from quire.values import text_or_json, without_nulls

if TYPE_CHECKING:
    from quire.formats.directive.syntax import ParseResult
    from quire.source import Source
    from quire.values import Value


_TAG = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_TEXTS = ("description", "category", "author")
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
        yield from _block("inputs", [_parameter("input", parameter) for parameter in directive.inputs])
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
    for name in _TEXTS:
        text: syntax.Text | None = getattr(directive, name)
        if text is not None:
            yield _element(name, text.text)
    for name in ("model", "limits"):
        attributes: syntax.Attributes | None = getattr(directive, name)
        if attributes is not None:
            yield _element(name, "", ((key, value.text) for key, value in attributes))
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


def _cost(cost: syntax.Cost) -> Iterable[str]:
    if cost.context or cost.tokens:
        attributes = ((key, value.text) for key, value in cost.context)
        yield _element("context", text_of(cost.tokens), attributes)
    if cost.duration:
        yield _element("duration", cost.duration.text)
    if cost.spend or cost.currency:
        currency = [("currency", cost.currency.text)] if cost.currency else []
        yield _element("spend", text_of(cost.spend), currency)


def _permissions(permissions: syntax.Permissions) -> Iterable[str]:
    written = [(_primary(grant), _grant(grant)) for grant in permissions.grants]
    # Adjacent texts would become one text, so each text that is not an element gets a primary of its own.
    for (primary, is_element), run in groupby(written, key=lambda line: (line[0], line[1].startswith("<"))):
        lines = [text for _, text in run]
        if not primary:
            yield from lines
        elif is_element:
            yield from _block(primary, lines, 0)
        else:
            yield from (f"<{primary}>{text}</{primary}>" for text in lines)
    for acknowledge in permissions.acknowledged:
        yield _element("acknowledge", acknowledge.reason, [("risk", acknowledge.risk)])


def _primary(grant: syntax.Grant) -> str:
    word = grant.capability.split(".")[1]
    return word if word in PRIMARIES else ""


def _grant(grant: syntax.Grant) -> str:
    primary = _primary(grant)
    rest = grant.capability.removeprefix(f"rye.{primary}." if primary else "rye.")
    if not primary:
        return _escape(rest)
    type, dot, pattern = rest.partition(".")
    return _element(type, pattern) if dot and pattern and _TAG.fullmatch(type) else _escape(rest)


def _hook(hook: syntax.Hook) -> Iterable[str]:
    attributes = {"id": hook.id, "event": hook.event, "position": hook.position}
    lines = [line for test in hook.tests for line in _test(test)]
    actions = [line for action in hook.actions for line in _action(action, nested=hook.nested)]
    lines += _block("action", actions, 0) if hook.nested else actions
    yield from _block("hook", lines, 0, ((name, value) for name, value in attributes.items() if value))


def _test(test: syntax.Test) -> Iterable[str]:
    if isinstance(test, syntax.Combined):
        yield from _block(test.kind, [line for part in test.parts for line in _test(part)], 0)
        return
    value = [] if test.value is None else [("value", text_or_json(test.value))]
    yield _element("condition", "", [("path", test.path), ("op", test.op), *value])


def _action(action: syntax.Action, *, nested: bool) -> Iterable[str]:
    primary = [] if nested else [("primary", action.primary)] if action.primary else []
    params = [_element("param", "", [("name", name), ("value", value)]) for name, value in action.parameters]
    yield from _block(action.primary if nested else "action", params, 0, (*primary, *action.attributes))


def _parameter(tag: str, parameter: syntax.Parameter) -> str:
    if parameter.keyed and parameter.name in OPAQUE and parameter.description:
        return f"<{parameter.name}>{parameter.description}</{parameter.name}>"
    if parameter.keyed:
        return _element(parameter.name, parameter.description)
    attributes = [("name", parameter.name)] if parameter.name else []
    attributes.append(("type", parameter.type))
    if parameter.required:
        attributes.append(("required", "true"))
    if parameter.default is not None:
        attributes.append(("default", parameter.default))
    return _element(tag, parameter.description, attributes)


def _block(tag: str, lines: list[str], indent: int = 2, attributes: Iterable[tuple[str, str]] = ()) -> list[str]:
    """Return the lines of an element.

    Lines inside a text are never indented: the content of a raw element must not change.
    """
    space = " " * indent
    if not lines:
        return [f"{space}<{tag}{_attributes(attributes)} />"]
    return [f"{space}<{tag}{_attributes(attributes)}>", *(f"{space}  {line}" for line in lines), f"{space}</{tag}>"]


def _element(tag: str, text: str, attributes: Iterable[tuple[str, str]] = ()) -> str:
    opening = f"{tag}{_attributes(attributes)}"
    return f"<{opening}>{_escape(text)}</{tag}>" if text else f"<{opening} />"


def _attributes(attributes: Iterable[tuple[str, str]]) -> str:
    marks = str.maketrans({'"': "&quot;", "\n": "&#10;", "\t": "&#9;"})
    return "".join(f' {name}="{_escape(value).translate(marks)}"' for name, value in attributes)


def _escape(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A line of backticks would close the fence.
    return _BACKTICKS.sub("&#96;``", escaped)


def fields(reading: ParseResult) -> dict[str, Value]:
    """Return the fields that are present. The preamble is the text before the fence, including the signature line."""
    directive = reading.partial
    before = reading.source.text[: directive.fence.start].strip() if directive.fence.end else directive.preamble
    present: dict[str, Value] = {"preamble": before, "body": directive.body}
    for extra in directive.extras:
        if extra.text:
            present.setdefault(extra.name, extra.text)
    texts = {name: getattr(directive, name) for name in ("name", "version", "extends", *_TEXTS)}
    permissions = directive.permissions
    risks = permissions.acknowledged if permissions else ()
    items = directive.context.items if directive.context else ()
    present |= without_nulls(
        {
            **{name: None if text is None else text.text for name, text in texts.items()},
            "model": None if directive.model is None else {name: value.text for name, value in directive.model},
            "limits": None if directive.limits is None else _numbers(directive.limits),
            "cost": None if directive.cost is None else _cost_json(directive.cost),
            "capabilities": None if permissions is None else [grant.capability for grant in permissions.grants],
            "acknowledged_risks": [{"risk": risk.risk, "reason": risk.reason} for risk in risks] or None,
            "inputs": [_parameter_json(parameter) for parameter in directive.inputs] or None,
            "outputs": [_parameter_json(output) for output in directive.outputs] or None,
            "success": directive.success or None,
            "failure": directive.failure or None,
            "context": {place: [item.text for at, item in items if at == place] for place in CONTEXT}
            if items
            else None,
            "hooks": [_hook_json(hook) for hook in directive.hooks] or None,
            "actions": [_action_json(action) for action in directive.actions] or None,
        }
    )
    return present | {section.tag: section.text for section in directive.sections if section.tag not in present}


def directive_tree(source: Source) -> dict[str, Value]:
    """Return what `quire show --tree` prints: the fields, and all errors and warnings of the reader."""
    reading = parse(source)
    return _tree(fields(reading), source, reading.diagnostics)


def knowledge_tree(source: Source) -> dict[str, Value]:
    """Return what `quire show --tree` prints for a knowledge file."""
    knowledge = read_knowledge(source)
    return _tree({**knowledge.metadata, "body": knowledge.body}, source, knowledge.diagnostics)


def _tree(fields: dict[str, Value], source: Source, findings: tuple[Diagnostic, ...]) -> dict[str, Value]:
    lists: dict[str, list[Value]] = {"warnings": [], "errors": []}
    for finding in findings:
        if finding.severity in (Severity.ERROR, Severity.WARNING):
            at = source.position(finding.span.start)
            place: dict[str, Value] = {"line": at.line, "column": at.column}
            lists[f"{finding.severity.value}s"].append({"code": finding.code.id, "message": finding.message, **place})
    return {"valid": not lists["errors"], "fields": fields, **lists}


def _numbers(attributes: syntax.Attributes) -> dict[str, Value]:
    return {name: number_or_text(value.text) for name, value in attributes}


def _cost_json(cost: syntax.Cost) -> dict[str, Value]:
    tokens, duration, amount = (
        None if text is None else number_or_text(text.text) for text in (cost.tokens, cost.duration, cost.spend)
    )
    context = without_nulls({**_numbers(cost.context), "max_tokens": tokens})
    spend = without_nulls({"currency": text_of(cost.currency) if cost.currency else None, "amount": amount})
    return without_nulls({"context": context or None, "duration": duration, "spend": spend or None})


def _parameter_json(parameter: syntax.Parameter) -> dict[str, Value]:
    return without_nulls(
        {
            "name": parameter.name,
            "type": parameter.type,
            "required": parameter.required,
            "default": parameter.default,
            "description": parameter.description or None,
        }
    )


def _hook_json(hook: syntax.Hook) -> dict[str, Value]:
    actions: list[Value] = [_action_json(action) for action in hook.actions]
    return without_nulls(
        {
            "id": hook.id,
            "event": hook.event,
            "condition": condition(hook.tests) if hook.tests else None,
            "position": hook.position or None,
            "action": actions if len(actions) > 1 else actions[0] if actions else None,
        }
    )


def _action_json(action: syntax.Action) -> dict[str, Value]:
    parameters: dict[str, Value] = dict(action.parameters)
    return without_nulls({"primary": action.primary, **dict(action.attributes), "params": parameters or None})
