"""Complete directives of playbooks: their forms, what stands in their parentheses, and the names of values."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from quire.formats.playbook.names import family
from quire.formats.playbook.syntax import ELICIT_KINDS, INPUT_TYPES, OUTPUT_TYPES
from quire.lsp.answers import Completion, paragraphs, snippet
from quire.lsp.playbook.directive_forms import FORMS
from quire.lsp.playbook.hover import argument_lines, escaped, tool_class
from quire.lsp.playbook.index import KnownNames, input_words
from quire.lsp.playbook.layout import ASKED, HOW_WORDS, layout_of
from quire.lsp.playbook.tools import (
    OWN,
    arguments_of,
    callable_documents,
    connections,
    json_texts,
    open_place,
    prompt_folders,
    read_tool,
    tool_names,
)
from quire.lsp.prompts import resolved_model
from quire.patterns import late_pattern
from quire.plan.built_in_tools import BUILT_IN_TOOLS, built_in_tool
from quire.source import Span, line_end

if TYPE_CHECKING:
    from quire.lsp.document_view import View
    from quire.lsp.tool_arguments import Argument

MOST = 200
"""Names that are offered. The nearest captures come first."""
_FIRST, _SECOND, _THIRD, _LAST = 1, 2, 3, 8
_CAPTURED = late_pattern(r"@output\(([A-Za-z0-9_]++)")


def readable_names(view: View, offset: int, *, own: bool = False) -> Iterator[tuple[str, str, str, int]]:
    """Yield the names that can be read at a place, with their type, who gives them, and their order. A text that is not
    well-formed gives at least the names of captures that it has."""
    layout = layout_of(view)
    names: set[str] = set()
    for declared in layout.inputs.values():
        names.add(declared.name)
        yield declared.name, input_words(declared), declared.description, _SECOND
    for capture in islice(layout.readable(offset, own=own), MOST):
        if capture.name not in names:
            names.add(capture.name)
            about = f"step {capture.label} keeps {HOW_WORDS[capture.how]}"
            order = _THIRD if capture.name.startswith(ASKED) else _FIRST
            yield capture.name, capture.type_words, about, order
    if layout.part_at(offset) is None or layout.scan.blocks:
        for match in islice(_CAPTURED.finditer(view.source.text, 0, offset), MOST):
            if match[1] not in names:
                names.add(match[1])
                yield match[1], "", "kept before", _LAST


def placeholder_names(view: View, start: int, offset: int, reads: tuple[View, int] | None = None) -> list[Completion]:
    """Return the names for `{{`. The closing braces are added unless they are present. `reads` is the place that reads
    the names, if that is in another document: the one that uses a prompt file."""
    rest = view.source.text[offset : offset + 2]
    closing = "" if rest == "}}" else "}" if rest[:1] == "}" else "}}"
    return [
        Completion(
            name, "variable", name + closing, detail=type, documentation=about, order=order, span=Span(start, offset)
        )
        for name, type, about, order in readable_names(*(reads or (view, offset)))
    ]


def placeholder_types(start: int, offset: int) -> list[Completion]:
    return [Completion(type, "keyword", span=Span(start, offset)) for type in dict.fromkeys(INPUT_TYPES.values())]


def condition_names(view: View, start: int, offset: int) -> list[Completion]:
    """Return the names for a condition, which may read the result of its own step."""
    return [
        Completion(name, "variable", detail=type, documentation=about, order=order, span=Span(start, offset))
        for name, type, about, order in readable_names(view, offset, own=True)
    ]


def values_of(view: View, name: str) -> tuple[str, ...]:
    """Return the only texts that a name can have in a condition; empty if they are not known."""
    layout = layout_of(view)
    if (declared := layout.inputs.get(name)) is not None:
        return declared.options or (("true", "false") if declared.type == "boolean" else ())
    options: dict[str, None] = {}
    for capture in layout.captures:
        if capture.name == name:
            if not capture.options:
                return ("true", "false") if capture.type == "boolean" else ()
            options |= dict.fromkeys(capture.options)
    return tuple(options)


def condition_values(view: View, name: str, span: Span, opening: str, closing: str) -> list[Completion]:
    """Return the texts that a name can be compared with."""
    return [
        Completion(value, "enum", opening + value + closing, detail=f"value of {name}", order=1, span=span)
        for value in values_of(view, name)
    ]


def result_names(view: View, offset: int, span: Span) -> list[Completion]:
    """Return the names of earlier results, for `@context` and `from:`: outputs, and labels of steps."""
    layout = layout_of(view)
    completions: dict[str, Completion] = {}
    for capture in islice(layout.readable(offset), MOST):
        about = f"step {capture.label} keeps {HOW_WORDS[capture.how]}"
        completion = Completion(capture.name, "variable", detail=about, order=_FIRST, span=span)
        completions.setdefault(capture.name, completion)
    here = layout.part_at(offset)
    for part in layout.parts:
        is_before = part.start < offset and (here is None or part.top is not here.top or part is here.parent)
        if is_before and part.label not in completions:
            completions[part.label] = Completion(part.label, "reference", detail=part.title, order=_SECOND, span=span)
    return list(completions.values())


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
    arguments = arguments_of(view, call.connection, call.tool)
    if arguments is None:
        return []
    place, key, at = open_place(text, call.arguments, offset)
    if place == "key":
        return _keys(view, arguments, call.arguments, at, offset)
    if place == "value":
        return _values(view, arguments, key, at, offset)
    if text[call.arguments : offset].strip():
        return []
    needed = [argument for argument in arguments if argument.required] or list(arguments[:1])
    filled = ", ".join(_pair(argument, at) for at, argument in enumerate(needed, 1))
    return [Completion("{…}", "snippet", f"{{{filled}}}", True, "the required arguments", span=Span(offset, offset))]


def _tools(view: View, connection: str, span: Span) -> list[Completion]:
    if connection != OWN:
        return [Completion(name, "function", detail=connection, span=span) for name in tool_names(view, connection)]
    completions = [
        Completion(tool.name, "function", detail=tool.effect, order=2, span=span, resolve=f"tool:{tool.name}")
        for tool in BUILT_IN_TOOLS
    ]
    is_quoted = view.source.text[span.start - 1 : span.start] == '"'
    for name, kind in callable_documents(view):
        order = 4 if name.startswith("rye/") else 1
        insert = "" if is_quoted or "/" not in name else f'"{name}"'
        completions.append(
            Completion(name, "module", insert, detail=kind, order=order, span=span, resolve=f"tool:{name}")
        )
    return completions


def tool_page(view: View, name: str) -> str:
    """Return the documentation of a built-in tool or a document."""
    own = built_in_tool(name)
    return paragraphs(
        escaped(own.description) if own else "",
        tool_class(view, OWN, name) if own else "",
        argument_lines(arguments_of(view, OWN, name)),
    )


def _pair(argument: Argument, at: int) -> str:
    is_plain = argument.type.startswith(("integer", "number", "array", "object", "boolean"))
    sign = '"' if argument.is_text and not is_plain else ""
    return f'"{argument.name}": {sign}${{{at}:{argument.options[0] if argument.options else argument.name}}}{sign}'


def _keys(view: View, arguments: Sequence[Argument], first: int, start: int, offset: int) -> list[Completion]:
    """Return the arguments that the call does not have yet."""
    text = view.source.text
    keys = json_texts(text, first, line_end(text, offset))
    present = {key.span.of(text) for key in keys if key.is_key and key.depth == 1}
    is_quoted = start > 0 and text[start - 1] == '"'
    has_end = text[offset : offset + 1] == '"'
    completions = []
    for argument in arguments:
        if argument.name in present and argument.name != text[start:offset]:
            continue
        insert = f"{argument.name}" if has_end else f'{argument.name}": ' if is_quoted else f'"{argument.name}": '
        order = 1 if argument.required else 3
        about = escaped(argument.description)
        completions.append(
            Completion(argument.name, "property", insert, False, argument.type, about, order, Span(start, offset))
        )
    return completions


def _values(view: View, arguments: Sequence[Argument], key: str, start: int, offset: int) -> list[Completion]:
    argument = next((argument for argument in arguments if argument.name == key), None)
    if argument is None:
        return []
    in_quotes = view.source.text[start - 1 : start] == '"'
    sign = '"' if argument.is_text and not in_quotes else ""
    return [
        Completion(option, "enum", f"{sign}{option}{sign}", span=Span(start, offset))
        for option in argument.options
        if argument.is_text or not in_quotes
    ]


def complete_model(view: View, span: Span) -> list[Completion]:
    """Return the agents and tiers that a step can ask for."""
    settings = view.folder.settings
    if settings is None:
        return []
    from quire.models.tiers import step_models

    completions = [
        Completion(name, "class", detail=f"agent · {resolved_model(settings, name)}", order=1, span=span)
        for name in settings.agents
    ]
    for name in dict.fromkeys(step_models(settings.models)):
        means = resolved_model(settings, name)
        if means and name not in settings.agents:
            order = 2 if name in settings.models.tiers else 4
            completions.append(Completion(name, "enum", detail=f"tier · {means}", order=order, span=span))
    return completions


def complete_prompt(view: View, typed: str, start: int, offset: int) -> list[Completion]:
    """Return the schemes of `@prompt`, or what can stand behind one."""
    scheme, colon, where = typed.partition(":")
    if not colon:
        span = Span(start, offset)
        texts = {"library:": "of the prompt library", "file:": "beside the playbook", "mcp:": "of a server"}
        completions = [Completion(text, "keyword", detail=about, order=1, span=span) for text, about in texts.items()]
        return [
            *completions,
            Completion("{{name}}", "snippet", "{{${1:name}}}", True, "the text of a value", span=span),
        ]
    at = start + len(scheme) + 1
    if scheme == "library":
        return _library(view, Span(at, offset))
    if scheme == "file":
        return _files(view, where, offset)
    settings = view.folder.settings
    if scheme == "mcp" and settings is not None and "/" not in where:
        return [Completion(server, "module", f"{server}/", span=Span(at, offset)) for server in settings.servers]
    return []


def _library(view: View, span: Span) -> list[Completion]:
    completions: dict[str, Completion] = {}
    for folder in prompt_folders(view):
        for name in _names_in(folder):
            if name.endswith(".md"):
                completions.setdefault(name[:-3], Completion(name[:-3], "file", detail=str(folder), span=span))
    return list(completions.values())[:MOST_FILES]


def _files(view: View, where: str, offset: int) -> list[Completion]:
    """Return the files and folders of the folder that is typed. Hidden ones are left out."""
    from quire.formats.playbook.check import leaves_folder

    folder, _, name = where.rpartition("/")
    if leaves_folder(where) or "{{" in folder:
        return []
    home = Path(view.path).parent
    place = home / folder
    if not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(home)):
        return []
    span = Span(offset - len(name), offset)
    completions = []
    for file in _names_in(place):
        if (place / file).is_dir():
            completions.append(Completion(f"{file}/", "folder", order=2, span=span))
        elif str(place / file) != view.path:
            completions.append(Completion(file, "file", order=1 if file.endswith((".md", ".txt")) else 3, span=span))
    return completions[:MOST_FILES]


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))  # noqa: PTH208
    except OSError:
        return []


_WORD = late_pattern(r"[A-Za-z0-9_-]*+$")
_OUTPUT_TYPE = late_pattern(r"[A-Za-z0-9_]++\s*+:\s*+([A-Za-z0-9_]*+)$")
_AFTER_COMMA = late_pattern(r",\s*+([a-z]*+)$")
_DEFAULT = late_pattern(r'default:"([^"\n]*+)$')
_MOST_MISSING = 50


def directive_names(view: View, start: int, offset: int) -> list[Completion]:
    """Return all forms of all directives. The plainest form of each stands first."""
    span = Span(start, offset)
    return [
        snippet(form.label, form.snippet, form.meaning, 3 if at else 1, span)
        for forms in FORMS.values()
        for at, form in enumerate(forms)
    ]


def complete_directive(view: View, word: str, start: int, offset: int) -> list[Completion]:
    """Return what can stand in the parentheses of a directive; `start` is the start of the line."""
    text = view.source.text
    begin = text.index("(", start, offset) + 1
    typed = text[begin:offset]
    match word:
        case "output":
            return _output(view, typed, begin, offset)
        case "elicit":
            return _elicit(typed, begin, offset)
        case "prompt":
            return complete_prompt(view, typed, begin, offset)
        case "tool":
            return complete_tool(view, start, offset)
        case "context":
            return _context(view, typed, offset)
        case "model":
            return complete_model(view, Span(begin, offset))
    return []


def _output(view: View, typed: str, begin: int, offset: int) -> list[Completion]:
    if typed.count('"') % 2:
        return []
    if match := _OUTPUT_TYPE.match(typed):
        span = Span(offset - len(match[1]), offset)
        kinds = [Completion(type, "keyword", span=span, order=2) for type in dict.fromkeys(OUTPUT_TYPES.values())]
        return [snippet('enum, "a", "b"', 'enum, "${1:a}", "${2:b}"', "one of a few texts", 1, span), *kinds]
    if match := _AFTER_COMMA.search(typed):
        span = Span(offset - len(match[1]), offset)
        return [snippet('extract:"field"', 'extract:"${1:field}"', "one field of the reply", 5, span)]
    if ":" in typed or "," in typed:
        return []
    span, about = Span(begin, offset), "read, but set by nothing"
    close = "" if ")" in view.line_after(offset) else ")"
    inside = slice(len("@output("), -1)
    return [
        *(Completion(name, "variable", name + close, detail=about, order=1, span=span) for name in _missing(view)),
        *(snippet(form.label[inside], form.snippet[inside] + close, form.meaning, 3, span) for form in FORMS["output"]),
    ]


def _missing(view: View) -> list[str]:
    """Return the names that placeholders and conditions read, and that nothing sets."""
    tree = view.reading.partial
    if tree is None:
        return []
    names = KnownNames(tree)
    missing: dict[str, None] = {}
    for parent in tree.steps:
        placeholders = [placeholder.name for step in family(parent) for placeholder in step.placeholders]
        missing |= {name: None for name in placeholders if not names.is_known(name)}
        for arm in parent.arms:
            if arm.condition and not names.is_known(arm.condition.variable):
                missing[arm.condition.variable] = None
        if len(missing) > _MOST_MISSING:
            break
    return [name for name in missing if not name.startswith(ASKED) and not name[0].isdigit()]


def _elicit(typed: str, begin: int, offset: int) -> list[Completion]:
    if match := _DEFAULT.search(typed):
        kind = typed.partition(",")[0].strip().lower()
        options = ["yes", "no"] if kind == "confirm" else typed[: match.start()].split('"')[3::2]
        span = Span(offset - len(match[1]), offset)
        return [Completion(option, "enum", span=span) for option in options if option] if kind != "input" else []
    if "," not in typed:
        span = Span(begin, offset)
        forms = {form.label.partition("(")[2].partition(",")[0]: form for form in FORMS["elicit"]}
        return [
            Completion(kind, "keyword", forms[kind].snippet[len("@elicit(") : -1], True, forms[kind].meaning, span=span)
            for kind in ELICIT_KINDS
        ]
    match = _AFTER_COMMA.search(typed)
    if match and typed.count('"') % 2 == 0 and '"' in typed:
        span = Span(offset - len(match[1]), offset)
        return [snippet('default:"…"', 'default:"$1"', "the answer without people", 5, span)]
    return []


def _context(view: View, typed: str, offset: int) -> list[Completion]:
    match = _WORD.search(typed)
    span = Span(offset - len(match[0] if match else ""), offset)
    none = [Completion("none", "keyword", detail="no earlier result", order=1, span=span)] if "," not in typed else []
    return [*none, *result_names(view, offset, span)]
