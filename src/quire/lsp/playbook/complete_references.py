"""Complete what a playbook refers to: tools, documents, arguments, models, and prompts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from quire.lsp.answers import Completion
from quire.lsp.playbook.callees import OWN, callable_documents, prompt_folders
from quire.lsp.playbook.hover_references import argument_lines, tool_class
from quire.lsp.playbook.hover_text import escaped, paragraphs
from quire.lsp.playbook.known_tools import Argument, arguments_of, built_in, connections, tool_names
from quire.lsp.playbook.step_prompts import resolved_model
from quire.lsp.playbook.tool_text import json_texts, open_place, read_tool
from quire.plan.built_in_tools import BUILT_IN_TOOLS
from quire.source import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quire.lsp.views import View

MOST_FILES = 300


def complete_tool(view: View, start: int, offset: int) -> list[Completion]:
    """Return the connections, tools, or arguments of the `@tool` of a line."""
    text = view.source.text
    call = read_tool(text, start, offset)
    if call is None:
        return []
    if call.tool_span is None:
        span = Span(call.connection_span.start, offset)
        return [
            Completion(name, "module", detail=about, order=at, span=span)
            for at, (name, about) in enumerate(connections(view))
        ][:50]
    if call.arguments is None:
        return _tools(view, call.connection, Span(call.tool_span.start, offset))
    known = arguments_of(view, call.connection, call.tool)
    if known is None:
        return []
    place, key, at = open_place(text, call.arguments, offset)
    if place == "key":
        return _keys(view, known, call.arguments, at, offset)
    if place == "value":
        return _values(view, known, key, at, offset)
    return [_all_arguments(known, Span(offset, offset))] if not text[call.arguments : offset].strip() else []


def _tools(view: View, connection: str, span: Span) -> list[Completion]:
    if connection != OWN:
        return [Completion(name, "function", detail=connection, span=span) for name in tool_names(view, connection)]
    found = [
        Completion(tool.name, "function", detail=tool.effect, order=2, span=span, resolve=f"tool:{tool.name}")
        for tool in BUILT_IN_TOOLS
    ]
    is_quoted = view.source.text[span.start - 1 : span.start] == '"'
    for name, kind in callable_documents(view):
        order = 4 if name.startswith("rye/") else 1
        insert = "" if is_quoted or "/" not in name else f'"{name}"'
        found.append(Completion(name, "module", insert, detail=kind, order=order, span=span, resolve=f"tool:{name}"))
    return found


def tool_page(view: View, name: str) -> str:
    """Return the documentation of a built-in tool or a document."""
    own = built_in(name)
    return paragraphs(
        escaped(own.description) if own else "",
        tool_class(view, OWN, name) if own else "",
        argument_lines(arguments_of(view, OWN, name)),
    )


def _all_arguments(known: Sequence[Argument], span: Span) -> Completion:
    """Return a completion with all required arguments."""
    needed = [one for one in known if one.required] or list(known[:1])
    filled = ", ".join(_pair(one, at) for at, one in enumerate(needed, 1))
    return Completion("{…}", "snippet", f"{{{filled}}}", True, "the required arguments", span=span)


def _pair(one: Argument, at: int) -> str:
    sign = '"' if _is_quoted(one) else ""
    return f'"{one.name}": {sign}${{{at}:{one.options[0] if one.options else one.name}}}{sign}'


def _is_quoted(one: Argument) -> bool:
    return one.is_text and not one.type.startswith(("integer", "number", "array", "object", "boolean"))


def _keys(view: View, known: Sequence[Argument], first: int, start: int, offset: int) -> list[Completion]:
    """Return the arguments that the call does not have yet."""
    text = view.source.text
    end = text.find("\n", offset)
    end = len(text) if end < 0 else end
    given = {
        text[one.span.start : one.span.end] for one in json_texts(text, first, end) if one.is_key and one.depth == 1
    }
    is_quoted = start > 0 and text[start - 1] == '"'
    has_end = text[offset : offset + 1] == '"'
    found = []
    for one in known:
        if one.name in given and one.name != text[start:offset]:
            continue
        insert = f"{one.name}" if has_end else f'{one.name}": ' if is_quoted else f'"{one.name}": '
        order = 1 if one.required else 3
        about = escaped(one.description)
        found.append(Completion(one.name, "property", insert, False, one.type, about, order, Span(start, offset)))
    return found


def _values(view: View, known: Sequence[Argument], key: str, start: int, offset: int) -> list[Completion]:
    argument = next((one for one in known if one.name == key), None)
    if argument is None:
        return []
    in_quotes = view.source.text[start - 1 : start] == '"'
    sign = '"' if argument.is_text and not in_quotes else ""
    return [
        Completion(one, "enum", f"{sign}{one}{sign}", span=Span(start, offset))
        for one in argument.options
        if argument.is_text or not in_quotes
    ]


def complete_model(view: View, span: Span) -> list[Completion]:
    """Return the agents and tiers that a step can ask for."""
    settings = view.folder.settings
    if settings is None:
        return []
    from quire.models.tiers import step_models

    found = [
        Completion(name, "class", detail=f"agent · {resolved_model(settings, name)}", order=1, span=span)
        for name in settings.agents
    ]
    for name in dict.fromkeys(step_models(settings.models)):
        means = resolved_model(settings, name)
        if means and name not in settings.agents:
            order = 2 if name in settings.models.tiers else 4
            found.append(Completion(name, "enum", detail=f"tier · {means}", order=order, span=span))
    return found


def complete_prompt(view: View, typed: str, start: int, offset: int) -> list[Completion]:
    """Return the schemes of `@prompt`, or what can stand behind one."""
    scheme, colon, where = typed.partition(":")
    if not colon:
        span = Span(start, offset)
        texts = {"library:": "of the prompt library", "file:": "beside the playbook", "mcp:": "of a server"}
        found = [Completion(one, "keyword", detail=about, order=1, span=span) for one, about in texts.items()]
        return [*found, Completion("{{name}}", "snippet", "{{${1:name}}}", True, "the text of a value", span=span)]
    at = start + len(scheme) + 1
    if scheme == "library":
        return _library(view, Span(at, offset))
    if scheme == "file":
        return _files(view, where, offset)
    settings = view.folder.settings
    if scheme == "mcp" and settings is not None and "/" not in where:
        return [Completion(one, "module", f"{one}/", span=Span(at, offset)) for one in settings.servers]
    return []


def _library(view: View, span: Span) -> list[Completion]:
    found: dict[str, Completion] = {}
    for folder in prompt_folders(view):
        for name in _names_in(folder):
            if name.endswith(".md"):
                found.setdefault(name[:-3], Completion(name[:-3], "file", detail=str(folder), span=span))
    return list(found.values())[:MOST_FILES]


def _files(view: View, where: str, offset: int) -> list[Completion]:
    """Return the files and folders of the folder that is typed. Hidden ones are left out."""
    from quire.formats.playbook.lint import leaves_folder

    folder, _, name = where.rpartition("/")
    if leaves_folder(where) or "{{" in folder:
        return []
    home = Path(view.path).parent
    place = home / folder
    if not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(home)):
        return []
    span = Span(offset - len(name), offset)
    found = []
    for one in _names_in(place):
        if (place / one).is_dir():
            found.append(Completion(f"{one}/", "folder", order=2, span=span))
        elif str(place / one) != view.path:
            found.append(Completion(one, "file", order=1 if one.endswith((".md", ".txt")) else 3, span=span))
    return found[:MOST_FILES]


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))  # noqa: PTH208
    except OSError:
        return []
