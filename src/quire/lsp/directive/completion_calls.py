"""Complete the calls in the instructions of a directive: their names, arguments, values and parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.answers import Completion
from quire.lsp.directive.call_words import action_schema, parameters_of
from quire.lsp.directive.calls import CALL, LONGEST, SpelledCall, call_at
from quire.lsp.directive.completion_values import items
from quire.patterns import late_pattern
from quire.plan.built_in_tools import FORK
from quire.plan.vocabulary import ITEM_TYPES, PRIMARIES
from quire.source import Span
from quire.trust.capabilities import canonical

if TYPE_CHECKING:
    from quire.lsp.views import View

_NAME = late_pattern(r"(?<![\w/.])(r|ry|rye|rye_\w*)$")
_VALUE = late_pattern(r"(\w+)\s*=\s*([\"'])([^\"'\n]*)$")
_KEY = late_pattern(r"[{,]\s*([\"']?)(\w*)$")
_PARAMETER_VALUE = late_pattern(r"[\"'](\w+)[\"']\s*:\s*[\"']([^\"'\n]*)$")
_ARGUMENT = late_pattern(r"[(,]\s*(\w*)$")


def call_around(text: str, offset: int, start: int) -> SpelledCall | None:
    """Return the call whose parentheses are around an offset, as far as it is written before that."""
    begin = max(start, offset - LONGEST)
    last = None
    for match in CALL.finditer(text, begin, offset):
        last = match
    if last is None or last.end() >= offset:
        return None
    call = call_at(text, last, offset)
    return None if call.end < offset or not call.levels else call


def in_call(view: View, offset: int, start: int) -> list[Completion] | None:
    """Complete a call; None if no call is being typed."""
    text = view.source.text
    call = call_around(text, offset, start)
    if call is not None:
        return _inside(view, offset, call)
    if (typed := _NAME.search(view.line_before(offset))) is not None:
        return _names(Span(offset - len(typed[1]), offset))
    return None


def _names(span: Span) -> list[Completion]:
    templates = {
        "execute": 'rye_execute(item_type="${1:tool}", item_id="${2}", parameters={${3}})',
        "fetch": 'rye_fetch(query="${1}", scope="${2:knowledge}")',
        "sign": 'rye_sign(item_type="${1:directive}", item_id="${2}")',
    }
    return [
        Completion(
            f"rye_{primary}",
            "function",
            templates[primary],
            snippet=True,
            documentation=action_schema(primary)[0],
            span=span,
        )
        for primary in PRIMARIES
    ]


def _inside(view: View, offset: int, call: SpelledCall) -> list[Completion]:
    text = view.source.text
    typed = text[call.open - 1 : offset]
    depth = call.levels
    if depth == 1 and (value := _VALUE.search(typed)) is not None:
        return _values(view, call, value[1], Span(offset - len(value[3]), offset))
    if depth == 1 and (name := _ARGUMENT.search(typed)) is not None:
        return _arguments(call, Span(offset - len(name[1]), offset), text, offset)
    if depth > 1 and (given := _PARAMETER_VALUE.search(typed)) is not None:
        starts = given[1] == "directive_id"
        return items(view, "directive", Span(offset - len(given[2]), offset)) if starts else []
    if depth > 1 and (key := _KEY.search(typed)) is not None:
        return _keys(view, call, depth, Span(offset - len(key[2]), offset), key[1], text[offset : offset + 1])
    return []


def _arguments(call: SpelledCall, span: Span, text: str, offset: int) -> list[Completion]:
    _, properties, required = action_schema(call.primary)
    taken = {one.name for one in call.arguments if not one.within}
    found = []
    for name, about in properties.items():
        if name in taken:
            continue
        kind = about.get("type") if isinstance(about, dict) else None
        value = "{${1}}" if kind == "object" else "${1}" if kind in ("integer", "boolean") else '"${1}"'
        said = about.get("description") if isinstance(about, dict) else None
        meaning = said if isinstance(said, str) else ""
        order = 3 if name in required else 5
        has_value = text[offset : offset + 1] == "="
        insert = name if has_value else f"{name}={value}"
        found.append(
            Completion(name, "property", insert, snippet=not has_value, documentation=meaning, order=order, span=span)
        )
    return found


def _values(view: View, call: SpelledCall, name: str, span: Span) -> list[Completion]:
    if name in ("item_type", "scope"):
        return [Completion(one, "enum", span=span) for one in ITEM_TYPES]
    if name == "item_id":
        return items(view, call.item_type, span)
    _, properties, _ = action_schema(call.primary)
    about = properties.get(name)
    choices = about.get("enum") if isinstance(about, dict) else None
    words = ["inline", "fork"] if name == "thread" else choices if isinstance(choices, list) else []
    return [Completion(str(one), "enum", span=span) for one in words]


def _keys(view: View, call: SpelledCall, depth: int, span: Span, quote: str, after: str) -> list[Completion]:
    """Return the names of the parameters of the item that is called."""
    item_id, within = call.value("item_id"), "parameters"
    if depth > 2:
        if canonical(item_id) != FORK:
            return []
        found, within = parameters_of(view, "directive", call.value("directive_id", "parameters")), "parameters.inputs"
    else:
        found = parameters_of(view, call.item_type, item_id)
    taken = {one.name for one in call.arguments if one.within == within}
    result = []
    for name, meaning in found.items():
        if name in taken:
            continue
        insert = (name + ("" if after == quote else quote)) if quote else f'"{name}": "${{1}}"'
        result.append(Completion(name, "property", insert, snippet=not quote, documentation=meaning, span=span))
    return result
