"""Read the sections of a playbook that are not steps."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from re import Match

from msgspec import Struct
from msgspec.structs import replace

from quire.diagnostics import Diagnostic, Fix, replacing
from quire.formats.near_names import word_fix
from quire.formats.playbook.codes import reader
from quire.formats.playbook.scan import SECTION, line_span
from quire.formats.playbook.syntax import ARTIFACT_TYPES, INPUT_TYPES, ArtifactDeclaration, InputDeclaration
from quire.patterns import late_pattern
from quire.source import NOWHERE, PLACEHOLDER, Source, Span
from quire.wording import did_you_mean, nearest_word

_LINE = late_pattern(
    r"\n[^\S\n]*+(?:(-)[^\S\n]++`([A-Za-z][A-Za-z0-9_]*+)`[^\S\n]++\(([^):\n]*+)(?::([^)\n]*+))?(\))"
    r"(?::[^\S\n]*+(\S.*+)?|[^\S\n]*+)(?![^\n])|([-*+].*+|[0-9]{1,9}+[.)][^\S\n].*+))"
)
_DASH, _NAME, _INPUT_TYPE, _VALUE, _CLOSE, _DESCRIPTION, _OTHER = range(1, 8)


def read_inputs(
    source: Source, start: int, end: int, declared: dict[str, InputDeclaration], findings: list[Diagnostic]
) -> None:
    """Add the inputs that the lines of `## INPUTS` declare; `start` is the end of its heading.

    Other text is allowed.
    """
    for line in _LINE.finditer(source.text, start, end):
        if line.lastindex == _OTHER:
            _complain(line[_OTHER].rstrip(), line.start(_OTHER), findings)
            continue
        this = _read_input(line)
        name = this.name
        twin = declared.setdefault(name, this)
        if twin is not this:
            message = f'Duplicate input name: "{name}"'
            help = f"it is declared on line {source.position(twin.start).line} already"
            findings.append(Diagnostic(reader.DUPLICATE_INPUT, message, this.name_span, "declared again here", help))


def _read_input(line: Match[str]) -> InputDeclaration:
    name, kind, value, description = line.group(_NAME, _INPUT_TYPE, _VALUE, _DESCRIPTION)
    type = INPUT_TYPES.get(kind) or INPUT_TYPES.get(kind.strip().lower(), "string")
    default: str | None = None
    options: tuple[str, ...] = ()
    if value and (value := value.strip()):
        if type == "enum":
            options = tuple([option for part in value.split(",") if (option := part.strip())])
        else:
            default = value
    description = description.rstrip() if description else ""
    stop = line.start(_DESCRIPTION) + len(description) if description else line.end(_CLOSE)
    start, name_start = line.start(_DASH), line.start(_NAME)
    return InputDeclaration(name, type, default, options, description, default is None, start, stop, name_start)


def _complain(text: str, at: int, findings: list[Diagnostic]) -> None:
    # A rule (`---`) and bold text (`**`) begin like list items but are not.
    if not text.startswith("**") and text.strip("-*+ \t"):
        from quire.formats.playbook.fixes import input_fix

        findings.append(
            Diagnostic(
                reader.MALFORMED_INPUT,
                f'Malformed input line: "{text}"',
                Span(at, at + len(text)),
                "declares nothing",
                "the form is - `name` (type): description",
                input_fix(text, at),
            )
        )


Gaps = Sequence[tuple[int, int]]

_TYPE = late_pattern(r"\n[^\S\n]*+type:[^\S\n]*+(\S++)[^\S\n]*+(?![^\n])", re.IGNORECASE)
_STEP_LIKE = late_pattern(r"\W*+step\b", re.IGNORECASE)
# A number, a colon, or a word followed by a colon or a dash: `## Step-by-step guide` is an ordinary section.
_STEP_NUMBER = late_pattern(r"\W*+step(?:[^\S\n]*+[0-9:]|[^\S\n]++\w++[^\S\n]*+(?::|[-–—][^\S\n]))", re.IGNORECASE)
_MEANT = {"md": "markdown", "html": "html_css", "css": "html_css", "js": "javascript", "ts": "typescript"}
_KNOWN = {
    "SYSTEM": "system",
    "SYSTEM PROMPT": "system",
    "INPUTS": "inputs",
    "ARTIFACTS": "artifacts",
    "OUTPUT": "artifacts",
}


def section_kind(name: str) -> str | None:
    """Return `system`, `inputs` or `artifacts` for the heading of a section; None for one that is skipped."""
    return _KNOWN.get(name) or _KNOWN.get(" ".join(name.upper().split()))


class Sections(Struct):
    """The content of the sections."""

    _source: Source
    _blocks: Gaps
    _found: list[Diagnostic]
    _system_heading: Match[str] | None = None
    inputs: dict[str, InputDeclaration] = {}
    system: str = ""
    artifact: ArtifactDeclaration | None = None
    step_like: Match[str] | None = None
    """The first heading that was probably meant to be a step."""
    near_steps: list[Match[str]] = []
    """Headings that were certainly meant to be steps."""
    extended: bool = True
    """False if `from:` of the artifact is not read."""

    def read(self, heading: Match[str], end: int) -> None:
        name = heading[SECTION]
        kind = section_kind(name)
        if kind == "inputs":
            for first, last in self._gaps(heading.end() - 1, end):
                read_inputs(self._source, first, last, self.inputs, self._found)
        elif kind == "system":
            self._read_system(heading, end)
        elif kind == "artifacts":
            self._read_artifact(heading.end() - 1, end)
        elif _STEP_LIKE.match(name):
            self.step_like = self.step_like or heading
            if _STEP_NUMBER.match(name):
                self.near_steps.append(heading)

    def _gaps(self, start: int, end: int) -> Gaps:
        """Return the parts of a section that are not inside a fence; each begins at the end of a line."""
        blocks = self._blocks
        if not blocks:
            return ((start, end),)
        gaps = []
        index = bisect_left(blocks, (start, 0))
        while index < len(blocks) and blocks[index][0] < end:
            gaps.append((start, blocks[index][0]))
            start = blocks[index][1]
            index += 1
        return [*gaps, (start, end)]

    def _read_system(self, heading: Match[str], end: int) -> None:
        if self._system_heading and self.system:
            note = "The system prompt is here twice: the last one counts"
            span = line_span(self._system_heading)
            self._found.append(Diagnostic(reader.REPLACED, note, span, "this one is dropped"))
        self.system = self._source.text[heading.end() : end].strip()
        self._system_heading = heading

    def _read_artifact(self, start: int, end: int) -> None:
        gaps, text = self._gaps(start, end), self._source.text
        lines = [match for first, last in gaps for match in _TYPE.finditer(text, first, last)]
        for earlier in lines[:-1]:
            note, span = "The type is here twice: the last one counts", Span(*earlier.span(1))
            self._found.append(Diagnostic(reader.REPLACED, note, span, "this one is dropped"))
        if lines:
            match = lines[-1]
            kind = match[1].lower()
            is_known = kind in ARTIFACT_TYPES
            written = match[1] if not is_known and PLACEHOLDER.fullmatch(match[1]) else kind
            before = self.artifact or ArtifactDeclaration("", 0, 0)
            self.artifact = replace(before, type=written, start=match.start(1), end=match.end(1))
            if not is_known and written is kind:
                self._warn_of_type(self.artifact)
        if self.extended and "from:" in text[start:end].lower():
            self._read_source(gaps)

    def _read_source(self, gaps: Gaps) -> None:
        from quire.formats.playbook.extensions import read_source

        text = self._source.text
        for first, last in gaps:
            if source := read_source(text, first, last):
                name, at = source
                declared = self.artifact or ArtifactDeclaration("", at, at + len(name))
                self.artifact = replace(declared, source=name, source_start=at)
                return

    def _warn_of_type(self, artifact: ArtifactDeclaration) -> None:
        close = _MEANT.get(artifact.type) or nearest_word(artifact.type, ARTIFACT_TYPES)
        written = self._source.text[artifact.start : artifact.end]
        fix = word_fix(written, ARTIFACT_TYPES, artifact.span)
        if artifact.type in _MEANT:
            fix = replacing(artifact.span, written, _MEANT[artifact.type])
        message = f'Unknown artifact type: "{artifact.type}"'
        help = did_you_mean(close, f"the types are {', '.join(ARTIFACT_TYPES)}", form='"{}"')
        self._found.append(Diagnostic(reader.ARTIFACT_TYPE, message, artifact.span, "", help, fix))


NO_STEPS = "No steps found: document must contain at least one ## STEP heading"


def warn_of_headings(headings: list[Match[str]], numbers: Sequence[int], findings: list[Diagnostic]) -> None:
    """Report headings that are nearly steps; `numbers` are those of the steps."""
    from quire.formats.playbook.fixes import step_edits

    fixes = {edit.span.start: edit for edit in step_edits(headings, numbers)}
    for heading in headings:
        message = f"Looks like a step but is not one: ## {heading[SECTION].rstrip()[:60]}"
        help = "a step begins with ## STEP 1: Title"
        edit = fixes.get(heading.start(SECTION) - 1)
        label, fix = "skipped with all its text", Fix("write the heading as a step", (edit,)) if edit else None
        findings.append(Diagnostic(reader.STEP_HEADING, message, line_span(heading), label, help, fix))


def miss_steps(sections: Sections, findings: list[Diagnostic]) -> None:
    """Report a document without steps."""
    from quire.formats.playbook.fixes import step_edits

    like = sections.step_like
    span, label = (line_span(like), "this is not written like a step") if like else (NOWHERE, "")
    edits = step_edits(sections.near_steps, ())
    title = "write the headings as steps" if len(edits) > 1 else "write the heading as a step"
    fix = Fix(title, edits) if edits else None
    findings.append(Diagnostic(reader.NO_STEPS, NO_STEPS, span, label, "a step begins with ## STEP 1: Title", fix))
