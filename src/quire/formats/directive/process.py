"""A process inside the fence, as the model gets to read it: the same structure, with action elements written as calls.

<fetch scope="directive" query="{input:name}" />   becomes   `rye_fetch(query="{input:name}", scope="directive")`
"""

from __future__ import annotations

import json
import textwrap

from quire.formats.directive.hooks import read_action
from quire.formats.directive.syntax import Action
from quire.formats.directive.xml import Element
from quire.plan.vocabulary import OPAQUE, PRIMARIES
from quire.source import Source

_INDENT = 200
_FIRST = ("query", "scope", "item_type", "item_id")


def read_actions(element: Element) -> list[Action]:
    """Every action in an element or below it, in the order of the file."""
    return [read_action(one, one.tag) for one in (element, *element.iter()) if one.tag in PRIMARIES]


def readable(element: Element, source: Source) -> str:
    """The element as text. Its lines lose the indentation that they have in common."""
    column = source.position(element.start).column - 1
    before = source.text[element.start - column : element.start] if column <= _INDENT else "x"
    text = _render(element, source)
    return textwrap.dedent((before if not before.strip() else "") + text).strip()


def call(action: Action) -> str:
    """`rye_execute(item_type="tool", item_id="rye/bash", parameters={"command": "ls"})`"""
    given = dict(action.attributes)
    names = [name for name in _FIRST if name in given] + [name for name in given if name not in _FIRST]
    arguments = [f"{name}={_quoted(given[name])}" for name in names]
    if action.parameters:
        arguments.append(f"parameters={json.dumps(dict(action.parameters), ensure_ascii=False)}")
    return f"rye_{action.primary}({', '.join(arguments)})"


def _render(element: Element, source: Source) -> str:
    if element.tag in PRIMARIES:
        beside = element.own_text
        return f"`{call(read_action(element, element.tag))}`" + (f" {beside}" if beside else "")
    if element.tag in OPAQUE or not element.parts:
        return element.raw(source)
    inside = "".join(part if isinstance(part, str) else _render(part, source) for part in element.parts)
    return f"{source.text[element.start : element.inner_start]}{inside}</{element.tag}>"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
