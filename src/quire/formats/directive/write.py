"""Write a syntax tree as Markdown. Parsing the output gives an equal tree, apart from positions.

Everything with a meaning is written in one canonical form; the process and unknown elements stay as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

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
from quire.plan.vocabulary import OPAQUE, PRIMARIES
from quire.values import text_or_json

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
    outputs = [_parameter("output", one) for one in directive.outputs]
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
    written = [(_primary(one), _grant(one)) for one in permissions.grants]
    # Adjacent texts would become one text, so each text that is not an element gets a primary of its own.
    for (primary, is_element), run in groupby(written, key=lambda one: (one[0], one[1].startswith("<"))):
        lines = [text for _, text in run]
        if not primary:
            yield from lines
        elif is_element:
            yield from _block(primary, lines, 0)
        else:
            yield from (f"<{primary}>{text}</{primary}>" for text in lines)
    for one in permissions.acknowledged:
        yield _element("acknowledge", one.reason, [("risk", one.risk)])


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
    actions = [line for one in hook.actions for line in _action(one, nested=hook.nested)]
    lines += _block("action", actions, 0) if hook.nested else actions
    yield from _block("hook", lines, 0, ((name, value) for name, value in given.items() if value))


def _test(test: Test) -> Iterable[str]:
    if isinstance(test, Combined):
        yield from _block(test.kind, [line for one in test.parts for line in _test(one)], 0)
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
