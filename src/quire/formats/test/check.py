"""Run all checks of a test file that need nothing but its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.formats.test.codes import codes
from quire.formats.test.parse import parse

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.source import Source

__all__ = ["check", "codes"]


def check(source: Source) -> tuple[Diagnostic, ...]:
    """Return all findings about a test file."""
    return parse(source).diagnostics
