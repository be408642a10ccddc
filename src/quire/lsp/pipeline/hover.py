"""Hovers of pipelines: paths with their types and writers, steps with their prompts, targets, tools, schemas, keys.

The texts of hovers in pipelines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import UNSET

from quire.errors import QuireError
from quire.formats.pipeline.language_words import BINDINGS, KIND_MEANINGS, SEED_FUNCTIONS, meaning
from quire.lsp.answers import Hover, code, fenced
from quire.lsp.pipeline.completion import ends_in_text
from quire.lsp.pipeline.scopes import in_lambdas, is_input, names_at, writers_of
from quire.lsp.pipeline.tree import YamlPlace, cursor_place, file_of, is_expression, place_of, way_to
from quire.schema import fields_words, type_words
from quire.source import Span
from quire.values import encode
from quire.workspace.secrets import shown_model

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import PipelineFile
    from quire.lsp.document_view import View
    from quire.lsp.pipeline.scopes import ReadableNames
    from quire.lsp.yaml_scan import CursorPlace
    from quire.schema import FieldType


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
    for match in pattern.finditer(text, start, end if end >= 0 else len(text)):
        if match.start() <= offset <= match.end():
            return Span(*match.span())
    return None


def _reference(view: View, offset: int, place: CursorPlace) -> Hover | None:
    text = view.source.text
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    for match in _REFERENCE.finditer(text, start, end if end >= 0 else len(text)):
        if match.start() <= offset <= match.end():
            return _path(view, offset, place, Span(*match.span(1)))
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
    part = names.pipeline.name.text if len(file_of(view).pipelines) > 1 else ""
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
        written = schema_text(file_of(view), text)
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
        lines.append("tools " + ", ".join(code(str(tool)) for tool in tools))
    return "\n\n".join(lines)


_MOST_WRITERS = 5


def type_text(type: FieldType | None) -> str:
    """Return a type in words; a type that is not known is `any value`."""
    return type_words(type) if type is not None else "any value"


def binding_text(names: ReadableNames, path: tuple[str, ...]) -> str:
    """Return the hover of a binding: `pipe`, `item`, a branch. Empty for a store."""
    root = path[0]
    if root == "ctx":
        return f"**ctx**\n\n{BINDINGS['ctx']}"
    if not names.is_bound(root):
        return ""
    lines = [f"**{root}** {code(type_text(names.type_at(path)))}"]
    lines.append(_binding(names, root))
    return "\n\n".join(lines)


def _binding(names: ReadableNames, root: str) -> str:
    if root in names.parameters:
        return "A parameter: each item of the list in turn."
    return BINDINGS.get(root, "The result of this branch.")


def path_text(view: View, names: ReadableNames, path: tuple[str, ...], type: FieldType | None = None) -> str:
    """Return the hover of a path: its type, and who writes it."""
    type = type if type is not None else names.type_at(path)
    lines = [f"**{'.'.join(path)}** {code(type_text(type))}"]
    root = path[0]
    store = path[1] if root == "ctx" and len(path) > 1 else root
    is_field = len(path) > (2 if root == "ctx" else 1)
    if is_field:
        lines += _field_lines(names, path)
    if names.is_bound(root):
        lines.append(f"Inside of {code(root)}: {_binding(names, root)}")
    elif names.pipeline is not None:
        lines += _store_lines(view, names, store)
    return "\n\n".join(lines)


def _field_lines(names: ReadableNames, path: tuple[str, ...]) -> list[str]:
    field = next((one for one in names.fields_at(path[:-1]) if one.name == path[-1]), None)
    if field is None:
        return []
    lines = [f"A field of {code(type_text(names.type_at(path[:-1])))}."]
    if not field.required:
        holder = ".".join(path[:-1])
        lines.append(f"It may be missing: {code(f'get({holder}, {path[-1]!r})')} gives null then.")
    if field.description:
        lines.append(field.description)
    return lines


def _store_lines(view: View, names: ReadableNames, store: str) -> list[str]:
    pipeline = names.pipeline
    if pipeline is None:
        return []
    lines = []
    if is_input(pipeline, store):
        field = next((one for one in pipeline.input or () if one.name == store), None)
        said = "An input" + ("." if field is not None else ", because it is read and no step has written it.")
        lines.append(said)
        if field is not None and field.description:
            lines.append(field.description)
        if field is not None and field.default is not UNSET:
            lines.append(f"It may be left out: it is {code(encode(field.default))} then.")
    writers = writers_of(pipeline, store)
    for label, step in writers[:_MOST_WRITERS]:
        line, guard = view.source.position(step.span.start).line, step.guard
        when = f" when {code(guard.when.text)}" if guard and guard.when else ""
        lines.append(f"Written by step {label} ({step.kind}, line {line}){when}.")
    if len(writers) > _MOST_WRITERS:
        lines.append(f"And by {len(writers) - _MOST_WRITERS} more steps.")
    return lines


def function_text(name: str) -> str:
    """Return the meaning of a function of expressions, with examples; empty for a name that is not one."""
    if name in SEED_FUNCTIONS:
        form, said = SEED_FUNCTIONS[name]
        return f"**{code(form)}**\n\n{said}"
    from quire.expr.functions import FUNCTIONS

    found = FUNCTIONS.get(name)
    if found is None:
        return ""
    forms = "\n".join(found.forms)
    examples = "\n".join(f"{text}  →  {value}" for text, value in found.examples)
    said = f"Gives {found.gives}." if found.gives not in ("any", "same") else ""
    return "\n\n".join(one for one in (fenced(forms), found.meaning, said, fenced(examples)) if one)


def schema_text(file: PipelineFile, name: str) -> str:
    schema = next((one for one in file.schemas if one.name == name), None)
    if schema is None:
        return ""
    lines = [
        f"{field.name}: {type_words(field.type)}{'' if field.required else ' (optional)'}" for field in schema.fields
    ]
    return f"**schema** {code(name)}\n\n{fenced(chr(10).join(lines))}"


def target_text(view: View, name: str) -> str:
    """Return the signature of a callee: its inputs and the type of its result."""
    from quire.lsp.pipeline.index import callee_of, input_fields, interface_of

    callee = callee_of(view, name)
    if callee is None:
        return ""
    lines = [f"**{callee.format}** {code(name)}"]
    if callee.tree is not None and callee.tree.description:
        lines.append(callee.tree.description)
    interface = interface_of(view, name)
    if interface is not None:
        fields = input_fields(view, name)
        given = []
        for one in interface.known if interface.known is not None else interface.required:
            type = f": {type_words(fields[one].type)}" if one in fields else ""
            given.append(f"{one}{type}" + ("" if one in interface.required else " (optional)"))
        lines.append(fenced("\n".join(given)) if given else "It takes no inputs.")
        result = interface.gives if callee.tree is None else _result_of(view, name)
        lines.append(f"Gives {code(type_text(result))}.")
    lines.append(_short_path(view, callee.path))
    return "\n\n".join(lines)


def _result_of(view: View, name: str) -> FieldType | None:
    from quire.lsp.pipeline.index import callee_of
    from quire.lsp.pipeline.scopes import scope_before

    callee = callee_of(view, name)
    home = view if callee is None or callee.path == view.path else view.folder.view(callee.path)
    if callee is None or callee.tree is None or home is None or home.format != "pipeline":
        return None
    pipeline = next((one for one in file_of(home).pipelines if one.name.text == callee.declared), None)
    return scope_before(home, pipeline, len(pipeline.steps)).types.pipe if pipeline is not None else None


def _short_path(view: View, path: str) -> str:
    from pathlib import Path

    whole = Path(path)
    return code(str(whole.relative_to(view.folder.path)) if whole.is_relative_to(view.folder.path) else whole.name)


def tool_text(view: View, name: str) -> str:
    """Return the hover of a tool: what it does, its arguments, its class, its tier and whether it is granted."""
    from quire.plan.built_in_tools import BUILT_IN_TOOLS
    from quire.trust.capabilities import canonical

    found = next((one for one in BUILT_IN_TOOLS if one.id == canonical(name) or one.name == name), None)
    settings = view.folder.settings
    if found is None:
        server, _, tool = name.partition("__")
        if settings is not None and tool and server in settings.servers:
            return _server_tool_text(view, server, tool)
        return ""
    lines = [f"**tool** {code(name)}", found.description]
    properties = found.schema.get("properties")
    required = found.schema.get("required")
    if isinstance(properties, Mapping):
        needed = required if isinstance(required, list) else []
        given = [
            f"{one}: {_argument(about)}{'' if one in needed else ' (optional)'}" for one, about in properties.items()
        ]
        lines.append(fenced("\n".join(given)))
    lines.append(f"Class {code(found.effect)}, tier {code(found.risk)}.")
    lines.append(_granted(view, found.granted, found.id, found.name))
    return "\n\n".join(lines)


def _server_tool_text(view: View, server: str, tool: str) -> str:
    """Return the hover of a tool of a server, which is not asked about it."""
    from quire.lsp.playbook.tools import authority_of

    lines = [f"**tool** {code(tool)} of the server {code(server)}"]
    authority = authority_of(view, server, tool)
    if authority is not None:
        tier = f", tier {code(authority.tier)}" if authority.tier else ""
        lines.append(f"Class {code(authority.effect)}{tier}.")
        missing = "Not granted: agree to this workspace with `quire trust`."
        lines.append(f"Granted by {authority.granted_by}." if authority.granted_by else missing)
    lines.append("The server is not started here, so its arguments are not known.")
    return "\n\n".join(lines)


def _argument(about: object) -> str:
    if not isinstance(about, Mapping):
        return "any value"
    type = about.get("type") or ("one of " + ", ".join(map(str, about["enum"])) if "enum" in about else "any value")
    said = about.get("description")
    return f"{type}" + (f" – {said}" if said else "")


def _granted(view: View, granted: str, id: str, name: str) -> str:
    if granted == "always":
        return "Granted: every run may use it."
    settings = view.folder.settings
    given = settings.granted if settings is not None else ()
    if granted == "in a workspace":
        return "Granted in a workspace."
    if any(one.partition("=")[0] in (id, name) for one in map(str, given)):
        return "Granted by the settings."
    return f"Not granted: a run needs {code(f'--allow {name}')}."


def key_text(view: View, place: YamlPlace, key: str, word: Span) -> str:
    """Return the hover of a key. That of a kind of step shows the step: its prompt and its bound."""
    if place.kind in ("step", "steps") and key in KIND_MEANINGS:
        return step_text(view, key, word)
    if place.kind == "args":
        return f"**{key}**: an argument of the tool."
    if place.kind == "cases":
        return f"**{key}**: a label. It is chosen if the value is written like this."
    if place.kind == "branches":
        return f"**{key}**: a branch. {code('collect')} reads its result by this name."
    if place.kind == "fields":
        return _declared_text(view, place, key, word)
    said = meaning(place.kind, place.step, key)
    return f"**{key}**\n\n{said}" if said else ""


def _declared_text(view: View, place: YamlPlace, key: str, word: Span) -> str:
    file = file_of(view)
    if place.name == "input":
        for pipeline in file.pipelines:
            found = next((one for one in pipeline.input or () if one.name == key), None)
            if found is not None and any(
                name.span.start <= word.start <= name.span.end for name in pipeline.input_names
            ):
                return f"**input** {code(key)}\n\n{fields_words((found,))}"
    for schema in file.schemas:
        field = next((one for one in schema.fields if one.name == key), None)
        if field is not None and schema.span.start < word.start:
            return f"**field** {code(key)} of {code(schema.name)}\n\n{fields_words((field,))}"
    return ""


def step_text(view: View, kind: str, word: Span) -> str:
    """Return the hover of a step: what its kind does, its bound, and the prompt that a model would get."""
    lines = [f"**{kind}**\n\n{KIND_MEANINGS[kind]}"]
    way = way_to(view, word.end)
    if way is None or way.step.span.start != word.start:
        return lines[0]
    lines[0] = f"**step {way.label}: {kind}**\n\n{KIND_MEANINGS[kind]}"
    from quire.lsp.pipeline.decorations import step_bound

    if bound := step_bound(view, way.label):
        lines.append(f"At most {bound}.")
    if kind == "agent":
        lines.append(_prompt(view, way.label))
    return "\n\n".join(line for line in lines if line)


def _prompt(view: View, label: str) -> str:
    from quire.display.transcript import prompt_text
    from quire.lsp.prompts import preview_of

    try:
        return fenced(prompt_text(preview_of(view, label).request))
    except QuireError as error:
        return f"No prompt: {error}"
