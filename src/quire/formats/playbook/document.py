"""What `quire.formats` asks of a format, for playbooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.formats.playbook.codes import codes
from quire.formats.playbook.lint import lint, missing_prompt_files
from quire.formats.playbook.parse import parse

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.formats.playbook.check_calls import Resolver
    from quire.formats.playbook.lint import HasFile
    from quire.formats.resolver import Reach
    from quire.source import Source

__all__ = ["check", "codes"]


def check(
    source: Source,
    resolver: Resolver | None = None,
    reach: Reach | None = None,
    has_file: HasFile | None = None,
) -> tuple[Diagnostic, ...]:
    """`has_file` says whether there is a file beside the playbook."""
    reading = parse(source)
    found = [*reading.diagnostics, *lint(reading, resolver, reach)]
    if has_file is not None and reading.playbook is not None:
        found += missing_prompt_files(reading.playbook, has_file)
    return tuple(sorted(found, key=lambda found: found.span.start))
