"""Complete pipelines: keys by place, expressions, and references in prompts (values: `complete_values`)."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.expr.functions import FUNCTIONS
from quire.expr.syntax import KEYWORDS
from quire.formats.pipeline.known_types import KnownTypes, element
from quire.formats.pipeline.language import KINDS
from quire.formats.pipeline.language_words import (
    BINDINGS,
    IN_SNIPPETS,
    KIND_MEANINGS,
    SEED_FUNCTIONS,
    SNIPPETS,
    meaning,
)
from quire.lsp.answers import MOST_COMPLETIONS, Completion, fits_typed
from quire.lsp.pipeline.complete_values import argument_names, case_labels, complete_item, complete_value, passed_names
from quire.lsp.pipeline.scopes import Scope, names_at, store_names
from quire.lsp.pipeline.tree import (
    FIELD_KEYS,
    YamlPlace,
    cursor_place,
    file_of,
    is_dialect,
    is_expression,
    keys_at,
    part_at,
    place_of,
)
from quire.schema import Enum, Kind, Simple, type_words
from quire.source import Span, line_start
from quire.values import encode

if TYPE_CHECKING:
    from quire.lsp.document_view import View
    from quire.lsp.pipeline.scopes import ReadableNames
    from quire.lsp.yaml_scan import CursorPlace
    from quire.schema import FieldType


_NEEDED_FIRST = 2
_INSTEAD = {"over": "items", "items": "over"}
"""Keys of which a step has only one."""


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
    from quire.lsp.pipeline.hover import function_text, schema_text, target_text, tool_text

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


def _keys(view: View, offset: int, place: CursorPlace, where: YamlPlace) -> list[Completion]:
    dialect = is_dialect(view, offset)
    span = Span(place.start, offset)
    if where.kind in ("step", "steps"):
        return _steps(view, place, where, span, dialect)
    if where.kind == "args":
        return argument_names(view, offset, place, span)
    if where.kind == "pass":
        return passed_names(view, offset, place, span, mapping=True)
    if where.kind == "cases":
        return case_labels(view, offset, place, span)
    keys = keys_at(where, dialect)
    if where.kind == "document":
        keys = _document_keys(view, offset, keys, dialect)
    if where.kind == "field" and not dialect:
        keys = FIELD_KEYS[:6]
    return [
        _key(where, key, place, span, number)
        for number, key in enumerate(keys)
        if key not in place.keys and _INSTEAD.get(key) not in place.keys
    ]


def _document_keys(view: View, offset: int, keys: tuple[str, ...], dialect: bool) -> tuple[str, ...]:
    """Return the keys of a document: those of a schema, or those of a pipeline."""
    part = part_at(view, offset)
    text = "\n" + view.source.text[part.start : part.end]
    if "\nschema:" in text:
        return ("schema", "fields")
    return tuple(key for key in keys if key not in ("schema", "fields") and (dialect or key != "input")) + (
        () if "\npipeline:" in text else ("schema", "fields")
    )


def _key(where: YamlPlace, key: str, place: CursorPlace, span: Span, number: int) -> Completion:
    insert = _body_snippet(where.kind, where.step, key, flow=place.flow)
    detail = meaning(where.kind, where.step, key)
    return Completion(key, "property", insert, "$" in insert, detail, order=_NEEDED_FIRST + min(number, 6), span=span)


def _steps(view: View, place: CursorPlace, where: YamlPlace, span: Span, dialect: bool) -> list[Completion]:
    """Return the kinds of step, each with the keys that it needs."""
    dash = "- " if where.kind == "steps" and place.mode == "key" else ""
    if place.keys and where.kind == "step":
        return []
    column = place.start - line_start(view.source.text, place.start) + len(dash)
    return [
        Completion(
            kind,
            "snippet",
            dash + _step_snippet(kind, column, flow=place.flow, dialect=dialect),
            True,
            KIND_MEANINGS[kind],
            order=_NEEDED_FIRST,
            span=span,
        )
        for kind in keys_at(YamlPlace("step"), dialect)
    ]


_TYPED = re.compile(r"((?:[A-Za-z_][A-Za-z0-9_]*\.)*)([A-Za-z_][A-Za-z0-9_]*)?\Z")
REFERENCE = re.compile(r"(?<!\{)\{((?:[A-Za-z_][A-Za-z0-9_]*\.)*)([A-Za-z_][A-Za-z0-9_]*)?\Z")
_COMPARED = re.compile(r"""([A-Za-z_][A-Za-z0-9_.]*)\s*[!=]=\s*(['"]?)([^'"]*)\Z""")
_LAMBDA = re.compile(r"\b([a-z_]+)\(\s*([A-Za-z_][A-Za-z0-9_.]*)\s*,\s*([A-Za-z_][A-Za-z0-9_]*)\s*->")
_OUTPUT = re.compile(r"\boutput:[ ]*['\"]?([A-Za-z_][A-Za-z0-9_]*)")
_NEAR = 20_000


def complete_expression(view: View, offset: int, place: CursorPlace) -> list[Completion]:
    """Return what can follow in an expression."""
    text = place.text
    names = names_at(view, offset, place)
    compared = _COMPARED.search(text)
    if compared is not None:
        values = _values(names, compared, Span(offset - len(compared[3]), offset), place.quote)
        if values or compared[2]:
            return values
    if ends_in_text(text):
        return []
    typed = _TYPED.search(text)
    if typed is None:
        return []
    span = Span(offset - len(typed[2] or ""), offset)
    path = tuple(part for part in typed[1].split(".") if part)
    if path:
        return _members(view, offset, names, path, span, text)
    # Of very many stores only some are sent; the functions always are.
    return [*_functions(view, offset, span), *_roots(view, offset, names, span, text)]


def complete_reference(view: View, offset: int, place: CursorPlace) -> list[Completion]:
    """Return what can follow in a reference of a prompt: `{path`."""
    typed = REFERENCE.search(place.text)
    if typed is None:
        return []
    names = names_at(view, offset, place)
    span = Span(offset - len(typed[2] or ""), offset)
    path = tuple(part for part in typed[1].split(".") if part)
    completions = _members(view, offset, names, path, span, "") if path else _roots(view, offset, names, span, "")
    if view.source.text[offset : offset + 1] == "}":
        return completions
    return [item if item.label == "ctx" else replace(item, insert=f"{item.label}}}") for item in completions]


def ends_in_text(expression: str) -> bool:
    """Tell whether an expression ends inside of a quoted text."""
    quote, at = "", 0
    while at < len(expression):
        character = expression[at]
        if quote and character == "\\":
            at += 1
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        at += 1
    return bool(quote)


def _shown(type: FieldType | None) -> str:
    return type_words(type) if type is not None else ""


def _lambdas(names: ReadableNames, text: str) -> dict[str, FieldType | None]:
    """Return the parameters of the lambdas before the cursor, with the types of the items of their lists."""
    return {
        match[3]: element(names.scope.shapes.resolved(names.type_at(tuple(match[2].split(".")))))
        for match in _LAMBDA.finditer(text)
    }


def _roots(view: View, offset: int, names: ReadableNames, span: Span, text: str) -> list[Completion]:
    roots: dict[str, Completion] = {}
    for name, type in _lambdas(names, text).items():
        roots[name] = Completion(name, "variable", detail=_shown(type), order=1, span=span)
    for name, type in names.scope.types.names.items():
        about = BINDINGS.get(name, "The result of this branch.")
        roots[name] = Completion(name, "variable", detail=_shown(type), documentation=about, order=1, span=span)
    for name in ("ctx", "pipe"):
        type = names.scope.types.pipe if name == "pipe" else None
        roots[name] = Completion(
            name, "variable", detail=_shown(type), documentation=BINDINGS[name], order=2, span=span
        )
    for name, type in _stores(view, offset, names, span).items():
        if len(roots) > MOST_COMPLETIONS:
            break  # one more than is sent tells that there are more
        if name not in roots:
            roots[name] = Completion(name, "variable", detail=_shown(type), order=3, span=span)
    return list(roots.values())


def _stores(view: View, offset: int, names: ReadableNames, span: Span) -> dict[str, FieldType | None]:
    """Return the stores that can be read: the last ones first; of very many, those first that fit the typed text at
    `span`. Those of a step that cannot be read are found in its text."""
    stores = dict(reversed(names.scope.types.stores.items()))
    if names.way is None:
        near = view.source.text[max(0, offset - _NEAR) : offset]
        for match in _OUTPUT.finditer(near):
            stores.setdefault(match[1], None)
    if names.pipeline is not None and names.pipeline.input is None and len(view.source.text) <= _NEAR:
        for name in store_names(names.pipeline):
            stores.setdefault(name, None)
    readable = {name: type for name, type in stores.items() if "-" not in name}
    typed = span.of(view.source.text)
    if not typed or len(readable) <= MOST_COMPLETIONS:
        return readable
    fits = fits_typed(typed)
    return {name: type for name, type in readable.items() if fits(name)} | readable


def _members(
    view: View, offset: int, names: ReadableNames, path: tuple[str, ...], span: Span, text: str
) -> list[Completion]:
    if path == ("ctx",):
        return [
            Completion(name, "variable", detail=_shown(type), order=2, span=span)
            for name, type in islice(_stores(view, offset, names, span).items(), MOST_COMPLETIONS + 1)
        ]
    if path[0] == "errors" and len(path) == 1:
        survived = [name for name in names.scope.types.stores if "-" not in name]
        return [Completion(name, "field", span=span) for name in survived]
    lambdas = _lambdas(names, text)
    if path[0] in lambdas:
        types = names.scope.types
        inner = KnownTypes(types.stores, types.pipe, {**types.names, **lambdas})
        fields = type(names)(names.pipeline, Scope(inner, names.scope.shapes), names.way).fields_at(path)
    else:
        fields = names.fields_at(path)
    return [
        Completion(
            field.name,
            "field",
            detail=type_words(field.type) + ("" if field.required else " (may be missing)"),
            documentation=field.description,
            order=1,
            span=span,
        )
        for field in fields
    ]


def _functions(view: View, offset: int, span: Span) -> list[Completion]:

    completions = [
        Completion(name, "function", f"{name}($1)", True, form, order=4, span=span, resolve=f"function:{name}")
        for name, (form, _) in SEED_FUNCTIONS.items()
    ]
    if is_dialect(view, offset):
        completions += [
            Completion(
                function.name,
                "function",
                f"{function.name}($1)",
                True,
                function.usage,
                order=5,
                span=span,
                resolve=f"function:{function.name}",
            )
            for function in FUNCTIONS.values()
        ]
    completions += [Completion(word, "keyword", order=6, span=span) for word in sorted(KEYWORDS)]
    return completions


def _values(names: ReadableNames, compared: re.Match[str], span: Span, outer: str) -> list[Completion]:
    """Return the values that a compared path can have."""
    type = names.scope.shapes.resolved(names.type_at(tuple(compared[1].split("."))))
    if isinstance(type, Enum):
        values = [value for value in type.values if isinstance(value, str | int | float | bool)]
    elif isinstance(type, Simple) and type.kind is Kind.BOOL and not compared[2]:
        return [Completion(word, "constant", order=0, span=span) for word in ("true", "false")]
    else:
        return []
    completions = []
    for value in values:
        if not isinstance(value, str):
            completions.append(Completion(encode(value), "enum", order=0, span=span))
        elif compared[2]:
            completions.append(Completion(value, "enum", order=0, span=span))
        else:
            quote = "'" if outer != "'" else '"'
            completions.append(Completion(value, "enum", f"{quote}{value}{quote}", order=0, span=span))
    return completions


def _body_snippet(place: str, step: str, key: str, *, flow: bool) -> str:
    """Return a key with a value to fill in."""
    if place == "document" and key in ("steps", "input", "fields"):
        return f"{key}:\n  " if not flow else f"{key}: "
    if step == "steps" and key == "do":
        return f"{key}: " if flow else f"{key}:\n  - "
    value = _value_snippet(key, 1)[0]
    return f"{key}: {value or '$1'}"


def _step_snippet(kind: str, column: int, *, flow: bool, dialect: bool) -> str:
    """Return a step of a kind with the keys that it needs. Steps with other steps in them are written over several
    lines, indented below the column of the kind."""
    row = next(row for row in KINDS if row.name == kind)
    parts: list[str] = []
    number = 1
    for key in (key.name for key in row.keys if key.needed or key.name in IN_SNIPPETS.get(kind, ())):
        if kind == "steps":
            value, used = '[{transform: {value: "${1:expression}"}}]', 1
        elif key == "cases" and dialect:
            value, used = (
                f'{{${{{number}:label}}: {{steps: [{{transform: {{value: "${{{number + 1}:expression}}"}}}}]}}}}',
                2,
            )
        else:
            value, used = _value_snippet(key, number)
        parts.append(f"{key}: {value}")
        number += used
    if flow or (len(parts) <= 3 and kind not in ("for_each", "fold", "parallel", "match", "repeat")):
        return f"{kind}: {{{', '.join(parts)}}}"
    # The editor indents the lines of a snippet like the line of the cursor, which begins with a dash in a list.
    lines = "\n".join(f"    {part}" for part in parts)
    return f"{kind}:\n{lines}"


def _value_snippet(key: str, number: int) -> tuple[str, int]:
    """Return the value of a key with places from a number on, and their number."""
    form = SNIPPETS.get(key, "")
    if not form:
        return f"${{{number}}}", 1
    used = 2 if "{{{1}" in form or "{1}" in form else 1 if "{0}" in form else 0
    return form.format(number, number + 1), used
