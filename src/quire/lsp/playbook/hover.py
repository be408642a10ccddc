"""Show what stands under the cursor in a playbook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.answers import Hover, Name
from quire.lsp.bounds import bound_words
from quire.lsp.markdown import fenced
from quire.lsp.playbook.directive_forms import FORMS, MARKER_MEANINGS, MEANINGS
from quire.lsp.playbook.hover_references import document_hover, model_hover, prompt_hover, tool_hover
from quire.lsp.playbook.hover_steps import step_hover
from quire.lsp.playbook.hover_text import escaped, paragraphs, quoted
from quire.lsp.playbook.hover_values import value_hover
from quire.lsp.playbook.layout import layout_of
from quire.patterns import late_pattern
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.views import View

_DIRECTIVE = late_pattern(r"[^\S\n]*+@([a-z]++)\(")
_MARKER = late_pattern(r"[^\S\n]*+```(if|elif|else|endif)\b")


def hover(view: View, offset: int) -> Hover | None:
    """Return what is known about the place: a name, a step, a directive, the title, or else a finding."""
    name = view.index.at(offset)
    found = _name(view, name, offset) if name is not None else None
    return found or _line(view, offset) or _finding(view, offset)


def _name(view: View, name: Name, offset: int) -> Hover | None:
    text = ""
    value: tuple[str, ...] = ()
    match name.kind:
        case "input" | "output":
            text = value_hover(view, name, offset)
            if not name.document or name.document == view.path:
                value = ("inputs" if name.kind == "input" else "outputs", name.text)
        case "step":
            text = step_hover(view, name.text)
        case "tool" | "server":
            text = tool_hover(view, name)
        case "document" | "pipeline" | "directive":
            text = document_hover(view, name)
        case "model" | "agent":
            text = model_hover(view, name)
        case "prompt" | "file":
            text = prompt_hover(view, name)
    return Hover(name.span, text, value) if text else None


def _line(view: View, offset: int) -> Hover | None:
    """Return what a heading, a directive or a marker of the line is."""
    layout, text = layout_of(view), view.source.text
    start = text.rfind("\n", 0, offset) + 1
    part = layout.part_at(offset)
    if part is not None and part.heading.start <= offset <= part.heading.end:
        said = step_hover(view, part.label)  # empty for a heading that looks like a step and is not one
        return Hover(part.heading, said) if said else None
    title = layout.scan.title
    if title is not None and title.start() == start:
        return Hover(view.source.line_span(view.source.position(offset).line), _title(view))
    if part is None:
        return None
    if (directive := _DIRECTIVE.match(text, start)) and directive[1] in FORMS and offset <= directive.end():
        word = directive[1]
        forms = "\n".join(form.label for form in FORMS[word])
        span = Span(directive.start(1) - 1, directive.end(1))
        return Hover(span, paragraphs(f"**`@{word}`**", MEANINGS[word], fenced(forms, "markdown")))
    if (marker := _MARKER.match(text, start)) and offset <= marker.end():
        span = Span(marker.start(1), marker.end(1))
        return Hover(span, paragraphs(f"**`{marker[1]}`**", MARKER_MEANINGS[marker[1]]))
    return None


def _title(view: View) -> str:
    tree = view.reading.partial
    bound = bound_words(view, quick=True)
    about = f"Inputs: {', '.join(quoted(one.name) for one in tree.inputs[:20])}" if tree and tree.inputs else ""
    return paragraphs(
        f"**{escaped(tree.title)}** · playbook" if tree else "",
        escaped(tree.description) if tree else "",
        about,
        f"A run takes {bound}." if bound else "",
    )


def _finding(view: View, offset: int) -> Hover | None:
    """Return the page of the code of a finding at a place."""
    inside = [one for one in view.findings if one.span.start <= offset <= one.span.end]
    if not inside:
        return None
    found = min(inside, key=lambda one: one.span.end - one.span.start)
    head = f"**{found.code.id}** · {found.code.name} · {found.severity}"
    return Hover(found.span, paragraphs(head, escaped(found.message), fenced(found.code.explanation, "text")))
