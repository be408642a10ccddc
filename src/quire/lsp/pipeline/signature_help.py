"""The parameters at the cursor: those of functions of expressions, keys of a step, arguments of a tool."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from quire.expr.functions import FUNCTIONS
from quire.formats.pipeline.language import NEEDED
from quire.formats.pipeline.language_words import KIND_MEANINGS, SEED_FUNCTIONS, meaning
from quire.lsp.answers import Signature
from quire.lsp.pipeline.complete_values import tool_schema
from quire.lsp.pipeline.tree import cursor_place, is_dialect, is_expression, keys_at, place_of
from quire.lsp.tool_arguments import meaning_of, properties_of, required_in

if TYPE_CHECKING:
    from quire.lsp.document_view import View
    from quire.lsp.yaml_scan import CursorPlace


_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*\Z")


def signature(view: View, offset: int) -> Signature | None:
    place = cursor_place(view, offset)
    if place.mode == "comment" or not place.path:
        return None
    if place.mode == "value":
        parent, key = place_of(place.path[:-1]), place.path[-1]
        if is_expression(parent, key, place.tag):
            return _function(place.text)
        return _tool(view, offset, key) if parent.kind == "args" else _step(view, offset, place, place.path[:-1], key)
    if place_of(place.path).kind == "args":
        return _tool(view, offset, place.text)
    return _step(view, offset, place, place.path, place.text)


def _function(text: str) -> Signature | None:
    call = _open_call(text)
    name = _NAME.search(text[: call[0]]) if call else None
    if call is None or name is None:
        return None
    forms, about = _forms(name[1])
    if not forms:
        return None
    # The form with enough parameters for what is typed already.
    form = next((form for form in forms if len(_parameters(form)) > call[1]), forms[-1])
    parameters = _parameters(form)
    return Signature(
        form, tuple((parameter, "") for parameter in parameters), min(call[1], max(len(parameters) - 1, 0)), about
    )


def _open_call(text: str) -> tuple[int, int] | None:
    """Return the offset of the round bracket that is open at the end of an expression, and how many commas stand in it
    since; None if none is open."""
    stack: list[tuple[str, int, int]] = []
    at = 0
    while at < len(text):
        character = text[at]
        if character in "'\"":
            end = at + 1
            while end < len(text) and text[end] != character:
                end += 2 if text[end] == "\\" else 1
            at = end
        elif character in "[{(":
            stack.append((character, at, 0))
        elif character in "]})" and stack:
            stack.pop()
        elif character == "," and stack:
            mark, begin, count = stack.pop()
            stack.append((mark, begin, count + 1))
        at += 1
    return next(((begin, count) for mark, begin, count in reversed(stack) if mark == "("), None)


def _forms(name: str) -> tuple[tuple[str, ...], str]:
    if name in SEED_FUNCTIONS:
        form, text = SEED_FUNCTIONS[name]
        return (form,), text
    function = FUNCTIONS.get(name)
    return (function.forms, function.meaning) if function else ((), "")


def _parameters(form: str) -> list[str]:
    inside = form[form.find("(") + 1 : form.rfind(")")]
    return [parameter.strip() for parameter in inside.split(",") if parameter.strip()]


def _step(view: View, offset: int, place: CursorPlace, path: tuple[str, ...], typed: str) -> Signature | None:
    where = place_of(path)
    if where.kind != "body" or not place.flow:
        return None
    keys = keys_at(where, is_dialect(view, offset))
    shown = [key if key in NEEDED.get(where.step, ()) else f"[{key}]" for key in keys]
    active = next((at for at, key in enumerate(keys) if key == typed), None)
    if active is None:
        active = next((at for at, key in enumerate(keys) if key not in place.keys and key.startswith(typed)), 0)
    parameters = tuple((word, meaning("body", where.step, key)) for word, key in zip(shown, keys, strict=True))
    return Signature(f"{where.step}: {{{', '.join(shown)}}}", parameters, active, KIND_MEANINGS[where.step])


def _tool(view: View, offset: int, typed: str) -> Signature | None:
    tool, schema = tool_schema(view, offset)
    properties, needed = properties_of(schema), required_in(schema)
    if "properties" not in schema:
        return None
    names = list(properties)
    shown = [name if name in needed else f"[{name}]" for name in names]
    active = next((at for at, name in enumerate(names) if name == typed or (typed and name.startswith(typed))), 0)
    parameters = tuple(zip(shown, map(meaning_of, properties.values()), strict=True))
    return Signature(f"{tool}({', '.join(shown)})", parameters, active)
