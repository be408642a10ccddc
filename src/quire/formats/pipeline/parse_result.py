"""What comes out of reading a pipeline file: a tree, if there can be one, and everything there is to say about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic, Severity
    from quire.formats.pipeline.syntax import PipelineFile
    from quire.source import Source


class Reading(Struct, frozen=True):
    """`file` is None exactly when there is an error. Diagnostics are in the order of the text.

    `partial` is what could be read of a file with errors, with holes where something could not: to be looked at for
    further findings, never to be run.
    """

    source: Source
    file: PipelineFile | None
    diagnostics: tuple[Diagnostic, ...]
    partial: PipelineFile | None = None

    def of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        return tuple(found for found in self.diagnostics if found.severity is severity)
