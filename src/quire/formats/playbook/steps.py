"""Reads steps: their text, their directives, their branches.

The special lines of a step go by one after the other. What stands between them is text of the step at hand, which is
kept as places in the document and put together when the step ends.
"""

from __future__ import annotations

from re import Match
from typing import cast

from quire.diagnostics import Diagnostic
from quire.formats.playbook import scan
from quire.formats.playbook.codes import notes, warnings
from quire.formats.playbook.content import content
from quire.formats.playbook.directives import Ignored, elicitation, read_directive
from quire.formats.playbook.leads import name_leads
from quire.formats.playbook.markers import marker_look_alike, marker_word
from quire.formats.playbook.scan import AT, CONDITION, ELICIT, MARKER, OUTPUT, SUBSTEP, line_span
from quire.formats.playbook.syntax import (
    Arm,
    Condition,
    Directive,
    Elicitation,
    Operator,
    OutputCapture,
    PromptReference,
    Step,
    ToolCall,
)
from quire.formats.playbook.types import OUTPUT_TYPES

_OUTPUT = len("@output(")
_ELICIT = len("@elicit(")
_TICKS = len("```")


class StepReader:
    """`steps` are those that were read; `branching` says that one of them has branches."""

    branching = False
    _parent: Step
    # What text goes to; None in an arm where no sub-step has begun.
    _step: Step | None
    _begin: int
    _open: Match[str] | None = None
    _nested = 0

    def __init__(self, text: str, found: list[Diagnostic]) -> None:
        self.steps: list[Step] = []
        self._text = text
        self._found = found
        self._arms: list[Arm] = []
        self._substeps: list[Step] = []
        self._leads: list[Step] = []

    def begin(self, heading: Match[str]) -> None:
        label = heading[scan.NUMBER] or "0"
        number = int(label)
        title = heading[scan.STEP].rstrip()
        end = heading.start(scan.STEP) - 1 + len(title)
        self._step = self._parent = step = Step(number, label, title, heading.start(), end, self._text, [])
        self._begin = heading.end()
        steps = self.steps
        expected = steps[-1].number + 1 if steps else 1
        if number != expected:
            message = f"Non-sequential step number: expected {expected}, got {number}"
            self._found.append(Diagnostic(warnings.STEP_NUMBER, message, step.span))
        steps.append(step)

    def read(self, kind: int, line: Match[str]) -> None:
        """Takes a special line of the step that was begun; `kind` is what the scan says that it is."""
        if kind >= CONDITION:
            if kind <= MARKER:
                self._marker(kind, line)
            else:
                self._no_marker(line)
        elif self._nested:
            return
        elif kind == OUTPUT:
            self._output(line)
        elif kind == SUBSTEP:
            if self._open:
                self._substep(line)
        elif kind == ELICIT:
            self._elicit(line)
        elif kind == AT:
            self._directive(line)

    def end(self, stop: int) -> None:
        """The step ends where the next section begins."""
        begin, step = self._begin, self._step
        if begin < stop:
            # A blank end after a directive is no text, and most steps are one piece without it.
            if step is None:
                self._put(begin, stop)
            elif not step.pieces or not self._text[begin:stop].isspace():
                step.pieces.append((begin, stop))
        if self._arms:
            self._end_branches()
        self._fill(self._parent)

    def _put(self, begin: int, stop: int) -> None:
        step = self._step
        if step is None:
            if self._text[begin:stop].isspace():
                return
            step = self._lead()
        step.pieces.append((begin, stop))

    def _take(self, line: Match[str]) -> None:
        """The line is no text of the step at hand; what came before it is."""
        begin, stop = self._begin, line.start()
        if begin < stop:
            self._put(begin, stop)
        self._begin = line.end()

    def _fill(self, step: Step) -> None:
        if step.pieces:
            step.content = content(self._text, step.pieces)
        if step.tool and (step.elicitation or step.prompt):
            self._warn_of_company(step, step.tool)

    def _output(self, line: Match[str]) -> None:
        self._take(line)
        kind, options = line[scan.TYPE], line[scan.OPTIONS]
        step = self._step or self._lead()
        if step.output:
            self._note_replaced(step.output, line)
        step.output = OutputCapture(
            line[scan.NAME],
            OUTPUT_TYPES.get(kind.lower(), "string") if kind else None,
            tuple(options.split('"')[1::2]) if options else (),
            line[scan.FIELD],
            line.start(scan.NAME) - 1 - _OUTPUT,
            line.start(OUTPUT) - 1,
        )

    def _elicit(self, line: Match[str]) -> None:
        texts = line[scan.TEXTS]
        start, end = line.start(scan.KIND) - 1 - _ELICIT, line.start(ELICIT) - 1
        texts = texts.split('"')[1::2] if texts else []
        self._give(elicitation(line[scan.KIND], texts, line[scan.DEFAULT], start, end, self._found), line)

    def _directive(self, line: Match[str]) -> None:
        directive = read_directive(line[0].strip(), line.start(AT) - 1 - len("@"), self._found)
        if directive is not None:
            self._give(directive, line)

    def _give(self, directive: Elicitation | PromptReference | ToolCall | Ignored, line: Match[str]) -> None:
        """The step at hand gets the directive of a line."""
        self._take(line)
        if isinstance(directive, Ignored):
            return
        step = self._step or self._lead()
        replaced: Directive | None
        if isinstance(directive, Elicitation):
            replaced, step.elicitation = step.elicitation, directive
        elif isinstance(directive, PromptReference):
            replaced, step.prompt = step.prompt, directive
        else:
            replaced, step.tool = step.tool, directive
        if replaced:
            self._note_replaced(replaced, line)

    def _note_replaced(self, replaced: Directive, line: Match[str]) -> None:
        name = line[0].strip().partition("(")[0]
        message = f"{name} is here twice: the last one counts"
        self._found.append(Diagnostic(notes.REPLACED, message, replaced.span, "this one is dropped"))

    def _warn_of_company(self, step: Step, tool: ToolCall) -> None:
        """A tool is alone in its step."""
        there = (("@elicit", step.elicitation), ("@prompt", step.prompt))
        others = " and ".join(name for name, directive in there if directive)
        self._found.append(
            Diagnostic(
                warnings.TOOL_COMPANY,
                f"@tool next to {others}: only the tool runs",
                tool.span,
                f"{others} ignored in this step",
                "ask, or refer to a prompt, in a step before",
            )
        )

    def _marker(self, kind: int, line: Match[str]) -> None:
        word = line[scan.WORD if kind == CONDITION else MARKER]
        if self._nested:
            self._nested += {"if": 1, "endif": -1}.get(word, 0)
        elif word == "if" and self._open:
            self._nested = 1
            self._found.append(
                Diagnostic(
                    warnings.NESTED_IF,
                    "An if inside another if: branches do not nest",
                    line_span(line),
                    "kept as text, up to its endif",
                    "decide in a step of its own, or write elif for another arm",
                )
            )
        elif word != "if" and not self._open:
            self._found.append(
                Diagnostic(
                    warnings.STRAY_MARKER,
                    f"This {word} belongs to no if",
                    line_span(line),
                    "read as text",
                    'a branch begins with ```if NAME == "value"```',
                )
            )
        else:
            self._take(line)
            if word == "if":
                self._open = line
            else:
                self._arms[-1].steps = tuple(self._substeps)
            if word == "endif":
                self._open, self._step = None, self._parent
            else:
                self._arm(kind, line)

    def _arm(self, kind: int, line: Match[str]) -> None:
        if kind == CONDITION:
            start, end = line.start(scan.WORD) - 1 - _TICKS, line.start(CONDITION) - 1
            at = line.start(scan.VARIABLE) - 1
            operator = cast(Operator, line[scan.OPERATOR])
            condition = Condition(line[scan.VARIABLE], operator, line[scan.VALUE], "input", start, end, at)
            self._arms.append(Arm(condition, (), start, end))
        else:
            start, end = line.span(MARKER)
            self._arms.append(Arm(None, (), start - 1 - _TICKS, end - 1 + _TICKS))
        self._step = None
        self._substeps = []

    def _substep(self, line: Match[str]) -> None:
        self._take(line)
        title = line[SUBSTEP].rstrip()
        start = line.start() + line[0].index("#") - 1
        end = line.start(SUBSTEP) - 1 + len(title)
        self._step = Step(self._parent.number, line[scan.LABEL], title, start, end, self._text, [])
        self._substeps.append(self._step)

    def _lead(self) -> Step:
        """Text or a directive before the first sub-step of an arm: a sub-step that gets its label in the end."""
        arm = self._arms[-1]
        self._step = lead = Step(self._parent.number, "", "", arm.start, arm.end, self._text, [])
        self._substeps.append(lead)
        self._leads.append(lead)
        return lead

    def _no_marker(self, line: Match[str]) -> None:
        text = line[0].strip()
        if self._nested or not (word := marker_word(text)):
            return
        if word == "if" and self._open and text[-1] == "`":
            self._nested = 1
        self._found.append(marker_look_alike(text, word, line_span(line).start))

    def _end_branches(self) -> None:
        if self._open:
            self._arms[-1].steps = tuple(self._substeps)
            self._found.append(
                Diagnostic(
                    warnings.UNTERMINATED_IF,
                    "This if has no ```endif```",
                    line_span(self._open),
                    "closed where the step ends",
                    "put ```endif``` on a line of its own after the last arm",
                )
            )
        self._parent.arms = tuple(self._arms)
        self.branching = True
        if self._leads:
            name_leads(self._parent, self._leads, self._found)
            self._leads = []
        for arm in self._arms:
            for step in arm.steps:
                self._fill(step)
        self._open, self._nested = None, 0
        self._arms = []
