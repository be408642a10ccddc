"""Lints about the text that the tree does not show: headings and lines that are nearly something else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import Match
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.diagnostics import Diagnostic, replacing
from quire.formats.near_names import word_fix
from quire.formats.playbook.codes import lints
from quire.formats.playbook.names import family, gather
from quire.formats.playbook.scan import AT, HASH, SECTION, STEP, SUBSTEP, TITLE, Scan, line_span, scan
from quire.source import PLACEHOLDER, Span
from quire.wording import cut_line, nearest_word

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import ParseResult, Step

_STEP_LIKE = re.compile(r"\s*+#++\s*+step\s*+(?:[0-9]|:)", re.IGNORECASE)
_LOST_STEP = re.compile(r"\n?+ {0,3}+##(?:\s*+step|#\s*+step\s*+[0-9]++[a-z])", re.IGNORECASE)
"""A heading that is hardly meant for the model, as `### Step 1: Look` in the text of a step may be."""
_NEARLY = re.compile(r"\{\{([^\S\n]*+)([A-Za-z0-9_-]++)([^\S\n]*+)(?::[^{}\n]*+)?\}\}")
# It begins with a plain character, which is found at once, and then looks at the character before.
_TRAILING = re.compile(r"@(?<=[^\S\n]@)(?:output|elicit|prompt|tool|context|model)\(")
# Code is left out: a shell and Python write `${name}` and `{name}` too.
_FOREIGN = re.compile(
    r"`[^`\n]++`|(?<![{$])\$?\{(?:ctx\.|input:)?([A-Za-z_][A-Za-z0-9_]*+)\}(?!\})"
    r"|\{\{ctx\.([A-Za-z_][A-Za-z0-9_]*+)\}\}"
)
_FENCED_MARKER = re.compile(r"```+[ \t]*+\n[ \t]*+((?:el)?if[ \t]++(\w++)[^\n]*\S|else|endif)[ \t]*+\n[ \t]*+```+")
_STEP_HEADING = replace(lints.HEADING, stops=True)
"""The heading of a step, which is lost with its question or its branch; that of another section is not."""
_SECTIONS = ("SYSTEM", "SYSTEM PROMPT", "INPUTS", "ARTIFACTS", "OUTPUT")


def lint_text(reading: ParseResult, scanned: Scan | None = None) -> Iterator[Diagnostic]:
    """Yield the lints about headings, placeholders and lines. `scanned` are the lines of the text, if they are
    known."""
    text = reading.source.text
    result = scanned or scan(text)
    in_step = branching = False
    artifacts: Match[str] | None = None
    questions: list[Match[str]] = []
    for kind, line in zip(result.kinds, result.lines, strict=True):
        if kind == STEP:
            in_step, branching = True, False
        elif kind == SECTION:
            in_step = branching = False
            yield from _section(line)
            if _known(line) in ("ARTIFACTS", "OUTPUT"):
                artifacts = line
        elif kind in (HASH, SUBSTEP, TITLE):
            yield from _heading(line, in_step, branching)
        elif kind == AT and in_step and line[0].lstrip().startswith("@ask("):
            questions.append(line)
        elif line[0].lstrip().startswith("```if"):
            branching = True
        elif line[0].strip() == "```endif```":
            branching = False
    playbook = reading.playbook
    if playbook and artifacts and not playbook.artifact:
        message = "This section declares no type"
        yield Diagnostic(lints.ARTIFACT_LINE, message, line_span(artifacts), "", "add a line such as type: markdown")
    if playbook:
        yield from _braces(reading)
        yield from _foreign(reading, result, questions)
        yield from _system_placeholders(text, result)
        has_directives = "@" in text
        for parent in playbook.steps:
            for step in family(parent):
                if has_directives:
                    yield from _trailing(step, result)
                question = step.elicitation
                if question and any(text.endswith("\\") for text in question.texts):
                    message, help = "A backslash at the end of a text", "a quote inside the text needs a quote after it"
                    yield Diagnostic(lints.BACKSLASH_QUOTE, message, question.span, "the quote ends the text", help)


def _known(line: Match[str]) -> str:
    return " ".join(line[SECTION].upper().split())


def _section(line: Match[str]) -> Iterator[Diagnostic]:
    heading = _known(line)
    if heading in _SECTIONS:
        return
    message = f"Skipped: ## {line[SECTION].rstrip()}"
    close = nearest_word(heading.strip("#:*-. "), _SECTIONS)
    if close:
        name = line[SECTION].rstrip()
        start = line.start(SECTION) - 1
        fix = word_fix(name, _SECTIONS, Span(start, start + len(name)))
        yield Diagnostic(lints.HEADING, message, line_span(line), "this section is not read", f"write ## {close}", fix)


def _heading(line: Match[str], in_step: bool, branching: bool) -> Iterator[Diagnostic]:
    text = line[0].strip()
    if line.lastindex == SUBSTEP:
        if not in_step or branching:
            return
        message = "A sub-step outside of a branch is text"
        help = 'sub-steps stand between ```if NAME == "value"``` and ```endif```'
        yield Diagnostic(lints.SUBSTEP_OUTSIDE, message, line_span(line), "", help)
    elif _STEP_LIKE.match(line[0]) and text[:4].count("#") != 1:
        help = "a step begins with ## STEP 1: Title at the start of a line"
        code = _STEP_HEADING if branching or _LOST_STEP.match(line[0]) else lints.HEADING
        yield Diagnostic(code, f"Read as text: {text[:60]}", line_span(line), "not read as a step", help)


def _system_placeholders(text: str, result: Scan) -> Iterator[Diagnostic]:
    heads = [line for kind, line in zip(result.kinds, result.lines, strict=True) if kind in (STEP, SECTION)]
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        if head.lastindex == SECTION and _known(head) in ("SYSTEM", "SYSTEM PROMPT"):
            end = following.start() if following else len(text)
            for match in PLACEHOLDER.finditer(text, head.end(), end):
                message = f"{match[0]} in the system prompt is sent to the model literally"
                help = "values are put into steps only"
                yield Diagnostic(lints.SYSTEM_PLACEHOLDER, message, Span(*match.span()), "", help)


def _trailing(step: Step, result: Scan) -> Iterator[Diagnostic]:
    """Report directives that follow text on their line, once per line.

    A line that begins with one already has a warning.
    """
    text = step.document
    for start, stop in step.pieces:
        end = start
        for match in _TRAILING.finditer(text, start, stop):
            if match.start() < end:
                continue
            line = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.start(), stop)
            end = stop if end < 0 else end
            written = text[match.start() : end].rstrip()
            before = text[line : match.start()].strip()
            if written[-1] != ")" or not before or before[0] == "@" or result.is_fenced(line):
                continue
            message = f"A directive behind text is text: {written[:60]}"
            span = Span(match.start(), match.start() + len(written))
            help = "put it on a line of its own"
            yield Diagnostic(lints.TRAILING_DIRECTIVE, message, span, "sent to the model", help)


def _braces(reading: ParseResult) -> Iterator[Diagnostic]:
    """Report placeholders with spaces or hyphens, in the sections that are rendered."""
    text, playbook = reading.source.text, reading.playbook
    if "{{" not in text or not playbook:
        return
    names: set[str] | None = None
    for match in _NEARLY.finditer(text, playbook.steps[0].start):
        if match[1] or match[3] or "-" in match[2]:
            names = gather(playbook).names if names is None else names
            name = match[2].replace("-", "_")
            message = f"{match[0]} is not a placeholder and stays as it is"
            written = Span(match.start() + 2, match.end(3))
            fix = replacing(written, text[written.start : written.end], name) if name in names else None
            yield Diagnostic(lints.SPACED, message, Span(*match.span()), "", f"write {{{{{name}}}}}", fix)


def _foreign(reading: ParseResult, result: Scan, questions: list[Match[str]]) -> Iterator[Diagnostic]:
    """Report values, questions and branch markers in the syntax of other formats, in the sections that are rendered."""
    text, playbook = reading.source.text, reading.playbook
    if not playbook or not ("{" in text or questions or result.blocks):
        return
    names, start = gather(playbook).names, playbook.steps[0].start
    for match in _FOREIGN.finditer(text, start) if "{" in text else ():
        if (name := match[1] or match[2]) in names and not result.is_fenced(match.start()):
            yield _written_elsewhere(text, Span(*match.span()), f"{{{{{name}}}}}")
    for line in questions:
        from quire.formats.playbook.fixes import question_fix

        yield _written_elsewhere(text, line_span(line), question_fix(line[0].strip()))
    branches = False
    for first, last in result.blocks:
        block = text[first:last].strip()
        marker = _FENCED_MARKER.fullmatch(block) if first >= start else None
        branches |= marker is not None and marker[2] in names
        if marker and branches and scan(meant := f"```{marker[1]}```").kinds:
            at = text.index(block, first)
            yield _written_elsewhere(text, Span(at, at + len(block)), meant)


def _written_elsewhere(text: str, span: Span, meant: str) -> Diagnostic:
    written = text[span.start : span.end]
    message = f"{cut_line(written, 60)} is not the syntax of a playbook and is sent to the model as text"
    fix = replace(replacing(span, written, meant), safe=meant.startswith("{"))
    return Diagnostic(lints.FOREIGN, message, span, "", f"write {meant}", fix)
