"""The `FormatModule` of pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.formats.pipeline.check import check_reading
from quire.formats.pipeline.codes import codes
from quire.formats.pipeline.parse import parse

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.source import Source

__all__ = ["check", "codes"]


def check(source: Source) -> tuple[Diagnostic, ...]:
    return check_reading(parse(source))
