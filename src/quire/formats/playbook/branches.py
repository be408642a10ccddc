"""What is rare about branches: markers that open or close nothing, arms without an end, text without a sub-step."""

from __future__ import annotations

from re import Match

from quire.diagnostics import Diagnostic
from quire.formats.playbook.codes import notes, warnings
from quire.formats.playbook.markers import marker_look_alike, marker_word
from quire.formats.playbook.scan import line_span
from quire.formats.playbook.syntax import Arm, Step
from quire.source import Span

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def marker_as_text(line: Match[str], word: str, nested: int, found: list[Diagnostic]) -> int:
    """A marker that is text: it stands in a nested `if`, begins one, or belongs to none. Returns the new nesting."""
    if nested:
        return nested + {"if": 1, "endif": -1}.get(word, 0)
    if word == "if":
        found.append(
            Diagnostic(
                warnings.NESTED_IF,
                "An if inside another if: branches do not nest",
                line_span(line),
                "kept as text, up to its endif",
                "decide in a step of its own, or write elif for another arm",
            )
        )
        return 1
    found.append(
        Diagnostic(
            warnings.STRAY_MARKER,
            f"This {word} belongs to no if",
            line_span(line),
            "read as text",
            'a branch begins with ```if NAME == "value"```',
        )
    )
    return 0


def ticks_as_text(line: Match[str], in_branch: bool, nested: int, found: list[Diagnostic]) -> int:
    """A line of backticks or tildes that is no marker, though it may look like one. Returns the new nesting."""
    text = line[0].strip()
    if not nested and (word := marker_word(text)):
        found.append(marker_look_alike(text, word, line_span(line).start))
        if word == "if" and in_branch and text[-1] == "`":
            return 1
    return nested


def warn_of_no_end(line: Match[str], found: list[Diagnostic]) -> None:
    found.append(
        Diagnostic(
            warnings.UNTERMINATED_IF,
            "This if has no ```endif```",
            line_span(line),
            "closed where the step ends",
            "put ```endif``` on a line of its own after the last arm",
        )
    )


def warn_of_arm(line: Match[str], word: str, after_else: bool, found: list[Diagnostic]) -> None:
    """An arm that no run reaches, or a second `if`, which belongs to the chain before it."""
    if after_else:
        message = f"No run reaches this {word}: it comes after an else"
        help = "put the else last, or give the second decision a step of its own"
        found.append(Diagnostic(warnings.AFTER_ELSE, message, line_span(line), "its sub-steps never run", help))
    elif word == "if":
        message = "A second if in one step is read as one more arm of the first"
        help = "give the second decision a step of its own"
        label = "runs only if no arm before it does"
        found.append(Diagnostic(warnings.SECOND_CHAIN, message, line_span(line), label, help))


def warn_of_late_text(parent: Step, found: list[Diagnostic]) -> None:
    """Text of the step itself behind its first marker, once: what is inside of a branch belongs to a sub-step."""
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
                found.append(Diagnostic(warnings.TEXT_AFTER_ENDIF, message, span, "", help))
                return
            at += len(line) + 1


def lead(parent: Step, arm: Arm, substeps: list[Step], leads: list[Step]) -> Step:
    """A sub-step for what an arm has before its first one; `name_leads` gives it a label."""
    step = Step(parent.number, "", "", arm.start, arm.end, parent.document, [])
    substeps.append(step)
    leads.append(step)
    return step


def name_leads(parent: Step, leads: list[Step], found: list[Diagnostic]) -> None:
    """Gives leads the first letters that no sub-step of their parent has, and their first line of text as a place."""
    taken = {step.label for arm in parent.arms for step in arm.steps}
    prefix = str(parent.number)
    letters = (a + b for a in ("", *_LETTERS) for b in _LETTERS)
    free = (label for letter in letters if (label := prefix + letter) not in taken)
    for step in leads:
        _place(step)
        step.label = next(free, f"{prefix}zz")
        found.append(
            Diagnostic(
                notes.LEAD_TEXT,
                f"Text before the first sub-step of this arm: read as a sub-step {step.label}",
                step.span,
                "",
                f"give it a heading: ### STEP {step.label}: Title",
            )
        )


def _place(step: Step) -> None:
    """A lead of directives alone keeps the place of its marker."""
    for start, end in step.pieces:
        piece = step.document[start:end]
        if not piece.isspace():
            step.start = start + len(piece) - len(piece.lstrip())
            stop = step.document.find("\n", step.start, end)
            step.end = stop if stop >= 0 else end
            return
