"""Hovers of pipelines: paths with their types and writers, steps with their prompts, targets, tools, schemas, keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from quire.errors import QuireError
from quire.expr.functions import FUNCTIONS
from quire.formats.pipeline.language_words import BINDINGS, KIND_MEANINGS, SEED_FUNCTIONS, meaning
from quire.lsp.answers import Hover, code, fenced, kind_word, paragraphs
from quire.lsp.pipeline.completion import ends_in_text
from quire.lsp.pipeline.decorations import step_bound
from quire.lsp.pipeline.index import callee_of, input_fields, interface_of
from quire.lsp.pipeline.scopes import in_lambdas, is_input, names_at, scope_before, writers_of
from quire.lsp.pipeline.tree import YamlPlace, cursor_place, file_of, is_expression, place_of, way_to
from quire.lsp.playbook.tools import authority_of
from quire.lsp.prompts import prompt_text_of
from quire.lsp.tool_arguments import properties_of, required_in
from quire.plan.built_in_tools import BuiltInTool, built_in_tool
from quire.schema import fields_words, type_words
from quire.source import Span, line_end, line_start
from quire.values import encode
from quire.workspace.secrets import shown_model

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import PipelineFile
    from quire.lsp.document_view import View
    from quire.lsp.name_targets import CalledDocument
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
            written = key_text(view, place_of(start.path), word.of(text), word)
            return Hover(word, written) if written else None
    parent = place_of(place.path[:-1]) if place.mode == "value" and place.path else place_of(place.path)
    key = place.path[-1] if place.path else ""
    if place.mode == "value" and key == "prompt" and parent.kind == "body" and place.tag != "!file":
        reference = _around(_REFERENCE, text, offset)
        return _path(view, offset, place, Span(reference.start + 1, reference.end - 1)) if reference else None
    if place.mode == "value" and is_expression(parent, key, place.tag):
        return _expression(view, offset, place)
    return _value(view, parent, place, key, word) if word is not None else None


def _around(pattern: re.Pattern[str], text: str, offset: int) -> Span | None:
    """Return the match around an offset, in its line."""
    for match in pattern.finditer(text, line_start(text, offset), line_end(text, offset)):
        if match.start() <= offset <= match.end():
            return Span(*match.span())
    return None


def _expression(view: View, offset: int, place: CursorPlace) -> Hover | None:
    if ends_in_text(place.text):
        return None
    span = _around(_PATH, view.source.text, offset)
    if span is None:
        return None
    text = view.source.text
    if re.match(r"[ ]*\(", text[span.end : span.end + 8]):
        written = function_text(span.of(text))
        return Hover(span, written) if written else None
    return _path(view, offset, place, span)


def _path(view: View, offset: int, place: CursorPlace, span: Span) -> Hover | None:
    end = view.source.text.find(".", offset, span.end)
    end = span.end if end < 0 else end
    path = tuple(view.source.text[span.start : end].split("."))
    names = in_lambdas(view, names_at(view, offset, place), offset)
    written = binding_text(names, path) if len(path) == 1 else ""
    written = written or path_text(view, names, path)
    store = path[1:] if path[0] == "ctx" else () if names.is_bound(path[0]) else path
    return _of_store(view, Span(span.start, end), written, names, store) if written else None


def _of_store(view: View, span: Span, written: str, names: ReadableNames | None, store: tuple[str, ...]) -> Hover:
    """Return a hover that leads to the value of a store, or of a field in it."""
    if not store or names is None or names.pipeline is None:
        return Hover(span, written)
    part = names.pipeline.name.text if len(file_of(view).pipelines) > 1 else ""
    return Hover(span, written, ("stores", *store), part)


def _value(view: View, parent: YamlPlace, place: CursorPlace, key: str, word: Span) -> Hover | None:
    text = word.of(view.source.text)
    written = ""
    store: tuple[str, ...] = ()
    names = None
    if parent.kind in ("body", "field", "document") and key == "schema":
        written = schema_text(file_of(view), text)
    elif parent.kind in ("body", "target", "document") and key == "pipeline":
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
    return paragraphs(
        f"**agent** {code(name)}",
        f"model {code(shown_model(agent.model))}" if agent.model else "",
        "tools " + ", ".join(map(code, agent.tools)) if agent.tools else "",
    )


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
    return f"**{root}** {code(type_text(names.type_at(path)))}\n\n{_binding(names, root)}"


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
    return paragraphs(*lines)


def _field_lines(names: ReadableNames, path: tuple[str, ...]) -> list[str]:
    field = next((candidate for candidate in names.fields_at(path[:-1]) if candidate.name == path[-1]), None)
    if field is None:
        return []
    get = code(f"get({'.'.join(path[:-1])}, {path[-1]!r})")
    missing = "" if field.required else f"It may be missing: {get} gives null then."
    return [f"A field of {code(type_text(names.type_at(path[:-1])))}.", missing, field.description]


def _store_lines(view: View, names: ReadableNames, store: str) -> list[str]:
    pipeline = names.pipeline
    if pipeline is None:
        return []
    lines = []
    if is_input(pipeline, store):
        field = next((candidate for candidate in pipeline.input or () if candidate.name == store), None)
        lines.append("An input" + ("." if field else ", because it is read and no step has written it."))
        lines += [field.description] if field else []
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
        form, text = SEED_FUNCTIONS[name]
        return f"**{code(form)}**\n\n{text}"
    function = FUNCTIONS.get(name)
    if function is None:
        return ""
    forms = "\n".join(function.forms)
    examples = "\n".join(f"{text}  →  {value}" for text, value in function.examples)
    text = f"Gives {function.gives}." if function.gives not in ("any", "same") else ""
    return paragraphs(fenced(forms), function.meaning, text, fenced(examples))


def schema_text(file: PipelineFile, name: str) -> str:
    schema = next((schema for schema in file.schemas if schema.name == name), None)
    if schema is None:
        return ""
    fields = "\n".join(
        f"{field.name}: {type_words(field.type)}{'' if field.required else ' (optional)'}" for field in schema.fields
    )
    return f"**schema** {code(name)}\n\n{fenced(fields)}"


def target_text(view: View, name: str) -> str:
    """Return the signature of a callee: its inputs and the type of its result."""
    callee = callee_of(view, name)
    if callee is None:
        return ""
    lines = [f"**{kind_word(callee.kind)}** {code(name)}", callee.tree.description if callee.tree else ""]
    interface = interface_of(view, name)
    if interface is not None:
        fields = input_fields(view, name)
        inputs = []
        for input in interface.known if interface.known is not None else interface.required:
            type = f": {type_words(fields[input].type)}" if input in fields else ""
            inputs.append(f"{input}{type}" + ("" if input in interface.required else " (optional)"))
        lines.append(fenced("\n".join(inputs)) if inputs else "It takes no inputs.")
        result = interface.gives if callee.tree is None else _result_of(view, callee)
        lines.append(f"Gives {code(type_text(result))}.")
    shown = view.folder.shown(callee.path)
    return paragraphs(*lines, code(Path(shown).name if Path(shown).is_absolute() else shown))


def _result_of(view: View, callee: CalledDocument) -> FieldType | None:
    home = view if callee.path == view.path else view.folder.view(callee.path)
    if home is None:
        return None
    pipeline = next((pipeline for pipeline in file_of(home).pipelines if pipeline.name.text == callee.declared), None)
    return scope_before(home, pipeline, len(pipeline.steps)).types.pipe if pipeline is not None else None


def tool_text(view: View, name: str) -> str:
    """Return the hover of a tool: its description, arguments, class and tier, and if it is granted."""
    tool, settings = built_in_tool(name), view.folder.settings
    if tool is None:
        server, _, its_tool = name.partition("__")
        if settings is not None and its_tool and server in settings.servers:
            return _server_tool_text(view, server, its_tool)
        return ""
    needed = required_in(tool.schema)
    arguments = [
        f"{argument}: {_argument(about)}{'' if argument in needed else ' (optional)'}"
        for argument, about in properties_of(tool.schema).items()
    ]
    return paragraphs(
        f"**tool** {code(name)}",
        tool.description,
        fenced("\n".join(arguments)),
        f"Class {code(tool.effect)}, tier {code(tool.risk)}.",
        _granted(view, tool),
    )


def _server_tool_text(view: View, server: str, tool: str) -> str:
    """Return the hover of a tool of a server, which is not asked about it."""
    head = f"**tool** {code(tool)} of the server {code(server)}"
    unknown = "The server is not started here, so its arguments are not known."
    authority = authority_of(view, server, tool)
    if authority is None:
        return paragraphs(head, unknown)
    tier = f", tier {code(authority.tier)}" if authority.tier else ""
    missing = "Not granted: agree to this workspace with `quire trust`."
    granted = f"Granted by {authority.granted_by}." if authority.granted_by else missing
    return paragraphs(head, f"Class {code(authority.effect)}{tier}.", granted, unknown)


def _argument(about: Mapping[str, Any]) -> str:
    type = about.get("type") or ("one of " + ", ".join(map(str, about["enum"])) if "enum" in about else "any value")
    description = about.get("description")
    return f"{type}" + (f" – {description}" if description else "")


def _granted(view: View, tool: BuiltInTool) -> str:
    if tool.granted == "always":
        return "Granted: every run may use it."
    if tool.granted == "in a workspace":
        return "Granted in a workspace."
    settings = view.folder.settings
    if any(str(grant).partition("=")[0] in (tool.id, tool.name) for grant in (settings.granted if settings else ())):
        return "Granted by the settings."
    return f"Not granted: a run needs {code(f'--allow {tool.name}')}."


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
    text = meaning(place.kind, place.step, key)
    return f"**{key}**\n\n{text}" if text else ""


def _declared_text(view: View, place: YamlPlace, key: str, word: Span) -> str:
    file = file_of(view)
    if place.name == "input":
        for pipeline in file.pipelines:
            input = next((field for field in pipeline.input or () if field.name == key), None)
            if input is not None and any(name.span.holds(word.start) for name in pipeline.input_names):
                return f"**input** {code(key)}\n\n{fields_words((input,))}"
    for schema in file.schemas:
        field = next((field for field in schema.fields if field.name == key), None)
        if field is not None and schema.span.start < word.start:
            return f"**field** {code(key)} of {code(schema.name)}\n\n{fields_words((field,))}"
    return ""


def step_text(view: View, kind: str, word: Span) -> str:
    """Return the hover of a step: the meaning of its kind, its bound, and the prompt that a model would get."""
    lines = [f"**{kind}**\n\n{KIND_MEANINGS[kind]}"]
    way = way_to(view, word.end)
    if way is None or way.step.span.start != word.start:
        return lines[0]
    lines[0] = f"**step {way.label}: {kind}**\n\n{KIND_MEANINGS[kind]}"
    if bound := step_bound(view, way.label):
        lines.append(f"At most {bound}.")
    if kind == "agent":
        lines.append(_prompt(view, way.label))
    return paragraphs(*lines)


def _prompt(view: View, label: str) -> str:
    try:
        return fenced(prompt_text_of(view, label))
    except QuireError as error:
        return f"No prompt: {error}"
