"""Turn the text of a step into the value that is kept, and the result of a playbook into its artifact. Nothing here can
fail a step: a text that does not fit is kept whole, with a warning.

JSON objects between prose are found in one linear pass. Trying a decoder at every brace would be quadratic, since each
failure costs as much as the text is long. Here the text is read token by token. If the JSON breaks off, every object
that is still open can never be closed (read from its own brace, it meets the same break); complete objects are kept,
and reading continues at the first brace that was taken for part of a string.

The artifact is the same for every consumer: stdout, a file, a page, Python, the calling document. Models like to put a
fence around text that is not prose; the fence is not part of the artifact, and programs that read JSON or JavaScript
would reject it.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from quire.engine.inputs import is_number
from quire.formats import markdown
from quire.patterns import late_pattern
from quire.plan.nodes import SEMANTICS_VERSION, Capture
from quire.values import InvalidValue, Value, decode, decode_object, text_or_json
from quire.wording import cut

_TOKEN = late_pattern(
    r"""[ \t\r\n]*+(?:
        (?P<mark>[{}\[\]:,])
      | (?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*")
      | (?P<atom>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![0-9.eE])|true|false|null)
    )""",
    re.VERBOSE | re.DOTALL,
)

_CUT = late_pattern(
    r"""[ \t\r\n]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*\\?|-?[0-9.]*+[eE]?[+-]?|t(?:ru?)?|f(?:al?s?)?|n(?:ul?)?)?""", re.DOTALL
)
"""Possible remainder of a token at the end of a text that was cut off."""

# The next token may be: a value; a value or the end of an empty list; a key; a key or the end of an empty object; a
# colon; a comma or the end of the open list or object.
_VALUE, _VALUE_OR_END, _KEY, _KEY_OR_END, _COLON, _COMMA_OR_END = range(6)


class FoundObject(Struct, frozen=True):
    start: int
    end: int
    value: Mapping[str, Value]


def json_objects(text: str) -> list[FoundObject]:
    """Return the JSON objects of the text in order. An object inside another is part of that one and not listed."""
    objects: list[FoundObject] = []
    for start, end in _spans(text):
        with contextlib.suppress(ValueError):
            objects.append(FoundObject(start, end, decode_object(text, start)))
    return objects


def open_object(text: str) -> int | None:
    """Return the start of an object that the end of the text cuts off, or None."""
    braces: set[int] = set()
    for at in _unread_braces(text, braces):
        stopped = _read(text, at, [], braces)
        if stopped is not None and _CUT.fullmatch(text, stopped):
            return at
    return None


def _spans(text: str) -> list[tuple[int, int]]:
    complete: list[tuple[int, int]] = []
    braces: set[int] = set()
    for at in _unread_braces(text, braces):
        _read(text, at, complete, braces)
    outermost: list[tuple[int, int]] = []
    for start, end in sorted(complete):
        if not outermost or start >= outermost[-1][1]:
            outermost.append((start, end))
    return outermost


def _unread_braces(text: str, braces: set[int]) -> Iterator[int]:
    """Yield the places of opening braces that are not among those read so far."""
    at = text.find("{")
    while at >= 0:
        if at not in braces:
            yield at
        at = text.find("{", at + 1)


def _read(text: str, at: int, complete: list[tuple[int, int]], braces: set[int]) -> int | None:
    """Read one value from a brace on until it ends or breaks off, and note the complete objects and the braces read.

    Return the position at which no token could be read; None if the value ended, or if a token did not fit.
    """
    open_at: list[int] = []
    expected = _VALUE
    while True:
        token = _TOKEN.match(text, at)
        if token is None:
            return at
        at = token.end()
        mark = token["mark"]
        if mark is None:
            if expected in (_KEY, _KEY_OR_END) and token["text"] is not None:
                expected = _COLON
            elif expected in (_VALUE, _VALUE_OR_END):
                expected = _COMMA_OR_END
            else:
                return None
        elif mark in "{[":
            if expected not in (_VALUE, _VALUE_OR_END):
                return None
            if mark == "{":
                braces.add(at - 1)
            open_at.append(at - 1)
            expected = _KEY_OR_END if mark == "{" else _VALUE_OR_END
        elif mark in "}]":
            opened = "{" if mark == "}" else "["
            fits = expected in (_COMMA_OR_END, _KEY_OR_END if mark == "}" else _VALUE_OR_END)
            if not fits or text[open_at[-1]] != opened:
                return None
            start = open_at.pop()
            if mark == "}":
                while complete and complete[-1][0] > start:
                    complete.pop()
                complete.append((start, at))
            if not open_at:
                return None
            expected = _COMMA_OR_END
        elif mark == ":":
            if expected != _COLON:
                return None
            expected = _VALUE
        else:
            if expected != _COMMA_OR_END:
                return None
            expected = _KEY if text[open_at[-1]] == "{" else _VALUE


FENCED = ("json", "mermaid", "chartjs", "html_css", "javascript", "typescript")
"""Types whose text is taken out of a fence around all of it. In Markdown a fence belongs to the text."""
JSON = ("json", "chartjs")
_FENCE = late_pattern(r"`{3,}|~{3,}")


def artifact_text(text: str, artifact_type: str) -> str:
    return unfenced(text) if artifact_type in FENCED else text


def artifact_problem(text: str, artifact_type: str) -> str:
    """Return why a text does not fit its artifact type, as far as that can be checked; empty if no problem is found."""
    if artifact_type not in JSON:
        return ""
    try:
        decode(text)
    except InvalidValue as error:
        return f"the output should be {artifact_type}, but it is not JSON: {error}"
    return ""


def unfenced(text: str) -> str:
    """Return the inside of a text that is one fenced block; otherwise the text unchanged."""
    lines = text.strip().split("\n")
    opening = _FENCE.match(lines[0])
    if len(lines) < 2 or opening is None or lines[-1].strip() != opening[0]:
        return text
    inside = lines[1:-1]
    return text if any(line.lstrip().startswith(opening[0]) for line in inside) else "\n".join(inside)


_FENCE_BEFORE = late_pattern(r"(^|\n)[ \t]*```[A-Za-z]*[ \t]*\n[ \t\n]*\Z")
_FENCE_BEGUN = late_pattern(r"(?:^|\n)[ \t]*(?:`{1,2}|```[A-Za-z]*[ \t]*(?:\n[ \t\n]*)?)\Z")
_spelled = json.JSONDecoder(strict=False, parse_float=str).raw_decode
_FENCE_AFTER = late_pattern(r"[ \t\n]*\n?[ \t]*```[ \t]*(?=\n|\Z)")


class Captured(Struct, frozen=True):
    """A captured value."""

    value: str
    displayed: str
    """The text without the extracted JSON."""
    warning: str = ""
    """Says why the value does not fit what was asked for."""


def capture_text(capture: Capture, text: str, rules: int = SEMANTICS_VERSION, *, cut: bool = False) -> Captured:
    """Capture a value from the text of a step.

    `cut` says that the text broke off, so the object that it should end with is missing.
    """
    displayed, value, warning = text, text, ""
    if capture.field is not None:
        match = None if cut else find_field(text, capture.field)
        if match is None:
            why = "was cut off before its JSON object with" if cut else "holds no JSON object with"
            warning = f'the reply {why} "{capture.field}": all of it is kept as {capture.name}'
        else:
            place, field_value = match
            value = text_or_json(field_value)
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
    """Return the last JSON object of the text that has the field.

    Nested objects count only if no outermost object has it.
    """
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
    """Return the part of an unfinished reply that people are shown: without the object that has the field, and without
    a possible beginning of it.

    If that beginning turns out to be plain text, it is shown then.
    """
    begun = open_object(text)
    text = _without_begun_fence(text if begun is None else text[:begun])
    match = find_field(text, field)
    return _without_begun_fence(_without(text, match[0])) if match else text


def _without_begun_fence(text: str) -> str:
    end = text[-200:]
    begun = _FENCE_BEGUN.search(end)
    return text[: len(text) - len(end) + begun.start()] if begun else text


def _as_written(text: str, place: FoundObject, field: str) -> str:
    """Return the number of a field as the reply spells it: as a version, 1.10 is not 1.1."""
    spelled: dict[str, Value] = _spelled(text, place.start)[0]
    if field in spelled:
        return str(spelled[field])
    inner = _inside(spelled, field)
    return str(inner[0]) if inner is not None else ""


def _inside(value: Value, field: str) -> tuple[Value] | None:
    pending: list[Value] = [value]
    first: tuple[Value] | None = None
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            if field in item:
                first = first or (item[field],)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return first


def _without(text: str, place: FoundObject) -> str:
    """Return the text without the object, and without a code fence that held only the object."""
    before, after = text[: place.start], text[place.end :]
    opening, closing = _FENCE_BEFORE.search(before[-200:]), _FENCE_AFTER.match(after)
    if opening and closing:
        cut = len(before[-200:]) - opening.start()
        before, after = before[: len(before) - cut] + opening[1], after[closing.end() :]
    return (before.rstrip() + "\n\n" + after.strip()).strip() if after.strip() else before.rstrip()


def _misfit(capture: Capture, value: str) -> str:
    match capture.type:
        case "number":
            fits, kind = is_number(value), "a number"
        case "boolean":
            fits, kind = value.lower() in ("true", "false"), "true or false"
        case "enum":
            fits, kind = not capture.options or value in capture.options, "one of " + ", ".join(capture.options)
        case "json":
            fits, kind = _is_json(value), "JSON"
        case _:
            return ""
    shown = repr(cut(" ".join(value[:200].split()), 60, 57))
    return "" if fits else f"{capture.name} is not {kind}: {shown}"


def _json_in_fence(text: str) -> str:
    """Return the last fenced block that is JSON, or the text unchanged if there is none."""
    lines = text.split("\n")
    marks = [line.lstrip() for line in lines]
    fences = markdown.find_fences(marks)
    for opening, closing in reversed(fences.pairs):
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
