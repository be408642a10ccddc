"""Parse a playbook into a syntax tree and diagnostics. Never raises because of the content of a document.

The work is linear in the length of the text: each line is looked at a fixed number of times, by patterns that do not
backtrack.

`read_body` goes over the special lines one by one. The text between those of a step is kept as positions in the
document and joined when the step ends. This is the inner loop of parsing and therefore one function: split into methods
of a reader, a page takes an eighth longer. Rare cases are handled elsewhere.
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

Arms = list[tuple[Arm, list[Step]]]

# Distance from the first group of a line to its beginning: the opening of the directive or the ticks of the marker, and
# the line end that the scan puts before the text.
_DIRECTIVE = 1 + len("@output(")
_TICKS = 1 + len("```")


def read_body(source: Source, scan: Scan, found: list[Diagnostic]) -> Playbook | None:
    """Return the tree as far as it can be read; None if there is no title or no step."""
    text = source.text
    sections = Sections(source, scan.blocks, found)
    steps: list[Step] = []
    heading: Match[str] | None = None
    first = len(text)
    conditions: list[Condition] = []
    # `parent` is the step of the current section; `step` owns its text: the parent, a sub-step, or None at the start of
    # an arm.
    parent: Step | None = None
    step: Step | None = None
    begin = 0
    arms: Arms = []
    leads: list[Step] = []
    opened: Match[str] | None = None
    nested = 0
    otherwise = False
    for kind, line in zip(scan.kinds, scan.lines, strict=True):
        start = line.start()
        if kind <= SECTION:
            # A section ends where the next begins.
            if parent is not None:
                _end(parent, step, begin, start, arms, leads, opened, found)
                parent = None
                if arms:
                    arms, leads, opened, nested, otherwise = [], [], None, 0, False
            elif heading is not None:
                sections.read(heading, start)
            else:
                first = start
            heading = line
            if kind == STEP:
                label, title = line[NUMBER] or "0", line[STEP].rstrip()
                parent = step = Step(int(label), label, title, start, line.start(STEP) - 1 + len(title), text, [])
                if parent.number != (steps[-1].number + 1 if steps else 1):
                    _warn_of_number(parent, steps, found)
                steps.append(parent)
                begin = line.end()
            continue
        if parent is None:
            continue

        # First decide whether the line is more than text.
        directive: Elicitation | PromptReference | ToolCall | Ignored | None = None
        if kind >= CONDITION:
            if kind > MARKER:
                nested = ticks_as_text(line, opened is not None, nested, found)
                continue
            word = line[WORD] or line[MARKER]
            if nested or (word == "if") is (opened is not None):
                nested = marker_as_text(line, word, nested, found)
                continue
        elif nested:
            continue
        elif kind == AT:
            directive = read_directive(line[0].strip(), line.start(AT) - 1 - len("@"), found)
            if directive is None:
                continue
        elif kind == ELICIT:
            texts = line[TEXTS].split('"')[1::2] if line[TEXTS] else []
            end = line.start(ELICIT) - 1
            directive = elicitation(line[KIND], texts, line[DEFAULT], line.start(KIND) - _DIRECTIVE, end, found)
        elif kind != OUTPUT and (kind != SUBSTEP or opened is None):
            continue

        # If so, the lines before it are text of the current step.
        if begin < start:
            if step is None and not text[begin:start].isspace():
                step = lead(parent, *arms[-1], leads)
            if step is not None:
                step.pieces.append((begin, start))
        begin = line.end()

        if kind == OUTPUT:
            step = step or lead(parent, *arms[-1], leads)
            if step.output:
                _note_replaced(step.output, line, found)
            options, at, end = line[OPTIONS], line.start(NAME) - _DIRECTIVE, line.start(OUTPUT) - 1
            options = tuple(options.split('"')[1::2]) if options else ()
            step.output = OutputCapture(line[NAME], _type(line[TYPE]), options, line[FIELD], at, end)
        elif directive is not None:
            if not isinstance(directive, Ignored):
                step = step or lead(parent, *arms[-1], leads)
                _give(step, directive, line, found)
        elif kind == SUBSTEP:
            title = line[SUBSTEP].rstrip()
            at = start + line[0].index("#") - 1
            step = Step(parent.number, line[LABEL], title, at, line.start(SUBSTEP) - 1 + len(title), text, [])
            arms[-1][1].append(step)
        elif kind == CONDITION:
            if arms:
                warn_of_arm(line, word, otherwise, found)
            opened = opened or line
            step = None
            at, end = line.start(WORD) - _TICKS, line.start(CONDITION) - 1
            operator: Operator = "!=" if line[OPERATOR] == "!=" else "=="
            condition = Condition(line[VARIABLE], operator, line[VALUE], "input", at, end, line.start(VARIABLE) - 1)
            conditions.append(condition)
            arms.append((Arm(condition, (), at, end), []))
        elif word == "else":
            warn_of_arm(line, word, otherwise, found)
            otherwise, step = True, None
            at = line.start(MARKER) - _TICKS
            arms.append((Arm(None, (), at, at + len("```else```")), []))
        else:
            step, opened = parent, None

    if parent is not None:
        _end(parent, step, begin, len(text), arms, leads, opened, found)
    elif heading is not None:
        sections.read(heading, len(text))
    for condition in conditions:
        if condition.variable not in sections.inputs:
            settle_conditions(steps, sections.inputs, found)
            break
    if not steps:
        _miss_steps(sections, found)
    elif sections.near_steps:
        _warn_of_headings(sections.near_steps, steps, found)
    title_line = scan.title
    if title_line is None:
        return None
    title = title_line[TITLE].rstrip()
    return Playbook(
        title,
        text[title_line.end() : first].strip(),
        sections.system,
        tuple(sections.inputs.values()),
        tuple(steps),
        sections.artifact,
        title_line.start(),
        title_line.start(TITLE) - 1 + len(title),
    )


def _end(
    parent: Step,
    step: Step | None,
    begin: int,
    stop: int,
    arms: Arms,
    leads: list[Step],
    opened: Match[str] | None,
    found: list[Diagnostic],
) -> None:
    """End the step at `stop`. The text from `begin` to there belongs to it, or to its current sub-step."""
    text = parent.document
    if begin < stop:
        # Blank lines after a directive are not text; without them most steps are one piece.
        if step is None:
            if not text[begin:stop].isspace():
                lead(parent, *arms[-1], leads).pieces.append((begin, stop))
        elif not step.pieces or not text[begin:stop].isspace():
            step.pieces.append((begin, stop))
    if arms:
        if opened:
            warn_of_no_end(opened, found)
        for arm, substeps in arms:
            arm.steps = tuple(substeps)
        parent.arms = tuple([arm for arm, _ in arms])
        warn_of_late_text(parent, found)
        if leads:
            name_leads(parent, leads, found)
        for arm in parent.arms:
            for substep in arm.steps:
                _fill(substep, found)
    _fill(parent, found)


def _fill(step: Step, found: list[Diagnostic]) -> None:
    step.content = content(step.document, step.pieces)
    if step.tool:
        _check_company(step, step.tool, found)


def _type(written: str | None) -> str | None:
    return OUTPUT_TYPES.get(written.lower(), "string") if written else None


def _give(
    step: Step, directive: Elicitation | PromptReference | ToolCall, line: Match[str], found: list[Diagnostic]
) -> None:
    replaced: Directive | None
    if isinstance(directive, Elicitation):
        replaced, step.elicitation = step.elicitation, directive
    elif isinstance(directive, PromptReference):
        replaced, step.prompt = step.prompt, directive
    else:
        replaced, step.tool = step.tool, directive
    if replaced:
        _note_replaced(replaced, line, found)


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


def _warn_of_number(step: Step, before: list[Step], found: list[Diagnostic]) -> None:
    expected = before[-1].number + 1 if before else 1
    message = f"Non-sequential step number: expected {expected}, got {step.number}"
    found.append(Diagnostic(warnings.STEP_NUMBER, message, step.span))


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
    playbook = read_body(source, result, found)
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
