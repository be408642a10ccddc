"""The directives and markers of playbooks: their forms, parameters and meanings, and the one that is being typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from quire.lsp.answers import Signature
from quire.lsp.playbook.layout import layout_of
from quire.lsp.playbook.tools import arguments_of, open_place, read_tool
from quire.patterns import late_pattern

if TYPE_CHECKING:
    from quire.lsp.document_view import View


class Parameter(Struct, frozen=True):
    label: str
    """Its spelling in the form."""
    meaning: str


class Form(Struct, frozen=True):
    """One way to write a directive."""

    label: str
    snippet: str
    """The text to insert, with places to fill in."""
    meaning: str
    parameters: tuple[Parameter, ...] = ()


_QUESTION = Parameter('"question"', "The question. `{{names}}` in it are filled in; `\\n` is a line break.")
_NAME = Parameter("name", "Later steps read the value as `{{name}}`. Letters, digits and `_`.")
_TYPE = Parameter(
    "type", "`string`, `text`, `number`, `boolean`, `enum` or `json`. A value that does not fit is a warning."
)
_FIELD = Parameter('extract:"field"', "Keep one field of a JSON object that the reply ends with.")
_CONNECTION = Parameter("connection", "A server of `.mcp.json`, `python`, or `quire` for built-in tools and documents.")
_TOOL = Parameter("tool", "The name of the tool; with `quire` also that of a document.")
_ARGUMENTS = Parameter('{"key": "value"}', "One JSON object. `{{names}}` are filled in after it is read.")

MEANINGS = {
    "output": "Keeps the result of the step under a name.",
    "elicit": "Asks a person before the step continues. A step without text has the answer as its result.",
    "prompt": "Puts a text from elsewhere before the text of the step.",
    "tool": "Calls a tool or another document instead of a model. Its result is the result of the step.",
    "context": "Chooses the earlier results that the model of this step sees.",
    "model": "Chooses the model of this step: a tier of `[models.tiers]` or a profile of `[agents]`.",
}
"""Each directive in a sentence."""

FORMS: dict[str, tuple[Form, ...]] = {
    "output": (
        Form("@output(name)", "@output(${1:name})", "Keep the whole result as text.", (_NAME,)),
        Form("@output(name: type)", "@output(${1:name}: ${2:number})", "Keep it, and check its type.", (_NAME, _TYPE)),
        Form(
            '@output(name: enum, "a", "b")',
            '@output(${1:name}: enum, "${2:a}", "${3:b}")',
            "Keep one of a few texts.",
            (
                _NAME,
                Parameter("enum", "The result is one of the texts."),
                Parameter('"a", "b"', "The texts, in quotes."),
            ),
        ),
        Form(
            '@output(name, extract:"field")',
            '@output(${1:name}, extract:"${2:field}")',
            "Keep one field of the reply.",
            (_NAME, _FIELD),
        ),
        Form(
            '@output(name: type, extract:"field")',
            '@output(${1:name}: ${2:number}, extract:"${3:field}")',
            "Keep one field of the reply, and check its type.",
            (_NAME, _TYPE, _FIELD),
        ),
    ),
    "elicit": (
        Form(
            '@elicit(input, "question")',
            '@elicit(input, "${1:question}")',
            "Ask for a text.",
            (Parameter("input", "The answer is any text."), _QUESTION),
        ),
        Form(
            '@elicit(confirm, "question", default:"no")',
            '@elicit(confirm, "${1:question}", default:"${2:no}")',
            "Ask for yes or no.",
            (
                Parameter("confirm", "The answer is `yes` or `no`."),
                _QUESTION,
                Parameter('default:"no"', "The answer in a run without people: `yes` or `no`."),
            ),
        ),
        Form(
            '@elicit(select, "question", "a", "b", default:"a")',
            '@elicit(select, "${1:question}", "${2:a}", "${3:b}")',
            "Ask for one of a few answers.",
            (
                Parameter("select", "The answer is one of the options."),
                _QUESTION,
                Parameter('"a", "b"', "The options, each in quotes of its own."),
                Parameter('default:"a"', "The answer in a run without people: one of the options."),
            ),
        ),
    ),
    "prompt": (
        Form(
            "@prompt(library:ID)",
            "@prompt(library:${1:id})",
            "A text of the prompt library.",
            (
                Parameter(
                    "library:ID", "`prompts/ID.md` of the workspace, of `[prompts] folders`, or of your user folder."
                ),
            ),
        ),
        Form(
            "@prompt(file:PATH)",
            "@prompt(file:${1:path})",
            "A file beside the playbook.",
            (Parameter("file:PATH", "A path in the folder of the playbook or below. `{{names}}` are filled in."),),
        ),
        Form(
            "@prompt(mcp:SERVER/PROMPT)",
            "@prompt(mcp:${1:server}/${2:prompt})",
            "A prompt of a server.",
            (Parameter("mcp:SERVER/PROMPT", "A prompt of an MCP server of `.mcp.json`."),),
        ),
        Form(
            "@prompt({{name}})",
            "@prompt({{${1:name}}})",
            "The value of an input or of an earlier result.",
            (Parameter("{{name}}", "An input, or a name that an earlier step keeps."),),
        ),
    ),
    "tool": (
        Form(
            '@tool(connection, tool, {"key": "value"})',
            '@tool(${1:quire}, ${2:tool}, {"${3:key}": "${4:value}"})',
            "Call a tool or a document.",
            (_CONNECTION, _TOOL, _ARGUMENTS),
        ),
    ),
    "context": (
        Form(
            "@context(none)", "@context(none)", "No earlier result.", (Parameter("none", "No earlier result at all."),)
        ),
        Form(
            "@context(name, 2, 3a)",
            "@context(${1:name})",
            "Only these results.",
            (Parameter("name, 2, 3a", "Names of outputs, or labels of earlier steps."),),
        ),
    ),
    "model": (
        Form(
            "@model(NAME)",
            "@model(${1:cheap})",
            "A tier or a profile of the settings.",
            (Parameter("NAME", "A tier such as `cheap`, or an agent of `quire.toml`; never a model itself."),),
        ),
    ),
}
"""The forms of each directive, the plainest first."""

MARKER_MEANINGS = {
    "if": "Begins the first branch. The texts are compared exactly.",
    "elif": "Begins another branch, which is taken if no branch before it is.",
    "else": "Begins the branch that is taken if no condition holds.",
    "endif": "Ends the branches.",
}


_OPEN = late_pattern(r"[^\S\n]*+@(output|elicit|prompt|tool|context|model)\((.*+)$")


def signature(view: View, offset: int) -> Signature | None:
    """Return the form that fits what is typed, with the parameter at the cursor; None outside of a directive."""
    before = view.line_before(offset)
    match = _OPEN.match(before)
    layout = layout_of(view)
    if not match or (layout.parts and layout.part_at(offset) is None):
        return None
    word, typed = match[1], match[2]
    if typed.endswith(")") and typed.count('"') % 2 == 0:
        return None
    if word == "tool":
        return _tool(view, offset - len(before), offset)
    form = _fitting(word, typed)
    return _written(form, _active(word, form, typed))


def _written(form: Form, active: int) -> Signature:
    parameters = tuple((parameter.label, parameter.meaning) for parameter in form.parameters)
    return Signature(form.label, parameters, min(active, max(0, len(parameters) - 1)), form.meaning)


def _fitting(word: str, typed: str) -> Form:
    """Return the form that the typed text belongs to."""
    forms = FORMS[word]
    if word == "output":
        name, colon, rest = typed.partition(":") if "extract" not in typed.partition(":")[0] else (typed, "", "")
        if colon:
            is_enum = rest.strip().lower().startswith(("enum", "select", "choice"))
            return forms[2] if is_enum else forms[4] if "," in rest else forms[1]
        return forms[3] if "," in name else forms[0]
    if word == "elicit":
        kind = typed.partition(",")[0].strip().lower()
        return next((form for form in forms if form.parameters[0].label == kind), forms[0])
    if word == "prompt":
        return next((form for form in forms if _begins_alike(form.parameters[0].label, typed)), forms[0])
    if word == "context":
        return forms[0] if typed.strip() and "none".startswith(typed.strip()) else forms[1]
    return forms[0]


def _begins_alike(label: str, typed: str) -> bool:
    scheme = label.partition(":")[0]
    return bool(typed) and (typed.startswith(scheme) or scheme.startswith(typed) or typed[:2] == label[:2] == "{{")


def _active(word: str, form: Form, typed: str) -> int:
    """Return the number of the parameter at the cursor."""
    commas = sum(part.count(",") for part in typed.split('"')[::2])
    last = len(form.parameters) - 1
    if word == "output":
        if not commas:
            return 1 if ":" in typed and last else 0
        return last
    if word == "elicit" and commas:
        if "default:" in typed.rpartition(",")[2]:
            return last
        return min(commas, 2 if form.parameters[0].label == "select" else last)
    return 0


def _tool(view: View, start: int, offset: int) -> Signature | None:
    """Return the form of a call, with the arguments of its tool where they are known."""
    call = read_tool(view.source.text, start, offset)
    form = FORMS["tool"][0]
    if call is None or call.arguments is None:
        return _written(form, 1 if call is not None and call.tool_span is not None else 0)
    arguments = arguments_of(view, call.connection, call.tool)
    if not arguments:
        return _written(form, 2)
    place, key, _ = open_place(view.source.text, call.arguments, offset)
    parameters = tuple(
        (f'"{argument.name}"{"" if argument.required else "?"}: {argument.type}', argument.description)
        for argument in arguments
    )
    active = next((at for at, argument in enumerate(arguments) if argument.name == key), 0) if place == "value" else 0
    label = f"@tool({call.connection}, {call.tool}, {{{', '.join(label for label, _ in parameters)}}})"
    return Signature(label, parameters, active, "Arguments with a ? may be left out.")
