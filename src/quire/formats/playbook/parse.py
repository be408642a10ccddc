"""Reads a playbook: text in, a syntax tree and diagnostics out. Never raises for what a document says.

The work is linear in the length of the text, whatever it is: each line is looked at a fixed number of times, by
patterns that cannot go back.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter
from re import Match

from quire.diagnostics import Diagnostic, Severity
from quire.formats.playbook.branches import BranchReader
from quire.formats.playbook.build import StepBuilder
from quire.formats.playbook.codes import errors, notes, warnings
from quire.formats.playbook.directives import looks_like
from quire.formats.playbook.drafts import Draft, read_flat
from quire.formats.playbook.flat import flat_step
from quire.formats.playbook.inputs import read_inputs
from quire.formats.playbook.making import quick
from quire.formats.playbook.markers import Marker, read_marker
from quire.formats.playbook.names import Names
from quire.formats.playbook.placeholders import PLACEHOLDER, Placeholders
from quire.formats.playbook.reading import Reading
from quire.formats.playbook.scan import (
    AT,
    CAPTURE,
    FENCE,
    HASH,
    SECTION,
    STEP,
    TICKS,
    is_section,
    line_span,
    scan,
    step_number,
)
from quire.formats.playbook.suggest import nearest_word
from quire.formats.playbook.syntax import ArtifactDeclaration, Condition, InputDeclaration, Playbook, Step
from quire.formats.playbook.types import ARTIFACT_TYPES
from quire.source import MAX_DOCUMENT_BYTES, NOWHERE, Source, Span

NO_TITLE = "No title found: document must contain a level-1 heading (# Title)"
NO_STEPS = "No steps found: document must contain at least one ## STEP heading"

_TYPE = re.compile(r"\n[^\S\n]*+type:[^\S\n]*+(\S++)[^\S\n]*+(?![^\n])", re.IGNORECASE)
_STEP_LIKE = re.compile(r"\W*+step\b", re.IGNORECASE)
_playbook = quick(Playbook)
_reading = quick(Reading)
_HEADINGS = (STEP, SECTION)
_TICKS = (FENCE, TICKS)
_KNOWN = {
    "SYSTEM": "system",
    "SYSTEM PROMPT": "system",
    "INPUTS": "inputs",
    "ARTIFACTS": "artifacts",
    "OUTPUT": "artifacts",
}
_in_order = attrgetter("span.start")


def parse(source: Source) -> Reading:
    if source.size > MAX_DOCUMENT_BYTES:
        message = "Document exceeds 200KB size limit"
        help = f"it has {source.size:,} bytes; 200,000 is the limit"
        return Reading(source, None, (Diagnostic(errors.TOO_LARGE, message, NOWHERE, "", help),))
    if not source.text or source.text.isspace():
        return Reading(source, None, (Diagnostic(errors.EMPTY, "Document is empty", NOWHERE),))
    return _Parser(source).parse()


class _Parser:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._text = source.text
        self._scan = scan(source.text)
        self._found: list[Diagnostic] = []
        self._inputs: dict[str, InputDeclaration] = {}
        self._steps: list[Draft | Step] = []
        self._system = ""
        self._system_line: Match[str] | None = None
        self._artifact: ArtifactDeclaration | None = None
        self._first_section = len(source.text)
        self._step_like: Match[str] | None = None
        self._branches = False
        self._tidy = " \n" not in source.text and "\t\n" not in source.text
        self._places = Placeholders(source.text)

    def parse(self) -> Reading:
        result = self._scan
        self._read_sections()
        self._check_title()
        if not self._steps:
            self._no_steps()
        else:
            self._check_numbers()
        if result.blocks or result.unclosed:
            self._note_fences()
        playbook = self._build()
        found = self._found
        if found:
            found.sort(key=_in_order)
            if any(one.severity is Severity.ERROR for one in found):
                playbook = None
        return _reading(self._source, playbook, tuple(found))

    def _read_sections(self) -> None:
        title, lines = self._scan.title, self._scan.lines
        after = title.start() if title else -1
        heads = [at for at, line in enumerate(lines) if line.lastindex in _HEADINGS and line.start() > after]
        if not heads:
            return
        self._first_section = lines[heads[0]].start()
        heads.append(len(lines))
        for at, following in pairwise(heads):
            line = lines[at]
            end = lines[following].start() if following < len(lines) else len(self._text)
            if line.lastindex == STEP and (number := step_number(line)) is not None:
                self._read_step(number, line, lines[at + 1 : following] if at + 1 < following else (), end)
                continue
            heading = line[0][3:].strip()
            match _KNOWN.get(heading) or _KNOWN.get(" ".join(heading.upper().split())):
                case "system":
                    self._read_system(line, end)
                case "inputs":
                    self._read_inputs(line.end() - 1, end)
                case "artifacts":
                    self._read_artifact(line.end() - 1, end)
                case _:
                    if self._step_like is None and _STEP_LIKE.match(heading):
                        self._step_like = line

    def _read_step(self, number: int, line: Match[str], lines: Sequence[Match[str]], end: int) -> None:
        step = flat_step(self._text, self._places, self._tidy, number, line, lines, end)
        if step:
            self._steps.append(step)
            return
        title = line[STEP].rstrip()
        draft = Draft(number, str(number), title, line.start(), line.start(STEP) - 1 + len(title))
        self._steps.append(draft)
        if any(special.lastindex in _TICKS for special in lines):
            reader = BranchReader(draft, line.end(), self._found)
            for special in lines:
                reader.read(special)
            reader.finish(end, self._text)
            self._branches = self._branches or draft.arms is not None
        else:
            read_flat(draft, lines, line.end(), end, self._found)

    def _read_system(self, line: Match[str], end: int) -> None:
        if self._system_line and self._system:
            note = "The system prompt is here twice: the last one counts"
            self._found.append(Diagnostic(notes.REPLACED, note, line_span(self._system_line), "this one is dropped"))
        self._system = self._text[line.end() : end].strip()
        self._system_line = line

    def _gaps(self, start: int, end: int) -> list[tuple[int, int]]:
        """The parts of a section that no fence holds; each begins where a line ends."""
        blocks = self._scan.blocks
        if not blocks:
            return [(start, end)]
        gaps = []
        index = bisect_left(blocks, (start, 0))
        while index < len(blocks) and blocks[index][0] < end:
            gaps.append((start, blocks[index][0]))
            start = blocks[index][1]
            index += 1
        return [*gaps, (start, end)]

    def _read_inputs(self, start: int, end: int) -> None:
        declarations: list[InputDeclaration] = []
        for first, last in self._gaps(start, end):
            declarations += read_inputs(self._text, first, last, self._found)
        for declared in declarations:
            twin = self._inputs.setdefault(declared.name, declared)
            if twin is not declared:
                line = self._source.position(twin.span.start).line
                self._found.append(
                    Diagnostic(
                        errors.DUPLICATE_INPUT,
                        f'Duplicate input name: "{declared.name}"',
                        declared.name_span,
                        "declared again here",
                        f"it is declared on line {line} already",
                    )
                )

    def _read_artifact(self, start: int, end: int) -> None:
        for first, last in self._gaps(start, end):
            match = _TYPE.search(self._text, first, last)
            if not match:
                continue
            span = Span(match.start(1), match.end(1))
            if PLACEHOLDER.fullmatch(match[1]):
                self._artifact = ArtifactDeclaration(match[1], span)
                return
            kind = match[1].lower()
            self._artifact = ArtifactDeclaration(kind, span)
            if kind not in ARTIFACT_TYPES:
                close = nearest_word(kind, ARTIFACT_TYPES)
                self._found.append(
                    Diagnostic(
                        warnings.ARTIFACT_TYPE,
                        f'Unknown artifact type: "{kind}"',
                        span,
                        "",
                        f'did you mean "{close}"?' if close else f"the types are {', '.join(ARTIFACT_TYPES)}",
                    )
                )
            return

    def _check_title(self) -> None:
        result = self._scan
        if result.title:
            before = self._text[: result.title.start()]
            if result.fenced_title:
                note = "The title stands inside a code fence, which is read as text"
                self._found.append(Diagnostic(notes.FENCED_TITLE, note, line_span(result.title)))
            elif before and not before.isspace():
                start = len(before) - len(before.lstrip())
                stop = before.index("\n", start)
                note = "Text before the title is no part of the playbook"
                self._found.append(Diagnostic(notes.BEFORE_TITLE, note, Span(start, stop)))
        elif result.late_title:
            span, help = line_span(result.late_title), "move this heading above the first ## section"
            self._found.append(Diagnostic(errors.NO_TITLE, NO_TITLE, span, "comes after a ## section", help))
        else:
            help = "begin the document with # and its title"
            self._found.append(Diagnostic(errors.NO_TITLE, NO_TITLE, NOWHERE, "", help))

    def _no_steps(self) -> None:
        like = self._step_like
        span, label = (line_span(like), "this is not written like a step") if like else (NOWHERE, "")
        self._found.append(Diagnostic(errors.NO_STEPS, NO_STEPS, span, label, "a step begins with ## STEP 1: Title"))

    def _check_numbers(self) -> None:
        expected = 1
        for step in self._steps:
            if step.number != expected:
                message = f"Non-sequential step number: expected {expected}, got {step.number}"
                span = Span(step.start, step.end) if isinstance(step, Draft) else step.span
                self._found.append(Diagnostic(warnings.STEP_NUMBER, message, span))
            expected = step.number + 1

    def _note_fences(self) -> None:
        result = self._scan
        heads = [line for line in result.lines if is_section(line)]
        at = 0
        for (start, _), inside in zip(result.blocks, result.fenced, strict=True):
            while at < len(heads) and heads[at].start() < start:
                at += 1
            in_step = at > 0 and step_number(heads[at - 1]) is not None
            meant = [line for line in inside if _means_something(line, in_step)]
            if meant:
                more = f" (and {len(meant) - 1} more like it)" if len(meant) > 1 else ""
                text = meant[0][0].strip()
                shown = text if len(text) <= 60 else f"{text[:60]}…"
                message = f"Inside a code fence, so content: {shown}{more}"
                label = f"the fence begins on line {self._source.position(start).line}"
                self._found.append(Diagnostic(notes.FENCED, message, line_span(meant[0]), label))
        for line in result.unclosed:
            message = "This code fence is never closed: read as a line of text"
            self._found.append(Diagnostic(notes.UNCLOSED_FENCE, message, line_span(line)))

    def _build(self) -> Playbook | None:
        text, title = self._text, self._scan.title
        names = Names(self._inputs, self._steps, self._found) if self._branches else None
        builder = StepBuilder(text, self._places, self._tidy, names.condition if names else _no_condition)
        steps: list[Step] = []
        for step in self._steps:
            steps.append(builder.build(step) if isinstance(step, Draft) else step)
            if names:
                names.after(step)
        if title is None or not steps:
            return None
        return _playbook(
            title[0][2:].strip(),
            text[title.end() : self._first_section].strip(),
            self._system,
            tuple(self._inputs.values()),
            tuple(steps),
            self._artifact,
            line_span(title),
        )


def _no_condition(marker: Marker, draft: Draft) -> Condition:
    raise AssertionError("a document without branches has no conditions")


def _means_something(line: Match[str], in_step: bool) -> bool:
    """Whether a line inside a fence would have been more than text outside of it."""
    if is_section(line):
        return True
    text = line[0].strip()
    if not in_step or line.lastindex == CAPTURE:
        return in_step
    if line.lastindex == AT:
        return looks_like(text) is not None
    if line.lastindex == HASH:
        return text.startswith("### STEP ")
    return read_marker(text, 0) is not None
