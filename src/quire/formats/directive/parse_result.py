"""What comes out of reading a directive: a tree, as far as there can be one, and all there is to say about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from quire.diagnostics import Diagnostic, Severity
from quire.formats.directive.codes import errors

if TYPE_CHECKING:
    from quire.formats.directive.syntax import Directive
    from quire.source import Source

_READABLE = (errors.PERMISSION_TAG, errors.RISK)


class Reading(Struct):
    """`partial` holds what could be read, also where there is an error. Diagnostics are in the order of the text."""

    source: Source
    partial: Directive
    diagnostics: tuple[Diagnostic, ...]

    def of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        return tuple(found for found in self.diagnostics if found.severity is severity)

    @property
    def whole(self) -> bool:
        """Whether everything could be read, so that there is more to find: the errors are about what it says."""
        return all(found.code in _READABLE for found in self.of(Severity.ERROR))

    @property
    def directive(self) -> Directive | None:
        """The tree, or None where there is an error."""
        return None if self.of(Severity.ERROR) else self.partial
