"""Print findings as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import quote

from quire import __version__
from quire.diagnostics import Code, Diagnostic, Severity
from quire.display.visible import escaped
from quire.values import Value, clean

if TYPE_CHECKING:
    from quire.display.diagnostics import Findings
    from quire.source import Source

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.LINT: "warning",
    Severity.NOTE: "note",
}


def render(files: Sequence[Findings], colour: bool = False) -> str:
    codes = sorted({found.code for file in files for found in file.diagnostics}, key=lambda code: code.id)
    places = {code.id: index for index, code in enumerate(codes)}
    log: Value = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "quire", "version": __version__, "rules": [_rule(code) for code in codes]}},
                "columnKind": "unicodeCodePoints",
                "results": [
                    _result(file.source, found, places[found.code.id]) for file in files for found in file.diagnostics
                ],
            }
        ],
    }
    return escaped(clean(json.dumps(log, indent=2, ensure_ascii=False))) + "\n"


def _rule(code: Code) -> dict[str, Value]:
    return {
        "id": code.id,
        "name": code.name,
        "shortDescription": {"text": code.explanation.split("\n\n")[0].replace("\n", " ")},
        "fullDescription": {"text": code.explanation},
        "defaultConfiguration": {"level": _LEVELS[code.severity]},
    }


def _result(source: Source, found: Diagnostic, index: int) -> dict[str, Value]:
    start, end = source.position(found.span.start), source.position(found.span.end)
    region: dict[str, Value] = {"startLine": start.line, "startColumn": start.column}
    if found.span.end > found.span.start:
        region |= {"endLine": end.line, "endColumn": end.column}
    text = f"{found.message}. {found.help}" if found.help else found.message
    uri = quote(clean(PurePath(source.name).as_posix()))
    return {
        "ruleId": found.code.id,
        "ruleIndex": index,
        "level": _LEVELS[found.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}],
    }
