"""One line that begins with `@`: a directive, something to ignore with a warning, or text.

Every pattern here is anchored and possessive, so no line takes longer than its length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from quire.diagnostics import Diagnostic
from quire.formats.playbook.codes import errors, warnings
from quire.formats.playbook.making import quick
from quire.formats.playbook.quoted import Row, read_row
from quire.formats.playbook.suggest import nearest_word
from quire.formats.playbook.syntax import Elicitation, ElicitKind, OutputCapture, PromptReference, ToolCall
from quire.formats.playbook.types import DIRECTIVES, ELICIT_KINDS, OUTPUT_TYPES
from quire.source import Span


@dataclass(frozen=True, slots=True)
class Ignored:
    """A line that is a directive and yet does nothing; the warning says why."""


Directive = PromptReference | OutputCapture | Elicitation | ToolCall | Ignored

_capture = quick(OutputCapture)
_elicitation = quick(Elicitation)
_reference = quick(PromptReference)
_call = quick(ToolCall)
_span = quick(Span)

_OUTPUT = re.compile(
    r"@output\(([A-Za-z0-9_]++)(?:\s*+:\s*+([A-Za-z0-9_]++))?"
    r'((?:,\s*+"[^"]*+")*+)(?:,\s*+extract:"([A-Za-z0-9_]++)")?\)'
)
_OPTION = re.compile(r'"([^"]*+)"')
_ELICIT = re.compile(r"@elicit\(([A-Za-z0-9_]++)(,)?")
_REFERENCE = re.compile(r"(?:library:[A-Za-z0-9-]++|file:\S(?:.*+)|mcp:[^/\s]++/\S++|\{\{[A-Za-z0-9_]++\}\})")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*+):.*+")
_NAME = re.compile(r'\s*+(?:"([^"]++)"|([A-Za-z0-9_.-]++))\s*+')
_LIKE = re.compile(r"@([A-Za-z]{4,9}+)\s*+(?:\(|[:\[{]|$|\w++$)")

_FORMS = {
    "output": '@output(name), @output(name: type), @output(name: enum, "a", "b") or @output(name, extract:"field")',
    "elicit": '@elicit(input, "Question?"), @elicit(confirm, "Question?") or @elicit(select, "Question?", "A", "B")',
    "prompt": "@prompt(library:ID), @prompt(file:PATH), @prompt(mcp:SERVER/PROMPT) or @prompt({{variable}})",
    "tool": '@tool(connection, tool) or @tool("connection", tool, {"key": "value"})',
}


def read_directive(text: str, at: int, found: list[Diagnostic]) -> Directive | None:
    """Reads a line without the space around it, which stands at `at`; None when it is text."""
    span = _span(at, at + len(text))
    directive: Directive | None = None
    if text[-1] == ")":
        if text.startswith("@output("):
            directive = _output(text, span)
        elif text.startswith("@elicit("):
            directive = _elicit(text, span, found)
        elif text.startswith("@prompt("):
            directive = _prompt(text, span, found)
        elif text.startswith("@tool("):
            directive = _tool(text, span, found)
    if directive is None:
        _look_alike(text, span, found)
    return directive


def _output(text: str, span: Span) -> OutputCapture | None:
    match = _OUTPUT.fullmatch(text)
    if not match:
        return None
    name, kind, options, field = match.groups()
    at = span.start + len("@output(")
    return _capture(
        name,
        OUTPUT_TYPES.get(kind.lower(), "string") if kind else None,
        tuple(_OPTION.findall(options)) if options else (),
        field,
        span,
        _span(at, at + len(name)),
    )


def _elicit(text: str, span: Span, found: list[Diagnostic]) -> Elicitation | Ignored | None:
    match = _ELICIT.match(text)
    end = len(text) - 1
    if not match or (not match[2] and match.end() != end):
        return None
    kind = match[1].lower()
    if kind not in ELICIT_KINDS:
        known = nearest_word(kind, ELICIT_KINDS)
        found.append(
            Diagnostic(
                warnings.ELICIT_TYPE,
                f'Invalid elicit type: "{match[1]}"',
                Span(span.start + match.start(1), span.start + match.end(1)),
                "nobody is asked here",
                f'did you mean "{known}"?' if known else "the types are input, confirm and select",
            )
        )
        return Ignored()
    row = read_row(text, match.end(), end) if match[2] else Row((), None, False)
    if row is None:
        return None
    prompt, options = (row.texts[0], row.texts[1:]) if row.texts else ("", ())
    default = row.default
    if kind == "confirm":
        default = default.lower() if default is not None and default.lower() in ("yes", "no") else default
        if options:
            found.append(
                Diagnostic(
                    warnings.CONFIRM_OPTION,
                    f'Option on a confirm: "{options[0]}"',
                    span,
                    "a confirm is answered with yes or no",
                    "use @elicit(select, …) to offer other answers",
                )
            )
    _check_default(kind, options, default, span, found)
    return _elicitation(cast(ElicitKind, kind), prompt, options, default, span)


def _check_default(
    kind: str, options: tuple[str, ...], default: str | None, span: Span, found: list[Diagnostic]
) -> None:
    if default is None or kind == "input" or "{{" in default:
        return
    allowed = ("yes", "no") if kind == "confirm" else options
    if default in allowed or any("{{" in option for option in allowed):
        return
    found.append(
        Diagnostic(
            errors.BAD_DEFAULT,
            f'The default "{default}" is not an answer that this {kind} accepts',
            span,
            "unattended, this would be the answer",
            "the answers are " + (", ".join(f'"{answer}"' for answer in allowed[:8]) if allowed else "none"),
        )
    )


def _prompt(text: str, span: Span, found: list[Diagnostic]) -> PromptReference | Ignored | None:
    where = text[len("@prompt(") : -1]
    if _REFERENCE.fullmatch(where):
        return _reference(where, span)
    scheme = _SCHEME.fullmatch(where)
    if not scheme or scheme[1] in ("library", "file", "mcp"):
        return None
    known = nearest_word(scheme[1].lower(), ("library", "file", "mcp"))
    found.append(
        Diagnostic(
            warnings.PROMPT_SCHEME,
            f'Unknown prompt scheme: "{scheme[1]}"',
            Span(span.start + len("@prompt("), span.end - 1),
            "this reference is ignored",
            f'did you mean "{known}:"?' if known else "the schemes are library:, file: and mcp:, or one {{variable}}",
        )
    )
    return Ignored()


def _tool(text: str, span: Span, found: list[Diagnostic]) -> ToolCall | Ignored | None:
    end = len(text) - 1
    connection = _NAME.match(text, len("@tool("), end)
    if not connection:
        return None
    if connection.end() == end:
        name = connection[1] or connection[2]
        found.append(
            Diagnostic(
                warnings.TOOL_ARGUMENTS,
                "@tool needs a connection and a tool, and has one argument",
                span,
                "this directive is ignored",
                f"write @tool(CONNECTION, {name}) or @tool({name}, TOOL)",
            )
        )
        return Ignored()
    if text[connection.end()] != ",":
        return None
    tool = _NAME.match(text, connection.end() + 1, end)
    if not tool or (tool.end() != end and text[tool.end()] != ","):
        return None
    arguments = text[tool.end() + 1 : end].strip()
    return _call(connection[1] or connection[2], tool[1] or tool[2], arguments, span)


def looks_like(text: str) -> str | None:
    """The directive that a line was probably meant to be."""
    match = _LIKE.match(text)
    if not match:
        return None
    word = match[1].lower()
    if word in DIRECTIVES:
        return word
    # Only a parenthesis makes an unknown word look like a directive: `@team` is a mention.
    return nearest_word(word, DIRECTIVES) if text[match.end() - 1] == "(" else None


def _look_alike(text: str, span: Span, found: list[Diagnostic]) -> None:
    kind = looks_like(text)
    if kind:
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        found.append(
            Diagnostic(
                warnings.DIRECTIVE,
                f"Looks like @{kind} but is none: {shown}",
                span,
                "sent to the model as text",
                f"the form is {_FORMS[kind]}",
            )
        )
