"""Print findings as SARIF 2.1.0, which code scanning services read.

The path of a flow is a `codeFlow`; every related place is a `relatedLocation` too. Findings that a comment hides are
results with a `suppression`. A `primaryLocationLineHash` keeps a finding the same when lines above it move.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from quire import __version__
from quire.diagnostics import Code, Diagnostic, Fix, Related, Severity, fix_of
from quire.display.visible import escaped
from quire.source import relative_to_here
from quire.values import Value, clean

if TYPE_CHECKING:
    from quire.display.diagnostics import Findings
    from quire.source import Source, Span

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.LINT: "warning",
    Severity.NOTE: "note",
}
_RANKS = {"proven": 100.0, "possible": 50.0}


def render(files: Sequence[Findings], colour: bool = False) -> str:
    found = [*_all(files)]
    codes = sorted({one.code for _, one, _ in found}, key=lambda code: code.id)
    places = {code.id: index for index, code in enumerate(codes)}
    marks = _Fingerprints()
    results: list[Value] = []
    for source, one, reason in found:
        results.append(_result(source, one, reason, places[one.code.id], marks.of(source, one)))
    log: Value = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "quire", "version": __version__, "rules": [_rule(code) for code in codes]}},
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }
    return escaped(clean(json.dumps(log, indent=2, ensure_ascii=False))) + "\n"


def _all(files: Sequence[Findings]) -> Iterator[tuple[Source, Diagnostic, str | None]]:
    """Yield all findings, and those that are hidden with the reason."""
    for file in files:
        yield from ((file.source, found, None) for found in file.diagnostics)
        yield from ((file.source, found, reason) for found, reason in file.hidden)


def _rule(code: Code) -> dict[str, Value]:
    return {
        "id": code.id,
        "name": code.name,
        "shortDescription": {"text": code.explanation.split("\n\n")[0].replace("\n", " ")},
        "fullDescription": {"text": code.explanation},
        "defaultConfiguration": {"level": _LEVELS[code.severity]},
    }


class _Fingerprints:
    """Texts that stay the same when lines are added or removed above a finding, or its line is indented."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._begun: dict[tuple[int, int, str], Any] = {}
        """The hash of a line and a code, by the identity of the source: a long line may have thousands of findings."""

    def of(self, source: Source, found: Diagnostic) -> str:
        number = source.position(found.span.start).line
        key = id(source), number, found.code.id
        if key not in self._begun:
            line = " ".join(source.line(number).split())
            self._begun[key] = hashlib.sha256(_text("\0".join((found.code.id, _uri(source), line))))
        hashed = self._begun[key].copy()
        hashed.update(_text("".join(f"\0{one.node}" for one in found.flow)))
        digest = hashed.hexdigest()[:16]
        self._seen[digest] += 1
        return f"{digest}:{self._seen[digest]}"


def _text(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _result(source: Source, found: Diagnostic, reason: str | None, index: int, fingerprint: str) -> Value:
    text = f"{found.message}. {found.help}" if found.help else found.message
    result: dict[str, Value] = {
        "ruleId": found.code.id,
        "ruleIndex": index,
        "level": _LEVELS[found.severity],
        "message": {"text": text},
        "locations": [_location(source, found.span)],
        "partialFingerprints": {"primaryLocationLineHash": fingerprint},
        "rank": _RANKS[found.confidence],
        "properties": {"confidence": found.confidence},
    }
    if found.related:
        result["relatedLocations"] = [{"id": id, **_related(source, one)} for id, one in enumerate(found.related, 1)]
    if found.flow:
        steps: list[Value] = [{"location": _related(source, one)} for one in found.flow]
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    if fix := fix_of(source, found):
        result["fixes"] = [_fix(source, fix)]
    if reason is not None:
        result["suppressions"] = [{"kind": "inSource", "justification": reason}]
    return result


def _related(source: Source, place: Related) -> dict[str, Value]:
    text = ": ".join(part for part in (place.node, place.message) if part)
    return {**_location(place.source or source, place.span), "message": {"text": text}}


def _location(source: Source, span: Span) -> dict[str, Value]:
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(source)}, "region": _region(source, span)}}


def _region(source: Source, span: Span) -> dict[str, Value]:
    start, end = source.position(span.start), source.position(span.end)
    region: dict[str, Value] = {"startLine": start.line, "startColumn": start.column}
    if span.end > span.start:
        region |= {"endLine": end.line, "endColumn": end.column}
    return region


def _uri(source: Source) -> str:
    return _address(source.name, os.getcwd())  # noqa: PTH109


@lru_cache(maxsize=100)
def _address(name: str, here: str) -> str:
    """Return the address of a file in the current folder, which is asked for at each finding."""
    return quote(clean(PurePath(relative_to_here(name) or name).as_posix()))


def _fix(source: Source, fix: Fix) -> Value:
    replacements: list[Value] = []
    for edit in fix.edits:
        start, end = source.position(edit.span.start), source.position(edit.span.end)
        # Without its end a region would be the rest of the line, which an insertion must not replace.
        region: Value = {
            "startLine": start.line,
            "startColumn": start.column,
            "endLine": end.line,
            "endColumn": end.column,
        }
        replacements.append({"deletedRegion": region, "insertedContent": {"text": edit.new}})
    change: Value = {"artifactLocation": {"uri": _uri(source)}, "replacements": replacements}
    return {"description": {"text": fix.title}, "artifactChanges": [change], "properties": {"safe": fix.safe}}
