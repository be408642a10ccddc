"""The `FormatModule` of knowledge files."""

from __future__ import annotations

from quire.formats.directive.codes import knowledge_codes as codes
from quire.formats.directive.knowledge import check_knowledge as check

__all__ = ["check", "codes"]
