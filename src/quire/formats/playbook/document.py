"""What `quire.formats` asks of a format, for playbooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic
from quire.formats.playbook.codes import codes
from quire.formats.playbook.lint import lint
from quire.formats.playbook.parse import parse
from quire.source import Source

if TYPE_CHECKING:
    from quire.formats.circles import Reach
    from quire.formats.playbook.calls import Resolver

__all__ = ["check", "codes"]


def check(source: Source, resolver: Resolver | None = None, reach: Reach | None = None) -> tuple[Diagnostic, ...]:
    reading = parse(source)
    found = (*reading.diagnostics, *lint(reading, resolver, reach))
    return tuple(sorted(found, key=lambda found: found.span.start))
