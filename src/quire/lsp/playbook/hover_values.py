"""Show what a value of a playbook is: who gives it, its type, its default, and who reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.playbook.hover_text import escaped, listed, paragraphs, quoted
from quire.lsp.playbook.known_tools import arguments_of
from quire.lsp.playbook.layout import HOW_WORDS, Capture, layout_of
from quire.lsp.playbook.tool_text import read_tool
from quire.source import PLACEHOLDER

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import InputDeclaration
    from quire.lsp.answers import Name
    from quire.lsp.views import View

_MOST_WRITERS = 8


def value_hover(view: View, name: Name, offset: int) -> str:
    """Return the facts about an input or a kept result."""
    if name.document and name.document != view.path:
        return _passed(view, name)
    layout = layout_of(view)
    declared = layout.inputs.get(name.text)
    writers = [one for one in layout.captures if one.name == name.text]
    if declared is not None and name.kind == "input":
        return paragraphs(_input(declared), _readers(view, name), _shadowed(writers))
    if not writers:
        return _unset(view, name, offset)
    late = ""
    if name.role == "reads" and all(one.name != name.text for one in layout.readable(offset, own=True)):
        late = "Nothing is there yet at this place: it is set later, or in another arm."
    lines = "\n".join(f"- {_writer(one)}" for one in writers[:_MOST_WRITERS])
    more = f"\n- and {len(writers) - _MOST_WRITERS} more" if len(writers) > _MOST_WRITERS else ""
    kinds = " or ".join(dict.fromkeys(quoted(one.type_words) for one in writers[:_MOST_WRITERS]))
    head = f"**{quoted(name.text)}** · {_kind(writers[0])}, {kinds}"
    return paragraphs(head, lines + more, late, _readers(view, name))


def _kind(writer: Capture) -> str:
    return "answer" if writer.how == "answer" else "kept result"


def _writer(one: Capture) -> str:
    title = f" ({escaped(one.title)})" if one.title else ""
    field = f" ({quoted(one.field)})" if one.field else ""
    return f"step {one.label}{title} keeps {HOW_WORDS[one.how]}{field}"


def _input(declared: InputDeclaration) -> str:
    kind = declared.type
    if declared.options:
        kind = " | ".join(f'"{one}"' for one in declared.options)
    default = "required" if declared.default is None else f"default {quoted(declared.default)}"
    return paragraphs(f"**{quoted(declared.name)}** · input, {quoted(kind)}, {default}", escaped(declared.description))


def _shadowed(writers: list[Capture]) -> str:
    if not writers:
        return ""
    return f"The `@output` of {listed(one.label for one in writers)} has the same name, and can never be read."


def _readers(view: View, name: Name) -> str:
    """Return the steps that read a value."""
    layout = layout_of(view)
    reading = [one for one in view.index.same(name) if one.role == "reads"]
    labels = [part.label for one in reading if (part := layout.part_at(one.span.start))]
    return f"Read in {listed(labels)}." if labels else "No step reads it." if name.role != "reads" else ""


def _unset(view: View, name: Name, offset: int) -> str:
    """Return the facts about a name that nothing sets."""
    text = view.source.text
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    for found in PLACEHOLDER.finditer(text, start, end if end >= 0 else len(text)):
        if found.start() <= offset <= found.end() and found[3] is not None:
            return paragraphs(
                f"**{quoted(name.text)}** · set by nothing", f"It is {quoted(found[3])}, its own default."
            )
    return paragraphs(
        f"**{quoted(name.text)}** · set by nothing",
        "It is sent as it stands. Declare it in `## INPUTS`, or keep it with `@output` before.",
    )


def _passed(view: View, name: Name) -> str:
    """Return the facts about an input of a callee."""
    line = view.source.line_span(view.source.position(name.span.start).line)
    call = read_tool(view.source.text, line.start, line.end)
    known = arguments_of(view, call.connection, call.tool) if call else None
    for one in known or ():
        if one.name == name.text:
            needed = "required" if one.required else "optional"
            head = (
                f"**{quoted(name.text)}** · input of {quoted(call.tool if call else '')}, {quoted(one.type)}, {needed}"
            )
            return paragraphs(head, escaped(one.description))
    return f"**{quoted(name.text)}** · not an input of {quoted(call.tool)}" if call and known is not None else ""
