"""The result of parsing a playbook: a syntax tree, if there is one, and all findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic, Severity
    from quire.formats.playbook.syntax import Playbook
    from quire.source import Source


class ParseResult(Struct, frozen=True):
    """The result of parsing one document. Diagnostics are in the order of the text."""

    source: Source
    playbook: Playbook | None
    """None exactly if there is an error."""
    diagnostics: tuple[Diagnostic, ...]

    def of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        return tuple(found for found in self.diagnostics if found.severity is severity)
