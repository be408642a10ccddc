"""Rare cases of branch markers and code fences.

These are lines that look like a branch marker but are not, markers that open or close nothing, arms without an end,
text without a sub-step, fences that contain more than text, and fences that are never closed. A fence that begins with
the word of a branch marker is a marker without its end: no language has such a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import Match

from quire.diagnostics import Code, Diagnostic, Edit, Fix
from quire.formats.playbook import scan as groups
from quire.formats.playbook.annotations import looks_like
from quire.formats.playbook.codes import reader
from quire.formats.playbook.scan import Scan, is_section, line_span
from quire.formats.playbook.syntax import Arm, Step
from quire.patterns import late_pattern
from quire.source import Source, Span
from quire.wording import cut

_WORD = late_pattern(r"(`++|~~~++)\s*+(if|elif|else\s*+if|elseif|elsif|else|endif|end\s++if|end|fi)\b", re.IGNORECASE)
_COMPARISON = late_pattern(
    r"\s*+[A-Za-z0-9_]++\s*+(?:(===|=>|=<|==|!=|<=|>=|<>|=|<|>|~)|(contains|in|is|not|matches|startswith|endswith|like)\b)",
    re.IGNORECASE,
)


def marker_word(text: str) -> str | None:
    """Return `if`, `elif`, `else` or `endif` if the line was probably meant as such a marker."""
    match = _WORD.match(text)
    if not match:
        return None
    ticks, word = match[1], "".join(match[2].lower().split())
    word = {"elseif": "elif", "elsif": "elif", "fi": "endif"}.get(word, word)
    if word == "end":  # an ordinary word, unless the line has nothing else
        return "endif" if text.rstrip("`") == f"{ticks}{match[2]}" and len(text) > match.end() else None
    # One or two backticks are ordinary code in a sentence, unless the line consists only of the marker.
    rest = text[match.end() :].rstrip()
    if len(ticks) < 3 and (not rest.endswith(ticks) or "`" in rest[: -len(ticks)]):
        return None
    if word in ("else", "endif") and rest.strip("`~ \t"):
        return word if rest.lstrip().startswith(ticks) else None
    return word


def marker_look_alike(text: str, word: str, at: int) -> Diagnostic:
    """Return the finding about a line that `marker_word` recognizes as a marker."""
    from quire.formats.playbook.fixes import marker_fix

    shown = cut(text, 60, 60)
    code: Code = reader.MARKER
    message = f"Looks like a branch marker but is not one: {shown}"
    help = f"write ```{word}``` and nothing else on the line"
    if word in ("if", "elif"):
        help = f'write ```{word} NAME == "value"``` and nothing else on the line'
        match = _WORD.match(text)
        operator = _COMPARISON.match(text, match.end()) if match else None
        sign = (operator[1] or operator[2]) if operator else "=="
        if sign not in ("==", "!="):
            code = reader.OPERATOR
            message = f'Unknown operator "{sign}" in a condition: {shown}'
            help = "only == and != exist; they compare exact text"
    label, fix = "read as text, no branch here", marker_fix(text, word, at)
    return Diagnostic(code, message, Span(at, at + len(text)), label, help, fix)


_MEANT = (groups.OUTPUT, groups.ELICIT, groups.SUBSTEP, groups.CONDITION, groups.MARKER)


def note_fences(source: Source, result: Scan, findings: list[Diagnostic]) -> None:
    """Report lines inside fences that would be more than text outside, and fences that are never closed."""
    heads = [line for kind, line in zip(result.kinds, result.lines, strict=True) if kind <= groups.SECTION]
    at = 0
    for (start, _), inside in zip(result.blocks, result.fenced, strict=True):
        while at < len(heads) and heads[at].start() < start:
            at += 1
        in_step = at > 0 and heads[at - 1].lastindex == groups.STEP
        if in_step:
            line = source.text[start : source.text.find("\n", start)]
            if word := marker_word(line.strip()):
                findings.append(marker_look_alike(line.strip(), word, start + len(line) - len(line.lstrip())))
        meant = [special for special in inside if _means_something(special, in_step)]
        if meant:
            more = f" (and {len(meant) - 1} more like it)" if len(meant) > 1 else ""
            message = f"Inside a code fence, so content: {cut(meant[0][0].strip(), 60, 60)}{more}"
            label = f"the fence begins on line {source.position(start).line}"
            findings.append(Diagnostic(reader.FENCED, message, line_span(meant[0]), label))
    for unclosed in result.unclosed:
        message = "This code fence is never closed: read as a line of text"
        findings.append(Diagnostic(reader.UNCLOSED_FENCE, message, line_span(unclosed)))


def _means_something(line: Match[str], in_step: bool) -> bool:
    """Tell whether a line inside a fence would be more than text outside of it."""
    if is_section(line):
        return True
    if in_step and line.lastindex == groups.AT:
        return looks_like(line[0].strip()) is not None
    return in_step and line.lastindex in _MEANT


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def marker_as_text(line: Match[str], word: str, nested: int, findings: list[Diagnostic]) -> int:
    """Treat a marker as text: it is inside a nested `if`, begins one, or belongs to none. Return the new nesting."""
    if nested:
        return nested + {"if": 1, "endif": -1}.get(word, 0)
    if word == "if":
        message = "An if inside another if: branches do not nest"
        help = "decide in a step of its own, or write elif for another branch"
        findings.append(Diagnostic(reader.NESTED_IF, message, line_span(line), "kept as text, up to its endif", help))
        return 1
    message = f"`{word}` without `if`"
    help = 'a branch begins with ```if NAME == "value"```'
    findings.append(Diagnostic(reader.STRAY_MARKER, message, line_span(line), "read as text", help))
    return 0


def ticks_as_text(line: Match[str], in_branch: bool, nested: int, findings: list[Diagnostic]) -> int:
    """Treat a line of backticks or tildes as text, although it may look like a marker. Return the new nesting."""
    text = line[0].strip()
    if not nested and (word := marker_word(text)):
        findings.append(marker_look_alike(text, word, line_span(line).start))
        if word == "if" and in_branch and text[-1] == "`":
            return 1
    return nested


def warn_of_no_end(line: Match[str], end: int, findings: list[Diagnostic]) -> None:
    """Warn of an `if` without an `endif`. `end` is where its step ends."""
    while line.string[end].isspace():  # the scanned string has one line end before the text
        end -= 1
    # A line that is nearly its end has a fix of its own.
    has_end = any(finding.code is reader.MARKER and finding.span.start > line.start() for finding in findings)
    fix = Fix("end the branch with the step", (Edit(Span(end, end), "", "\n\n```endif```"),), safe=False)
    findings.append(
        Diagnostic(
            reader.UNTERMINATED_IF,
            "This if has no ```endif```",
            line_span(line),
            "closed where the step ends",
            "put ```endif``` on a line of its own after the last branch",
            fix=None if has_end else fix,
        )
    )


def warn_of_arm(line: Match[str], word: str, after_else: bool, findings: list[Diagnostic]) -> None:
    """Report an arm that no run reaches, or a second `if`, which belongs to the chain before it."""
    if after_else:
        message = f"No run reaches this {word}: it comes after an else"
        help = "put the else last, or give the second decision a step of its own"
        findings.append(Diagnostic(reader.AFTER_ELSE, message, line_span(line), "its sub-steps never run", help))
    elif word == "if":
        message = "A second if in one step is read as one more branch of the first"
        help = "give the second decision a step of its own"
        label = "runs only if no branch before it does"
        findings.append(Diagnostic(reader.SECOND_CHAIN, message, line_span(line), label, help))


def warn_of_late_text(parent: Step, findings: list[Diagnostic]) -> None:
    """Report text of the step itself after its first marker, once. Text inside a branch belongs to a sub-step."""
    first = parent.arms[0].start
    for start, end in parent.pieces:
        if start < first:
            continue
        at = start
        for line in parent.document[start:end].split("\n"):
            text = line.strip()
            if text and not marker_word(text):
                at += len(line) - len(line.lstrip())
                message = "Text after endif is sent before the sub-steps, with the other text of the step"
                help = "to send it after them, put it into a step of its own"
                span = Span(at, at + len(text))
                findings.append(Diagnostic(reader.TEXT_AFTER_ENDIF, message, span, "", help))
                return
            at += len(line) + 1


def lead(parent: Step, arm: Arm, substeps: list[Step], leads: list[Step]) -> Step:
    """Add a sub-step for the text of an arm before its first sub-step; `name_leads` gives it a label."""
    step = Step(parent.number, "", "", arm.start, arm.end, parent.document, [])
    substeps.append(step)
    leads.append(step)
    return step


def name_leads(parent: Step, leads: list[Step], findings: list[Diagnostic]) -> None:
    """Give each lead the first label that no sub-step of its parent has, and its first line of text as position."""
    free = _free_labels(parent)
    for step in leads:
        _place(step)
        step.label = next(free, f"{parent.number}zz")
        message = f"Text before the first sub-step of this branch: read as a sub-step {step.label}"
        help = f"give it a heading: ### STEP {step.label}: Title"
        findings.append(Diagnostic(reader.LEAD_TEXT, message, step.span, "", help))


def _free_labels(parent: Step) -> Iterator[str]:
    taken = {step.label for arm in parent.arms for step in arm.steps}
    for first in ("", *_LETTERS):
        for second in _LETTERS:
            label = f"{parent.number}{first}{second}"
            if label not in taken:
                yield label


def _place(step: Step) -> None:
    """Set the position of a lead. A lead that has only directives keeps the position of its marker."""
    for start, end in step.pieces:
        piece = step.document[start:end]
        if not piece.isspace():
            step.start = start + len(piece) - len(piece.lstrip())
            stop = step.document.find("\n", step.start, end)
            step.end = stop if stop >= 0 else end
            return
