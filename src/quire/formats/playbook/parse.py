"""Parse a playbook into a syntax tree and diagnostics. Never raises because of the content of a document.

The work is linear in the length of the text: each line is looked at a fixed number of times, by patterns that do not
backtrack.
"""

from __future__ import annotations

import re
from operator import attrgetter
from re import Match

from quire.diagnostics import Diagnostic, Severity
from quire.formats.playbook import markers, syntax
from quire.formats.playbook import scan as groups
from quire.formats.playbook.annotations import (
    Ignored,
    check_company,
    elicitation,
    note_replaced,
    read_directive,
    without_escapes,
)
from quire.formats.playbook.codes import reader
from quire.formats.playbook.names import settle_conditions
from quire.formats.playbook.scan import Scan, line_span, scan
from quire.formats.playbook.sections import Sections, miss_steps, warn_of_headings
from quire.formats.playbook.syntax import Directive, ParseResult, Playbook, Step
from quire.patterns import late_pattern
from quire.source import MAX_DOCUMENT_BYTES, NOWHERE, Source, Span

# Distance from the first group of a line to its beginning: the opening of the directive or the ticks of the marker, and
# the line end that the scan puts before the text.
_DIRECTIVE = 1 + len("@output(")
_TICKS = 1 + len("```")


_FIELDS: dict[type, str] = {
    syntax.Elicitation: "elicitation",
    syntax.PromptReference: "prompt",
    syntax.ToolCall: "tool",
    syntax.ContextChoice: "context",
    syntax.ModelChoice: "model",
    syntax.OutputCapture: "output",
}
"""The field of a step that has a kind of directive."""


class _BodyReader:
    """Reads the special lines of one document into steps.

    The text between the special lines of a step is kept as positions in the document.
    """

    def __init__(self, source: Source, scanned: Scan, findings: list[Diagnostic], *, extended: bool) -> None:
        self._text = source.text
        self._extended = extended
        self._scan = scanned
        self._found = findings
        self._sections = Sections(source, scanned.blocks, findings, extended=extended)
        self._steps: list[Step] = []
        self._next_number = 1
        self._compared: set[str] = set()
        """The names that conditions read."""
        self._heading: Match[str] | None = None
        self._parent: Step | None = None
        """The step of the current section."""
        self._step: Step | None = None
        """The step that owns the text: the parent, a sub-step, or None at the start of an arm."""
        self._text_start = 0
        """Where the text begins that no step has yet."""
        self._clear_branches()

    def _clear_branches(self) -> None:
        self._arms: list[tuple[syntax.Arm, list[Step]]] = []
        self._substeps: list[Step] = []
        """The sub-steps of the last arm."""
        self._leads: list[Step] = []
        self._opened: Match[str] | None = None
        self._nested = 0
        self._has_else = False

    def read(self) -> Playbook:
        """Return the tree as far as it can be read. A document without a title has an empty one."""
        for kind, line in zip(self._scan.kinds, self._scan.lines, strict=True):
            if kind <= groups.SECTION:
                self._end_section(line.start())
                self._heading = line
                if kind == groups.STEP:
                    self._begin_step(line)
            elif self._parent is not None and (read := _READERS.get(kind)):
                read(self, line, self._parent)
        self._end_section(len(self._text))
        sections, steps = self._sections, self._steps
        if not self._compared <= sections.inputs.keys():
            settle_conditions(steps, sections.inputs, self._found)
        if not steps:
            miss_steps(sections, self._found)
        elif sections.near_steps:
            warn_of_headings(sections.near_steps, [step.number for step in steps], self._found)
        return self._playbook(self._scan.title)

    def _playbook(self, line: Match[str] | None) -> Playbook:
        title = line[groups.TITLE].rstrip() if line else ""
        return Playbook(
            title,
            self._text[line.end() : self._first_section].strip() if line else "",
            self._sections.system,
            tuple(self._sections.inputs.values()),
            tuple(self._steps),
            self._sections.artifact,
            line.start() if line else 0,
            line.start(groups.TITLE) - 1 + len(title) if line else 0,
        )

    def _begin_step(self, line: Match[str]) -> None:
        start, self._text_start = line.span()
        label, title = line[groups.NUMBER] or "0", line[groups.STEP].rstrip()
        number, end = int(label), line.start(groups.STEP) - 1 + len(title)
        self._parent = self._step = step = Step(number, label, title, start, end, self._text, [])
        if number != self._next_number:
            message = f"Non-sequential step number: expected {self._next_number}, got {number}"
            self._found.append(Diagnostic(reader.STEP_NUMBER, message, step.span))
        self._next_number = number + 1
        self._steps.append(step)

    def _end_section(self, stop: int) -> None:
        if self._parent is not None:
            self._end_step(self._parent, stop)
            self._parent = None
        elif self._heading is not None:
            self._sections.read(self._heading, stop)
        else:
            self._first_section = stop

    def _end_step(self, parent: Step, stop: int) -> None:
        # Blank lines after a directive are not text; without them most steps are one piece.
        start, step = self._text_start, self._step
        if start < stop and not (step and step.pieces and self._text[start:stop].isspace()):
            self._take_text(start, stop, parent)
        if self._arms:
            self._end_branches(parent, stop)
            self._clear_branches()
        if parent.tool:
            check_company(parent, parent.tool, self._found)

    def _end_branches(self, parent: Step, stop: int) -> None:
        if self._opened:
            markers.warn_of_no_end(self._opened, stop, self._found)
        for arm, substeps in self._arms:
            arm.steps = tuple(substeps)
            for substep in substeps:
                if substep.tool:
                    check_company(substep, substep.tool, self._found)
        parent.arms = tuple([arm for arm, _ in self._arms])
        markers.warn_of_late_text(parent, self._found)
        if self._leads:
            markers.name_leads(parent, self._leads, self._found)

    def _read_ticks(self, line: Match[str], parent: Step) -> None:
        self._nested = markers.ticks_as_text(line, self._opened is not None, self._nested, self._found)

    def _read_substep(self, line: Match[str], parent: Step) -> None:
        if self._nested or self._opened is None:
            return
        self._cut_out(line, parent)
        title = line[groups.SUBSTEP].rstrip()
        at, end = line.start() + line[0].index("#") - 1, line.start(groups.SUBSTEP) - 1 + len(title)
        step = self._step = Step(parent.number, line[groups.LABEL], title, at, end, self._text, [])
        self._substeps.append(step)

    def _read_marker(self, line: Match[str], parent: Step) -> None:
        """Read a marker that begins an arm or ends the branches."""
        word = line[groups.MARKER]
        if self._nested or (word == "if") is (self._opened is not None):
            self._nested = markers.marker_as_text(line, word, self._nested, self._found)
            return
        self._cut_out(line, parent)
        if word == "endif":
            self._step, self._opened = parent, None
        else:
            self._begin_arm(word, line)

    def _begin_arm(self, word: str, line: Match[str]) -> None:
        if self._has_else or (word == "if" and self._arms):
            markers.warn_of_arm(line, word, self._has_else, self._found)
        self._opened = self._opened or line
        self._step, self._substeps = None, []
        at = line.start(groups.MARKER) - _TICKS
        if word == "else":
            self._has_else = True
            arm = syntax.Arm(None, (), at, at + len("```else```"))
        else:
            condition = self._read_condition(line, at)
            arm = syntax.Arm(condition, (), at, condition.end)
        self._arms.append((arm, self._substeps))

    def _read_condition(self, line: Match[str], at: int) -> syntax.Condition:
        variable, value = line.group(groups.VARIABLE, groups.VALUE)
        self._compared.add(variable)
        operator: syntax.Operator = "!=" if line[groups.OPERATOR] == "!=" else "=="
        return syntax.Condition(
            variable, operator, value, "input", at, line.start(groups.CONDITION) - 1, line.start(groups.VARIABLE) - 1
        )

    def _read_elicit(self, line: Match[str], parent: Step) -> None:
        if self._nested:
            return
        kind, quoted, default = line.group(groups.KIND, groups.TEXTS, groups.DEFAULT)
        texts = quoted.split('"')[1::2] if quoted else []
        at, end = line.start(groups.KIND) - _DIRECTIVE, line.start(groups.ELICIT) - 1
        if self._extended and "\\n" in line[0]:
            texts, default = without_escapes(texts, default)
        self._give(elicitation(kind, texts, default, at, end, self._found), line, parent)

    def _read_other(self, line: Match[str], parent: Step) -> None:
        """Read any other line that begins with `@`."""
        if self._nested:
            return
        at = line.start(groups.AT) - 1 - len("@")
        self._give(read_directive(line[0].strip(), at, self._found, extended=self._extended), line, parent)

    def _read_output(self, line: Match[str], parent: Step) -> None:
        if self._nested:
            return
        name, type, quoted, field = line.group(groups.NAME, groups.TYPE, groups.OPTIONS, groups.FIELD)
        options = tuple(quoted.split('"')[1::2]) if quoted else ()
        type = syntax.OUTPUT_TYPES.get(type.lower(), "string") if type else None
        at, end = line.start(groups.NAME) - _DIRECTIVE, line.start(groups.OUTPUT) - 1
        self._give(syntax.OutputCapture(name, type, options, field, at, end), line, parent)

    def _give(self, directive: Directive | Ignored | None, line: Match[str], parent: Step) -> None:
        """Give a directive to the current step. None means that the line is text."""
        if directive is None:
            return
        self._cut_out(line, parent)
        if isinstance(directive, Ignored):
            return
        step, name = self._owner(parent), _FIELDS[type(directive)]
        replaced: Directive | None = getattr(step, name)
        setattr(step, name, directive)
        if replaced:
            note_replaced(replaced, line, self._found)

    def _cut_out(self, line: Match[str], parent: Step) -> None:
        """Give the text before a line to the current step. Its text continues after the line."""
        start = self._text_start
        stop, self._text_start = line.span()
        if start < stop:
            self._take_text(start, stop, parent)

    def _take_text(self, start: int, stop: int, parent: Step) -> None:
        """Give a range of the text to the current step. Blank lines do not begin an arm."""
        if self._step is not None:
            self._step.pieces.append((start, stop))
        elif not self._text[start:stop].isspace():
            self._owner(parent).pieces.append((start, stop))

    def _owner(self, parent: Step) -> Step:
        """Return the step that owns the text: in an arm before its first sub-step, a new one."""
        if self._step is None:
            self._step = markers.lead(parent, *self._arms[-1], self._leads)
        return self._step


_READERS = {
    groups.OUTPUT: _BodyReader._read_output,
    groups.ELICIT: _BodyReader._read_elicit,
    groups.AT: _BodyReader._read_other,
    groups.SUBSTEP: _BodyReader._read_substep,
    groups.MARKER: _BodyReader._read_marker,
    groups.CONDITION: _BodyReader._read_marker,
    groups.FENCE: _BodyReader._read_ticks,
    groups.BACKTICKS: _BodyReader._read_ticks,
}
"""The method that reads each kind of line inside a step. A line without a meaning there stays in its text."""


NO_TITLE = "No title found: document must contain a level-1 heading (# Title)"

_in_order = attrgetter("span.start")


def parse(source: Source, *, extended: bool = True) -> ParseResult:
    """Parse the text of a playbook. Without `extended`, everything that only Quire has is read as other implementations
    read it: so are the documents of runs that were started before Quire had it."""
    return parse_scanned(source, extended=extended)[0]


def parse_scanned(source: Source, *, extended: bool = True) -> tuple[ParseResult, Scan | None]:
    """Return the lines of the text as well, for lints; None for a text that is empty or too large."""
    text = source.text
    if source.exceeds(MAX_DOCUMENT_BYTES):
        return ParseResult(source, None, (_too_large(f"{source.size:,} bytes"),)), None
    if not text or text.isspace():
        return ParseResult(source, None, (_EMPTY,)), None
    result = scan(text)
    findings: list[Diagnostic] = []
    if not result.title or result.title.start():
        _check_title(text, result, findings)
    playbook = _BodyReader(source, result, findings, extended=extended).read()
    if result.blocks or result.unclosed:
        markers.note_fences(source, result, findings)
    if result.title and ("@context(" in text or (playbook.artifact and playbook.artifact.source)):
        from quire.formats.playbook.extensions import check_names

        check_names(playbook, findings)
    if not findings:
        return ParseResult(source, playbook, (), playbook), result
    findings.sort(key=_in_order)
    wrong = [diagnostic for diagnostic in findings if diagnostic.code.severity is Severity.ERROR]
    return ParseResult(source, None if wrong else playbook, tuple(findings), playbook), result


def unread(name: str, kind: str) -> ParseResult:
    """Return the reading of a file that `read_source` refused as `empty` or `too_large`, so that there is no text."""
    return ParseResult(
        Source.of("", name), None, (_EMPTY if kind == "empty" else _too_large("more than 200,000 bytes"),)
    )


_EMPTY = Diagnostic(reader.EMPTY, "Document is empty", NOWHERE)


def _too_large(size: str) -> Diagnostic:
    help = f"it has {size}; 200,000 is the limit"
    return Diagnostic(reader.TOO_LARGE, "Document exceeds 200KB size limit", NOWHERE, "", help)


_STRAY = late_pattern(r"^(?![^\S\n]*+<!--[ \t]*+quire:)[^\S\n]*+(\S[^\n]*+)", re.MULTILINE)
"""A line of text that is not a comment for Quire."""


def _check_title(text: str, result: Scan, findings: list[Diagnostic]) -> None:
    if result.title:
        before = text[: result.title.start()]
        if result.fenced_title:
            note = "The title stands inside a code fence, which is read as text"
            findings.append(Diagnostic(reader.FENCED_TITLE, note, line_span(result.title)))
        elif stray := _STRAY.search(before):
            note = "Text before the title is not part of the playbook"
            findings.append(Diagnostic(reader.BEFORE_TITLE, note, Span(*stray.span(1))))
    elif result.late_title:
        span, help = line_span(result.late_title), "move this heading above the first ## section"
        findings.append(Diagnostic(reader.NO_TITLE, NO_TITLE, span, "comes after a ## section", help))
    else:
        help = "begin the document with # and its title"
        findings.append(Diagnostic(reader.NO_TITLE, NO_TITLE, NOWHERE, "", help))
