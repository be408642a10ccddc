"""The `FormatModule` of directives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.formats.directive.check import check_reading
from quire.formats.directive.codes import codes
from quire.formats.directive.parse import parse

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.formats.directive.check_references import Surroundings
    from quire.source import Source

__all__ = ["check", "codes"]


def check(source: Source, around: Surroundings | None = None) -> tuple[Diagnostic, ...]:
    return check_reading(parse(source), around)
