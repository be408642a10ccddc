"""Print findings as a list of objects, for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic, Edit, edits_of
from quire.display.visible import escaped
from quire.values import clean

if TYPE_CHECKING:
    from quire.display.diagnostics import Findings
    from quire.source import Source


def render(files: Sequence[Findings], colour: bool = False) -> str:
    objects = [_object(file.source, found) for file in files for found in file.diagnostics]
    return escaped(clean(json.dumps(objects, indent=2, ensure_ascii=False))) + "\n"


def _object(source: Source, found: Diagnostic) -> dict[str, str | int | list[dict[str, str | int]]]:
    start, end = source.position(found.span.start), source.position(found.span.end)
    return {
        "file": source.name,
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
        "code": found.code.id,
        "name": found.code.name,
        "severity": found.severity.value,
        "message": found.message,
        "label": found.label,
        "help": found.help,
        "fix": [_edit(source, edit) for edit in edits_of(source, found)],
    }


def _edit(source: Source, edit: Edit) -> dict[str, str | int]:
    at = source.position(edit.span.start)
    return {"line": at.line, "column": at.column, "old": edit.old, "new": edit.new}
