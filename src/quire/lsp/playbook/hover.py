"""Show hovers in a playbook: for values, steps, directives, and references."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from quire.display.visible import visible
from quire.lsp.answers import Hover, Name, code, fenced, kind_word, paragraphs
from quire.lsp.bounds import bound_words
from quire.lsp.playbook.directive_forms import FORMS, MARKER_MEANINGS, MEANINGS
from quire.lsp.playbook.index import arm_words, tree_of, work_words
from quire.lsp.playbook.layout import HOW_WORDS, Capture, layout_of, steps_of
from quire.lsp.playbook.tools import OWN, PYTHON, arguments_of, authority_of, read_tool
from quire.lsp.prompts import RUN_MODEL, composed_prompt, model_of_step, resolved_model
from quire.patterns import late_pattern
from quire.plan.built_in_tools import built_in_tool
from quire.source import PLACEHOLDER, Span, line_end, line_start
from quire.wording import cut_line, cut_off

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import InputDeclaration, Playbook, Step
    from quire.lsp.document_view import View
    from quire.lsp.tool_arguments import Argument

_MARKUP = late_pattern(r"([\\`*_{}\[\]<>()#+!|~-])")
LONGEST_LINE = 300
_MOST_LABELS = 8


def escaped(text: str) -> str:
    """Return a text of a document on one line, without markup: it may hold links and pictures."""
    return _MARKUP.sub(r"\\\1", cut_line(" ".join(visible(text).split()), LONGEST_LINE))


def quoted(text: str) -> str:
    """Return a short text of a document as code."""
    return code(cut_line(" ".join(visible(text).split()), LONGEST_LINE))


def listed(labels: Iterable[str]) -> str:
    """Return the labels of steps in words: `step 1`, `steps 1, 3a and 2 more`."""
    names = list(dict.fromkeys(labels))
    if not names:
        return ""
    shown = ", ".join(names[:_MOST_LABELS]) + (
        f" and {len(names) - _MOST_LABELS} more" if len(names) > _MOST_LABELS else ""
    )
    return f"step {shown}" if len(names) == 1 else f"steps {shown}"


_MOST_WRITERS = 8


def value_hover(view: View, name: Name, offset: int) -> str:
    """Return the facts about an input or a kept result."""
    if name.document and name.document != view.path:
        return _passed(view, name)
    layout = layout_of(view)
    declared = layout.inputs.get(name.text)
    writers = [capture for capture in layout.captures if capture.name == name.text]
    if declared is not None and name.kind == "input":
        steps = listed(writer.label for writer in writers)
        shadowed = f"The `@output` of {steps} has the same name, and can never be read." if steps else ""
        return paragraphs(_input(declared), _readers(view, name), shadowed)
    if not writers:
        return _unset(view, name, offset)
    late = ""
    if name.role == "reads" and all(capture.name != name.text for capture in layout.readable(offset, own=True)):
        late = "It has no value here yet: it is set later, or in another branch."
    lines = "\n".join(f"- {_writer(writer)}" for writer in writers[:_MOST_WRITERS])
    more = f"\n- and {len(writers) - _MOST_WRITERS} more" if len(writers) > _MOST_WRITERS else ""
    kinds = " or ".join(dict.fromkeys(quoted(writer.type_words) for writer in writers[:_MOST_WRITERS]))
    kind = "answer" if writers[0].how == "answer" else "kept result"
    head = f"**{quoted(name.text)}** · {kind}, {kinds}"
    return paragraphs(head, lines + more, late, _readers(view, name))


def _writer(capture: Capture) -> str:
    title = f" ({escaped(capture.title)})" if capture.title else ""
    field = f" ({quoted(capture.field)})" if capture.field else ""
    return f"step {capture.label}{title} keeps {HOW_WORDS[capture.how]}{field}"


def _input(declared: InputDeclaration) -> str:
    kind = declared.type
    if declared.options:
        kind = " | ".join(f'"{option}"' for option in declared.options)
    default = "required" if declared.default is None else f"default {quoted(declared.default)}"
    return paragraphs(f"**{quoted(declared.name)}** · input, {quoted(kind)}, {default}", escaped(declared.description))


def _readers(view: View, name: Name) -> str:
    """Return the steps that read a value."""
    layout = layout_of(view)
    reading = [place for place in view.index.same(name) if place.role == "reads"]
    labels = [part.label for place in reading if (part := layout.part_at(place.span.start))]
    return f"Read in {listed(labels)}." if labels else "No step reads it." if name.role != "reads" else ""


def _unset(view: View, name: Name, offset: int) -> str:
    """Return the facts about a name that nothing sets."""
    text = view.source.text
    for match in PLACEHOLDER.finditer(text, line_start(text, offset), line_end(text, offset)):
        if match.start() <= offset <= match.end() and match[3] is not None:
            return paragraphs(
                f"**{quoted(name.text)}** · set by nothing", f"It is {quoted(match[3])}, its own default."
            )
    return paragraphs(
        f"**{quoted(name.text)}** · set by nothing",
        "It is sent to the model literally. Declare it in `## INPUTS`, or keep it with `@output` before.",
    )


def _passed(view: View, name: Name) -> str:
    """Return the facts about an input of a called document."""
    line = view.line(name.span.start)
    call = read_tool(view.source.text, line.start, line.end)
    arguments = arguments_of(view, call.connection, call.tool) if call else None
    for argument in arguments or ():
        if argument.name == name.text:
            needed = "required" if argument.required else "optional"
            tool = quoted(call.tool if call else "")
            head = f"**{quoted(name.text)}** · input of {tool}, {quoted(argument.type)}, {needed}"
            return paragraphs(head, escaped(argument.description))
    return f"**{quoted(name.text)}** · not an input of {quoted(call.tool)}" if call and arguments is not None else ""


LONGEST_PROMPT = 8_000


def step_of(tree: Playbook | None, label: str) -> Step | None:
    """Return the first step or sub-step of a label."""
    return next((step for step in steps_of(tree) if step.label == label), None)


def step_hover(view: View, label: str) -> str:
    """Return the facts about a step; empty if there is none of that label."""
    step = step_of(view.reading.partial, label)
    if step is None:
        return ""
    work = work_words(step)
    title = f": {escaped(step.title)}" if step.title else ""
    head = f"**STEP {step.label}{title}**" + (f" · {escaped(work)}" if work else "")
    bound = bound_words(view, quick=True)
    return paragraphs(
        head,
        _question_text(step),
        _arms_text(step),
        _prompt(view, step),
        f"The document takes {bound}." if bound else "",
    )


def _question_text(step: Step) -> str:
    elicitation = step.elicitation
    if elicitation is None or step.tool:
        return ""
    answers = {"confirm": "yes or no", "input": "any text"}.get(elicitation.kind) or " or ".join(
        map(quoted, elicitation.options)
    )
    default = f"; unattended {quoted(elicitation.default)}" if elicitation.default is not None else ""
    return f"Asks: {escaped(elicitation.prompt)} ({answers}{default})"


def _arms_text(step: Step) -> str:
    if not step.arms:
        return ""
    lines = []
    for arm in step.arms:
        labels = ", ".join(inner.label for inner in arm.steps) or "nothing"
        lines.append(f"- {quoted(arm_words(arm))} → {labels}")
    if all(arm.condition for arm in step.arms):
        lines.append("- otherwise no branch is taken")
    return "\n".join(lines)


def _prompt(view: View, step: Step) -> str:
    if step.tool or not (step.has_text or step.prompt):
        return ""
    model = model_of_step(view, step.label, step.model.name if step.model else "")
    prompt = composed_prompt(view, step.label)
    if prompt.problem:
        return f"No prompt to show: {escaped(prompt.problem)}"
    notes = "\n".join(f"- {escaped(note)}" for note in prompt.notes)
    sent = f"Sent to {quoted(model)}:" if ":" in model else "Sent to the model:"
    return paragraphs(sent, fenced(cut_off(prompt.text.strip(), LONGEST_PROMPT), "text"), notes)


LONGEST_TEXT = 2_000
_EFFECTS = {
    "read": "only reads",
    "idempotent": "writes; doing it twice is the same as once",
    "write": "changes something",
    "unknown": "may change something: the class of its effect is not known",
}


def tool_hover(view: View, name: Name) -> str:
    """Return the facts about a tool or a connection."""
    if name.kind == "server":
        return _connection(view, name.text)
    connection = name.scope
    own = built_in_tool(name.text) if connection == OWN else None
    if connection == OWN and own is None:
        return paragraphs(
            f"**{quoted(name.text)}** · not known", "Neither a built-in tool nor a document has this name."
        )
    place = "function of this workspace" if connection == PYTHON else f"tool of the server {quoted(connection)}"
    head = f"**{quoted(name.text)}** · {'built-in tool' if own else place}"
    arguments = arguments_of(view, connection, name.text)
    more = "" if own else "Its arguments are known when its server or module is started."
    return paragraphs(
        head,
        escaped(own.description) if own else "",
        tool_class(view, connection, name.text),
        argument_lines(arguments),
        more,
    )


def tool_class(view: View, connection: str, tool: str) -> str:
    """Return the class of a tool's effect, its tier, and the source of its grant."""
    authority = authority_of(view, connection, tool)
    if authority is None:
        return ""
    tier = f", tier {quoted(authority.tier)}" if authority.tier else ""
    missing = "a run needs `--allow`" if connection == OWN else "agree to this workspace with `quire trust`"
    granted = f"Granted by {authority.granted_by}." if authority.granted_by else f"Not granted: {missing}."
    return f"It {_EFFECTS.get(authority.effect, authority.effect)}{tier}. {granted}"


def argument_lines(arguments: Sequence[Argument] | None) -> str:
    """Return the arguments as a list, the required ones first."""
    lines = []
    for argument in sorted(arguments or (), key=lambda argument: not argument.required):
        about = f": {escaped(argument.description)}" if argument.description else ""
        lines.append(
            f"- {quoted(argument.name)} ({escaped(argument.type)}{', required' if argument.required else ''}){about}"
        )
    return "\n".join(lines)


def _connection(view: View, name: str) -> str:
    settings = view.folder.settings
    if name == OWN:
        return "**`quire`** · built-in tools, and other documents by their names"
    if name == PYTHON:
        modules = ", ".join(map(quoted, settings.tools.modules)) if settings else ""
        return paragraphs("**`python`** · functions of this workspace", f"From {modules}." if modules else "")
    if settings is not None and name in settings.servers:
        return f"**{quoted(name)}** · MCP server"
    return paragraphs(f"**{quoted(name)}** · not known", "No server of `.mcp.json` has this name.")


def document_hover(view: View, name: Name) -> str:
    """Return the facts about a document that is called."""
    arguments = arguments_of(view, OWN, name.text)
    library = view.folder.snapshot
    description = ""
    if library is not None:
        home = view.folder.view(name.document)
        tree = tree_of(home) if home is not None else None
        description = tree.description if tree else ""
    takes = argument_lines(arguments)
    return paragraphs(
        f"**{quoted(name.text)}** · {kind_word(name.kind)}, {quoted(view.folder.shown(name.document))}",
        escaped(description),
        f"Inputs:\n\n{takes}" if takes else "It takes no inputs." if arguments is not None else "",
    )


def model_hover(view: View, name: Name) -> str:
    """Return the model that a name means here."""
    settings = view.folder.settings
    if settings is None:
        return ""
    kind = "agent" if name.kind == "agent" else "tier"
    model = resolved_model(settings, name.text)
    if not model:
        return paragraphs(
            f"**{quoted(name.text)}** · not known",
            "No tier and no profile of the settings has this name: the model of the run does the step.",
        )
    shown = model if model == RUN_MODEL else quoted(model)
    return f"**{quoted(name.text)}** · {kind}, means {shown}"


def prompt_hover(view: View, name: Name) -> str:
    """Return the text of a prompt."""
    home = view.folder.view(name.document)
    if home is None:
        return ""
    word = "prompt of the library" if name.kind == "prompt" else "file"
    return paragraphs(f"**{quoted(name.text)}** · {word}", fenced(cut_off(home.source.text, LONGEST_TEXT), "markdown"))


_DIRECTIVE = late_pattern(r"[^\S\n]*+@([a-z]++)\(")
_MARKER = late_pattern(r"[^\S\n]*+```(if|elif|else|endif)\b")


def hover(view: View, offset: int) -> Hover | None:
    """Return what is known about the place: a name, a step, a directive, the title, or else a finding."""
    name = view.index.at(offset)
    answer = _name(view, name, offset) if name is not None else None
    return answer or _line(view, offset) or _finding(view, offset)


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
    """Return the meaning of a heading, a directive or a marker of the line."""
    layout, text = layout_of(view), view.source.text
    start = line_start(text, offset)
    part = layout.part_at(offset)
    if part is not None and part.heading.holds(offset):
        about = step_hover(view, part.label)  # empty for a heading that looks like a step and is not one
        return Hover(part.heading, about) if about else None
    title = layout.scan.title
    if title is not None and title.start() == start:
        return Hover(view.line(offset), _title(view))
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
    about = f"Inputs: {', '.join(quoted(input.name) for input in tree.inputs[:20])}" if tree and tree.inputs else ""
    return paragraphs(
        f"**{escaped(tree.title)}** · playbook" if tree else "",
        escaped(tree.description) if tree else "",
        about,
        f"A run takes {bound}." if bound else "",
    )


def _finding(view: View, offset: int) -> Hover | None:
    """Return the page of the code of a finding at a place."""
    inside = [finding for finding in view.findings if finding.span.holds(offset)]
    if not inside:
        return None
    finding = min(inside, key=lambda finding: finding.span.end - finding.span.start)
    head = f"**{finding.code.id}** · {finding.code.name} · {finding.severity}"
    return Hover(finding.span, paragraphs(head, escaped(finding.message), fenced(finding.code.explanation, "text")))
