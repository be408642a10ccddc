"""Run all checks of a playbook that go beyond reading it."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from quire.formats.playbook.codes import codes
from quire.formats.playbook.lint import lint, missing_prompt_files
from quire.formats.playbook.parse import parse_scanned

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.formats.playbook.lint import HasFile
    from quire.formats.playbook.scan import Scan
    from quire.formats.playbook.syntax import ParseResult
    from quire.formats.resolver import DocumentResolver
    from quire.source import Source

__all__ = ["check", "codes"]


def check(source: Source, resolver: DocumentResolver | None = None) -> tuple[Diagnostic, ...]:
    """Return all findings about a playbook, but for prompt files that are missing."""
    return check_reading(*parse_scanned(source), resolver)


def check_reading(
    reading: ParseResult,
    scanned: Scan | None,
    resolver: DocumentResolver | None = None,
    has_file: HasFile | None = None,
) -> tuple[Diagnostic, ...]:
    """Return all findings about a playbook. `has_file` tells whether a file exists beside the playbook."""
    found = [*reading.diagnostics, *lint(reading, resolver, scanned)]
    if has_file is not None and reading.playbook is not None:
        found += missing_prompt_files(reading.playbook, has_file)
    return tuple(sorted(found, key=attrgetter("span.start")))
