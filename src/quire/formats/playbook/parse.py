"""Reads a playbook: text in, a syntax tree and diagnostics out. Never raises for what a document says.

The work is linear in the length of the text, whatever it is: each line is looked at a fixed number of times, by
patterns that cannot go back.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from re import Match

from quire.diagnostics import Diagnostic, Severity
from quire.formats.playbook.codes import errors, notes, warnings
from quire.formats.playbook.directives import looks_like
from quire.formats.playbook.inputs import read_inputs
from quire.formats.playbook.names import settle_conditions
from quire.formats.playbook.placeholders import PLACEHOLDER
from quire.formats.playbook.reading import Reading
from quire.formats.playbook.scan import (
    AT,
    CONDITION,
    ELICIT,
    MARKER,
    OUTPUT,
    SECTION,
    STEP,
    SUBSTEP,
    TITLE,
    is_section,
    line_span,
    scan,
    step_number,
)
from quire.formats.playbook.steps import StepReader
from quire.formats.playbook.suggest import nearest_word
from quire.formats.playbook.syntax import ArtifactDeclaration, InputDeclaration, Playbook
from quire.formats.playbook.types import ARTIFACT_TYPES
from quire.source import MAX_DOCUMENT_BYTES, NOWHERE, Source, Span

NO_TITLE = "No title found: document must contain a level-1 heading (# Title)"
NO_STEPS = "No steps found: document must contain at least one ## STEP heading"

_TYPE = re.compile(r"\n[^\S\n]*+type:[^\S\n]*+(\S++)[^\S\n]*+(?![^\n])", re.IGNORECASE)
_STEP_LIKE = re.compile(r"\W*+step\b", re.IGNORECASE)
_KNOWN = {
    "SYSTEM": "system",
    "SYSTEM PROMPT": "system",
    "INPUTS": "inputs",
    "ARTIFACTS": "artifacts",
    "OUTPUT": "artifacts",
}
_MEANT = (OUTPUT, ELICIT, SUBSTEP, CONDITION, MARKER)
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
    _system = ""
    _system_line: Match[str] | None = None
    _artifact: ArtifactDeclaration | None = None
    _step_like: Match[str] | None = None

    def __init__(self, source: Source) -> None:
        self._source = source
        self._text = source.text
        self._scan = scan(source.text)
        self._found: list[Diagnostic] = []
        self._steps = StepReader(source.text, self._found)
        self._inputs: dict[str, InputDeclaration] = {}
        self._first_section = len(source.text)

    def parse(self) -> Reading:
        result, found, steps = self._scan, self._found, self._steps
        if not result.title or result.title.start():
            self._check_title()
        self._read_sections()
        if not steps.steps:
            self._no_steps()
        if result.blocks or result.unclosed:
            self._note_fences()
        if steps.branching:
            settle_conditions(steps.steps, self._inputs, found)
        if found:
            found.sort(key=_in_order)
            if any(one.severity is Severity.ERROR for one in found):
                return Reading(self._source, None, tuple(found))
        return Reading(self._source, self._playbook(), tuple(found))

    def _read_sections(self) -> None:
        """Each section ends where the next begins, so it is read when that comes by."""
        steps = self._steps
        open: Match[str] | None = None
        in_step = False
        for kind, line in zip(self._scan.kinds, self._scan.lines, strict=True):
            if kind > SECTION:
                if in_step:
                    steps.read(kind, line)
                continue
            start = line.start()
            if in_step:
                steps.end(start)
            elif open:
                self._read_section(open, start)
            else:
                self._first_section = start
            open = line
            in_step = kind == STEP
            if in_step:
                steps.begin(line)
        if in_step:
            steps.end(len(self._text))
        elif open:
            self._read_section(open, len(self._text))

    def _read_section(self, line: Match[str], end: int) -> None:
        heading = line[SECTION].rstrip()
        match _KNOWN.get(heading) or _KNOWN.get(" ".join(heading.upper().split())):
            case "system":
                self._read_system(line, end)
            case "inputs":
                for first, last in self._gaps(line.end() - 1, end):
                    read_inputs(self._source, first, last, self._inputs, self._found)
            case "artifacts":
                self._read_artifact(line.end() - 1, end)
            case _:
                if self._step_like is None and _STEP_LIKE.match(heading):
                    self._step_like = line

    def _read_system(self, line: Match[str], end: int) -> None:
        if self._system_line and self._system:
            note = "The system prompt is here twice: the last one counts"
            self._found.append(Diagnostic(notes.REPLACED, note, line_span(self._system_line), "this one is dropped"))
        self._system = self._text[line.end() : end].strip()
        self._system_line = line

    def _gaps(self, start: int, end: int) -> Sequence[tuple[int, int]]:
        """The parts of a section that no fence holds; each begins where a line ends."""
        blocks = self._scan.blocks
        if not blocks:
            return ((start, end),)
        gaps = []
        index = bisect_left(blocks, (start, 0))
        while index < len(blocks) and blocks[index][0] < end:
            gaps.append((start, blocks[index][0]))
            start = blocks[index][1]
            index += 1
        return [*gaps, (start, end)]

    def _read_artifact(self, start: int, end: int) -> None:
        for first, last in self._gaps(start, end):
            match = _TYPE.search(self._text, first, last)
            if match:
                kind = match[1].lower()
                known = kind in ARTIFACT_TYPES
                written = match[1] if not known and PLACEHOLDER.fullmatch(match[1]) else kind
                self._artifact = ArtifactDeclaration(written, match.start(1), match.end(1))
                if not known and written is kind:
                    self._warn_of_type(self._artifact)
                return

    def _warn_of_type(self, artifact: ArtifactDeclaration) -> None:
        close = nearest_word(artifact.type, ARTIFACT_TYPES)
        self._found.append(
            Diagnostic(
                warnings.ARTIFACT_TYPE,
                f'Unknown artifact type: "{artifact.type}"',
                artifact.span,
                "",
                f'did you mean "{close}"?' if close else f"the types are {', '.join(ARTIFACT_TYPES)}",
            )
        )

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

    def _playbook(self) -> Playbook | None:
        text, title = self._text, self._scan.title
        if title is None:
            return None
        name = title[TITLE].rstrip()
        return Playbook(
            name,
            text[title.end() : self._first_section].strip(),
            self._system,
            tuple(self._inputs.values()),
            tuple(self._steps.steps),
            self._artifact,
            title.start(),
            title.start(TITLE) - 1 + len(name),
        )


def _means_something(line: Match[str], in_step: bool) -> bool:
    """Whether a line inside a fence would have been more than text outside of it."""
    if is_section(line):
        return True
    if in_step and line.lastindex == AT:
        return looks_like(line[0].strip()) is not None
    return in_step and line.lastindex in _MEANT
