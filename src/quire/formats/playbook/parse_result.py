"""What comes out of reading a playbook: a tree, if there can be one, and everything there is to say about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic, Severity
    from quire.formats.playbook.syntax import Playbook
    from quire.source import Source


class Reading(Struct, frozen=True):
    """`playbook` is None exactly when there is an error. Diagnostics are in the order of the text."""

    source: Source
    playbook: Playbook | None
    diagnostics: tuple[Diagnostic, ...]

    def of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        return tuple(found for found in self.diagnostics if found.severity is severity)
