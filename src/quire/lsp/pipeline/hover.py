"""Hovers of pipelines: paths with their types and writers, steps with their prompts, targets, tools, schemas, keys."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from quire.lsp.answers import Hover
from quire.lsp.markdown import code
from quire.lsp.pipeline.complete_expressions import ends_in_text
from quire.lsp.pipeline.hover_texts import (
    binding_text,
    function_text,
    key_text,
    path_text,
    schema_text,
    target_text,
    tool_text,
)
from quire.lsp.pipeline.scopes import in_lambdas, names_at
from quire.lsp.pipeline.tree import cursor_place, outer_of
from quire.lsp.pipeline.yaml_places import YamlPlace, is_expression, place_of
from quire.source import Span
from quire.workspace.secrets import shown_model

if TYPE_CHECKING:
    from quire.lsp.pipeline.scopes import ReadableNames
    from quire.lsp.views import View
    from quire.lsp.yaml_scan import CursorPlace

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_PATH = re.compile(rf"{_NAME}(?:\.{_NAME})*")
_REFERENCE = re.compile(rf"(?<!\{{)\{{({_NAME}(?:\.{_NAME})*)\}}(?!\}})")
_WORD = re.compile(r"[A-Za-z0-9_.*/-]+")


def hover(view: View, offset: int) -> Hover | None:
    text = view.source.text
    word = _around(_WORD, text, offset)
    place = cursor_place(view, offset)
    if place.mode == "comment":
        return None
    if word is not None and re.match(r"['\"]?[ ]*:(?:[ \n]|\Z)", text[word.end : word.end + 12]):
        start = cursor_place(view, word.start)
        if start.mode in ("key", "item") and not (place.mode == "value" and place.quote):
            return _key(view, start, word, text[word.start : word.end])
    parent = place_of(place.path[:-1]) if place.mode == "value" and place.path else place_of(place.path)
    key = place.path[-1] if place.path else ""
    if place.mode == "value" and key == "prompt" and parent.kind == "body" and place.tag != "!file":
        return _reference(view, offset, place)
    if place.mode == "value" and is_expression(parent, key, place.tag):
        return _expression(view, offset, place)
    if word is None:
        return None
    return _value(view, parent, place, key, word)


def _around(pattern: re.Pattern[str], text: str, offset: int) -> Span | None:
    """Return the match around an offset, in its line."""
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    for found in pattern.finditer(text, start, end if end >= 0 else len(text)):
        if found.start() <= offset <= found.end():
            return Span(*found.span())
    return None


def _reference(view: View, offset: int, place: CursorPlace) -> Hover | None:
    text = view.source.text
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    for found in _REFERENCE.finditer(text, start, end if end >= 0 else len(text)):
        if found.start() <= offset <= found.end():
            return _path(view, offset, place, Span(*found.span(1)))
    return None


def _expression(view: View, offset: int, place: CursorPlace) -> Hover | None:
    if ends_in_text(place.text):
        return None
    span = _around(_PATH, view.source.text, offset)
    if span is None:
        return None
    text = view.source.text
    if re.match(r"[ ]*\(", text[span.end : span.end + 8]):
        written = function_text(text[span.start : span.end])
        return Hover(span, written) if written else None
    return _path(view, offset, place, span)


def _path(view: View, offset: int, place: CursorPlace, span: Span) -> Hover | None:
    segments = view.source.text[span.start : span.end].split(".")
    end, kept = span.start, []
    for segment in segments:
        kept.append(segment)
        end += len(segment)
        if offset <= end:
            break
        end += 1
    names = in_lambdas(view, names_at(view, offset, place), offset)
    path = tuple(kept)
    written = binding_text(names, path) if len(path) == 1 else ""
    written = written or path_text(view, names, path)
    store = path[1:] if path[0] == "ctx" else () if names.is_bound(path[0]) else path
    return _of_store(view, Span(span.start, min(end, span.end)), written, names, store) if written else None


def _of_store(view: View, span: Span, written: str, names: ReadableNames | None, store: tuple[str, ...]) -> Hover:
    """Return a hover that leads to the value of a store, or of a field in it."""
    if not store or names is None or names.pipeline is None:
        return Hover(span, written)
    part = names.pipeline.name.text if len(outer_of(view).pipelines) > 1 else ""
    return Hover(span, written, ("stores", *store), part)


def _key(view: View, place: CursorPlace, word: Span, key: str) -> Hover | None:
    written = key_text(view, place_of(place.path), key, word)
    return Hover(word, written) if written else None


def _value(view: View, parent: YamlPlace, place: CursorPlace, key: str, word: Span) -> Hover | None:
    text = view.source.text[word.start : word.end]
    written = ""
    store: tuple[str, ...] = ()
    names = None
    if (parent.kind in ("body", "field") and key == "schema") or (parent.kind == "document" and key == "schema"):
        written = schema_text(outer_of(view), text)
    elif (parent.kind in ("body", "target") and key == "pipeline") or (parent.kind == "document" and key == "pipeline"):
        written = target_text(view, text)
    elif (parent.kind == "body" and parent.step == "tool" and key == "name") or parent.kind == "tools":
        written = tool_text(view, text)
    elif parent.kind == "body" and key == "output":
        names = names_at(view, word.start, place)
        if names.way is not None:
            written, store = path_text(view, names, ("ctx", text), names.scope.result), (text,)
    elif parent.kind == "body" and key == "identity":
        written = _agent_text(view, text)
    elif parent.kind == "pass" and place.mode == "item":
        names = names_at(view, word.start, place)
        written, store = path_text(view, names, ("ctx", text)), (text,)
    return _of_store(view, word, written, names, store) if written else None


def _agent_text(view: View, name: str) -> str:
    settings = view.folder.settings
    agent = settings.agents.get(name) if settings is not None else None
    if agent is None:
        return f"**agent** {code(name)}" if name == "default" else ""
    model = getattr(agent, "model", None)
    tools = getattr(agent, "tools", None)
    lines = [f"**agent** {code(name)}"]
    if model:
        lines.append(f"model {code(shown_model(str(model)))}")
    if tools:
        lines.append("tools " + ", ".join(code(str(one)) for one in tools))
    return "\n\n".join(lines)
