"""The branches of a step: markers, arms and sub-steps."""

from __future__ import annotations

import re
from re import Match

from quire.diagnostics import Diagnostic
from quire.formats.playbook.codes import notes, warnings
from quire.formats.playbook.drafts import Draft, DraftArm, check_company, take_directive
from quire.formats.playbook.markers import Marker, marker_look_alike, marker_word, read_marker
from quire.formats.playbook.scan import AT, CAPTURE, FENCE, HASH, TICKS, line_span
from quire.source import Span

_SUBSTEP = re.compile(r"###\s++STEP\s++([0-9]++[a-z]):\s++(\S.*+)")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class BranchReader:
    """Reads the special lines of one step that may have branches. `found` takes the diagnostics."""

    def __init__(self, parent: Draft, begin: int, found: list[Diagnostic]) -> None:
        self._parent = self._draft = parent
        self._found = found
        self._open: Marker | None = None
        self._nested = 0
        self._arms: list[DraftArm] = []
        self._begin = begin

    def read(self, line: Match[str]) -> None:
        kind = line.lastindex
        if kind == TICKS or kind == FENCE:  # noqa: SIM109 - a tuple would be slower, and this is the inner loop
            self._ticks(line, line[kind].rstrip(), line.start(kind) - 1)
        elif kind == CAPTURE or kind == AT:  # noqa: SIM109
            if not self._nested and take_directive(self._draft, line, self._found):
                self._take(line)
        elif kind == HASH and self._open and not self._nested:
            match = _SUBSTEP.fullmatch(line[HASH].rstrip())
            if match:
                self._take(line)
                span = line_span(line)
                self._draft = Draft(self._parent.number, match[1], match[2], span.start, span.end)
                self._arms[-1].steps.append(self._draft)

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
            self._name_leads(parent.arms, text)
        for step in parent.family():
            check_company(step, self._found)

    def _take(self, line: Match[str]) -> None:
        """The line is no text of the draft at hand; what came before it is."""
        start = line.start()
        if self._begin < start:
            self._draft.ranges.append((self._begin, start))
        self._draft.stop = start
        self._begin = line.end()

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
        self._arms.append(DraftArm(marker, self._draft))
        self._parent.arms = self._arms

    def _name_leads(self, arms: list[DraftArm], text: str) -> None:
        """Drops empty lead drafts and gives the others the first letters that no sub-step of this step has."""
        leads: list[Draft] = []
        for arm in arms:
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
        taken = {step.label for arm in arms for step in arm.steps}
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
