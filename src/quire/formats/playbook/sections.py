"""Read the sections of a playbook that are not steps, and join the text of a step."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from re import Match

from quire.diagnostics import Diagnostic
from quire.formats.near_names import word_fix
from quire.formats.playbook.codes import errors, notes, warnings
from quire.formats.playbook.scan import SECTION, line_span
from quire.formats.playbook.syntax import (
    ARTIFACT_TYPES,
    INPUT_TYPES,
    ArtifactDeclaration,
    InputDeclaration,
)
from quire.source import PLACEHOLDER, Source, Span
from quire.wording import did_you_mean, nearest_word


def content(text: str, pieces: Sequence[tuple[int, int]]) -> str:
    """Join the text of a step from the pieces that are left without directives and branches.

    White space at the end of lines is removed; blank lines around a line that was taken out become one.
    """
    if len(pieces) == 1:
        start, end = pieces[0]
        piece = text[start:end]
        return (_tidied(piece) if " \n" in piece or "\t" in piece else piece).strip()
    kept: list[str] = []
    blank = False
    for start, end in pieces:
        piece = _tidied(text[start:end])
        body = piece.strip("\n")
        if not body:
            blank = True
            continue
        if kept:
            kept.append("\n\n" if blank or piece[0] == "\n" else "\n")
        kept.append(body)
        blank = piece.endswith("\n\n")
    return "".join(kept).strip()


def _tidied(text: str) -> str:
    return "\n".join([line.rstrip(" \t") for line in text.split("\n")])


_LINE = re.compile(
    r"\n[^\S\n]*+(?:(-)[^\S\n]++`([A-Za-z][A-Za-z0-9_]*+)`[^\S\n]++\(([^):\n]*+)(?::([^)\n]*+))?(\))"
    r"(?::[^\S\n]*+(\S.*+)?|[^\S\n]*+)(?![^\n])|([-*+].*+|[0-9]{1,9}+[.)][^\S\n].*+))"
)
_DASH, _NAME, _INPUT_TYPE, _VALUE, _CLOSE, _DESCRIPTION, _OTHER = range(1, 8)


def read_inputs(
    source: Source, start: int, end: int, declared: dict[str, InputDeclaration], found: list[Diagnostic]
) -> None:
    """Add the inputs that the lines of `## INPUTS` declare; `start` is the end of its heading.

    Other text is allowed.
    """
    for line in _LINE.finditer(source.text, start, end):
        name = line[_NAME]
        if name is None:
            _complain(line[_OTHER].rstrip(), line.start(_OTHER), found)
            continue
        kind, value, description = line[_INPUT_TYPE], line[_VALUE], line[_DESCRIPTION]
        resolved = INPUT_TYPES.get(kind) or INPUT_TYPES.get(kind.strip().lower(), "string")
        default: str | None = None
        options: tuple[str, ...] = ()
        if value and (value := value.strip()):
            if resolved == "enum":
                options = tuple([option for part in value.split(",") if (option := part.strip())])
            else:
                default = value
        if description:
            description = description.rstrip()
            stop = line.start(_DESCRIPTION) + len(description)
        else:
            description, stop = "", line.end(_CLOSE)
        this = InputDeclaration(
            name, resolved, default, options, description, default is None, line.start(_DASH), stop, line.start(_NAME)
        )
        twin = declared.setdefault(name, this)
        if twin is not this:
            found.append(
                Diagnostic(
                    errors.DUPLICATE_INPUT,
                    f'Duplicate input name: "{name}"',
                    this.name_span,
                    "declared again here",
                    f"it is declared on line {source.position(twin.start).line} already",
                )
            )


def _complain(text: str, at: int, found: list[Diagnostic]) -> None:
    # A rule (`---`) and bold text (`**`) begin like list items but are not.
    if not text.startswith("**") and text.strip("-*+ \t"):
        found.append(
            Diagnostic(
                warnings.MALFORMED_INPUT,
                f'Malformed input line: "{text}"',
                Span(at, at + len(text)),
                "declares nothing",
                "the form is - `name` (type): description",
            )
        )


Gaps = Sequence[tuple[int, int]]

_TYPE = re.compile(r"\n[^\S\n]*+type:[^\S\n]*+(\S++)[^\S\n]*+(?![^\n])", re.IGNORECASE)
_STEP_LIKE = re.compile(r"\W*+step\b", re.IGNORECASE)
# A number, a colon, or a word followed by a colon or a dash: `## Step-by-step guide` is an ordinary section.
_STEP_NUMBER = re.compile(r"\W*+step(?:[^\S\n]*+[0-9:]|[^\S\n]++\w++[^\S\n]*+(?::|[-–—][^\S\n]))", re.IGNORECASE)
_KNOWN = {
    "SYSTEM": "system",
    "SYSTEM PROMPT": "system",
    "INPUTS": "inputs",
    "ARTIFACTS": "artifacts",
    "OUTPUT": "artifacts",
}


class Sections:
    """The content of the sections."""

    system = ""
    artifact: ArtifactDeclaration | None = None
    step_like: Match[str] | None = None
    """The first heading that was probably meant to be a step."""
    _system_heading: Match[str] | None = None

    def __init__(self, source: Source, blocks: Gaps, found: list[Diagnostic]) -> None:
        self.inputs: dict[str, InputDeclaration] = {}
        self.near_steps: list[Match[str]] = []
        """Headings that were certainly meant to be steps."""
        self._source = source
        self._blocks = blocks
        self._found = found

    def read(self, heading: Match[str], end: int) -> None:
        name = heading[SECTION]
        known = _KNOWN.get(name) or _KNOWN.get(" ".join(name.upper().split()))
        if known == "inputs":
            for first, last in self._gaps(heading.end() - 1, end):
                read_inputs(self._source, first, last, self.inputs, self._found)
        elif known == "system":
            self._read_system(heading, end)
        elif known == "artifacts":
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
            self._found.append(Diagnostic(notes.REPLACED, note, span, "this one is dropped"))
        self.system = self._source.text[heading.end() : end].strip()
        self._system_heading = heading

    def _read_artifact(self, start: int, end: int) -> None:
        for first, last in self._gaps(start, end):
            match = _TYPE.search(self._source.text, first, last)
            if match:
                kind = match[1].lower()
                known = kind in ARTIFACT_TYPES
                written = match[1] if not known and PLACEHOLDER.fullmatch(match[1]) else kind
                self.artifact = ArtifactDeclaration(written, match.start(1), match.end(1))
                if not known and written is kind:
                    self._warn_of_type(self.artifact)
                return

    def _warn_of_type(self, artifact: ArtifactDeclaration) -> None:
        close = nearest_word(artifact.type, ARTIFACT_TYPES)
        self._found.append(
            Diagnostic(
                warnings.ARTIFACT_TYPE,
                f'Unknown artifact type: "{artifact.type}"',
                artifact.span,
                "",
                did_you_mean(close, f"the types are {', '.join(ARTIFACT_TYPES)}", form='"{}"'),
                word_fix(self._source.text[artifact.start : artifact.end], ARTIFACT_TYPES, artifact.span),
            )
        )
