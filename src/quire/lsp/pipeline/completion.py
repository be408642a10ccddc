"""Complete pipelines: keys by place, names and values, and expressions (`complete_expressions`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.formats.pipeline.language_words import KINDS, meaning
from quire.lsp.answers import Completion
from quire.lsp.pipeline.complete_expressions import complete_expression, complete_reference
from quire.lsp.pipeline.complete_values import complete_item, complete_value
from quire.lsp.pipeline.snippets import body_snippet, step_snippet
from quire.lsp.pipeline.tree import cursor_place, pipeline_at
from quire.lsp.pipeline.yaml_places import FIELD_KEYS, YamlPlace, is_expression, keys_at, place_of
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.views import View
    from quire.lsp.yaml_scan import CursorPlace

_NEEDED_FIRST = 2


def complete(view: View, offset: int) -> list[Completion]:
    place = cursor_place(view, offset)
    if place.mode == "comment":
        return []
    if place.mode == "value" and place.path:
        parent, key = place_of(place.path[:-1]), place.path[-1]
        if parent.kind == "body" and key == "prompt" and place.tag != "!file":
            return complete_reference(view, offset, place) or complete_value(view, offset, place, parent, key)
        if is_expression(parent, key, place.tag):
            return complete_expression(view, offset, place)
        return complete_value(view, offset, place, parent, key)
    where = place_of(place.path)
    if place.mode == "item" and where.kind not in ("step", "steps"):
        return complete_item(view, offset, place, where)
    return _keys(view, offset, place, where)


def resolve(view: View, what: str) -> str:
    """Return the documentation of a completion."""
    from quire.lsp.pipeline.hover_texts import function_text, schema_text, target_text, tool_text
    from quire.lsp.pipeline.tree import file_of

    kind, _, name = what.partition(":")
    match kind:
        case "function":
            return function_text(name)
        case "tool":
            return tool_text(view, name)
        case "target":
            return target_text(view, name)
        case "schema":
            return schema_text(file_of(view), name)
    return ""


def is_dialect(view: View, offset: int) -> bool:
    """Tell whether the pipeline around an offset is in the Quire dialect, also if it cannot be read."""
    pipeline = pipeline_at(view, offset)
    if pipeline is not None:
        return pipeline.dialect
    from quire.lsp.pipeline.tree import part_at

    part = part_at(view, offset)
    return "\ndialect:" in view.source.text[part.start : part.end]


def _keys(view: View, offset: int, place: CursorPlace, where: YamlPlace) -> list[Completion]:
    dialect = is_dialect(view, offset)
    span = Span(place.start, offset)
    if where.kind in ("step", "steps"):
        return _steps(view, place, where, span, dialect)
    if where.kind == "args":
        from quire.lsp.pipeline.complete_values import argument_names

        return argument_names(view, offset, place, span)
    if where.kind == "pass":
        from quire.lsp.pipeline.complete_values import passed_names

        return passed_names(view, offset, place, span, mapping=True)
    if where.kind == "cases":
        from quire.lsp.pipeline.complete_values import case_labels

        return case_labels(view, offset, place, span)
    known = keys_at(where, dialect)
    if where.kind == "document":
        known = _document_keys(view, offset, known, dialect)
    if where.kind == "field" and not dialect:
        known = FIELD_KEYS[:6]
    return [
        _key(where, key, place, span, number)
        for number, key in enumerate(known)
        if key not in place.keys and not _excluded(key, place.keys)
    ]


def _excluded(key: str, present: tuple[str, ...]) -> bool:
    return (key == "over" and "items" in present) or (key == "items" and "over" in present)


def _document_keys(view: View, offset: int, known: tuple[str, ...], dialect: bool) -> tuple[str, ...]:
    """Return the keys of a document: those of a schema, or those of a pipeline."""
    from quire.lsp.pipeline.tree import part_at

    part = part_at(view, offset)
    text = "\n" + view.source.text[part.start : part.end]
    if "\nschema:" in text:
        return ("schema", "fields")
    return tuple(key for key in known if key not in ("schema", "fields") and (dialect or key != "input")) + (
        () if "\npipeline:" in text else ("schema", "fields")
    )


def _key(where: YamlPlace, key: str, place: CursorPlace, span: Span, number: int) -> Completion:
    insert = body_snippet(where.kind, where.step, key, flow=place.flow)
    detail = meaning(where.kind, where.step, key)
    return Completion(key, "property", insert, "$" in insert, detail, order=_NEEDED_FIRST + min(number, 6), span=span)


def _steps(view: View, place: CursorPlace, where: YamlPlace, span: Span, dialect: bool) -> list[Completion]:
    """Return the kinds of step, each with the keys that it needs."""
    dash = "- " if where.kind == "steps" and place.mode == "key" else ""
    if place.keys and where.kind == "step":
        return []
    column = place.start - (view.source.text.rfind("\n", 0, place.start) + 1) + len(dash)
    return [
        Completion(
            kind,
            "snippet",
            dash + step_snippet(kind, column, flow=place.flow, dialect=dialect),
            True,
            KINDS[kind],
            order=_NEEDED_FIRST,
            span=span,
        )
        for kind in keys_at(YamlPlace("step"), dialect)
    ]
