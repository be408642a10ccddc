"""Read one line that begins with `@`: a directive, something to ignore with a warning, or text.

Every pattern is anchored and possessive, so no line takes longer than its length.

The format itself has no escapes in the texts of `@elicit`: a quote ends the text, and the scan reads it so. Only a row
of texts that is not valid that way is read again with a backslash before a quote meaning the quote itself, as in `"say
\\"hi\\"", default:"c"`. So `"C:\\"` keeps its meaning. Escapes of line breaks are Quire's own (`extensions`).
"""

from __future__ import annotations

import re
from re import Match

from msgspec import Struct

from quire.diagnostics import Diagnostic
from quire.formats.near_names import word_fix
from quire.formats.playbook import syntax
from quire.formats.playbook.codes import reader
from quire.formats.playbook.syntax import Directive, Elicitation, Step, ToolCall
from quire.patterns import late_pattern
from quire.source import Span
from quire.wording import cut, did_you_mean, nearest_word

_INSIDE = r'[^"\\]*+(?:\\.[^"\\]*+)*'
_ROW = late_pattern(rf'((?:\s*+"{_INSIDE}"\s*+(?:,(?!\s*+\Z)|\Z))*)(?:\s*+default:"({_INSIDE})"\s*+)?', re.DOTALL)
_TEXT = late_pattern(rf'"({_INSIDE})"', re.DOTALL)


def read_escaped(text: str, at: int, end: int) -> tuple[list[str], str | None] | None:
    """Return the texts from `at` to `end`, and the default; None for anything but quoted texts separated by commas."""
    match = _ROW.fullmatch(text, at, end)
    if not match or at == end:
        return None
    texts = [text_inside.replace('\\"', '"') for text_inside in _TEXT.findall(match[1])]
    return texts, match[2].replace('\\"', '"') if match[2] is not None else None


class Ignored(Struct, frozen=True):
    """A line that is a directive but has no effect; a warning says why."""


_ELICIT = late_pattern(r"@elicit\(([A-Za-z0-9_]++),")
_REFERENCE = late_pattern(r"(?:library:[A-Za-z0-9-]++|file:\S(?:.*+)|mcp:[^/\s]++/\S++|\{\{[A-Za-z0-9_]++\}\})")
_SCHEME = late_pattern(r"([A-Za-z][A-Za-z0-9+.-]*+):.*+")
_SCHEMES = ("library", "file", "mcp")
_NAME = late_pattern(r'\s*+(?:"([^"]++)"|([A-Za-z0-9_.-]++))\s*+')
_LIKE = late_pattern(r"@([A-Za-z]{4,9}+)\s*+(?:\(|[:\[{]|$|\w++$)")

_FORMS = {
    "output": '@output(name), @output(name: type), @output(name: enum, "a", "b") or @output(name, extract:"field")',
    "elicit": '@elicit(input, "Question?"), @elicit(confirm, "Question?") or @elicit(select, "Question?", "A", "B")',
    "prompt": "@prompt(library:ID), @prompt(file:PATH), @prompt(mcp:SERVER/PROMPT) or @prompt({{variable}})",
    "tool": '@tool(connection, tool) or @tool("connection", tool, {"key": "value"})',
    "context": "@context(none) or @context(name, 2, 3a)",
    "model": "@model(NAME), with the name of a tier or of a profile of quire.toml",
}


def read_directive(
    text: str, at: int, findings: list[Diagnostic], *, extended: bool = True
) -> Directive | Ignored | None:
    """Read a line without the white space around it; `at` is its position. Return None if it is text.

    The scan has already read every `@output`, and every `@elicit` without escapes. Without `extended`, directives that
    only Quire has are text.
    """
    directive: Directive | Ignored | None = None
    if text[-1] == ")":
        if text.startswith("@elicit("):
            directive = _escaped_elicit(text, at, findings, extended)
        elif text.startswith("@prompt("):
            directive = _prompt(text, at, findings)
        elif text.startswith("@tool("):
            directive = _tool(text, at, findings)
        elif extended and text.startswith(("@context(", "@model(")):
            from quire.formats.playbook.extensions import read_extension

            directive = read_extension(text, at)
    if directive is None:
        _look_alike(text, at, findings)
    return directive


def elicitation(
    kind: str, texts: list[str], default: str | None, at: int, end: int, findings: list[Diagnostic]
) -> Elicitation | Ignored:
    """Build the question of an `@elicit` from `at` to `end`; the first of the texts is the prompt."""
    own_kind = syntax.ELICIT_KINDS.get(kind) or syntax.ELICIT_KINDS.get(kind.lower())
    if own_kind is None:
        return _unknown_kind(kind, at, findings)
    question = Elicitation(own_kind, texts[0] if texts else "", tuple(texts[1:]), default, at, end)
    if default is not None:
        _check_default(question, default, findings)
    if own_kind == "confirm" and question.options:
        message = f'Option on a confirm: "{question.options[0]}"'
        help = "use @elicit(select, …) to offer other answers"
        label = "a confirm is answered with yes or no"
        findings.append(Diagnostic(reader.CONFIRM_OPTION, message, question.span, label, help))
    return question


def without_escapes(texts: list[str], default: str | None) -> tuple[list[str], str | None]:
    """Return the texts of an `@elicit` with their line breaks."""
    from quire.formats.playbook.extensions import with_line_breaks

    return [with_line_breaks(text) for text in texts], default and with_line_breaks(default)


def _escaped_elicit(text: str, at: int, findings: list[Diagnostic], extended: bool) -> Elicitation | Ignored | None:
    match = _ELICIT.match(text)
    if not match:
        return None
    if match[1].lower() not in syntax.ELICIT_KINDS:
        return _unknown_kind(match[1], at, findings)
    row = read_escaped(text, match.end(), len(text) - 1)
    if row and extended:
        row = without_escapes(*row)
    return elicitation(match[1], *row, at, at + len(text), findings) if row else None


def _unknown_kind(kind: str, at: int, findings: list[Diagnostic]) -> Ignored:
    near = nearest_word(kind.lower(), tuple(syntax.ELICIT_KINDS))
    at += len("@elicit(")
    findings.append(
        Diagnostic(
            reader.ELICIT_TYPE,
            f'Invalid elicit type: "{kind}"',
            Span(at, at + len(kind)),
            "no question is asked here",
            did_you_mean(near, "the types are input, confirm and select", form='"{}"'),
            word_fix(kind, tuple(syntax.ELICIT_KINDS), Span(at, at + len(kind))),
        )
    )
    return Ignored()


def _check_default(question: Elicitation, default: str, findings: list[Diagnostic]) -> None:
    if question.kind == "confirm" and default.lower() in ("yes", "no"):
        question.default = default = default.lower()
    if question.kind == "input" or "{{" in default:
        return
    allowed = ("yes", "no") if question.kind == "confirm" else question.options
    if default in allowed or any("{{" in option for option in allowed):
        return
    message = f'The default "{default}" is not an answer that this {question.kind} accepts'
    help = "the answers are " + (", ".join(f'"{answer}"' for answer in allowed[:8]) if allowed else "none")
    label = "unattended, this would be the answer"
    findings.append(Diagnostic(reader.BAD_DEFAULT, message, question.span, label, help))


def _prompt(text: str, at: int, findings: list[Diagnostic]) -> syntax.PromptReference | Ignored | None:
    where = text[len("@prompt(") : -1]
    if _REFERENCE.fullmatch(where):
        return syntax.PromptReference(where, at, at + len(text))
    scheme = _SCHEME.fullmatch(where)
    if not scheme or scheme[1] in _SCHEMES:
        return None
    near = nearest_word(scheme[1].lower(), _SCHEMES)
    start = at + len("@prompt(")
    findings.append(
        Diagnostic(
            reader.PROMPT_SCHEME,
            f'Unknown prompt scheme: "{scheme[1]}"',
            Span(start, at + len(text) - 1),
            "this reference is ignored",
            did_you_mean(near, "the schemes are library:, file: and mcp:, or one {{variable}}", form='"{}:"'),
            word_fix(scheme[1], _SCHEMES, Span(start, start + len(scheme[1]))),
        )
    )
    return Ignored()


def _tool(text: str, at: int, findings: list[Diagnostic]) -> ToolCall | Ignored | None:
    end = len(text) - 1
    connection = _NAME.match(text, len("@tool("), end)
    if not connection:
        return None
    if connection.end() == end:
        name = connection[1] or connection[2]
        message = "@tool needs a connection and a tool, and has one argument"
        help = f"write @tool(CONNECTION, {name}) or @tool({name}, TOOL)"
        label = "this directive is ignored"
        findings.append(Diagnostic(reader.TOOL_ARGUMENTS, message, Span(at, at + len(text)), label, help))
        return Ignored()
    if text[connection.end()] != ",":
        return None
    tool = _NAME.match(text, connection.end() + 1, end)
    if not tool or (tool.end() != end and text[tool.end()] != ","):
        return None
    arguments = text[tool.end() + 1 : end].strip()
    return ToolCall(connection[1] or connection[2], tool[1] or tool[2], arguments, at, at + len(text))


def looks_like(text: str) -> str | None:
    """Return the directive that a line was probably meant to be."""
    match = _LIKE.match(text)
    if not match:
        return None
    word = match[1].lower()
    if word in syntax.DIRECTIVES:
        return word
    # An unknown word looks like a directive only if a parenthesis follows: `@team` is a mention.
    if text[match.end() - 1] != "(":
        return None
    return word if word in syntax.EXTENSIONS else nearest_word(word, syntax.DIRECTIVES)


def _look_alike(text: str, at: int, findings: list[Diagnostic]) -> None:
    from quire.formats.playbook.fixes import directive_fix

    kind = looks_like(text)
    if kind:
        shown = cut(text, 60, 60)
        findings.append(
            Diagnostic(
                reader.DIRECTIVE,
                f"Looks like @{kind} but is not one: {shown}",
                Span(at, at + len(text)),
                "sent to the model as text",
                f"the form is {_FORMS[kind]}",
                directive_fix(text, at),
            )
        )


def note_replaced(replaced: Directive, line: Match[str], findings: list[Diagnostic]) -> None:
    """Report a directive that the one on a later line replaces."""
    name = line[0].strip().partition("(")[0]
    message = f"{name} is here twice: the last one counts"
    findings.append(Diagnostic(reader.REPLACED, message, replaced.span, "this one is dropped"))


def check_company(step: Step, tool: ToolCall, findings: list[Diagnostic]) -> None:
    """Report a question or a prompt beside a tool: a tool must be alone in its step."""
    if not (step.elicitation or step.prompt):
        return
    there = (("@elicit", step.elicitation), ("@prompt", step.prompt))
    others = " and ".join(name for name, directive in there if directive)
    message = f"@tool next to {others}: only the tool runs"
    help = "ask, or refer to a prompt, in a step before"
    findings.append(Diagnostic(reader.TOOL_COMPANY, message, tool.span, f"{others} ignored in this step", help))
