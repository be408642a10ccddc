"""The names of other things in a playbook: documents that it calls, prompts, servers, tools, models and agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.answers import Link, Name
from quire.lsp.name_targets import pipeline_names
from quire.lsp.playbook.callees import OWN, CalledDocument, called_document, prompt_path, settings_file
from quire.lsp.playbook.tool_text import json_texts, read_tool
from quire.source import Span

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import ModelChoice, PromptReference, Step, ToolCall
    from quire.lsp.answers import NameKind
    from quire.lsp.views import View


def references(view: View, step: Step, names: list[Name], links: list[Link]) -> None:
    """Add the names and links of one step."""
    if step.tool:
        _tool(view, step.tool, names, links)
    if step.prompt:
        _prompt(view, step.prompt, names, links)
    if step.model:
        names.append(_model(view, step.model))


def _tool(view: View, call: ToolCall, names: list[Name], links: list[Link]) -> None:
    written = read_tool(view.source.text, call.start, call.end - 1)
    if written is None or written.tool_span is None:
        return
    names.append(Name("server", call.connection, written.connection_span, "reads", renames=False))
    callee = called_document(view, call.tool) if call.connection == OWN else None
    if callee is None:
        names.append(Name("tool", call.tool, written.tool_span, "reads", call.connection, renames=False))
        return
    if callee.kind == "pipeline":
        names += pipeline_names(call.tool, written.tool_span, callee.declared, callee.path)
    else:
        names.append(Name(callee.kind, call.tool, written.tool_span, "reads", "", callee.path, renames=False))
    links.append(Link(written.tool_span, callee.path, f"Open {call.tool}"))
    if written.arguments is not None:
        names += _passed(view, callee, written.arguments, call.end - 1)


def _passed(view: View, callee: CalledDocument, start: int, end: int) -> list[Name]:
    """Return the inputs of a callee that a call gives values to."""
    text = view.source.text
    return [
        Name("input", text[one.span.start : one.span.end], one.span, "writes", callee.scope, callee.path)
        for one in json_texts(text, start, end)
        if one.is_key and one.depth == 1
    ]


def _prompt(view: View, prompt: PromptReference, names: list[Name], links: list[Link]) -> None:
    scheme, colon, where = prompt.ref.partition(":")
    if not colon:
        return
    end = prompt.end - 1
    span = Span(end - len(where), end)
    if scheme == "mcp":
        server = where.partition("/")[0]
        names.append(Name("server", server, Span(span.start, span.start + len(server)), "reads", renames=False))
        return
    path = prompt_path(view, prompt.ref)
    if path:
        kind: NameKind = "file" if scheme == "file" else "prompt"
        names.append(Name(kind, where, span, "reads", document=path, renames=False))
        links.append(Link(span, path, "Open the prompt"))


def _model(view: View, choice: ModelChoice) -> Name:
    """Return the name of a profile or a tier. One that the workspace's own settings declare belongs to them."""
    settings = view.folder.settings
    kind: NameKind = "agent" if settings is not None and choice.name in settings.agents else "model"
    file = settings_file(view)
    is_known = settings is not None and (kind == "agent" or choice.name in settings.models.tiers)
    toml = view.folder.view(file) if is_known else None
    is_declared = toml is not None and choice.name in toml.source.text
    document = file if is_declared else ""
    return Name(kind, choice.name, choice.name_span, "reads", document=document, renames=is_declared)
