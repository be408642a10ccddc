"""The sections of a playbook that are no steps."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from re import Match

from quire.diagnostics import Diagnostic
from quire.formats.near_names import word_fix
from quire.formats.playbook.codes import notes, warnings
from quire.formats.playbook.inputs import read_inputs
from quire.formats.playbook.placeholders import PLACEHOLDER
from quire.formats.playbook.scan import SECTION, line_span
from quire.formats.playbook.syntax import ArtifactDeclaration, InputDeclaration
from quire.formats.playbook.types import ARTIFACT_TYPES
from quire.source import Source
from quire.wording import nearest_word

Gaps = Sequence[tuple[int, int]]

_TYPE = re.compile(r"\n[^\S\n]*+type:[^\S\n]*+(\S++)[^\S\n]*+(?![^\n])", re.IGNORECASE)
_STEP_LIKE = re.compile(r"\W*+step\b", re.IGNORECASE)
# A number, a colon, or a word with a colon or a dash after it: `## Step-by-step guide` is a section like any other.
_STEP_NUMBER = re.compile(r"\W*+step(?:[^\S\n]*+[0-9:]|[^\S\n]++\w++[^\S\n]*+(?::|[-–—][^\S\n]))", re.IGNORECASE)
_KNOWN = {
    "SYSTEM": "system",
    "SYSTEM PROMPT": "system",
    "INPUTS": "inputs",
    "ARTIFACTS": "artifacts",
    "OUTPUT": "artifacts",
}


class Sections:
    """What they say. `step_like` is the first heading that was probably meant to be a step's, `near_steps` are those
    that were certainly meant so."""

    system = ""
    artifact: ArtifactDeclaration | None = None
    step_like: Match[str] | None = None
    _system_heading: Match[str] | None = None

    def __init__(self, source: Source, blocks: Gaps, found: list[Diagnostic]) -> None:
        self.inputs: dict[str, InputDeclaration] = {}
        self.near_steps: list[Match[str]] = []
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
        """The parts of a section that no fence holds; each begins where a line ends."""
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
                f'did you mean "{close}"?' if close else f"the types are {', '.join(ARTIFACT_TYPES)}",
                word_fix(self._source.text[artifact.start : artifact.end], ARTIFACT_TYPES, artifact.span),
            )
        )
