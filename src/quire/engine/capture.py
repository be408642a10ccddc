"""From the text that a step gave to the value that it is kept as.

Nothing here can fail a step: what does not fit is kept whole and warned about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from quire.engine.inputs import is_number
from quire.engine.json_objects import FoundObject, json_objects, open_object
from quire.formats.playbook import fences
from quire.plan.nodes import SEMANTICS_VERSION, Capture
from quire.values import InvalidValue, Value, decode, encode

_FENCE_BEFORE = re.compile(r"(^|\n)[ \t]*```[A-Za-z]*[ \t]*\n[ \t\n]*\Z")
_FENCE_BEGUN = re.compile(r"(?:^|\n)[ \t]*(?:`{1,2}|```[A-Za-z]*[ \t]*(?:\n[ \t\n]*)?)\Z")
_spelled = json.JSONDecoder(strict=False, parse_float=str).raw_decode
_FENCE_AFTER = re.compile(r"[ \t\n]*\n?[ \t]*```[ \t]*(?=\n|\Z)")


@dataclass(frozen=True, slots=True)
class Captured:
    """`displayed` is the text without the extracted JSON; `warning` says why the value is not what was asked for."""

    value: str
    displayed: str
    warning: str = ""


def capture_text(capture: Capture, text: str, rules: int = SEMANTICS_VERSION, *, cut: bool = False) -> Captured:
    """`cut` says that the text broke off: the object that it was to end with is not in it."""
    displayed, value, warning = text, text, ""
    if capture.field is not None:
        found = None if cut else find_field(text, capture.field)
        if found is None:
            warning = f'the reply holds no JSON object with "{capture.field}": all of it is kept as {capture.name}'
        else:
            place, field_value = found
            value = field_value if isinstance(field_value, str) else encode(field_value)
            if isinstance(field_value, float) and rules > 1:
                value = _as_written(text, place, capture.field)
            displayed = _without(text, place)
    if capture.type is not None:
        value = value.strip()
        if capture.type == "json" and rules > 1 and not _is_json(value):
            value = _json_in_fence(value)
        warning = warning or _misfit(capture, value)
    return Captured(value, displayed, warning)


def find_field(text: str, field: str) -> tuple[FoundObject, Value] | None:
    """The last JSON object of the text that has the field; objects inside others count only when no other does."""
    objects = json_objects(text)
    for place in reversed(objects):
        if field in place.value:
            return place, place.value[field]
    for place in reversed(objects):
        inner = _inside(place.value, field)
        if inner is not None:
            return place, inner[0]
    return None


def displayed_so_far(text: str, field: str) -> str:
    """What people are shown of a reply that is still being written: not the object with the field, nor what may be the
    beginning of it. What turns out to be text is shown then."""
    begun = open_object(text)
    text = _without_begun_fence(text if begun is None else text[:begun])
    found = find_field(text, field)
    return _without_begun_fence(_without(text, found[0])) if found else text


def _without_begun_fence(text: str) -> str:
    end = text[-200:]
    begun = _FENCE_BEGUN.search(end)
    return text[: len(text) - len(end) + begun.start()] if begun else text


def _as_written(text: str, place: FoundObject, field: str) -> str:
    """The number of a field as the reply spells it: 1.10 is not 1.1 where it is a version."""
    spelled: dict[str, Value] = _spelled(text, place.start)[0]
    if field in spelled:
        return str(spelled[field])
    inner = _inside(spelled, field)
    return str(inner[0]) if inner is not None else ""


def _inside(value: Value, field: str) -> tuple[Value] | None:
    pending: list[Value] = [value]
    found: tuple[Value] | None = None
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            if field in item:
                found = found or (item[field],)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return found


def _without(text: str, place: FoundObject) -> str:
    """The text with the object taken out, and a code fence that held only the object taken out with it."""
    before, after = text[: place.start], text[place.end :]
    opening, closing = _FENCE_BEFORE.search(before[-200:]), _FENCE_AFTER.match(after)
    if opening and closing:
        cut = len(before[-200:]) - opening.start()
        before, after = before[: len(before) - cut] + opening[1], after[closing.end() :]
    return (before.rstrip() + "\n\n" + after.strip()).strip() if after.strip() else before.rstrip()


def _misfit(capture: Capture, value: str) -> str:
    match capture.type:
        case "number":
            fits, wanted = is_number(value), "a number"
        case "boolean":
            fits, wanted = value.lower() in ("true", "false"), "true or false"
        case "enum":
            fits, wanted = not capture.options or value in capture.options, "one of " + ", ".join(capture.options)
        case "json":
            fits, wanted = _is_json(value), "JSON"
        case _:
            return ""
    return "" if fits else f"{capture.name} is not {wanted}: {_short(value)}"


def _json_in_fence(text: str) -> str:
    """The last fenced block that is JSON, where there is one; else the text as it is."""
    lines = text.split("\n")
    marks = [line.lstrip() for line in lines]
    found = fences.find(marks)
    for opening, closing in reversed(found.pairs):
        inside = "\n".join(lines[opening + 1 : closing]).strip()
        if _is_json(inside):
            return inside
    return text


def _is_json(text: str) -> bool:
    try:
        decode(text)
    except InvalidValue:
        return False
    return True


def _short(text: str) -> str:
    line = " ".join(text[:200].split())
    return repr(line if len(line) <= 60 else line[:57] + "…")
