"""Read `<hooks>` (actions at an event of the thread, with conditions) and write actions as calls.

The conditions of a hook are side by side (all must hold) or in `<any>`, `<all>` and `<not>`, which may be nested.
"""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

from quire.formats.directive import codes
from quire.formats.directive.syntax import Action, Combined, Condition, DirectiveFindings, Hook, Test, shown
from quire.plan import vocabulary
from quire.plan.vocabulary import PRIMARIES
from quire.safe_regex import can_match
from quire.values import InvalidValue, Value, decode

if TYPE_CHECKING:
    from quire.formats.directive.xml import Element
    from quire.source import Source

_COMBINED = ("any", "all", "not")
TESTS = ("condition", *_COMBINED)


def read_hooks(element: Element, findings: DirectiveFindings) -> tuple[Hook, ...]:
    return tuple(_hook(child, findings) for child in findings.known_children(element, ("hook",)))


def read_action(element: Element, primary: str) -> Action:
    """Read an element whose attributes describe an action. Parameters are in a `value` attribute or in the text."""
    parameters = tuple(
        (child.attributes.get("name", ""), child.attributes.get("value", child.all_text))
        for child in element.children
        if child.tag == "param"
    )
    attributes = tuple((name, value) for name, value in element.attributes.items() if name != "primary")
    return Action(primary, attributes, parameters, element.opening)


def _hook(element: Element, findings: DirectiveFindings) -> Hook:
    event = element.attributes.get("event", "").strip()
    name = element.attributes.get("id", "").strip()
    if not event:
        message = "a hook needs an event"
        findings.report(codes.HOOK, message, element.opening, f"events are {', '.join(vocabulary.SENT_EVENTS)}")
    elif event in vocabulary.HOOK_EVENTS and not vocabulary.HOOK_EVENTS[event].sent:
        message = f"nothing sets off the event {event} here, so the hook never acts"
        help = f"events are {', '.join(vocabulary.SENT_EVENTS)}"
        findings.report(codes.HOOK_WORD, message, element.attribute_span(findings.source, "event"), help)
    else:
        _check_word(event, tuple(vocabulary.HOOK_EVENTS), "event", element, findings)
    position = element.attributes.get("position", "").strip()
    if position:
        _check_word(position, vocabulary.POSITIONS, "position", element, findings)
    tests: list[Test] = []
    actions: list[Action] = []
    nested = False
    for child in findings.known_children(element, (*TESTS, "action")):
        if child.tag in TESTS:
            tests += _test(child, findings)
        else:
            inner = [action for action in child.children if action.tag in PRIMARIES]
            nested = nested or bool(inner)
            actions += [_checked(action, action.tag, findings) for action in inner] or [_action(child, findings)]
            for other in child.children:
                if other.tag not in ("param", *PRIMARIES):
                    findings.stray(other, "action", ("param", *PRIMARIES))
    if not actions:
        findings.report(codes.HOOK, f'the hook "{shown(name)}" has no action', element.opening, _ACTION)
    return Hook(name, event, tuple(tests), tuple(actions), position, nested, element.opening)


def _action(element: Element, findings: DirectiveFindings) -> Action:
    primary = element.attributes.get("primary", "").strip()
    if primary not in PRIMARIES:
        instead = primary and f", not {shown(primary)}"
        message = f'the hook\'s action needs primary="execute", "fetch" or "sign"{instead}'
        findings.report(codes.HOOK, message, element.opening, _ACTION)
    return _checked(element, primary, findings)


def _checked(element: Element, primary: str, findings: DirectiveFindings) -> Action:
    action = read_action(element, primary)
    item_type = action.attribute("item_type")
    if item_type and "${" not in item_type:
        _check_word(item_type, vocabulary.ITEM_TYPES, "item_type", element, findings)
    if action.attribute("item_id") == vocabulary.CONTROL:
        _control(element, action, findings)
    return action


def _control(element: Element, action: Action, findings: DirectiveFindings) -> None:
    """Report a control action that decides nothing. A decision that is filled in at the event cannot be checked."""
    decision = dict([*action.attributes, *action.parameters]).get("action")
    if decision is None:
        message = 'the control action decides nothing: it has no parameter "action"'
        findings.report(codes.HOOK, message, element.opening, 'write <param name="action">retry</param>')
    elif decision not in vocabulary.DECISIONS and "${" not in decision:
        span = element.attribute_span(findings.source, "action")
        for child in element.children:
            if child.tag == "param" and child.attributes.get("name") == "action":
                by_attribute = "value" in child.attributes
                source = findings.source
                span = child.attribute_span(source, "value") if by_attribute else child.text_span(source)
        message = f'the control action "{shown(decision)}" is not known, so the hook decides nothing'
        findings.unknown_word(codes.HOOK_WORD, message, decision, vocabulary.DECISIONS, span)


def _test(element: Element, findings: DirectiveFindings) -> list[Test]:
    """Read a condition. An empty list is a condition without content: it always holds."""
    inner = [test for child in findings.known_children(element, TESTS) for test in _test(child, findings)]
    if element.tag in _COMBINED:
        return [Combined(element.tag, tuple(inner), element.opening)]
    path, op = element.attributes.get("path", "").strip(), element.attributes.get("op", "").strip()
    if not path and not op:
        return inner
    if not path or not op:
        findings.report(codes.HOOK, "a condition needs a path and an op", element.opening, _CONDITION)
    else:
        _check_word(op, vocabulary.OPERATORS, "op", element, findings)
    text = element.attributes.get("value")
    if text is None:
        text = element.own_text or None
    if op == "regex" and text is not None and not can_match(text):
        message = f'the pattern "{shown(text)}" is not valid RE2, so the hook never acts'
        findings.report(codes.HOOK_WORD, message, element.opening, "patterns have no lookaround and no back references")
    value = None if text is None else _value(text, op)
    if op == "in" and not isinstance(value, list):
        what = f'the value "{shown(text)}" is not' if text else "a missing value is not"
        message = f"{what} a list in JSON, so the hook never acts"
        findings.report(codes.HOOK_WORD, message, element.opening, """write value='["a", "b"]'""")
    return [Condition(path, op, value, element.opening), *inner]


def _check_word(word: str, known: tuple[str, ...], what: str, element: Element, findings: DirectiveFindings) -> None:
    if word not in known:
        message = f'the {what} "{shown(word)}" is not known, so the hook never acts'
        findings.unknown_word(codes.HOOK_WORD, message, word, known, element.attribute_span(findings.source, what))


def _value(text: str, op: str) -> Value:
    """Return a boolean or a number if the text is one; for `in` also a JSON list; else the text."""
    word = text.strip()
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    if op == "in" and word.startswith("["):
        try:
            return decode(word)
        except InvalidValue:
            return text
    value = vocabulary.number(word)
    return text if value is None else value


_ACTION = 'write <action primary="execute" item_type="directive" item_id="…" />'
_CONDITION = 'write <condition path="cost.spend" op="gte" value="0.9" />'


_INDENT = 200
_FIRST = ("query", "scope", "item_type", "item_id")


def read_actions(element: Element) -> list[Action]:
    """Return every action in an element or below it, in the order of the file."""
    return [read_action(action, action.tag) for action in (element, *element.iter()) if action.tag in PRIMARIES]


def readable(element: Element, source: Source) -> str:
    """Return a process inside the fence as the model reads it: the same structure without the common indentation, with
    action elements written as calls."""
    column = source.position(element.start).column - 1
    before = source.text[element.start - column : element.start] if column <= _INDENT else "x"
    text = _render(element, source)
    return textwrap.dedent((before if not before.strip() else "") + text).strip()


def call(action: Action) -> str:
    """Write an action as a call: `rye_execute(item_type="tool", item_id="rye/bash", parameters={"command": "ls"})`."""
    values = dict(action.attributes)
    names = [name for name in _FIRST if name in values] + [name for name in values if name not in _FIRST]
    arguments = [f"{name}={json.dumps(values[name], ensure_ascii=False)}" for name in names]
    if action.parameters:
        arguments.append(f"parameters={json.dumps(dict(action.parameters), ensure_ascii=False)}")
    return f"rye_{action.primary}({', '.join(arguments)})"


def _render(element: Element, source: Source) -> str:
    if element.tag in PRIMARIES:
        beside = element.own_text
        return f"`{call(read_action(element, element.tag))}`" + (f" {beside}" if beside else "")
    if element.tag in vocabulary.OPAQUE or not element.parts:
        return element.raw(source)
    inside = "".join(part if isinstance(part, str) else _render(part, source) for part in element.parts)
    return f"{source.text[element.start : element.inner_start]}{inside}</{element.tag}>"
