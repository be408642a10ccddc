"""The steps of a playbook: their text, their directives, their branches.

A draft is filled while the special lines go by and becomes a `Step` at the end, when it is known which names a
condition may read. What is text is kept as ranges of the document; the gaps between the ranges are the lines that
were taken out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from re import Match

from quire.diagnostics import Diagnostic
from quire.formats.playbook.codes import notes, warnings
from quire.formats.playbook.directives import read_directive
from quire.formats.playbook.making import quick
from quire.formats.playbook.markers import Marker, marker_look_alike, marker_word, read_marker
from quire.formats.playbook.placeholders import placeholders
from quire.formats.playbook.scan import AT, CAPTURE, FENCE, HASH, TICKS, line_span
from quire.formats.playbook.syntax import (
    Arm,
    Condition,
    Elicitation,
    OutputCapture,
    Placeholder,
    PromptReference,
    Step,
    ToolCall,
)
from quire.source import Span

_SUBSTEP = re.compile(r"###\s++STEP\s++([0-9]++[a-z]):\s++(\S.*+)")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_step = quick(Step)
_arm = quick(Arm)
_output = quick(OutputCapture)
_span = quick(Span)


class Draft:
    """A step on its way. `start` and `end` are those of its heading, `stop` is where its last line ends; `plain` is
    true while every line that was taken out is a directive that counts."""

    prompt: PromptReference | None = None
    output: OutputCapture | None = None
    elicitation: Elicitation | None = None
    tool: ToolCall | None = None
    arms: tuple[DraftArm, ...] | list[DraftArm] = ()
    plain = True

    def __init__(self, number: int, label: str, title: str, start: int, end: int) -> None:
        self.number = number
        self.label = label
        self.title = title
        self.start = start
        self.end = end
        self.stop = end
        self.ranges: list[tuple[int, int]] = []

    def family(self) -> list[Draft]:
        """This one, then its sub-steps."""
        return [self, *(step for arm in self.arms for step in arm.steps)] if self.arms else [self]


class DraftArm:
    def __init__(self, marker: Marker, lead: Draft) -> None:
        self.marker = marker
        self.steps = [lead]


class StepReader:
    """Reads the special lines of one step. `found` takes the diagnostics."""

    def __init__(self, parent: Draft, begin: int, found: list[Diagnostic]) -> None:
        self._parent = self._draft = parent
        self._found = found
        self._open: Marker | None = None
        self._nested = 0
        self._begin = begin

    def read(self, line: Match[str]) -> None:
        kind = line.lastindex
        if kind == CAPTURE:
            if not self._nested:
                self._capture(line)
        elif kind == AT:
            if not self._nested:
                self._directive(line, line[AT].rstrip())
        elif kind in (TICKS, FENCE):
            self._ticks(line, line[kind].rstrip(), line.start(kind) - 1)
        elif kind == HASH and self._open and not self._nested:
            match = _SUBSTEP.fullmatch(line[HASH].rstrip())
            if match:
                self._take(line)
                span = line_span(line)
                self._draft = Draft(self._parent.number, match[1], match[2], span.start, span.end)
                self._parent.arms[-1].steps.append(self._draft)

    def finish(self, end: int, text: str) -> None:
        """The step ends where the next section begins."""
        if self._begin < end:
            self._draft.ranges.append((self._begin, end))
        self._draft.stop = end
        parent = self._parent
        if self._open:
            self._found.append(
                Diagnostic(
                    warnings.UNTERMINATED_IF,
                    "This if has no ```endif```",
                    self._open.span,
                    "closed where the step ends",
                    "put ```endif``` on a line of its own after the last arm",
                )
            )
        if parent.arms:
            self._name_leads(text)
        for draft in parent.family():
            if draft.tool and (draft.elicitation or draft.prompt):
                self._found.append(_company(draft, draft.tool))

    def _take(self, line: Match[str]) -> None:
        """The line is no text of the draft at hand; what came before it is."""
        start = line.start()
        if self._begin < start:
            self._draft.ranges.append((self._begin, start))
        self._draft.stop = start
        self._begin = line.end()

    def _capture(self, line: Match[str]) -> None:
        """The plain `@output(name)`, by far the most frequent directive."""
        self._take(line)
        draft, name = self._draft, line[CAPTURE]
        if draft.output:
            draft.plain = False
            self._found.append(_replaced("@output", draft.output.span))
        at = line.start(CAPTURE) - 1
        end = at + len(name)
        draft.output = _output(name, None, (), None, _span(at - len("@output("), end + 1), _span(at, end))

    def _directive(self, line: Match[str], text: str) -> None:
        directive = read_directive(text, line.start(AT) - 1, self._found)
        if directive is None:
            return
        self._take(line)
        draft = self._draft
        replaced: PromptReference | OutputCapture | Elicitation | ToolCall | None = None
        if isinstance(directive, OutputCapture):
            replaced, draft.output = draft.output, directive
            draft.plain = draft.plain and not directive.options
        elif isinstance(directive, Elicitation):
            replaced, draft.elicitation = draft.elicitation, directive
        elif isinstance(directive, PromptReference):
            replaced, draft.prompt = draft.prompt, directive
        elif isinstance(directive, ToolCall):
            replaced, draft.tool = draft.tool, directive
        else:
            draft.plain = False
        if replaced:
            draft.plain = False
            self._found.append(_replaced(text[: text.index("(")], replaced.span))

    def _ticks(self, line: Match[str], text: str, at: int) -> None:
        marker = read_marker(text, at)
        if not marker:
            if (word := marker_word(text)) and not self._nested:
                if word == "if" and self._open and text[-1] == "`":
                    self._nested = 1
                self._found.append(marker_look_alike(text, word, at))
            return
        if self._nested:
            self._nested += {"if": 1, "endif": -1}.get(marker.kind, 0)
            return
        if marker.kind == "if":
            if self._open:
                self._nested = 1
                self._found.append(
                    Diagnostic(
                        warnings.NESTED_IF,
                        "An if inside another if: branches do not nest",
                        marker.span,
                        "kept as text, up to its endif",
                        "decide in a step of its own, or write elif for another arm",
                    )
                )
                return
            self._open = marker
        elif not self._open:
            self._found.append(
                Diagnostic(
                    warnings.STRAY_MARKER,
                    f"This {marker.kind} belongs to no if",
                    marker.span,
                    "read as text",
                    'a branch begins with ```if NAME == "value"```',
                )
            )
            return
        self._take(line)
        if marker.kind == "endif":
            self._open = None
            self._draft = self._parent
            return
        # Lead text goes to a nameless sub-step, which is dropped again if there is none.
        self._draft = Draft(self._parent.number, "", "", marker.span.start, marker.span.end)
        self._parent.arms = [*self._parent.arms] if isinstance(self._parent.arms, tuple) else self._parent.arms
        self._parent.arms.append(DraftArm(marker, self._draft))

    def _name_leads(self, text: str) -> None:
        """Drops empty lead drafts and gives the others the first letters that no sub-step of this step has."""
        leads: list[Draft] = []
        for arm in self._parent.arms:
            lead = arm.steps[0]
            written = [(start, end) for start, end in lead.ranges if not text[start:end].isspace()]
            directives = [d.span for d in (lead.prompt, lead.output, lead.elicitation, lead.tool) if d]
            if not written and not directives:
                del arm.steps[0]
                continue
            leads.append(lead)
            if written:
                start, end = written[0]
                lead.start = start + len(text[start:end]) - len(text[start:end].lstrip())
                stop = text.find("\n", lead.start)
                lead.end = min(end, stop) if stop >= 0 else end
        if not leads:
            return
        taken = {step.label for arm in self._parent.arms for step in arm.steps}
        prefix = str(self._parent.number)
        letters = (a + b for a in ("", *_LETTERS) for b in _LETTERS)
        free = (label for letter in letters if (label := prefix + letter) not in taken)
        for lead in leads:
            lead.label = next(free, f"{prefix}zz")
            self._found.append(
                Diagnostic(
                    notes.LEAD_TEXT,
                    f"Text before the first sub-step of this arm: read as a sub-step {lead.label}",
                    Span(lead.start, lead.end),
                    "",
                    f"give it a heading: ### STEP {lead.label}: Title",
                )
            )


def _replaced(name: str, span: Span) -> Diagnostic:
    return Diagnostic(notes.REPLACED, f"{name} is here twice: the last one counts", span, "this one is dropped")


def _company(draft: Draft, tool: ToolCall) -> Diagnostic:
    others = " and ".join(name for name, there in (("@elicit", draft.elicitation), ("@prompt", draft.prompt)) if there)
    return Diagnostic(
        warnings.TOOL_COMPANY,
        f"@tool next to {others}: only the tool runs",
        tool.span,
        f"{others} ignored in this step",
        "ask, or refer to a prompt, in a step before",
    )


class StepBuilder:
    """Makes steps of drafts. `tidy` says that no line of the text has space at its end."""

    def __init__(self, text: str, tidy: bool, condition: Callable[[Marker, Draft], Condition]) -> None:
        self._text = text
        self._tidy = tidy
        self._condition = condition

    def build(self, draft: Draft) -> Step:
        arms: tuple[Arm, ...] = ()
        if draft.arms:
            condition = self._condition
            arms = tuple(
                [
                    _arm(
                        condition(arm.marker, draft) if arm.marker.kind != "else" else None,
                        tuple([self.build(step) for step in arm.steps]),
                        arm.marker.span,
                    )
                    for arm in draft.arms
                ]
            )
        ranges = draft.ranges
        return _step(
            draft.number,
            draft.label,
            draft.title,
            self._content(ranges) if ranges else "",
            draft.prompt,
            draft.output,
            draft.elicitation,
            draft.tool,
            arms,
            placeholders(self._text, draft.end, draft.stop)
            if draft.plain and draft.title and not arms
            else self._scattered(draft),
            _span(draft.start, draft.end),
        )

    def _scattered(self, draft: Draft) -> tuple[Placeholder, ...]:
        places = [*draft.ranges]
        places += [(d.span.start, d.span.end) for d in (draft.prompt, draft.elicitation, draft.tool) if d]
        places.sort()
        return tuple([found for start, end in places for found in placeholders(self._text, start, end)])

    def _content(self, ranges: list[tuple[int, int]]) -> str:
        """Lines without the space at their ends; blank lines around a line that was taken out become one."""
        text = self._text
        if len(ranges) == 1:
            start, end = ranges[0]
            piece = text[start:end]
            return (piece if self._tidy else "\n".join(map(str.rstrip, piece.split("\n")))).strip()
        kept: list[str] = []
        blank = False
        for start, end in ranges:
            piece = text[start:end]
            if not self._tidy:
                piece = "\n".join(map(str.rstrip, piece.split("\n")))
            body = piece.strip("\n")
            if not body:
                blank = blank or piece != ""
                continue
            if kept:
                kept.append("\n\n" if blank or piece[0] == "\n" else "\n")
            kept.append(body)
            blank = piece.endswith("\n\n")
        return "".join(kept).strip()
