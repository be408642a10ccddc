"""Labels for what stands in an arm before its first sub-step."""

from __future__ import annotations

from collections.abc import Sequence

from quire.diagnostics import Diagnostic
from quire.formats.playbook.codes import notes
from quire.formats.playbook.syntax import Step

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def name_leads(parent: Step, leads: Sequence[Step], found: list[Diagnostic]) -> None:
    """Gives each lead the first letter that no sub-step of its parent has, and its first line of text as its place."""
    taken = {step.label for arm in parent.arms for step in arm.steps}
    prefix = str(parent.number)
    letters = (a + b for a in ("", *_LETTERS) for b in _LETTERS)
    free = (label for letter in letters if (label := prefix + letter) not in taken)
    for lead in leads:
        _place(lead)
        lead.label = next(free, f"{prefix}zz")
        found.append(
            Diagnostic(
                notes.LEAD_TEXT,
                f"Text before the first sub-step of this arm: read as a sub-step {lead.label}",
                lead.span,
                "",
                f"give it a heading: ### STEP {lead.label}: Title",
            )
        )


def _place(lead: Step) -> None:
    """A lead of directives alone keeps the place of its marker."""
    for start, end in lead.pieces:
        piece = lead.document[start:end]
        if not piece.isspace():
            lead.start = start + len(piece) - len(piece.lstrip())
            stop = lead.document.find("\n", lead.start, end)
            lead.end = stop if stop >= 0 else end
            return
