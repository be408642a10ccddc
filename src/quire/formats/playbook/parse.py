"""Parse a playbook into a syntax tree and diagnostics. Never raises because of the content of a document.

The work is linear in the length of the text: each line is looked at a fixed number of times, by patterns that do not
backtrack.
"""

from __future__ import annotations

from operator import attrgetter
from re import Match

from quire.diagnostics import Diagnostic, Severity
from quire.formats.playbook.annotations import Ignored, elicitation, read_directive
from quire.formats.playbook.codes import errors, notes, warnings
from quire.formats.playbook.markers import (
    lead,
    marker_as_text,
    name_leads,
    note_fences,
    ticks_as_text,
    warn_of_arm,
    warn_of_late_text,
    warn_of_no_end,
)
from quire.formats.playbook.names import settle_conditions
from quire.formats.playbook.scan import (
    AT,
    CONDITION,
    DEFAULT,
    ELICIT,
    FIELD,
    KIND,
    LABEL,
    MARKER,
    NAME,
    NUMBER,
    OPERATOR,
    OPTIONS,
    OUTPUT,
    SECTION,
    STEP,
    SUBSTEP,
    TEXTS,
    TITLE,
    TYPE,
    VALUE,
    VARIABLE,
    WORD,
    Scan,
    line_span,
    scan,
)
from quire.formats.playbook.sections import Sections, content
from quire.formats.playbook.syntax import (
    OUTPUT_TYPES,
    Arm,
    Condition,
    Directive,
    Elicitation,
    Operator,
    OutputCapture,
    ParseResult,
    Playbook,
    PromptReference,
    Step,
    ToolCall,
)
from quire.source import MAX_DOCUMENT_BYTES, NOWHERE, Source, Span

NO_STEPS = "No steps found: document must contain at least one ## STEP heading"

# Distance from the first group of a line to its beginning: the opening of the directive or the ticks of the marker, and
# the line end that the scan puts before the text.
_DIRECTIVE = 1 + len("@output(")
_TICKS = 1 + len("```")


class _BodyReader:
    """Reads the special lines of one document into steps.

    The text between the special lines of a step is kept as positions in the document and joined when the step ends.
    """

    def __init__(self, source: Source, scan: Scan, found: list[Diagnostic]) -> None:
        self._text = source.text
        self._scan = scan
        self._found = found
        self._sections = Sections(source, scan.blocks, found)
        self._steps: list[Step] = []
        self._conditions: list[Condition] = []
        self._heading: Match[str] | None = None
        self._first_section = len(source.text)
        self._parent: Step | None = None
        """The step of the current section."""
        self._step: Step | None = None
        """The step that owns the text: the parent, a sub-step, or None at the start of an arm."""
        self._text_start = 0
        """Where the text begins that no step has yet."""
        self._clear_branches()

    def _clear_branches(self) -> None:
        self._arms: list[tuple[Arm, list[Step]]] = []
        self._leads: list[Step] = []
        self._opened: Match[str] | None = None
        self._nested = 0
        self._has_else = False

    def read(self) -> Playbook | None:
        """Return the tree as far as it can be read; None if there is no title or no step."""
        for kind, line in zip(self._scan.kinds, self._scan.lines, strict=True):
            if kind <= SECTION:
                self._begin_section(kind, line)
            elif self._parent is not None:
                self._read_line(kind, line, self._parent)
        self._end_section(len(self._text))
        sections, steps = self._sections, self._steps
        if any(condition.variable not in sections.inputs for condition in self._conditions):
            settle_conditions(steps, sections.inputs, self._found)
        if not steps:
            _miss_steps(sections, self._found)
        elif sections.near_steps:
            _warn_of_headings(sections.near_steps, steps, self._found)
        return self._playbook(self._scan.title) if self._scan.title else None

    def _playbook(self, line: Match[str]) -> Playbook:
        title = line[TITLE].rstrip()
        return Playbook(
            title,
            self._text[line.end() : self._first_section].strip(),
            self._sections.system,
            tuple(self._sections.inputs.values()),
            tuple(self._steps),
            self._sections.artifact,
            line.start(),
            line.start(TITLE) - 1 + len(title),
        )

    def _begin_section(self, kind: int, line: Match[str]) -> None:
        """End the section before this one, and begin a step if it is one."""
        start = line.start()
        if self._heading is None:
            self._first_section = start
        self._end_section(start)
        self._heading = line
        if kind == STEP:
            label, title = line[NUMBER] or "0", line[STEP].rstrip()
            end = line.start(STEP) - 1 + len(title)
            step = self._parent = self._step = Step(int(label), label, title, start, end, self._text, [])
            expected = self._steps[-1].number + 1 if self._steps else 1
            if step.number != expected:
                message = f"Non-sequential step number: expected {expected}, got {step.number}"
                self._found.append(Diagnostic(warnings.STEP_NUMBER, message, step.span))
            self._steps.append(step)
            self._text_start = line.end()

    def _end_section(self, stop: int) -> None:
        if self._parent is not None:
            self._end_step(self._parent, stop)
            self._parent = None
        elif self._heading is not None:
            self._sections.read(self._heading, stop)

    def _end_step(self, parent: Step, stop: int) -> None:
        # Blank lines after a directive are not text; without them most steps are one piece.
        step = self._step
        if step is None or step.pieces:
            if not self._text[self._text_start : stop].isspace():
                self._take_text(parent, stop)
        elif self._text_start < stop:
            step.pieces.append((self._text_start, stop))
        if self._arms:
            self._end_branches(parent)
            self._clear_branches()
        _fill(parent, self._found)

    def _end_branches(self, parent: Step) -> None:
        if self._opened:
            warn_of_no_end(self._opened, self._found)
        for arm, substeps in self._arms:
            arm.steps = tuple(substeps)
        parent.arms = tuple([arm for arm, _ in self._arms])
        warn_of_late_text(parent, self._found)
        if self._leads:
            name_leads(parent, self._leads, self._found)
        for arm in parent.arms:
            for substep in arm.steps:
                _fill(substep, self._found)

    def _read_line(self, kind: int, line: Match[str], parent: Step) -> None:
        """Read a special line of a step. A line without a meaning there stays in its text."""
        if kind > MARKER:
            self._nested = ticks_as_text(line, self._opened is not None, self._nested, self._found)
        elif kind >= CONDITION:
            self._read_marker(kind, line, parent)
        elif self._nested:
            pass
        elif kind == OUTPUT:
            self._read_output(line, parent)
        elif kind == ELICIT:
            texts = line[TEXTS].split('"')[1::2] if line[TEXTS] else []
            at, end = line.start(KIND) - _DIRECTIVE, line.start(ELICIT) - 1
            self._give(elicitation(line[KIND], texts, line[DEFAULT], at, end, self._found), line, parent)
        elif kind == AT:
            self._give(read_directive(line[0].strip(), line.start(AT) - 1 - len("@"), self._found), line, parent)
        elif kind == SUBSTEP and self._opened is not None:
            self._take_text(parent, line.start(), line.end())
            title = line[SUBSTEP].rstrip()
            at, end = line.start() + line[0].index("#") - 1, line.start(SUBSTEP) - 1 + len(title)
            self._step = Step(parent.number, line[LABEL], title, at, end, self._text, [])
            self._arms[-1][1].append(self._step)

    def _read_marker(self, kind: int, line: Match[str], parent: Step) -> None:
        """Read a marker that begins an arm or ends the branches."""
        word = line[WORD] or line[MARKER]
        if self._nested or (word == "if") is (self._opened is not None):
            self._nested = marker_as_text(line, word, self._nested, self._found)
            return
        self._take_text(parent, line.start(), line.end())
        if word == "endif":
            self._step, self._opened = parent, None
            return
        if self._arms:
            warn_of_arm(line, word, self._has_else, self._found)
        self._arms.append((self._read_arm(kind, line), []))
        self._opened = self._opened or line
        self._step = None

    def _read_arm(self, kind: int, line: Match[str]) -> Arm:
        if kind == MARKER:
            self._has_else = True
            at = line.start(MARKER) - _TICKS
            return Arm(None, (), at, at + len("```else```"))
        at, end = line.start(WORD) - _TICKS, line.start(CONDITION) - 1
        operator: Operator = "!=" if line[OPERATOR] == "!=" else "=="
        condition = Condition(line[VARIABLE], operator, line[VALUE], "input", at, end, line.start(VARIABLE) - 1)
        self._conditions.append(condition)
        return Arm(condition, (), at, end)

    def _read_output(self, line: Match[str], parent: Step) -> None:
        self._take_text(parent, line.start(), line.end())
        step = self._owner(parent)
        if step.output:
            _note_replaced(step.output, line, self._found)
        options = tuple(line[OPTIONS].split('"')[1::2]) if line[OPTIONS] else ()
        type = OUTPUT_TYPES.get(line[TYPE].lower(), "string") if line[TYPE] else None
        at, end = line.start(NAME) - _DIRECTIVE, line.start(OUTPUT) - 1
        step.output = OutputCapture(line[NAME], type, options, line[FIELD], at, end)

    def _give(
        self, directive: Elicitation | PromptReference | ToolCall | Ignored | None, line: Match[str], parent: Step
    ) -> None:
        """Give a directive to the current step. None means that the line is text."""
        if directive is None:
            return
        self._take_text(parent, line.start(), line.end())
        if isinstance(directive, Ignored):
            return
        step = self._owner(parent)
        replaced: Directive | None
        if isinstance(directive, Elicitation):
            replaced, step.elicitation = step.elicitation, directive
        elif isinstance(directive, PromptReference):
            replaced, step.prompt = step.prompt, directive
        else:
            replaced, step.tool = step.tool, directive
        if replaced:
            _note_replaced(replaced, line, self._found)

    def _take_text(self, parent: Step, stop: int, after: int = 0) -> None:
        """Give the lines up to `stop` to the current step. Its text goes on at `after`."""
        start = self._text_start
        if start < stop and (self._step is not None or not self._text[start:stop].isspace()):
            self._owner(parent).pieces.append((start, stop))
        self._text_start = after

    def _owner(self, parent: Step) -> Step:
        """Return the step that owns the text: in an arm before its first sub-step, a new one."""
        if self._step is None:
            self._step = lead(parent, *self._arms[-1], self._leads)
        return self._step


def _fill(step: Step, found: list[Diagnostic]) -> None:
    step.content = content(step.document, step.pieces)
    if step.tool:
        _check_company(step, step.tool, found)


def _note_replaced(replaced: Directive, line: Match[str], found: list[Diagnostic]) -> None:
    name = line[0].strip().partition("(")[0]
    message = f"{name} is here twice: the last one counts"
    found.append(Diagnostic(notes.REPLACED, message, replaced.span, "this one is dropped"))


def _check_company(step: Step, tool: ToolCall, found: list[Diagnostic]) -> None:
    """Report a question or a prompt beside a tool: a tool must be alone in its step."""
    if not (step.elicitation or step.prompt):
        return
    there = (("@elicit", step.elicitation), ("@prompt", step.prompt))
    others = " and ".join(name for name, directive in there if directive)
    found.append(
        Diagnostic(
            warnings.TOOL_COMPANY,
            f"@tool next to {others}: only the tool runs",
            tool.span,
            f"{others} ignored in this step",
            "ask, or refer to a prompt, in a step before",
        )
    )


def _warn_of_headings(headings: list[Match[str]], steps: list[Step], found: list[Diagnostic]) -> None:
    from quire.formats.playbook.fixes import step_fix

    fixes = {edit.span.start: edit for edit in step_fix(headings, [step.number for step in steps])}
    for heading in headings:
        message = f"Looks like a step but is not one: ## {heading[SECTION].rstrip()[:60]}"
        help = "a step begins with ## STEP 1: Title"
        edit = fixes.get(heading.start(SECTION) - 1)
        label, fix = "skipped with all its text", (edit,) if edit else ()
        found.append(Diagnostic(warnings.STEP_HEADING, message, line_span(heading), label, help, fix))


def _miss_steps(sections: Sections, found: list[Diagnostic]) -> None:
    from quire.formats.playbook.fixes import step_fix

    like = sections.step_like
    span, label = (line_span(like), "this is not written like a step") if like else (NOWHERE, "")
    fix = step_fix(sections.near_steps, ())
    found.append(Diagnostic(errors.NO_STEPS, NO_STEPS, span, label, "a step begins with ## STEP 1: Title", fix))


NO_TITLE = "No title found: document must contain a level-1 heading (# Title)"

_in_order = attrgetter("span.start")


def parse(source: Source) -> ParseResult:
    """Parse the text of a playbook."""
    text = source.text
    if source.exceeds(MAX_DOCUMENT_BYTES):
        return ParseResult(source, None, (_too_large(f"{source.size:,} bytes"),))
    if not text or text.isspace():
        return ParseResult(source, None, (_EMPTY,))
    result = scan(text)
    found: list[Diagnostic] = []
    if not result.title or result.title.start():
        _check_title(text, result, found)
    playbook = _BodyReader(source, result, found).read()
    if result.blocks or result.unclosed:
        note_fences(source, result, found)
    if not found:
        return ParseResult(source, playbook, ())
    found.sort(key=_in_order)
    wrong = any(one.severity is Severity.ERROR for one in found)
    return ParseResult(source, None if wrong else playbook, tuple(found))


def unread(name: str, kind: str) -> ParseResult:
    """Return the reading of a file that `read_source` refused as `empty` or `too_large`, so that there is no text."""
    return ParseResult(
        Source.of("", name), None, (_EMPTY if kind == "empty" else _too_large("more than 200,000 bytes"),)
    )


_EMPTY = Diagnostic(errors.EMPTY, "Document is empty", NOWHERE)


def _too_large(size: str) -> Diagnostic:
    help = f"it has {size}; 200,000 is the limit"
    return Diagnostic(errors.TOO_LARGE, "Document exceeds 200KB size limit", NOWHERE, "", help)


def _check_title(text: str, result: Scan, found: list[Diagnostic]) -> None:
    if result.title:
        before = text[: result.title.start()]
        if result.fenced_title:
            note = "The title stands inside a code fence, which is read as text"
            found.append(Diagnostic(notes.FENCED_TITLE, note, line_span(result.title)))
        elif not before.isspace():
            start = len(before) - len(before.lstrip())
            stop = before.index("\n", start)
            note = "Text before the title is not part of the playbook"
            found.append(Diagnostic(notes.BEFORE_TITLE, note, Span(start, stop)))
    elif result.late_title:
        span, help = line_span(result.late_title), "move this heading above the first ## section"
        found.append(Diagnostic(errors.NO_TITLE, NO_TITLE, span, "comes after a ## section", help))
    else:
        help = "begin the document with # and its title"
        found.append(Diagnostic(errors.NO_TITLE, NO_TITLE, NOWHERE, "", help))
