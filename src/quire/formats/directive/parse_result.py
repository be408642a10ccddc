"""The result of parsing a directive: a syntax tree of the readable parts, and all findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from quire.diagnostics import Diagnostic, Severity
from quire.formats.directive.codes import errors

if TYPE_CHECKING:
    from quire.formats.directive.syntax import Directive
    from quire.source import Source

_READABLE = (errors.PERMISSION_TAG, errors.RISK)


class ParseResult(Struct):
    """The result of parsing one file. Diagnostics are in the order of the text."""

    source: Source
    partial: Directive
    """The parts that could be read, even if there are errors."""
    diagnostics: tuple[Diagnostic, ...]

    def of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        return tuple(found for found in self.diagnostics if found.severity is severity)

    @property
    def whole(self) -> bool:
        """True if the whole file could be read, so that checks can find more: errors are only about its meaning."""
        return all(found.code in _READABLE for found in self.of(Severity.ERROR))

    @property
    def directive(self) -> Directive | None:
        """The tree, or None if there is an error."""
        return None if self.of(Severity.ERROR) else self.partial
