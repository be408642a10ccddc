"""The result of parsing a pipeline file: a syntax tree, if there is one, and all findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic, Severity
    from quire.formats.pipeline.syntax import PipelineFile
    from quire.source import Source


class ParseResult(Struct, frozen=True):
    """The result of parsing one file. Diagnostics are in the order of the text."""

    source: Source
    file: PipelineFile | None
    """None exactly if there is an error."""
    diagnostics: tuple[Diagnostic, ...]
    partial: PipelineFile | None = None
    """The readable parts of a file with errors, with holes for the rest: only for more findings, never to be run."""

    def of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        return tuple(found for found in self.diagnostics if found.severity is severity)
